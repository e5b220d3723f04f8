// Codes: exclusive 0/1 columns, of which a row has at most one set, as one byte.
//
// Two codes add 0 to a squared distance where they are equal, else the number of columns set:
// |x - z|^2 = ... + W_x + W_z - 2 (number of equal codes), with W_x the number of columns set in x.
// One-hot data is recognised by its values alone; nothing has to be declared. A code costs one
// comparison of bytes instead of a multiplication for each of its columns, and is more exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/points.h"

namespace dcsvm {

struct CodedColumns {
  std::vector<std::int32_t> numeric;             // columns that stay as they are, ascending
  std::vector<std::vector<std::int32_t>> codes;  // columns of each code, ascending

  // Operations for a pair of rows: a numeric column takes two, a code one byte comparison.
  double cost() const {
    return 2.0 * static_cast<double>(numeric.size()) + 1.2 * static_cast<double>(codes.size());
  }
};

// The columns of dense points, assigned to codes greedily in their order. Columns that are zero
// everywhere are in neither list. There are no codes when the rows have too many ones to compare.
CodedColumns find_codes(const Points& points, int n_threads);

// The code of a row with none of the columns set; it equals nothing.
constexpr std::uint8_t no_code = 255;

// Of rows that need not be among those in which the codes were found. fits[i]: whether row i has at
// most one of a code's columns set, to 1. squares[i]: the sum of squares of its columns in neither
// list, which encode() does not keep.
void find_fitting(const Points& points, const CodedColumns& columns, int n_threads,
                  std::uint8_t* fits, double* squares);

// Writes the numeric columns, n_samples x numeric, and the codes, n_samples x codes.
void encode(const Points& points, const CodedColumns& columns, int n_threads, float* numeric,
            std::uint8_t* codes);

}  // namespace dcsvm
