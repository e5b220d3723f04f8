// LIBSVM text split at newlines into chunks, which are counted and later parsed in parallel.
//
// The counts (lines, colons, largest index) determine the allocation and the storage format of
// rows. Chunk boundaries depend on the text only, not on the number of threads.
//
// Loops over a chunk do not check bounds. They rely on two facts: each line ends in '\n', and
// read_ahead bytes are readable after it. The last lines of the text, for which neither is certain,
// are copied to a buffer where both hold.
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

// A scanned text. The bytes must outlive it, except for the last lines, which are copied.
struct Text {
  std::vector<TextChunk> chunks;
  std::unique_ptr<char[]> last_lines;
  bool is_mapped = false;       // the bytes are pages of a file, released after reading
  bool skips_comments = false;  // comment lines are not rows
  std::size_t n_rows = 0, n_lines = 0;
  std::size_t n_pairs = 0;  // upper bound of the index:value pairs
  // Largest index, even of a zero value; for malformed text, any number in 0..2^31-2.
  std::int32_t n_features = 0;
};

// Small enough for the L2 cache and for balanced threads at the end of a text, large enough that
// the overhead of a chunk is negligible.
constexpr std::size_t usual_chunk_bytes = std::size_t{1} << 18;

// Splits a text into chunks of about `chunk_bytes`, or more if there would be too many. A mapped
// file is read again when it is parsed and does not stay in memory.
Text scan_text(const char* begin, const char* end, int threads,
               std::size_t chunk_bytes = usual_chunk_bytes, bool is_mapped = false,
               bool skips_comments = false);

// Releases the pages of a chunk that was read from a mapped file.
void release(const Text& text, const TextChunk& chunk);

// Calls parse(i) for all chunks and releases them. Rethrows the first exception in order of chunks.
template <class Parse>
void for_chunks(const Text& text, int threads, Parse parse) {
  parallel_for({threads, text.chunks.size()}, [&](std::size_t i) {
    parse(i);
    release(text, text.chunks[i]);
  });
}

}  // namespace dcsvm
