#include "solver/cholesky.h"

#include <algorithm>
#include <cmath>

#include "simd/isa.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

constexpr std::size_t block = 32;
// The factorization is parallel from this number of blocks below the diagonal (256 rows): the work
// must outweigh two synchronizations per column of blocks.
constexpr std::size_t threads_threshold = 8;

}  // namespace

void Cholesky::reset(std::size_t n) {
  size_ = n;
  stride_ = (n + block - 1) / block * block;
  matrix_.resize(stride_ * stride_);
  for (std::size_t i = n; i < stride_; ++i) {
    std::fill_n(&at(i, 0), stride_, 0.0);
    at(i, i) = 1.0;
  }
}

// Factors the diagonal block at k in place and, if rows follow, writes the transposed inverse of
// its factor. The innermost loops run along contiguous rows of the transposed factor and the
// inverse.
bool Cholesky::factor_diagonal(std::size_t k, double* inverse_transposed) {
  const std::size_t n = std::min(block, size_ - k);
  double upper[block][block], inverse[block][block];
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) upper[j][i] = at(k + i, k + j);
  }
  for (std::size_t j = 0; j < n; ++j) {
    if (!(upper[j][j] > 0)) return false;
    const double scale = 1.0 / std::sqrt(upper[j][j]);
    for (std::size_t i = j; i < n; ++i) upper[j][i] *= scale;
    for (std::size_t l = j + 1; l < n; ++l) {
      const double factor = upper[j][l];
      for (std::size_t i = l; i < n; ++i) upper[l][i] -= factor * upper[j][i];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) at(k + i, k + j) = upper[j][i];
  }
  if (k + block >= size_) return true;
  for (std::size_t i = 0; i < block; ++i) {
    std::fill_n(inverse[i], block, 0.0);
    inverse[i][i] = 1.0;
    for (std::size_t l = 0; l < i; ++l) {
      const double factor = upper[l][i];
      for (std::size_t c = 0; c <= l; ++c) inverse[i][c] -= factor * inverse[l][c];
    }
    const double scale = 1.0 / upper[i][i];
    for (std::size_t c = 0; c <= i; ++c) inverse[i][c] *= scale;
  }
  for (std::size_t i = 0; i < block; ++i) {
    for (std::size_t c = 0; c < block; ++c) inverse_transposed[c * block + i] = inverse[i][c];
  }
  return true;
}

// Multiplies block (i, k) with the inverse of the diagonal block's factor.
void Cholesky::divide_block(std::size_t i, std::size_t k) {
  double* rows = panel_.data() + i * block;
  double* transposed = panel_transposed_.data() + i * block;
  for (std::size_t a = 0; a < block; ++a) {
    for (std::size_t b = 0; b < block; ++b) {
      rows[a * block + b] = -at(i + a, k + b);
      at(i + a, k + b) = 0.0;
    }
  }
  isa().subtract_product(rows, inverse_.data(), block, block, block, &at(i, k), stride_);
  for (std::size_t a = 0; a < block; ++a) {
    for (std::size_t b = 0; b < block; ++b) {
      rows[a * block + b] = at(i + a, k + b);
      transposed[b * block + a] = at(i + a, k + b);
    }
  }
}

// Subtracts the contribution of column k from the blocks of row i right of k.
void Cholesky::update_row(std::size_t i, std::size_t k) {
  for (std::size_t j = k + block; j <= i; j += block) {
    isa().subtract_product(panel_.data() + i * block, panel_transposed_.data() + j * block, block,
                           block, block, &at(i, j), stride_);
  }
}

bool Cholesky::factor(int n_threads) {
  const std::size_t n_blocks = stride_ / block;
  panel_.resize(stride_ * block);
  panel_transposed_.resize(stride_ * block);
  inverse_.resize(block * block);
  for (std::size_t kb = 0; kb < n_blocks; ++kb) {
    const std::size_t k = kb * block;
    if (!factor_diagonal(k, inverse_.data())) return false;
    const std::size_t rest = n_blocks - kb - 1;
    const int together = rest >= threads_threshold ? n_threads : 1;
    parallel_for({together, rest}, [&](std::size_t r) { divide_block(k + (r + 1) * block, k); });
    parallel_for({together, rest}, [&](std::size_t r) { update_row(k + (rest - r) * block, k); });
  }
  return true;
}

// Skips leading zeros of b; four partial sums hide the latency of additions.
void Cholesky::solve(double* b) const {
  std::size_t first = 0;
  while (first < size_ && b[first] == 0.0) ++first;
  for (std::size_t i = first; i < size_; ++i) {
    const double* row = matrix_.data() + i * stride_;
    double sum[4] = {};
    std::size_t j = first;
    for (; j + 4 <= i; j += 4) {
      for (std::size_t v = 0; v < 4; ++v) sum[v] += row[j + v] * b[j + v];
    }
    for (; j < i; ++j) sum[0] += row[j] * b[j];
    b[i] = (b[i] - ((sum[0] + sum[1]) + (sum[2] + sum[3]))) / row[i];
  }
  for (std::size_t i = size_; i-- > 0;) {
    const double* row = matrix_.data() + i * stride_;
    b[i] /= row[i];
    const double x = b[i];
    for (std::size_t j = 0; j < i; ++j) b[j] -= row[j] * x;
  }
}

void Cholesky::divide(Columns& columns, std::size_t first) const {
  static_assert(width == block);
  double* entries = columns.entries.data();
  const std::size_t begin = first / block * block;
  for (std::size_t i = begin; i < stride_; i += block) {
    const std::size_t depth = i - begin;
    columns.rows.resize(block * depth);
    for (std::size_t r = 0; r < block; ++r) {
      std::copy_n(matrix_.data() + (i + r) * stride_ + begin, depth,
                  columns.rows.data() + r * depth);
    }
    double* own = entries + i * width;
    isa().subtract_product(columns.rows.data(), entries + begin * width, depth, block, width, own,
                           width);
    for (std::size_t r = 0; r < block; ++r) {
      const double* row = matrix_.data() + (i + r) * stride_ + i;
      for (std::size_t j = 0; j < r; ++j) {
        for (std::size_t c = 0; c < width; ++c) own[r * width + c] -= row[j] * own[j * width + c];
      }
      for (std::size_t c = 0; c < width; ++c) own[r * width + c] /= row[r];
    }
  }
}

double inner_product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void FixedConstraints::clear() {
  constraints_.clear();
  solved_.clear();
}

void FixedConstraints::add(const Cholesky& factored, std::vector<double> constraint) {
  solved_.push_back(constraint);
  factored.solve(solved_.back().data());
  constraints_.push_back(std::move(constraint));
}

void FixedConstraints::project(std::vector<double>& direction) const {
  const std::size_t k = constraints_.size();
  if (k == 0) return;
  Cholesky small;
  small.reset(k);
  std::vector<double> multipliers(k);
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j <= i; ++j)
      small.at(i, j) = inner_product(constraints_[i], solved_[j]);
    multipliers[i] = inner_product(constraints_[i], direction);
  }
  if (!small.factor(1)) {
    std::fill(direction.begin(), direction.end(), 0.0);
    return;
  }
  small.solve(multipliers.data());
  for (std::size_t j = 0; j < k; ++j) {
    for (std::size_t i = 0; i < direction.size(); ++i)
      direction[i] -= multipliers[j] * solved_[j][i];
  }
}

}  // namespace dcsvm
