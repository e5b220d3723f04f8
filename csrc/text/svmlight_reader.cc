#include "text/svmlight_reader.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <type_traits>

#include "text/svmlight_errors.h"
#include "text/svmlight_lines.h"

namespace dcsvm {
namespace {

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
  std::int64_t n_stored;

  void store(std::int64_t column, Number value) {
    next.indices[n_stored] = static_cast<std::int32_t>(column);
    next.values[n_stored++] = value;
  }
  void end_row() { *next.indptr++ = n_stored; }
};

template <class Number, class Rows>
void parse_chunk(const Text& text, const TextChunk& chunk, const TextFormat& format, double* prefix,
                 Rows& rows) {
  Line line{chunk.begin, format.first_line + chunk.first_line};
  while (line.begin != chunk.end) {
    const char* p = skip_blanks(line.begin);
    if (text.skips_comments && is_comment(p)) {
      line = {line_end(p) + 1, line.number + 1};
      continue;
    }
    if (ends_line(p)) fail(line, line.begin, "blank line");
    p = parse_prefix(p, line, format, prefix);
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
}

// Moves the chunks' values together, each chunk having left room for the zeros in its text.
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

template <class Number>
std::size_t parse_into(const Text& text, const TextFormat& format, double* prefix,
                       const CsrTarget<Number>& target, int threads) {
  for_chunks(text, threads, [&](std::size_t i) {
    const TextChunk& chunk = text.chunks[i];
    CsrTarget<Number> from = target;
    from.indptr += chunk.first_row + 1;
    CsrRows<Number> rows{from, static_cast<std::int64_t>(chunk.first_pair)};
    double* first = prefix + chunk.first_row * format.prefix_size();
    parse_chunk<Number>(text, chunk, format, first, rows);
  });
  return close_gaps(text, target);
}

template <class Value>
std::size_t parse_rows(const Text& text, const TextFormat& format, double* prefix, Value* dense,
                       std::size_t stride, int threads, bool& fits) {
  std::atomic<std::size_t> n_stored{0};
  std::atomic<bool> all_fit{true};
  const auto parse = [&](std::size_t i) {
    if (!all_fit) return;
    const TextChunk& chunk = text.chunks[i];
    DenseRows<Value> rows{dense + chunk.first_row * stride,
                          static_cast<std::size_t>(text.n_features), stride};
    double* first = prefix + chunk.first_row * format.prefix_size();
    parse_chunk<float>(text, chunk, format, first, rows);
    n_stored += rows.n_stored;
    if (!rows.fits) all_fit = false;
  };
  try {
    for_chunks(text, threads, parse);
  } catch (...) {
    fits = all_fit;
    throw;
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

std::size_t parse_csr(const Text& text, const TextFormat& format, double* prefix,
                      const CsrTarget<float>& rows, int threads) {
  return parse_into(text, format, prefix, rows, threads);
}

std::size_t parse_csr(const Text& text, const TextFormat& format, double* prefix,
                      const CsrTarget<double>& rows, int threads) {
  return parse_into(text, format, prefix, rows, threads);
}

}  // namespace dcsvm
