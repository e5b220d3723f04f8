#include "kernel/varying_rows.h"

#include "kernel/kernel_setup.h"
#include "rows/features.h"

namespace dcsvm {

namespace {

// Columns of a row-major matrix, whose rows begin `stride` apart, that are not the same in all
// rows.
template <class Value>
std::vector<std::size_t> varying(const Value* matrix, std::size_t stride, std::size_t n_columns,
                                 const RowList& rows) {
  std::vector<std::size_t> open(n_columns), found;
  for (std::size_t k = 0; k < n_columns; ++k) open[k] = k;
  const Value* first = matrix + rows[0] * stride;
  for (std::size_t i = 0; i < rows.size; ++i) {
    const Value* x = matrix + rows[i] * stride;
    std::size_t kept = 0;
    for (const std::size_t k : open) {
      if (x[k] == first[k]) {
        open[kept++] = k;
      } else {
        found.push_back(k);
      }
    }
    open.resize(kept);
    if (open.empty()) break;
  }
  std::vector<std::uint8_t> is_found(n_columns, 0);
  for (const std::size_t k : found) is_found[k] = 1;
  found.clear();
  for (std::size_t k = 0; k < n_columns; ++k) {
    if (is_found[k]) found.push_back(k);
  }
  return found;
}

}  // namespace

VaryingRows::VaryingRows(Form form, const RowList& rows, std::size_t most_bytes)
    : points_(*rows.points) {
  if (form != Form::difference || rows.size == 0 || rows.points->coded_rows) return;
  const Points& points = *rows.points;
  const std::size_t d = points.n_features;
  std::vector<std::size_t> features =
      points.dense ? varying(points.dense, points.dense_stride, d, rows)
                   : varying(points.dense_bytes, points.byte_row_size(), d, rows);
  const std::vector<std::size_t> codes =
      varying(points.codes, points.codes_stride, points.n_codes, rows);
  if (features.size() == d && codes.size() == points.n_codes) return;
  const bool has_features = d > 0;
  if (features.empty()) features.push_back(0);  // for an address
  const std::size_t row_bytes = features.size() * sizeof(float) + codes.size() + sizeof(double);
  if (rows.size * row_bytes > most_bytes) return;
  dense_.resize(rows.size * features.size());
  codes_.resize(rows.size * codes.size());
  float* to = dense_.data();
  std::uint8_t* code_to = codes_.data();
  for (std::size_t i = 0; i < rows.size; ++i) {
    const float* x = features_of(points, rows[i]);
    const std::uint8_t* code = points.codes_of(rows[i]);
    for (const std::size_t k : features) *to++ = has_features ? x[k] : 0.0f;
    for (const std::size_t k : codes) *code_to++ = code[k];
  }
  half_norms_.resize(rows.size);
  points_ = {};
  points_.n_samples = rows.size;
  points_.n_features = features.size();
  points_.dense = dense_.data();
  points_.dense_stride = features.size();
  points_.n_codes = codes.size();
  points_.codes = codes_.data();
  points_.codes_stride = codes.size();
  points_.half_norms = half_norms_.data();
  compute_half_norms(points_, form, 1, half_norms_.data());
}

}  // namespace dcsvm
