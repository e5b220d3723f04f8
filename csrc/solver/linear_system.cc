#include "solver/linear_system.h"

#include <algorithm>
#include <cmath>

#include "simd/isa.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

constexpr std::size_t block = 32;            // of the matrix
constexpr std::size_t batch_products = 128;  // rows whose outer products are added together
constexpr std::size_t min_blocks = 4;        // per side; larger matrices are updated in parallel
constexpr double sparse_part = 0.1;  // density below which stored entries are added one at a time
constexpr double products_per_value = 8;     // dense products that cost as much as a stored value
constexpr double usual_cg_iterations = 100;  // for cost estimates
constexpr int max_cg_iterations = 200;
constexpr double cg_accuracy = 1e-2;  // relative reduction of the residual
constexpr double min_ridge = 1e-12;   // relative to the diagonal entry of a constraint

}  // namespace

LinearSystem::LinearSystem(const LinearState& state)
    : state_(state),
      dimension_(state.rows.dimension()),
      size_(dimension_ + state.totals.size()),
      stride_((size_ + block - 1) / block * block),
      is_free_(state.qp.size) {}

double LinearSystem::cost_of_products(double n_rows) const {
  const double n = static_cast<double>(size_), stored = state_.rows.mean_stored();
  const bool is_sparse = stored < sparse_part * n;
  return 0.5 * n_rows * (is_sparse ? stored * stored : n * n / products_per_value);
}

double LinearSystem::cost_of_factor() const {
  const double n = static_cast<double>(size_);
  return n * n * n / (6 * products_per_value);
}

double LinearSystem::usual_cost(double n_free) const {
  return is_direct() ? cost_of_products(n_free) + cost_of_factor()
                     : usual_cg_iterations * 2 * n_free * state_.rows.mean_stored();
}

void LinearSystem::set_free(const std::vector<std::uint8_t>& is_free) {
  std::vector<std::int32_t> added, removed;
  free_.clear();
  free_rows_.clear();
  for (std::size_t i = 0; i < is_free.size(); ++i) {
    const auto variable = static_cast<std::int32_t>(i);
    if (is_free[i]) {
      free_.push_back(variable);
      free_rows_.push_back(state_.row[i]);
    }
    if (is_free[i] && !is_free_[i]) added.push_back(variable);
    if (!is_free[i] && is_free_[i]) removed.push_back(variable);
  }
  is_free_ = is_free;
  if (!is_direct()) return;
  if (matrix_.empty() || added.size() + removed.size() >= free_.size()) {
    matrix_.assign(stride_ * stride_, 0.0);
    add_outer_products(free_, 1.0);
  } else {
    add_outer_products(added, 1.0);
    add_outer_products(removed, -1.0);
  }
}

void LinearSystem::add_outer_products(const std::vector<std::int32_t>& variables, double sign) {
  values_ += cost_of_products(static_cast<double>(variables.size()));
  if (state_.rows.mean_stored() < sparse_part * static_cast<double>(size_)) {
    add_sparse(variables, sign);
  } else {
    add_dense(variables, sign);
  }
}

void LinearSystem::add_sparse(const std::vector<std::int32_t>& variables, double sign) {
  std::vector<std::pair<std::size_t, double>> x;
  for (const std::int32_t i : variables) {
    const auto variable = static_cast<std::size_t>(i);
    x.clear();
    state_.rows.for_each(static_cast<std::size_t>(state_.row[variable]),
                         [&](std::size_t entry, double value) {
                           if (value != 0.0) x.emplace_back(entry, value);
                         });
    if (state_.qp.constraint_at(variable) >= 0)
      x.emplace_back(dimension_ + static_cast<std::size_t>(state_.qp.constraint_at(variable)), 1.0);
    for (std::size_t a = 0; a < x.size(); ++a) {
      for (std::size_t b = 0; b <= a; ++b)
        matrix_[x[a].first * stride_ + x[b].first] += sign * x[a].second * x[b].second;
    }
  }
}

// Splits the matrix and the rows into blocks; one thread updates a block of the matrix.
void LinearSystem::add_dense(const std::vector<std::int32_t>& variables, double sign) {
  const std::size_t n_blocks = stride_ / block;
  std::vector<double> left(stride_ * batch_products), right(stride_ * batch_products);
  for (std::size_t first = 0; first < variables.size(); first += batch_products) {
    const std::size_t depth = std::min(batch_products, variables.size() - first);
    std::fill(left.begin(), left.end(), 0.0);
    std::fill(right.begin(), right.end(), 0.0);
    for (std::size_t k = 0; k < depth; ++k) {
      const auto variable = static_cast<std::size_t>(variables[first + k]);
      const auto put = [&](std::size_t entry, double value) {
        left[entry * depth + k] = -sign * value;
        right[(entry / block) * depth * block + k * block + entry % block] = value;
      };
      state_.rows.for_each(static_cast<std::size_t>(state_.row[variable]), put);
      if (state_.qp.constraint_at(variable) >= 0)
        put(dimension_ + static_cast<std::size_t>(state_.qp.constraint_at(variable)), 1.0);
    }
    const int threads = n_blocks > min_blocks ? state_.n_threads : 1;
    parallel_for({threads, n_blocks}, [&](std::size_t b) {
      const std::size_t i = (n_blocks - 1 - b) * block;  // long rows of blocks first
      for (std::size_t j = 0; j <= i; j += block)
        isa().subtract_product(left.data() + i * depth, right.data() + j * depth, depth, block,
                               block, matrix_.data() + i * stride_ + j, stride_);
    });
  }
}

void LinearSystem::solve(double sigma, std::vector<double>& b, const Stop* stop) {
  if (is_direct()) {
    solve_by_factor(sigma, b);
  } else {
    solve_by_cg(sigma, b, stop);
  }
}

void LinearSystem::solve_by_factor(double sigma, std::vector<double>& b) {
  // rounding can make the matrix indefinite
  for (double ridge = min_ridge; ridge < 1; ridge *= 100) {
    values_ += cost_of_factor();
    cholesky_.reset(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) cholesky_.at(i, j) = sigma * matrix_[i * stride_ + j];
      const double own = cholesky_.at(i, i);
      if (i < dimension_) {
        cholesky_.at(i, i) += 1.0;
      } else if (own <= 0) {
        cholesky_.at(i, i) = sigma;  // a constraint without free variables
      }
      cholesky_.at(i, i) += ridge * own;
    }
    if (!cholesky_.factor(state_.n_threads)) continue;
    cholesky_.solve(b.data());
    return;
  }
  std::fill(b.begin(), b.end(), 0.0);
}

// out = (I + sigma X_F' X_F) x, bordered by the constraints
void LinearSystem::multiply(double sigma, const std::vector<double>& x, std::vector<double>& out) {
  std::vector<double> product(free_.size());
  const RowList list{&state_.rows.points(), free_rows_.data(), free_rows_.size()};
  multiply_rows(state_.rows, list, x.data(), state_.n_threads, product.data());
  std::fill(out.begin(), out.end(), 0.0);
  for (std::size_t k = 0; k < free_.size(); ++k) {
    const int constraint = state_.qp.constraint_at(static_cast<std::size_t>(free_[k]));
    if (constraint < 0) continue;
    const std::size_t at = dimension_ + static_cast<std::size_t>(constraint);
    product[k] += x[at];
    out[at] += product[k];
  }
  add_rows(state_.rows, list, {1, nullptr, nullptr, product.data()}, 0, 1, state_.n_threads,
           out.data());
  for (std::size_t j = 0; j < size_; ++j) out[j] = sigma * out[j] + (j < dimension_ ? x[j] : 0.0);
}

void LinearSystem::solve_by_cg(double sigma, std::vector<double>& b, const Stop* stop) {
  std::vector<double> diagonal(size_), x(size_), residual = b, scaled(size_), step, product(size_);
  for (const std::int32_t i : free_) {
    const auto variable = static_cast<std::size_t>(i);
    state_.rows.for_each(
        static_cast<std::size_t>(state_.row[variable]),
        [&](std::size_t entry, double value) { diagonal[entry] += value * value; });
    if (state_.qp.constraint_at(variable) >= 0)
      diagonal[dimension_ + static_cast<std::size_t>(state_.qp.constraint_at(variable))] += 1.0;
  }
  for (std::size_t j = 0; j < size_; ++j) {
    // a constraint without free variables has an empty row
    diagonal[j] = j < dimension_ ? 1.0 + sigma * diagonal[j] : sigma * std::max(diagonal[j], 1.0);
    scaled[j] = residual[j] / diagonal[j];
  }
  step = scaled;
  double size = inner_product(residual, scaled);
  const double target = cg_accuracy * cg_accuracy * size;
  for (int k = 0; k < max_cg_iterations && size > target; ++k) {
    if (is_requested(stop)) break;
    multiply(sigma, step, product);
    values_ += 2 * static_cast<double>(free_.size()) * state_.rows.mean_stored();
    const double curvature = inner_product(step, product);
    if (!(curvature > 0)) break;
    const double length = size / curvature;
    for (std::size_t j = 0; j < size_; ++j) {
      x[j] += length * step[j];
      residual[j] -= length * product[j];
      scaled[j] = residual[j] / diagonal[j];
    }
    const double next = inner_product(residual, scaled);
    for (std::size_t j = 0; j < size_; ++j) step[j] = scaled[j] + next / size * step[j];
    size = next;
  }
  b = x;
}

}  // namespace dcsvm
