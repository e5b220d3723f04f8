// Every scanning loop below relies on two facts and checks no bounds: each line it sees ends in
// '\n', and kReadAhead bytes can be read after that. The lines at the end of the text, of which
// neither is known, are copied to where both hold.
#include "text/svmlight_reader.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <iterator>
#include <limits>
#include <string>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "text/decimal.h"
#include "text/svmlight_errors.h"

namespace dcsvm {
namespace {

constexpr std::size_t kMostChunks = 1024;
constexpr std::size_t kMappedTogether = std::size_t{1} << 21;

inline const char* skip_blanks(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}

// ----------------------------------------------------------------------------------- scanning

// Lets pages of a mapped file go, which begins at `file`; whoever reads them again gets them from
// there. Those before too, which the system may have mapped again together with some of these.
void release(const char* file, const char* begin, const char* end) {
#if defined(__linux__)
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  begin -= std::min(static_cast<std::size_t>(begin - file), kMappedTogether);
  const auto from = reinterpret_cast<std::uintptr_t>(begin) / page * page;
  madvise(reinterpret_cast<void*>(from), reinterpret_cast<std::uintptr_t>(end) - from,
          MADV_DONTNEED);
#else
  static_cast<void>(file);
  static_cast<void>(begin);
  static_cast<void>(end);
#endif
}

// Cuts lines into chunks; where it cuts depends on the text alone.
void split(const char* begin, const char* end, std::size_t chunk_bytes, bool is_mapped,
           std::vector<TextChunk>& chunks) {
  const auto size = static_cast<std::size_t>(end - begin);
  const std::size_t target = std::max(chunk_bytes, size / kMostChunks + 1);
  const char *file = begin, *held = begin;
  while (begin != end) {
    const auto left = static_cast<std::size_t>(end - begin);
    const char* last = begin + std::min(target, left) - 1;
    const char* newline =
        static_cast<const char*>(std::memchr(last, '\n', static_cast<std::size_t>(end - last)));
    chunks.push_back({begin, newline + 1, 0, 0, 0, 0, 0});
    begin = newline + 1;
    if (!is_mapped || static_cast<std::size_t>(begin - held) < kMappedTogether) continue;
    release(file, held, begin);
    held = begin;
  }
}

std::size_t count(const char* begin, const char* end, char wanted) {
  constexpr std::ptrdiff_t kBlock = 240;  // as many as one byte can count, in whole vectors
  std::size_t n = 0;
  while (end - begin >= kBlock) {
    std::uint8_t in_block = 0;
    for (std::ptrdiff_t k = 0; k < kBlock; ++k) {
      in_block = static_cast<std::uint8_t>(in_block + (begin[k] == wanted));
    }
    n += in_block;
    begin += kBlock;
  }
  return n + static_cast<std::size_t>(std::count(begin, end, wanted));
}

// The number before the last colon of a line; 0 where there is none that could be an index.
std::int32_t last_index(const char* begin, const char* newline) {
  const char* p = newline;
  while (p != begin && *p != ':') --p;
  std::int64_t index = 0, power = 1;
  while (p != begin && is_digit(*--p)) {
    index += power * (*p - '0');
    if (index > kLargestIndex) return 0;
    power = std::min<std::int64_t>(power * 10, kLargestIndex + 1);
  }
  return static_cast<std::int32_t>(index);
}

void scan_chunk(TextChunk& chunk) {
  chunk.n_pairs = count(chunk.begin, chunk.end, ':');
  for (const char* line = chunk.begin; line != chunk.end; ++chunk.n_rows) {
    const auto left = static_cast<std::size_t>(chunk.end - line);
    const char* newline = static_cast<const char*>(std::memchr(line, '\n', left));
    chunk.n_features = std::max(chunk.n_features, last_index(line, newline));
    line = newline + 1;
  }
}

// -------------------------------------------------------------------------------------- lines

struct DenseRows {
  float* values;
  std::size_t n_features;
  std::size_t n_stored;

  void store(std::int64_t index, float value) {
    if (static_cast<std::size_t>(index) > n_features) return;  // an error follows in this line
    values[index - 1] = value;
    ++n_stored;
  }
  void end_row() { values += n_features; }
};

template <class Number>
struct CsrRows {
  CsrTarget<Number> next;
  std::int64_t n_stored;

  void store(std::int64_t index, Number value) {
    next.indices[n_stored] = static_cast<std::int32_t>(index - 1);
    next.values[n_stored++] = value;
  }
  void end_row() { *next.indptr++ = n_stored; }
};

// Scans the number that is the token at p, and moves p to its end.
template <class Number>
inline bool scan_number(const char*& p, bool lenient, Number& value) {
  Decimal number;
  if (scan_decimal(p, number) && ends_token(number.end)) {
    convert(number, value);
    p = number.end;
    return true;
  }
  const char* end = token_end(p);
  double hexadecimal;
  if (!lenient || !scan_hexadecimal(p, end, hexadecimal)) return false;
  value = static_cast<Number>(hexadecimal);
  p = end;
  return true;
}

inline const char* parse_prefix(const char* p, const Line& line, const TextFormat& format,
                                double* prefix) {
  for (std::size_t k = 0; k < format.n_prefix; ++k) {
    const char* token = p = skip_blanks(p);
    if (!scan_number(p, format.lenient, prefix[k])) {
      fail_prefix(line, token, k, format.n_prefix, format.prefix_name);
    }
    if (std::isinf(prefix[k])) {
      fail(line, token, format.prefix_name + (" " + quoted(token, p)) + " is too large");
    }
  }
  return p;
}

template <class Number>
inline const char* parse_value(const char* p, const Line& line, const char* token, bool lenient,
                               Number& value) {
  if (lenient) p = skip_blanks(p);
  if (ends_token(p)) fail(line, token, "no value after the colon in " + quoted(token, p));
  const char* begin = p;
  if (!scan_number(p, lenient, value)) fail_number(line, begin, "value");
  if (std::isinf(value)) {
    const bool single = std::numeric_limits<Number>::digits == 24;
    fail(line, begin,
         "value " + quoted(begin, p) + " is too large" + (single ? " for float32" : ""));
  }
  return p;
}

// Where the line ends, if its rest from p is words that LIBSVM's reader drops: none with a colon.
const char* end_of_dropped(const char* p) {
  for (; !ends_line(p); ++p) {
    if (*p == ':' || *p == '\0') return nullptr;
  }
  return p;
}

// The number at p, which moves behind it; above kLargestIndex it is not read to its end.
inline std::int64_t scan_index(const char*& p) {
  std::int64_t index = 0;
  p += *p == '+';
  for (; is_digit(*p) && index <= kLargestIndex; ++p) index = index * 10 + (*p - '0');
  return index;
}

template <class Number, class Rows>
inline const char* parse_features(const char* p, const Line& line, bool lenient, Rows& rows,
                                  std::int64_t previous = 0) {
  for (p = skip_blanks(p); !ends_line(p); p = skip_blanks(p)) {
    const char* token = p;
    const std::int64_t index = scan_index(p);
    if (*p != ':' || index <= previous || index > kLargestIndex) {
      const char* end = lenient ? end_of_dropped(token) : nullptr;
      if (end != nullptr) return end;
      fail_index(line, token, previous);
    }
    Number value;
    p = parse_value(p + 1, line, token, lenient, value);
    previous = index;
    if (value != 0) rows.store(index, value);
  }
  return p;
}

// Returns what stands behind "index:" at token.
inline const char* expect_index(const char* token, const Line& line, std::int64_t expected) {
  const char* p = token;
  if (ends_line(p)) fail_missing(line, token, expected);
  const std::int64_t index = scan_index(p);
  const bool is_index = *p == ':' && p != token && is_digit(p[-1]);
  if (is_index && index > expected && index <= kLargestIndex) fail_missing(line, token, expected);
  if (!is_index || index != expected) fail_index(line, token, expected - 1);
  return p + 1;
}

// The serial number and all columns of a precomputed kernel.
template <class Number, class Rows>
const char* parse_kernel_values(const char* p, const Line& line, const TextFormat& format,
                                std::int64_t n_columns, double& serial, Rows& rows) {
  const char* token = skip_blanks(p);
  p = parse_value(expect_index(token, line, 0), line, token, format.lenient, serial);
  const bool is_column =
      serial >= 1 && serial <= static_cast<double>(n_columns) && serial == std::floor(serial);
  if (format.serials == Serials::training && !is_column) {
    fail(line, token,
         "the serial number in " + quoted(token, p) + " is not one of the columns 1 to " +
             std::to_string(n_columns));
  }
  for (std::int64_t column = 1; column <= n_columns; ++column) {
    token = skip_blanks(p);
    Number value;
    p = parse_value(expect_index(token, line, column), line, token, format.lenient, value);
    if (value != 0) rows.store(column, value);
  }
  return p;
}

template <class Number, class Rows>
void parse_chunk(const TextChunk& chunk, const TextFormat& format, std::int64_t n_features,
                 double* prefix, Rows& rows) {
  Line line{chunk.begin, format.first_line + chunk.first_row};
  while (line.begin != chunk.end) {
    const char* p = skip_blanks(line.begin);
    if (ends_line(p)) fail(line, line.begin, "blank line");
    p = parse_prefix(p, line, format, prefix);
    if (format.serials == Serials::none) {
      p = parse_features<Number>(p, line, format.lenient, rows);
    } else {
      p = parse_kernel_values<Number>(p, line, format, n_features, prefix[format.n_prefix], rows);
      p = parse_features<Number>(p, line, format.lenient, rows, n_features);
    }
    rows.end_row();
    prefix += format.prefix_size();
    line = {p + (*p == '\r') + 1, line.number + 1};
  }
}

// ------------------------------------------------------------------------------------- chunks

// Calls parse(i) for all chunks up to the first that fails, and perhaps some after it; throws what
// that one threw.
template <class Parse>
void for_chunks(std::size_t n_chunks, int threads, Parse parse) {
  std::atomic<std::size_t> first_bad{n_chunks};
  std::vector<std::exception_ptr> errors(n_chunks);
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1) num_threads(std::max(threads, 1))
#else
  static_cast<void>(threads);
#endif
  for (std::size_t i = 0; i < n_chunks; ++i) {
    if (i > first_bad.load()) continue;
    try {
      parse(i);
    } catch (...) {
      errors[i] = std::current_exception();
      std::size_t seen = first_bad.load();
      while (i < seen && !first_bad.compare_exchange_weak(seen, i)) {
      }
    }
  }
  if (first_bad.load() != n_chunks) std::rethrow_exception(errors[first_bad.load()]);
}

// for_chunks() of a text, whose chunks are released when they are done.
template <class Parse>
void for_chunks(const Text& text, int threads, Parse parse) {
  for_chunks(text.chunks.size(), threads, [&](std::size_t i) {
    parse(i);
    const TextChunk& chunk = text.chunks[i];
    if (text.is_mapped && chunk.begin != text.last_lines.get())
      release(text.chunks.front().begin, chunk.begin, chunk.end);
  });
}

// Moves the chunks' values together, each chunk having left room for the zeros in its text.
template <class Number>
std::size_t close_gaps(const Text& text, const CsrTarget<Number>& rows) {
  std::int64_t n_stored = 0;
  rows.indptr[0] = 0;
  for (const TextChunk& chunk : text.chunks) {
    const auto first = static_cast<std::int64_t>(chunk.first_pair);
    std::int64_t* ends = rows.indptr + chunk.first_row + 1;
    const std::int64_t n = ends[chunk.n_rows - 1] - first;
    if (first != n_stored) {
      std::copy_n(rows.indices + first, n, rows.indices + n_stored);
      std::copy_n(rows.values + first, n, rows.values + n_stored);
      for (std::size_t k = 0; k < chunk.n_rows; ++k) ends[k] -= first - n_stored;
    }
    n_stored += n;
  }
  return static_cast<std::size_t>(n_stored);
}

template <class Number>
std::size_t parse_into(const Text& text, const TextFormat& format, double* prefix,
                       const CsrTarget<Number>& target, int threads) {
  for_chunks(text, threads, [&](std::size_t i) {
    const TextChunk& chunk = text.chunks[i];
    CsrTarget<Number> from = target;
    from.indptr += chunk.first_row + 1;
    CsrRows<Number> rows{from, static_cast<std::int64_t>(chunk.first_pair)};
    parse_chunk<Number>(chunk, format, text.n_features,
                        prefix + chunk.first_row * format.prefix_size(), rows);
  });
  return close_gaps(text, target);
}

}  // namespace

Text scan_text(const char* begin, const char* end, int threads, std::size_t chunk_bytes,
               bool is_mapped) {
  Text text;
  text.is_mapped = is_mapped;
  const auto size = static_cast<std::size_t>(end - begin);
  const char* known = end - std::min(size, kReadAhead);
  const char* last =
      std::find(std::make_reverse_iterator(known), std::make_reverse_iterator(begin), '\n').base();
  split(begin, last, chunk_bytes, is_mapped, text.chunks);
  const auto n_last = static_cast<std::size_t>(end - last);
  if (n_last != 0) {
    text.last_lines = std::make_unique<char[]>(n_last + 1 + kReadAhead);
    char* copy = text.last_lines.get();
    std::copy(last, end, copy);
    const bool finished = copy[n_last - 1] == '\n';
    if (!finished) copy[n_last] = '\n';
    text.chunks.push_back({copy, copy + n_last + !finished, 0, 0, 0, 0, 0});
  }
  for_chunks(text, threads, [&](std::size_t i) { scan_chunk(text.chunks[i]); });
  for (TextChunk& chunk : text.chunks) {
    chunk.first_row = text.n_rows;
    chunk.first_pair = text.n_pairs;
    text.n_rows += chunk.n_rows;
    text.n_pairs += chunk.n_pairs;
    text.n_features = std::max(text.n_features, chunk.n_features);
  }
  return text;
}

std::size_t parse_dense(const Text& text, const TextFormat& format, double* prefix, float* dense,
                        int threads) {
  const auto n_features = static_cast<std::size_t>(text.n_features);
  std::atomic<std::size_t> n_stored{0};
  for_chunks(text, threads, [&](std::size_t i) {
    const TextChunk& chunk = text.chunks[i];
    DenseRows rows{dense + chunk.first_row * n_features, n_features, 0};
    parse_chunk<float>(chunk, format, text.n_features,
                       prefix + chunk.first_row * format.prefix_size(), rows);
    n_stored += rows.n_stored;
  });
  return n_stored;
}

std::size_t parse_csr(const Text& text, const TextFormat& format, double* prefix,
                      const CsrTarget<float>& rows, int threads) {
  return parse_into(text, format, prefix, rows, threads);
}

std::size_t parse_csr(const Text& text, const TextFormat& format, double* prefix,
                      const CsrTarget<double>& rows, int threads) {
  return parse_into(text, format, prefix, rows, threads);
}

}  // namespace dcsvm
