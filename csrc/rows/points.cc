#include "rows/points.h"

#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "rows/codes.h"
#include "threads/parallel.h"

namespace dcsvm {

StoredRows stored_rows(const Points& points) {
  if (points.dense)
    return {reinterpret_cast<const std::uint8_t*>(points.dense),
            sizeof(float) * points.dense_stride};
  if (points.dense_bytes) return {points.dense_bytes, points.byte_row_size()};
  return {points.coded_rows, points.coding->row_size()};
}

void widen_row(const Points& points, std::size_t row, float* out) {
  if (points.dense) {
    std::copy_n(points.dense_row(row), points.n_features, out);
    return;
  }
  if (points.dense_bytes) {
    const std::uint8_t* x = points.dense_bytes + row * points.byte_row_size();
    for (std::size_t k = 0; k < points.n_features; ++k) out[k] = static_cast<float>(x[k]);
    return;
  }
  const CodedColumns& columns = *points.coding;
  const CodedRow x = columns.row(points.coded_rows, row);
  std::fill_n(out, points.n_features, 0.0f);
  for (std::size_t k = 0; k < columns.numeric.size(); ++k) out[columns.numeric[k]] = x.numeric[k];
  for (std::size_t c = 0; c < columns.codes.size(); ++c) {
    if (x.codes[c] != no_code) out[columns.codes[c][x.codes[c]]] = 1.0f;
  }
}

const float* widened_row(const Points& points, std::size_t row) {
  thread_local std::vector<float> features;
  features.resize(points.n_features);
  widen_row(points, row, features.data());
  return features.data();
}

FeatureColumn::FeatureColumn(const Points& points, std::size_t feature) {
  const StoredRows rows = stored_rows(points);
  first_ = rows.first;
  stride_ = rows.row_bytes;
  if (points.dense) {
    first_ += feature * sizeof(float);
    kind_ = Kind::number;
  } else if (points.dense_bytes) {
    first_ += feature;
    kind_ = Kind::byte;
  } else {
    const CodedColumns& columns = *points.coding;
    const CodedColumns::Place place = columns.place_of(feature);
    const auto at = static_cast<std::size_t>(place.at);
    if (place.kind == CodedColumns::Kind::numeric) {
      first_ += at * sizeof(float);
      kind_ = Kind::number;
    } else if (place.kind == CodedColumns::Kind::coded) {
      first_ += columns.numeric.size() * sizeof(float) + at;
      kind_ = Kind::code;
      code_ = place.code;
    }
  }
}

void copy_features(const Points& points, int n_threads, float* out) {
  parallel_for({n_threads, points.n_samples, rows_at_once},
               [&](std::size_t i) { widen_row(points, i, out + i * points.n_features); });
}

void prefetch(const RowList& rows) {
#if defined(__linux__)
  // Of more rows the first would be gone before the last are read.
  constexpr std::size_t most_bytes = std::size_t{1} << 26;
  if (!rows.points->is_mapped) return;
  const auto [first, row_bytes] = stored_rows(*rows.points);
  const auto memory = reinterpret_cast<std::uintptr_t>(first);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::size_t n = std::min(rows.size, most_bytes / std::max(row_bytes, std::size_t{1}));
  std::uintptr_t from = 0, to = 0;  // of the pages that are read together
  const auto read = [&] {
    if (to > from) madvise(reinterpret_cast<void*>(from), to - from, MADV_WILLNEED);
  };
  for (std::size_t k = 0; k < n; ++k) {
    const std::uintptr_t begin = memory + rows[k] * row_bytes, end = begin + row_bytes;
    if (begin < from || begin > to + page) {
      read();
      from = begin / page * page;
      to = end;
    }
    to = std::max(to, end);
  }
  read();
#else
  static_cast<void>(rows);
#endif
}

}  // namespace dcsvm
