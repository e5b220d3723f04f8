// Non-owning views of the rows of a data set: dense (row-major) as float32, bytes or coded, CSR, or
// rows of a precomputed kernel matrix; and the features of dense rows as floats, whichever they
// are.
//
// Row terms are float64. Scaling, labels and the meaning of an order are not known here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace dcsvm {

struct CodedColumns;

struct Points {
  std::size_t n_samples = 0;
  std::size_t n_features = 0;
  const float* dense = nullptr;  // n_samples x n_features, the rows `dense_stride` apart
  std::size_t dense_stride = 0;
  // instead of `dense`, where all features are integers from 0 to 255: n_samples x byte_row_size(),
  // with zeros after the features
  const std::uint8_t* dense_bytes = nullptr;
  // instead of both, rows as encode() in codes.h writes them, and what they mean
  const std::uint8_t* coded_rows = nullptr;
  const CodedColumns* coding = nullptr;
  bool is_mapped = false;                 // whether these are in a mapped file
  const std::int64_t* indptr = nullptr;   // n_samples + 1
  const std::int32_t* indices = nullptr;  // 0-based columns, ascending within a row
  const float* values = nullptr;
  const double* row_terms = nullptr;  // see compute_row_terms() in kernel_setup.h
  // `dense` only: codes of one-hot columns beside the features (codes.h), n_samples x n_codes, the
  // rows `codes_stride` apart
  std::size_t n_codes = 0;
  const std::uint8_t* codes = nullptr;
  std::size_t codes_stride = 0;
  // what each row's columns that are in neither, and zero in the rows it meets, add to its term
  const double* other_terms = nullptr;
  // where rows meet each other as bytes (bytes.h): `dense_bytes`, or such integers that stand for
  // the features, and the sum of each row
  const std::uint8_t* bytes = nullptr;
  const std::int32_t* byte_sums = nullptr;
  // what a byte k stands for where rows meet others of other steps: byte_origin + byte_step * k
  std::int32_t byte_origin = 0, byte_step = 1;
  // precomputed kernel: `dense` has rows of the kernel matrix, or is null where they are not known;
  // kernel values with row i are in column columns[i] of other rows; null for rows not trained on
  const std::int32_t* columns = nullptr;

  std::size_t byte_row_size() const { return (n_features + 3) / 4 * 4; }
  bool is_dense() const { return dense || dense_bytes || coded_rows; }
  const float* dense_row(std::size_t row) const { return dense + row * dense_stride; }
  const std::uint8_t* codes_of(std::size_t row) const { return codes + row * codes_stride; }
};

// Some rows of a set of points, in order. A null index means all of them.
struct RowList {
  const Points* points = nullptr;
  const std::int32_t* index = nullptr;
  std::size_t size = 0;

  std::size_t operator[](std::size_t i) const {
    return index ? static_cast<std::size_t>(index[i]) : i;
  }
  // Those from `begin` to before `end`, or to the last. Only with an index.
  RowList slice(std::size_t begin, std::size_t end) const {
    return {points, index + begin, std::min(end, size) - begin};
  }
};

// The same rows with an index, which is written to `numbers` where there is none.
inline RowList indexed(const RowList& rows, std::vector<std::int32_t>& numbers) {
  if (rows.index) return rows;
  numbers.resize(rows.size);
  std::iota(numbers.begin(), numbers.end(), 0);
  return {rows.points, numbers.data(), rows.size};
}

// Where the rows of dense points are, and how many bytes each takes.
struct StoredRows {
  const std::uint8_t* first;
  std::size_t row_bytes;
};
StoredRows stored_rows(const Points& points);

// Asks for the cache lines of a row.
inline void touch(const void* row, std::size_t n_bytes) {
  constexpr std::size_t cache_line = 64;
  for (std::size_t k = 0; k < n_bytes; k += cache_line)
    __builtin_prefetch(static_cast<const char*>(row) + k);
}

// Writes the features of a dense row as floats.
void widen_row(const Points& points, std::size_t row, float* out);

// The same, kept until the calling thread asks for those of another row.
const float* widened_row(const Points& points, std::size_t row);

// The features of a row: where they are, or as widened_row() gives them.
inline const float* features_of(const Points& points, std::size_t row) {
  return points.dense ? points.dense_row(row) : widened_row(points, row);
}

// One feature of all rows.
class FeatureColumn {
 public:
  FeatureColumn(const Points& points, std::size_t feature);

  float operator[](std::size_t row) const {
    const std::uint8_t* at = first_ + row * stride_;
    switch (kind_) {
      case Kind::number:
        return *reinterpret_cast<const float*>(at);
      case Kind::byte:
        return static_cast<float>(*at);
      case Kind::code:
        return *at == code_ ? 1.0f : 0.0f;
      case Kind::zero:
        break;
    }
    return 0.0f;
  }

 private:
  enum class Kind : std::uint8_t { number, byte, code, zero };

  const std::uint8_t* first_ = nullptr;
  std::size_t stride_ = 0;
  Kind kind_ = Kind::zero;
  std::uint8_t code_ = 0;  // of a row that has the feature set
};

// Writes the features of all rows, n_samples x n_features.
void copy_features(const Points& points, int n_threads, float* out);

// Lets the system read the pages of some rows, where points are in a mapped file: all at once,
// while others are worked on. Nothing else changes.
void prefetch(const RowList& rows);

}  // namespace dcsvm
