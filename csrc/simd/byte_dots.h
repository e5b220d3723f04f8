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

// Most queries that are multiplied at once; their rows are read in whole groups.
constexpr std::size_t byte_queries = 32, byte_query_group = 8;

// out[query * panel_rows + lane] = sum of query[k] * panel[k][lane], exactly. The queries begin
// `stride` bytes apart. A panel holds n_quads times four neighbouring features of each of
// panel_rows rows, every value less 128.
using ByteDots = void (*)(const std::uint8_t* queries, std::size_t stride, std::size_t n_queries,
                          const std::int8_t* panel, std::size_t n_quads, std::int32_t* out);

// Null where the processor has no such instruction.
ByteDots byte_dots();

}  // namespace dcsvm
