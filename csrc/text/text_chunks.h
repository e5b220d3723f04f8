// LIBSVM text cut at newlines into chunks, which are counted, and later parsed, side by side.
//
// Counting (lines, colons, the largest index) tells the caller what to allocate and which form the
// rows should have. Where the text is cut depends on the text alone, never on the threads.
//
// Loops over a chunk check no bounds. They rely on two facts: each line ends in '\n', and
// read_ahead bytes can be read after that. The lines at the end of the text, of which neither is
// known, are copied to where both hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "threads/parallel.h"

namespace dcsvm {

struct TextChunk {
  const char* begin;
  const char* end;  // after a newline
  std::size_t n_rows = 0, n_lines = 0, n_pairs = 0;
  std::size_t first_row = 0, first_line = 0, first_pair = 0;
  std::int32_t n_features = 0;
};

// A text whose extent is known. The bytes must stay where they are; a last line without an end is
// copied.
struct Text {
  std::vector<TextChunk> chunks;
  std::unique_ptr<char[]> last_lines;
  bool is_mapped = false;       // the bytes are pages of a file, let go as soon as they are read
  bool skips_comments = false;  // lines of comments are no rows
  std::size_t n_rows = 0, n_lines = 0;
  std::size_t n_pairs = 0;  // at least the number of index:value pairs
  // The largest index, even with a zero value, of text that is well formed; of other text some
  // number in 0..2^31-2.
  std::int32_t n_features = 0;
};

// Small enough for the second-level cache and to keep threads busy at the end of a text, large
// enough that starting one costs nothing.
constexpr std::size_t usual_chunk_bytes = std::size_t{1} << 18;

// Chunks have about `chunk_bytes`, more where there would be too many. Text that is a mapped file
// is read from there again when it is parsed, and does not stay in memory.
Text scan_text(const char* begin, const char* end, int threads,
               std::size_t chunk_bytes = usual_chunk_bytes, bool is_mapped = false,
               bool skips_comments = false);

// Lets the pages of a mapped file go from which a chunk has been read.
void release(const Text& text, const TextChunk& chunk);

// Calls parse(i) for all chunks, which are released when they are done; where some fail, it throws
// what the first of them threw.
template <class Parse>
void for_chunks(const Text& text, int threads, Parse parse) {
  parallel_for({threads, text.chunks.size()}, [&](std::size_t i) {
    parse(i);
    release(text, text.chunks[i]);
  });
}

}  // namespace dcsvm
