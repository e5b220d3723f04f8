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

float coded_feature(const Points& points, std::size_t row, std::size_t feature) {
  const CodedColumns& columns = *points.coding;
  const CodedRow x = columns.row(points.coded_rows, row);
  const CodedColumns::Place place = columns.place_of(feature);
  switch (place.kind) {
    case CodedColumns::Kind::numeric:
      return x.numeric[place.at];
    case CodedColumns::Kind::coded:
      return x.codes[place.at] == place.code ? 1.0f : 0.0f;
    case CodedColumns::Kind::zero:
      break;
  }
  return 0.0f;
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
