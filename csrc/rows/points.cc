#include "rows/points.h"

#include <vector>

#include "system/memory.h"

namespace dcsvm {

StoredRows stored_rows(const Points& points) {
  if (points.dense)
    return {reinterpret_cast<const std::uint8_t*>(points.dense),
            sizeof(float) * points.dense_stride};
  return {points.dense_bytes, points.byte_row_size()};
}

void widen_row(const Points& points, std::size_t row, float* out) {
  if (points.dense) {
    std::copy_n(points.dense_row(row), points.n_features, out);
    return;
  }
  const std::uint8_t* x = points.dense_bytes + row * points.byte_row_size();
  for (std::size_t k = 0; k < points.n_features; ++k) out[k] = static_cast<float>(x[k]);
}

const float* widened_row(const Points& points, std::size_t row) {
  thread_local std::vector<float> features;
  features.resize(points.n_features);
  widen_row(points, row, features.data());
  return features.data();
}

FeatureColumn::FeatureColumn(const Points& points, std::size_t feature) {
  const StoredRows rows = stored_rows(points);
  is_byte_ = !points.dense;
  stride_ = rows.row_bytes;
  first_ = rows.first + feature * (is_byte_ ? 1 : sizeof(float));
}

void prefetch(const RowList& rows) {
  // With more bytes, the first pages would be evicted before the last are read.
  constexpr std::size_t max_bytes = std::size_t{1} << 26;
  const std::size_t page = page_bytes();
  if (!rows.points->is_mapped || page == 0) return;
  const auto [first, row_bytes] = stored_rows(*rows.points);
  const auto memory = reinterpret_cast<std::uintptr_t>(first);
  const std::size_t n = std::min(rows.size, max_bytes / std::max(row_bytes, std::size_t{1}));
  std::uintptr_t from = 0, to = 0;  // range of the pages read together
  const auto read = [&] {
    if (to > from) read_soon(from, to - from);
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
}

}  // namespace dcsvm
