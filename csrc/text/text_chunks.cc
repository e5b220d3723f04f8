#include "text/text_chunks.h"

#include <cstring>
#include <iterator>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "text/decimal.h"
#include "text/svmlight_errors.h"

namespace dcsvm {
namespace {

// Maximum number of chunks, since each has its own counts and exception; longer texts have larger
// chunks.
constexpr std::size_t max_chunks = 1024;
// Bytes of a file that the system may map together: a huge page.
constexpr std::size_t mapped_batch = std::size_t{1} << 21;

// Releases pages of a file mapped at `file`, which are read again on demand. Includes preceding
// pages that the system may have mapped again together with them.
void release_pages(const char* file, const char* begin, const char* end) {
#if defined(__linux__)
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  begin -= std::min(static_cast<std::size_t>(begin - file), mapped_batch);
  const auto from = reinterpret_cast<std::uintptr_t>(begin) / page * page;
  madvise(reinterpret_cast<void*>(from), reinterpret_cast<std::uintptr_t>(end) - from,
          MADV_DONTNEED);
#else
  static_cast<void>(file);
  static_cast<void>(begin);
  static_cast<void>(end);
#endif
}

// Splits lines into chunks; the boundaries depend on the text only.
void split(const char* begin, const char* end, std::size_t chunk_bytes, bool is_mapped,
           std::vector<TextChunk>& chunks) {
  const auto size = static_cast<std::size_t>(end - begin);
  const std::size_t target = std::max(chunk_bytes, size / max_chunks + 1);
  const char *file = begin, *held = begin;
  while (begin != end) {
    const auto left = static_cast<std::size_t>(end - begin);
    const char* last = begin + std::min(target, left) - 1;
    const char* newline =
        static_cast<const char*>(std::memchr(last, '\n', static_cast<std::size_t>(end - last)));
    chunks.push_back({begin, newline + 1});
    begin = newline + 1;
    if (!is_mapped || static_cast<std::size_t>(begin - held) < mapped_batch) continue;
    release_pages(file, held, begin);
    held = begin;
  }
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

void scan_chunk(TextChunk& chunk, bool skips_comments) {
  chunk.n_pairs = count(chunk.begin, chunk.end, ':');
  for (const char* line = chunk.begin; line != chunk.end; ++chunk.n_lines) {
    const auto left = static_cast<std::size_t>(chunk.end - line);
    const char* newline = static_cast<const char*>(std::memchr(line, '\n', left));
    if (!skips_comments || !is_comment(skip_blanks(line))) {
      chunk.n_features = std::max(chunk.n_features, last_index(line, newline));
      ++chunk.n_rows;
    }
    line = newline + 1;
  }
}

}  // namespace

void release(const Text& text, const TextChunk& chunk) {
  if (text.is_mapped && chunk.begin != text.last_lines.get())
    release_pages(text.chunks.front().begin, chunk.begin, chunk.end);
}

Text scan_text(const char* begin, const char* end, int threads, std::size_t chunk_bytes,
               bool is_mapped, bool skips_comments) {
  Text text;
  text.is_mapped = is_mapped;
  text.skips_comments = skips_comments;
  const auto size = static_cast<std::size_t>(end - begin);
  const char* known = end - std::min(size, read_ahead);
  const char* last =
      std::find(std::make_reverse_iterator(known), std::make_reverse_iterator(begin), '\n').base();
  split(begin, last, chunk_bytes, is_mapped, text.chunks);
  const auto n_last = static_cast<std::size_t>(end - last);
  if (n_last != 0) {
    text.last_lines = std::make_unique<char[]>(n_last + 1 + read_ahead);
    char* copy = text.last_lines.get();
    std::copy(last, end, copy);
    const bool finished = copy[n_last - 1] == '\n';
    if (!finished) copy[n_last] = '\n';
    text.chunks.push_back({copy, copy + n_last + !finished});
  }
  for_chunks(text, threads, [&](std::size_t i) { scan_chunk(text.chunks[i], skips_comments); });
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
