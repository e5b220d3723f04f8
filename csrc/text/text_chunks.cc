#include "text/text_chunks.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "system/text.h"
#include "text/decimal.h"
#include "text/svmlight_errors.h"

namespace dcsvm {
namespace {

void copy_text(const TextSource& source, std::size_t begin, std::size_t size, char* out) {
  if (source.memory) {
    std::memcpy(out, source.memory + begin, size);
    return;
  }
  while (size != 0) {
    const auto n = read_at(source.file, out, size, source.offset + begin);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_text(std::string("cannot be read: ") + std::strerror(errno));
    if (n == 0) fail_text("the file became shorter while it was read");
    begin += static_cast<std::size_t>(n);
    size -= static_cast<std::size_t>(n);
    out += n;
  }
}

// Returns the end of the line that contains the byte at `at`.
std::size_t end_of_line(const TextSource& source, std::size_t at) {
  char block[4096];
  for (std::size_t n; at < source.size; at += n) {
    n = std::min(sizeof block, source.size - at);
    copy_text(source, at, n, block);
    const void* newline = std::memchr(block, '\n', n);
    if (newline)
      return at + static_cast<std::size_t>(static_cast<const char*>(newline) - block) + 1;
  }
  return source.size;
}

// Splits lines into chunks; the boundaries depend on the text only.
std::vector<TextChunk> split(const TextSource& source, std::size_t chunk_bytes) {
  std::vector<TextChunk> chunks;
  for (std::size_t begin = 0; begin < source.size; begin = chunks.back().end) {
    TextChunk chunk;
    chunk.begin = begin;
    chunk.end = end_of_line(source, begin + std::min(chunk_bytes, source.size - begin) - 1);
    chunks.push_back(chunk);
  }
  return chunks;
}

std::size_t count(const char* begin, const char* end, char wanted) {
  constexpr std::ptrdiff_t block = 240;  // limit of a one-byte counter, in whole vectors
  std::size_t n = 0;
  while (end - begin >= block) {
    std::uint8_t in_block = 0;
    for (std::ptrdiff_t k = 0; k < block; ++k) {
      in_block = static_cast<std::uint8_t>(in_block + (begin[k] == wanted));
    }
    n += in_block;
    begin += block;
  }
  return n + static_cast<std::size_t>(std::count(begin, end, wanted));
}

// Returns the number before the last colon of a line, or 0 if it is not an index.
std::int32_t last_index(const char* begin, const char* newline) {
  const char* p = newline;
  while (p != begin && *p != ':') --p;
  std::int64_t index = 0, power = 1;
  while (p != begin && is_digit(*--p)) {
    index += power * (*p - '0');
    if (index > max_index) return 0;
    power = std::min<std::int64_t>(power * 10, max_index + 1);
  }
  return static_cast<std::int32_t>(index);
}

void count_chunk(TextChunk& chunk, const ChunkLines& lines, bool skips_comments) {
  chunk.n_pairs = count(lines.begin, lines.end, ':');
  for (const char* line = lines.begin; line != lines.end; ++chunk.n_lines) {
    const auto left = static_cast<std::size_t>(lines.end - line);
    const char* newline = static_cast<const char*>(std::memchr(line, '\n', left));
    if (!skips_comments || !is_comment(skip_blanks(line))) {
      chunk.n_features = std::max(chunk.n_features, last_index(line, newline));
      ++chunk.n_rows;
    }
    line = newline + 1;
  }
}

}  // namespace

ChunkLines read_lines(const TextSource& source, const TextChunk& chunk, std::vector<char>& buffer) {
  const std::size_t size = chunk.end - chunk.begin;
  if (buffer.size() < size + 1 + read_ahead) buffer.resize(size + 1 + read_ahead);
  copy_text(source, chunk.begin, size, buffer.data());
  char* end = buffer.data() + size;
  if (end[-1] != '\n') *end++ = '\n';
  return {buffer.data(), end};
}

Text scan_text(const TextSource& source, int threads, std::size_t chunk_bytes,
               bool skips_comments) {
  Text text;
  text.source = source;
  text.skips_comments = skips_comments;
  text.chunks = split(source, chunk_bytes);
  for_chunks(text, threads, [&](TextChunk& chunk, const ChunkLines& lines) {
    count_chunk(chunk, lines, skips_comments);
  });
  for (TextChunk& chunk : text.chunks) {
    chunk.first_row = text.n_rows;
    chunk.first_line = text.n_lines;
    chunk.first_pair = text.n_pairs;
    text.n_rows += chunk.n_rows;
    text.n_lines += chunk.n_lines;
    text.n_pairs += chunk.n_pairs;
    text.n_features = std::max(text.n_features, chunk.n_features);
  }
  return text;
}

}  // namespace dcsvm
