// Codes: exclusive 0/1 columns, at most one set per row, stored as one byte. A code may have a
// single column.
//
// Two codes contribute 0 to a squared distance if they are equal, else the number of columns set:
// |x - z|^2 = ... + W_x + W_z - 2 (number of equal codes), with W_x the number of columns set in x.
// One-hot columns are recognised by their values; users declare no columns. A code that is set
// costs one comparison of bytes instead of a multiplication for each of its columns, and is more
// exact.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/points.h"
#include "simd/kernel.h"

namespace dcsvm {

// The code of a row without a column set. Tiles never count it as equal to another code.
constexpr std::uint8_t no_code = 255;

// An encoded row in one piece: numeric columns, codes, and zeros up to a multiple of 4 bytes.
struct CodedRow {
  const float* numeric;
  const std::uint8_t* codes;
};

struct CodedColumns {
  std::vector<std::int32_t> numeric;             // columns kept as floats, ascending
  std::vector<std::vector<std::int32_t>> codes;  // columns of each code, ascending
  double mean_set = 0;                           // codes set in a row, on average

  bool operator==(const CodedColumns& other) const {
    return numeric == other.numeric && codes == other.codes;
  }

  // Operations per pair of rows: two for a numeric column, a byte comparison for a code that is
  // set, and a share of the search for these.
  double cost() const {
    return 2.0 * static_cast<double>(numeric.size()) + 1.2 * mean_set +
           0.1 * static_cast<double>(codes.size());
  }

  // Bytes of an encoded row.
  std::size_t row_size() const {
    return sizeof(float) * numeric.size() + (codes.size() + 3) / 4 * 4;
  }
  CodedRow row(const std::uint8_t* rows, std::size_t row) const {
    const std::uint8_t* begin = rows + row * row_size();
    return {reinterpret_cast<const float*>(begin), begin + sizeof(float) * numeric.size()};
  }
};

// Finds the codes of dense points, which may arrive in batches. Greedy, in column order: each 0/1
// column joins the latest code whose columns are never set in the same row. Columns that are zero
// everywhere are in neither list. If there are too many columns, or too many pairs of ones to
// compare, each 0/1 column has a code of its own. More rows only add conflicts between columns.
class CodeSearch {
 public:
  explicit CodeSearch(std::size_t n_features);
  void see(const Points& part, int n_threads);
  // Returns the codes of the rows seen so far.
  CodedColumns found() const;

 private:
  bool is_too_much() const;
  void count(const Points& part, std::size_t begin, std::size_t end, int n_threads);
  void compare(const Points& part, std::size_t begin, std::size_t end, int n_threads);
  bool fits(const std::vector<std::int32_t>& code, std::int32_t column) const;

  std::vector<std::uint8_t> kinds_;
  std::vector<std::int64_t> ones_;  // of each column
  std::int64_t n_rows_ = 0;
  double comparisons_ = 0;
  // for columns a < b at a * n_features + b: whether some row has both set to 1. Threads share the
  // table because it may be large; they only set entries.
  std::vector<std::atomic<bool>> together_;
};

// Checks which rows can be encoded; the codes may come from other rows. fits[i]: whether row i has
// at most one column of each code set, to 1. others[i]: the row_term() (simd/kernel.h) of its
// columns in neither list, which encode() drops.
void find_fitting(const Points& points, const CodedColumns& columns, Argument argument,
                  int n_threads, std::uint8_t* fits, double* others);

// Writes the encoded rows, row_size() bytes each.
void encode(const Points& points, const CodedColumns& columns, int n_threads, std::uint8_t* rows);

// Makes points a view of n_samples encoded rows: sets its features and codes.
void take_coded(const CodedColumns& columns, const std::uint8_t* rows, Points& points);

}  // namespace dcsvm
