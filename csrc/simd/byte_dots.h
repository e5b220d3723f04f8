// Dot products of rows of 8-bit integers, for processors that have an instruction for them.
//
// The instruction multiplies unsigned bytes with signed ones, so one side is stored less 128; the
// caller adds what that takes away (kernel_tile.cc). Sums are exact: 32-bit integers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dcsvm {

// Features of a row that are multiplied together: the instruction adds four products.
constexpr std::size_t bytes_at_once = 4;

// Most queries that are multiplied at once; their rows are read in groups of half as many.
constexpr std::size_t byte_queries = 32, byte_query_group = byte_queries / 2;
// Rows of queries are a multiple of so many bytes, the features that are not there zero. As many
// features of a panel may be read past its end.
constexpr std::size_t byte_row_unit = 64;

// Dot products of rows of 8-bit integers. begin() and end() are called before and after those of
// one thread.
struct ByteDots {
  void (*begin)();
  // out[query * panel_rows + lane] = sum of query[k] * panel[k][lane], exactly. The queries begin
  // `stride` bytes apart. A panel holds n_quads times four neighbouring features of each of
  // panel_rows rows, every value less 128.
  void (*multiply)(const std::uint8_t* queries, std::size_t stride, std::size_t n_queries,
                   const std::int8_t* panel, std::size_t n_quads, std::int32_t* out);
  void (*end)();
};

// Null where the processor has no such instruction.
const ByteDots* byte_dots();

}  // namespace dcsvm
