// LIBSVM text split at newlines into chunks, which are counted and later parsed in parallel.
//
// The counts (lines, colons, largest index) determine the allocation and the storage format of
// rows. Chunk boundaries depend on the text only, not on the number of threads.
//
// A text is in memory or in an open file. Each thread copies a chunk to its own buffer. Loops over
// a chunk do not check bounds: in the buffer, each line ends in '\n' and read_ahead bytes are
// readable after it. A file may change between the two passes, so the second pass counts, too,
// and never writes beyond the first counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "threads/parallel.h"

namespace dcsvm {

// Bytes in memory, or of an open file if `memory` is null.
struct TextSource {
  const char* memory;
  int file;            // descriptor
  std::size_t offset;  // of the first byte in the file
  std::size_t size;
};

struct TextChunk {
  std::size_t begin, end;  // after a newline, or at the end of the text
  std::size_t n_rows = 0, n_lines = 0, n_pairs = 0;
  std::size_t first_row = 0, first_line = 0, first_pair = 0;
  std::int32_t n_features = 0;
};

// A scanned text. Its source must outlive it.
struct Text {
  TextSource source;
  std::vector<TextChunk> chunks;
  bool skips_comments = false;  // comment lines are not rows
  std::size_t n_rows = 0, n_lines = 0;
  std::size_t n_pairs = 0;  // upper bound of the index:value pairs
  // Largest index, even of a zero value; for malformed text, any number in 0..2^31-2.
  std::int32_t n_features = 0;
};

// Small enough for the L2 cache and for balanced threads at the end of a text, large enough that
// the overhead of a chunk is negligible.
constexpr std::size_t usual_chunk_bytes = std::size_t{1} << 18;

// Splits a text into chunks of about `chunk_bytes` and counts. Throws a ParseError if its file
// cannot be read or has become shorter.
Text scan_text(const TextSource& source, int threads, std::size_t chunk_bytes = usual_chunk_bytes,
               bool skips_comments = false);

// The lines of a chunk, in the buffer of a thread.
struct ChunkLines {
  const char* begin;
  const char* end;  // after a newline, which is added if the text does not end in one
};

// Reads the lines of a chunk. Throws ParseError like scan_text().
ChunkLines read_lines(const TextSource& source, const TextChunk& chunk, std::vector<char>& buffer);

// Calls parse(chunk, lines) for all chunks. Rethrows the first exception in order of chunks.
template <class SomeText, class Parse>
void for_chunks(SomeText& text, int threads, Parse parse) {
  parallel_for(
      {threads, text.chunks.size()}, [] { return std::vector<char>(); },
      [&](std::vector<char>& buffer, std::size_t i) {
        parse(text.chunks[i], read_lines(text.source, text.chunks[i], buffer));
      });
}

}  // namespace dcsvm
