#include "rows/features.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "rows/codes.h"
#include "threads/parallel.h"

namespace dcsvm {

void widen_row(const Points& points, std::size_t row, float* out) {
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
  if (points.dense) {
    first_ = reinterpret_cast<const std::uint8_t*>(points.dense + feature);
    stride_ = points.dense_stride * sizeof(float);
    kind_ = Kind::number;
    return;
  }
  if (points.dense_bytes) {
    first_ = points.dense_bytes + feature;
    stride_ = points.byte_row_size();
    kind_ = Kind::byte;
    return;
  }
  const CodedColumns& columns = *points.coding;
  const CodedColumns::Place place = columns.place_of(feature);
  const auto at = static_cast<std::size_t>(place.at);
  first_ = points.coded_rows;
  stride_ = columns.row_size();
  if (place.kind == CodedColumns::Kind::numeric) {
    first_ += at * sizeof(float);
    kind_ = Kind::number;
  } else if (place.kind == CodedColumns::Kind::coded) {
    first_ += columns.numeric.size() * sizeof(float) + at;
    kind_ = Kind::code;
    code_ = place.code;
  }
}

void copy_features(const Points& points, int n_threads, float* out) {
  const std::size_t d = points.n_features;
  parallel_for({n_threads, points.n_samples, rows_at_once}, [&](std::size_t i) {
    if (points.dense) {
      std::copy_n(points.dense_row(i), d, out + i * d);
    } else {
      widen_row(points, i, out + i * d);
    }
  });
}

}  // namespace dcsvm
