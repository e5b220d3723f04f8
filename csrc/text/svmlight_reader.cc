#include "text/svmlight_reader.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "text/decimal.h"
#include "text/svmlight_errors.h"

namespace dcsvm {
namespace {

// Parsing of a line: the prefix, then index:value pairs, or all values of a precomputed kernel.
// Values are passed to rows.store(column, value). Bounds are not checked: lines end in a newline,
// followed by read_ahead readable bytes.

// Parses the token at p as a number, and moves p to its end.
template <class Number>
bool scan_number(const char*& p, bool lenient, Number& value) {
  double found;
  const char* end = scan_short_decimal(p, found);
  if (end == p || !ends_token(end)) {
    end = token_end(p);
    if (!scan_decimal(p, end, found) && !(lenient && scan_hexadecimal(p, end, found))) return false;
  }
  if constexpr (std::is_same_v<Number, float>) {
    value = round_to_float(found);
  } else {
    value = found;
  }
  p = end;
  return true;
}

const char* parse_prefix(const char* p, const Line& line, const TextFormat& format,
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
const char* parse_value(const char* p, const Line& line, const char* token, bool lenient,
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

// Returns the end of the line if only words without a colon follow from p, which LIBSVM's reader
// drops; otherwise null.
const char* end_of_dropped(const char* p) {
  for (; !ends_line(p); ++p) {
    if (*p == ':' || *p == '\0') return nullptr;
  }
  return p;
}

// Returns the position after "qid:..." of a ranking file, the first token from p on, if there is
// one.
const char* skip_query(const char* p) {
  for (p = skip_blanks(p); is_query(p); p = skip_blanks(p)) p = token_end(p);
  return p;
}

// Parses the index at p and moves p past it, or into it if it exceeds max_index.
std::int64_t scan_index(const char*& p) {
  std::int64_t index = 0;
  p += *p == '+';
  for (; is_digit(*p) && index <= max_index; ++p) index = index * 10 + (*p - '0');
  return index;
}

template <class Number, class Rows>
const char* parse_features(const char* p, const Line& line, const TextFormat& format, Rows& rows,
                           std::int64_t previous) {
  const std::int64_t last_index = max_index + format.first_index - 1;
  for (p = skip_blanks(p); !ends_line(p); p = skip_blanks(p)) {
    const char* token = p;
    const std::int64_t index = scan_index(p);
    if (*p != ':' || index <= previous || index > last_index) {
      const char* end = format.lenient ? end_of_dropped(token) : nullptr;
      if (end != nullptr) return end;
      fail_index(line, token, previous, format.first_index);
    }
    Number value;
    p = parse_value(p + 1, line, token, format.lenient, value);
    previous = index;
    if (value != 0) rows.store(index - format.first_index, value);
  }
  return p;
}

// Returns the position of the value in "index:value" at token.
const char* expect_index(const char* token, const Line& line, std::int64_t expected) {
  const char* p = token;
  if (ends_line(p)) fail_missing(line, token, expected);
  const std::int64_t index = scan_index(p);
  const bool is_index = *p == ':' && p != token && is_digit(p[-1]);
  if (is_index && index > expected && index <= max_index) fail_missing(line, token, expected);
  if (!is_index || index != expected) fail_index(line, token, expected - 1);
  return p + 1;
}

// Parses the serial number and all columns of a precomputed kernel.
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
    if (value != 0) rows.store(column - 1, value);
  }
  return p;
}

[[noreturn]] void fail_changed() { fail_text("the file changed while it was read"); }

template <class Value>
struct DenseRows {
  Value* values;
  std::size_t n_features, stride;
  std::size_t n_stored = 0;
  bool fits = true;

  void store(std::int64_t column, float value) {
    if (static_cast<std::size_t>(column) >= n_features) return;  // an error follows in this line
    if constexpr (std::is_same_v<Value, std::uint8_t>) {
      if (!(value >= 0 && value <= 255 && value == std::floor(value))) {
        fits = false;
        return;
      }
    }
    values[column] = static_cast<Value>(value);
    ++n_stored;
  }
  void end_row() { values += stride; }
};

template <class Number>
struct CsrRows {
  CsrTarget<Number> next;
  std::int64_t n_stored, end, n_features;
  std::int64_t row_begin = n_stored;

  void store(std::int64_t column, Number value) {
    if (n_stored == end) fail_changed();
    next.indices[n_stored] = static_cast<std::int32_t>(column);
    next.values[n_stored++] = value;
  }
  void end_row() {
    if (n_stored != row_begin && next.indices[n_stored - 1] >= n_features) fail_changed();
    *next.indptr++ = row_begin = n_stored;
  }
};

template <class Number, class Rows>
void parse_chunk(const Text& text, const TextChunk& chunk, const ChunkLines& lines,
                 const TextFormat& format, double* prefix, Rows& rows) {
  Line line{lines.begin, format.first_line + chunk.first_line};
  std::size_t n_rows = 0;
  while (line.begin != lines.end) {
    const char* p = skip_blanks(line.begin);
    if (text.skips_comments && is_comment(p)) {
      line = {line_end(p) + 1, line.number + 1};
      continue;
    }
    if (ends_line(p)) fail(line, line.begin, "blank line");
    if (n_rows++ == chunk.n_rows) fail_changed();
    p = parse_prefix(p, line, format, prefix);
    if (format.lenient) p = skip_query(p);
    if (format.serials == Serials::none) {
      p = parse_features<Number>(p, line, format, rows, format.first_index - 1);
    } else {
      double& serial = prefix[format.n_prefix];
      p = parse_kernel_values<Number>(p, line, format, text.n_features, serial, rows);
      p = parse_features<Number>(p, line, format, rows, text.n_features);
    }
    rows.end_row();
    prefix += format.prefix_size();
    line = {p + (*p == '\r') + 1, line.number + 1};
  }
  if (n_rows != chunk.n_rows) fail_changed();
}

// Closes the gaps between the values of chunks: each chunk has space for the zeros in its text.
template <class Number>
std::size_t close_gaps(const Text& text, const CsrTarget<Number>& rows) {
  std::int64_t n_stored = 0;
  rows.indptr[0] = 0;
  for (const TextChunk& chunk : text.chunks) {
    const auto first = static_cast<std::int64_t>(chunk.first_pair);
    std::int64_t* ends = rows.indptr + chunk.first_row + 1;
    if (chunk.n_rows == 0) continue;
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

// `fits` is set to whether all parsed values fit the type.
template <class Value>
std::size_t parse_rows(const Text& text, const TextFormat& format, double* prefix, Value* dense,
                       std::size_t stride, int threads, bool& fits) {
  std::atomic<std::size_t> n_stored{0};
  std::atomic<bool> all_fit{true};
  const auto parse = [&](const TextChunk& chunk, const ChunkLines& lines) {
    if (!all_fit) return;
    DenseRows<Value> rows{dense + chunk.first_row * stride,
                          static_cast<std::size_t>(text.n_features), stride};
    double* first = prefix + chunk.first_row * format.prefix_size();
    parse_chunk<float>(text, chunk, lines, format, first, rows);
    n_stored += rows.n_stored;
    if (!rows.fits) all_fit = false;
  };
  try {
    for_chunks(text, threads, parse);
  } catch (const ParseError&) {
    if (all_fit) throw;
  }
  fits = all_fit;
  return n_stored;
}

}  // namespace

std::size_t parse_bytes(const Text& text, const TextFormat& format, double* prefix,
                        std::uint8_t* rows, std::size_t stride, int threads, bool& fits) {
  return parse_rows(text, format, prefix, rows, stride, threads, fits);
}

std::size_t parse_dense(const Text& text, const TextFormat& format, double* prefix, float* dense,
                        int threads) {
  bool fits;
  return parse_rows(text, format, prefix, dense, static_cast<std::size_t>(text.n_features), threads,
                    fits);
}

template <class Number>
std::size_t parse_csr(const Text& text, const TextFormat& format, double* prefix,
                      const CsrTarget<Number>& target, int threads) {
  for_chunks(text, threads, [&](const TextChunk& chunk, const ChunkLines& lines) {
    CsrTarget<Number> from = target;
    from.indptr += chunk.first_row + 1;
    const auto first_pair = static_cast<std::int64_t>(chunk.first_pair);
    const auto n_pairs = static_cast<std::int64_t>(chunk.n_pairs);
    CsrRows<Number> rows{from, first_pair, first_pair + n_pairs, text.n_features};
    double* first = prefix + chunk.first_row * format.prefix_size();
    parse_chunk<Number>(text, chunk, lines, format, first, rows);
  });
  return close_gaps(text, target);
}

template std::size_t parse_csr(const Text&, const TextFormat&, double*, const CsrTarget<float>&,
                               int);
template std::size_t parse_csr(const Text&, const TextFormat&, double*, const CsrTarget<double>&,
                               int);

}  // namespace dcsvm
