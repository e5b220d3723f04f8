// Coded columns: groups of 0/1 columns of which a row has at most one set become one code.
//
// Two rows then differ in a group by 0 where the codes are equal, else by the columns that are
// set: |x - z|^2 = ... + W_x + W_z - 2 (number of equal codes), with W_x the number of columns set.
// One-hot data is recognised by this alone; nothing has to be declared. A kernel value costs one
// comparison of bytes for a group instead of a multiplication for each of its columns, and is more
// exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/points.h"

namespace dcsvm {

struct CodedColumns {
  std::vector<std::int32_t> numeric;              // columns that stay as they are, ascending
  std::vector<std::vector<std::int32_t>> groups;  // columns of each code, ascending

  // Operations a row pair costs, a numeric column two.
  double cost() const {
    return 2.0 * static_cast<double>(numeric.size()) + 1.2 * static_cast<double>(groups.size());
  }
};

// The columns of dense points, grouped greedily in their order. Columns that are zero everywhere
// are in neither list. No groups when the rows have too many ones to compare.
CodedColumns find_codes(const Points& points, int n_threads);

// The code of a row without a column set in a group; it equals nothing.
constexpr std::uint8_t no_code = 255;

// Writes the numeric columns, n_samples x numeric, and a code for each group, n_samples x groups.
void encode(const Points& points, const CodedColumns& columns, int n_threads, float* numeric,
            std::uint8_t* codes);

// Operations a row pair costs as bytes, to compare with CodedColumns::cost().
constexpr double bytes_cost(const Points& points) {
  return 0.14 * static_cast<double>(points.n_features);
}

// Whether all features of dense points are integers from 0 to 255 and the tiles of this machine
// multiply them as such.
bool are_bytes(const Points& points, int n_threads);

// Writes the features as bytes, n_samples x byte_row_size(), and the sum of each row.
void encode_bytes(const Points& points, int n_threads, std::uint8_t* out, std::int32_t* sums);

}  // namespace dcsvm
