#include "varying_rows.h"

#include "kernel_tile.h"

namespace dcsvm {

namespace {

// Columns of a row-major matrix that are not the same in all rows.
template <class Value>
std::vector<std::size_t> varying(const Value* values, std::size_t n_columns,
                                 const std::vector<std::int32_t>& rows) {
  std::vector<std::size_t> open(n_columns), found;
  for (std::size_t k = 0; k < n_columns; ++k) open[k] = k;
  const Value* first = values + static_cast<std::size_t>(rows[0]) * n_columns;
  for (const std::int32_t row : rows) {
    const Value* x = values + static_cast<std::size_t>(row) * n_columns;
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

VaryingRows::VaryingRows(const Points& points, Form form, const std::vector<std::int32_t>& rows)
    : points_(points) {
  if (form != Form::difference || rows.empty()) return;
  std::vector<std::size_t> features = varying(points.dense, points.n_features, rows);
  const std::vector<std::size_t> codes = varying(points.codes, points.n_codes, rows);
  if (features.size() == points.n_features && codes.size() == points.n_codes) return;
  if (features.empty()) features.push_back(0);
  dense_.reserve(rows.size() * features.size());
  codes_.reserve(rows.size() * codes.size());
  for (const std::int32_t row : rows) {
    const auto i = static_cast<std::size_t>(row);
    for (const std::size_t k : features) dense_.push_back(points.dense[i * points.n_features + k]);
    for (const std::size_t k : codes) codes_.push_back(points.codes[i * points.n_codes + k]);
  }
  half_norms_.resize(rows.size());
  points_ = {};
  points_.n_samples = rows.size();
  points_.n_features = features.size();
  points_.dense = dense_.data();
  points_.n_codes = codes.size();
  points_.codes = codes_.data();
  points_.half_norms = half_norms_.data();
  compute_half_norms(points_, form, 1, half_norms_.data());
}

}  // namespace dcsvm
