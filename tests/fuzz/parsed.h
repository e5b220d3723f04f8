// Shared by the fuzz targets of the reader: parse a text in every way, and compare.
#pragma once

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "text/svmlight_errors.h"
#include "text/svmlight_reader.h"
#include "text/svmlight_writer.h"

inline void require(bool condition) {
  if (!condition) std::abort();
}

inline dcsvm::TextSource in_memory(const char* begin, const char* end) {
  return {begin, -1, 0, static_cast<std::size_t>(end - begin)};
}

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

struct Parsed {
  bool failed = false;
  std::size_t line = 0, column = 0;
  std::string reason;
  std::vector<double> prefix;
  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> indices;
  std::vector<float> values;
  std::size_t n_features = 0;

  dcsvm::TextCsr csr() const {
    return {indptr.data(), indices.data(), values.data(), indptr.size() - 1, values.size()};
  }
};

inline bool same(const Parsed& a, const Parsed& b) {
  return a.failed == b.failed && a.line == b.line && a.column == b.column && a.reason == b.reason &&
         same_bytes(a.prefix, b.prefix) && same_bytes(a.indptr, b.indptr) &&
         same_bytes(a.indices, b.indices) && same_bytes(a.values, b.values) &&
         a.n_features == b.n_features;
}

inline dcsvm::TextFormat format(std::size_t n_prefix, bool lenient) {
  return {n_prefix, "label", 1, lenient};
}

inline dcsvm::TextFormat kernel_format(dcsvm::Serials serials) {
  return {1, "label", 1, false, serials};
}

inline Parsed parse(const char* begin, const char* end, const dcsvm::TextFormat& format,
                    std::size_t chunk_bytes = dcsvm::usual_chunk_bytes) {
  const dcsvm::Text text = dcsvm::scan_text(in_memory(begin, end), 1, chunk_bytes, format.lenient);
  Parsed rows;
  rows.prefix.resize(text.n_rows * format.prefix_size());
  rows.indptr.resize(text.n_rows + 1);
  rows.indices.resize(text.n_pairs);
  rows.values.resize(text.n_pairs);
  try {
    const dcsvm::CsrTarget<float> target{rows.indptr.data(), rows.indices.data(),
                                         rows.values.data()};
    const std::size_t n = dcsvm::parse_csr(text, format, rows.prefix.data(), target, 1);
    rows.indices.resize(n);
    rows.values.resize(n);
    rows.n_features = static_cast<std::size_t>(text.n_features);
  } catch (const dcsvm::ParseError& error) {
    rows = {};
    rows.failed = true;
    rows.line = error.line;
    rows.column = error.column;
    rows.reason = error.what();
  }
  return rows;
}

inline void require_sound(const Parsed& rows) {
  for (double number : rows.prefix) require(std::isfinite(number));
  require(rows.indptr.front() == 0);
  require(rows.indptr.back() == static_cast<std::int64_t>(rows.values.size()));
  for (std::size_t row = 0; row + 1 < rows.indptr.size(); ++row) {
    std::int64_t previous = -1;
    for (auto k = rows.indptr[row]; k < rows.indptr[row + 1]; ++k) {
      const auto at = static_cast<std::size_t>(k);
      require(rows.indices[at] > previous && std::isfinite(rows.values[at]));
      require(rows.values[at] != 0);
      previous = rows.indices[at];
      require(static_cast<std::size_t>(previous) < rows.n_features);
    }
  }
}
