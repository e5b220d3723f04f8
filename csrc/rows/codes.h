// Codes: exclusive 0/1 columns, of which a row has at most one set, as one byte.
//
// Two codes add 0 to a distance where they are equal, else the number of columns set:
// |x - z|^2 = ... + W_x + W_z - 2 (number of equal codes), with W_x the number of columns set in x.
// One-hot data is recognised by its values alone; nothing has to be declared. A code costs one
// comparison of bytes instead of a multiplication for each of its columns, and is more exact.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/points.h"
#include "simd/kernel.h"

namespace dcsvm {

// The code of a row with none of the columns set; it equals nothing.
constexpr std::uint8_t no_code = 255;

// A row in one piece: the numeric columns, the codes, and zeros up to a multiple of 4 bytes.
struct CodedRow {
  const float* numeric;
  const std::uint8_t* codes;
};

struct CodedColumns {
  std::vector<std::int32_t> numeric;             // columns that stay as they are, ascending
  std::vector<std::vector<std::int32_t>> codes;  // columns of each code, ascending

  bool operator==(const CodedColumns& other) const {
    return numeric == other.numeric && codes == other.codes;
  }

  // Operations for a pair of rows: a numeric column takes two, a code one byte comparison.
  double cost() const {
    return 2.0 * static_cast<double>(numeric.size()) + 1.2 * static_cast<double>(codes.size());
  }

  // Bytes of a row in one piece.
  std::size_t row_size() const {
    return sizeof(float) * numeric.size() + (codes.size() + 3) / 4 * 4;
  }
  CodedRow row(const std::uint8_t* rows, std::size_t row) const {
    const std::uint8_t* begin = rows + row * row_size();
    return {reinterpret_cast<const float*>(begin), begin + sizeof(float) * numeric.size()};
  }

  // Where a column of the rows is; of columns in neither list, and after the last, nowhere.
  enum class Kind : std::uint8_t { zero, numeric, coded };
  struct Place {
    Kind kind = Kind::zero;
    std::uint8_t code = 0;
    std::int32_t at = 0;
  };
  Place place_of(std::size_t column) const {
    return column < places_.size() ? places_[column] : Place{};
  }
  // To be called once the lists are complete, before place_of().
  void find_places();

 private:
  std::vector<Place> places_;
};

// Assigns the columns of dense points, which may come part by part, to codes, greedily in their
// order: each to the latest that has no column set together with it. Columns that are zero
// everywhere are in neither list. There are no codes when there are too many columns, or ones to
// compare. More rows only make fewer codes.
class CodeSearch {
 public:
  explicit CodeSearch(std::size_t n_features);
  void see(const Points& part, int n_threads);
  // Those of the rows seen so far.
  CodedColumns found() const;

 private:
  bool is_too_much() const;
  void count(const Points& part, std::size_t begin, std::size_t end, int n_threads);
  void compare(const Points& part, std::size_t begin, std::size_t end, int n_threads);
  bool fits(const std::vector<std::int32_t>& code, std::int32_t column) const;

  std::vector<std::uint8_t> kinds_;
  double comparisons_ = 0;
  // of columns a < b at a * n_features + b: some row has both set to 1; one table for all threads,
  // since it may be large: they only set entries
  std::vector<std::atomic<bool>> together_;
};

// Of rows that need not be among those in which the codes were found. fits[i]: whether row i has at
// most one of a code's columns set, to 1. others[i]: the row_term() (simd/kernel.h) of its columns
// in neither list, which encode() does not keep.
void find_fitting(const Points& points, const CodedColumns& columns, Argument argument,
                  int n_threads, std::uint8_t* fits, double* others);

// Writes rows in one piece.
void encode(const Points& points, const CodedColumns& columns, int n_threads, std::uint8_t* rows);

// Sets the numeric columns and codes of points, of as many such rows.
void take_coded(const CodedColumns& columns, const std::uint8_t* rows, Points& points);

}  // namespace dcsvm
