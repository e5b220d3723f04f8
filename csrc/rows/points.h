// Non-owning views of the rows of a data set: dense (row-major) as float32 or bytes, CSR, or rows
// of a precomputed kernel matrix. Features of dense rows are read as floats from either storage.
//
// Row terms are float64. Only callers know scaling, labels and the meaning of an order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace dcsvm {

struct Points {
  std::size_t n_samples = 0;
  std::size_t n_features = 0;
  const float* dense = nullptr;  // n_samples x n_features, the rows `dense_stride` apart
  std::size_t dense_stride = 0;
  // instead of `dense` if all features are integers from 0 to 255: n_samples x byte_row_size(),
  // zeros after the features
  const std::uint8_t* dense_bytes = nullptr;
  bool is_mapped = false;                 // whether the rows are in a mapped file
  const std::int64_t* indptr = nullptr;   // n_samples + 1
  const std::int32_t* indices = nullptr;  // 0-based columns, ascending within a row
  const float* values = nullptr;
  bool has_only_ones = false;         // CSR rows: whether all stored values are 1
  const double* row_terms = nullptr;  // see compute_row_terms() in kernel_setup.h
  // `dense` only: codes of one-hot columns beside the features (codes.h), n_samples x n_codes, the
  // rows `codes_stride` apart
  std::size_t n_codes = 0;
  const std::uint8_t* codes = nullptr;
  std::size_t codes_stride = 0;
  double mean_set = 0;  // codes set in a row, on average
  // contribution to each row's term of the columns that are neither features nor codes; in the rows
  // of the other side these columns are zero
  const double* other_terms = nullptr;
  // for the bytes form (bytes.h): `dense_bytes`, or integers from 0 to 255 that represent the
  // features; and the sum of each row
  const std::uint8_t* bytes = nullptr;
  const std::int32_t* byte_sums = nullptr;
  // byte k represents byte_origin + byte_step * k; two sides of a tile that come from
  // products may have different ones
  std::int32_t byte_origin = 0, byte_step = 1;
  // precomputed kernel: `dense` has rows of the kernel matrix, or is null if they are not known;
  // kernel values with row i are in column columns[i] of other rows; null for rows not trained on
  const std::int32_t* columns = nullptr;

  std::size_t byte_row_size() const { return (n_features + 3) / 4 * 4; }
  bool is_dense() const { return dense || dense_bytes; }
  const float* dense_row(std::size_t row) const { return dense + row * dense_stride; }
  const std::uint8_t* codes_of(std::size_t row) const { return codes + row * codes_stride; }
};

// A selection of rows of a set of points, in order. A null index means all rows.
struct RowList {
  const Points* points = nullptr;
  const std::int32_t* index = nullptr;
  std::size_t size = 0;

  std::size_t operator[](std::size_t i) const {
    return index ? static_cast<std::size_t>(index[i]) : i;
  }
  // Returns rows `begin` to before `end`, or to the last row. Requires an index.
  RowList slice(std::size_t begin, std::size_t end) const {
    return {points, index + begin, std::min(end, size) - begin};
  }
};

// Returns the same rows with an index. Writes the index to `numbers` if `rows` lacks one.
inline RowList indexed(const RowList& rows, std::vector<std::int32_t>& numbers) {
  if (rows.index) return rows;
  numbers.resize(rows.size);
  std::iota(numbers.begin(), numbers.end(), 0);
  return {rows.points, numbers.data(), rows.size};
}

// Address of the first row of dense points, and the bytes from one row to the next.
struct StoredRows {
  const std::uint8_t* first;
  std::size_t row_bytes;
};
StoredRows stored_rows(const Points& points);

// Prefetches the cache lines of a row.
inline void touch(const void* row, std::size_t n_bytes) {
  constexpr std::size_t cache_line = 64;
  for (std::size_t k = 0; k < n_bytes; k += cache_line)
    __builtin_prefetch(static_cast<const char*>(row) + k);
}

// Writes the features of a dense row as floats.
void widen_row(const Points& points, std::size_t row, float* out);

// Returns the same features in a buffer of the calling thread. The next call overwrites it.
const float* widened_row(const Points& points, std::size_t row);

// Returns the features of a dense row: in place if stored as floats, else from widened_row().
inline const float* features_of(const Points& points, std::size_t row) {
  return points.dense ? points.dense_row(row) : widened_row(points, row);
}

// One feature of all dense rows, as floats.
class FeatureColumn {
 public:
  FeatureColumn(const Points& points, std::size_t feature);

  float operator[](std::size_t row) const {
    const std::uint8_t* at = first_ + row * stride_;
    return is_byte_ ? static_cast<float>(*at) : *reinterpret_cast<const float*>(at);
  }

 private:
  const std::uint8_t* first_;
  std::size_t stride_;
  bool is_byte_;
};

// Asks the system to read the pages of these rows in the background, if the points are in a mapped
// file. This affects the time only.
void prefetch(const RowList& rows);

}  // namespace dcsvm
