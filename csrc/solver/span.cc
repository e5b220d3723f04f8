// Distances of support vectors from the span of the others (Vapnik and Chapelle, "Bounds on error
// expectation for support vector machines", Neural Computation 12, 2000).
//
// Without support vector i, its own decision value decreases by |alpha_i| S_i^2, provided that the
// set of support vectors does not change. S_i is the distance of its image from the span of the
// other free support vectors: affine with an equality constraint, linear without.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel/kernel_matrix.h"
#include "solver/cholesky.h"
#include "solver/cluster_solver.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

constexpr std::size_t batch = Cholesky::width;
// First ridge, relative to the mean K(x, x): about the error of kernel values.
constexpr double first_ridge = 1e-6;
constexpr double ridge_step = 100;  // factor while the matrix is not definite
constexpr double max_ridge = 1e-1;
// With more than n_exact free support vectors, the smaller of two distances is used. One is from
// the span of evenly spaced support vectors, better for flat kernels; the other from the span of
// the nearest ones, better for other kernels.
constexpr std::size_t max_near = 64;
constexpr std::size_t max_basis = 4096;  // evenly spaced free support vectors considered

using Variables = std::vector<std::int32_t>;

// Returns at most n of the variables, evenly spaced.
Variables spaced(const Variables& variables, std::size_t n) {
  if (variables.size() <= n) return variables;
  Variables subset(n);
  for (std::size_t i = 0; i < n; ++i) subset[i] = variables[i * variables.size() / n];
  return subset;
}

// Returns the squared norm of a column and its inner product with another vector.
std::pair<double, double> squares(const std::vector<double>& entries, std::size_t column,
                                  const std::vector<double>& other) {
  double squared = 0, along = 0;
  for (std::size_t i = 0; i < entries.size() / batch; ++i) {
    const double value = entries[i * batch + column];
    squared += value * value;
    if (i < other.size()) along += value * other[i];
  }
  return {squared, along};
}

// The free support vectors of a cluster, which define the span.
class Basis {
 public:
  Basis(const KernelSetup& setup, const Points& points, const BoxQP& qp, int n_threads)
      : setup_(setup), points_(points), qp_(qp), n_threads_(n_threads) {}

  // Computes spans of the targets, ascending, which may include members of the basis.
  void spans(const Variables& targets, const Variables& basis, std::size_t n_exact, double* span) {
    if (basis.size() > n_exact) {
      spans(targets, spaced(basis, n_exact), n_exact, span);
      near_spans(targets, basis, span);
      return;
    }
    Variables others, own;
    std::set_difference(targets.begin(), targets.end(), basis.begin(), basis.end(),
                        std::back_inserter(others));
    for (std::size_t i = 0; i < basis.size(); ++i) {
      if (std::binary_search(targets.begin(), targets.end(), basis[i])) {
        own.push_back(static_cast<std::int32_t>(i));
      }
    }
    factor(basis);
    spans_of_others(others, span);
    if (size() > 0) spans_of_own(basis, own, span);
  }

 private:
  struct Columns : Cholesky::Columns {
    std::vector<float> kernel_values;
  };

  void spans_of_others(const Variables& others, double* span) {
    const std::vector<double> diagonal = diagonal_of(others);
    const Variables rows = qp_.rows_of(others);
    parallel_for(
        {n_threads_, (others.size() + batch - 1) / batch}, [] { return Columns(); },
        [&](Columns& columns, std::size_t b) {
          const std::size_t begin = b * batch, n = std::min(batch, others.size() - begin);
          columns.kernel_values.resize(n * size());
          if (size() > 0) {
            kernel_matrix(setup_, {&points_, rows.data() + begin, n}, list(), 1,
                          columns.kernel_values.data());
          }
          reset(columns);
          for (std::size_t c = 0; c < n; ++c) {
            for (std::size_t i = 0; i < size(); ++i) {
              columns.entries[i * batch + c] = columns.kernel_values[c * size() + i];
            }
          }
          solve(columns, 0);
          for (std::size_t c = 0; c < n; ++c) {
            const auto [squared, along] = squares(columns.entries, c, ones_);
            span[others[begin + c]] = distance(diagonal[begin + c], squared, along);
          }
        });
  }

  // Computes spans of basis members, from the diagonal of the inverse.
  void spans_of_own(const Variables& basis, const Variables& own, double* span) {
    parallel_for(
        {n_threads_, (own.size() + batch - 1) / batch}, [] { return Columns(); },
        [&](Columns& columns, std::size_t b) {
          const std::size_t begin = b * batch, n = std::min(batch, own.size() - begin);
          reset(columns);
          for (std::size_t c = 0; c < n; ++c) {
            columns.entries[static_cast<std::size_t>(own[begin + c]) * batch + c] = 1.0;
          }
          solve(columns, static_cast<std::size_t>(own[begin]));
          for (std::size_t c = 0; c < n; ++c) {
            auto [inverse, along] = squares(columns.entries, c, ones_);
            if (size() > 1 && ones_squared_ > 0) inverse -= along * along / ones_squared_;
            span[basis[static_cast<std::size_t>(own[begin + c])]] =
                inverse > 0 ? std::max(1 / inverse - ridge_, 0.0) : 0.0;
          }
        });
  }

  double distance(double diagonal, double squared, double along) const {
    double result = diagonal - squared;
    if (ones_squared_ > 0) result += (1 - along) * (1 - along) / ones_squared_;
    return std::max(result, 0.0);
  }

  // Replaces the result of each target by its distance from the span of its nearest basis members
  // (itself excluded), if that is smaller.
  void near_spans(const Variables& targets, const Variables& basis, double* span) {
    const std::vector<double> diagonal = diagonal_of(targets);
    const Variables rows = qp_.rows_of(targets), all_rows = qp_.rows_of(basis);
    const RowList all{&points_, all_rows.data(), all_rows.size()};
    struct Near {
      Basis basis;
      std::vector<float> kernel_values;
      std::vector<std::size_t> order;
    };
    parallel_for(
        {n_threads_, (targets.size() + batch - 1) / batch},
        [this] { return Near{Basis(setup_, points_, qp_, 1), {}, {}}; },
        [&](Near& near, std::size_t b) {
          const std::size_t begin = b * batch, n = std::min(batch, targets.size() - begin);
          near.kernel_values.resize(n * basis.size());
          kernel_matrix(setup_, {&points_, rows.data() + begin, n}, all, 1,
                        near.kernel_values.data());
          for (std::size_t c = 0; c < n; ++c) {
            const float* values = near.kernel_values.data() + c * basis.size();
            near.order.clear();
            for (std::size_t i = 0; i < basis.size(); ++i) {
              if (basis[i] != targets[begin + c]) near.order.push_back(i);
            }
            const auto end = near.order.begin() + max_near;
            std::nth_element(near.order.begin(), end, near.order.end(),
                             [values](std::size_t x, std::size_t y) {
                               return values[x] > values[y] || (values[x] == values[y] && x < y);
                             });
            Variables chosen;
            for (auto it = near.order.begin(); it != end; ++it) chosen.push_back(basis[*it]);
            std::vector<float> subset;
            for (auto it = near.order.begin(); it != end; ++it) subset.push_back(values[*it]);
            double& least = span[targets[begin + c]];
            least = std::min(least, near.basis.span_of(chosen, subset, diagonal[begin + c]));
          }
        });
  }

  // Returns the span of one row, given its kernel values with the chosen variables and itself.
  double span_of(const Variables& chosen, const std::vector<float>& values, double diagonal) {
    factor(chosen);
    Columns columns;
    reset(columns);
    for (std::size_t i = 0; i < size(); ++i) columns.entries[i * batch] = values[i];
    solve(columns, 0);
    const auto [squared, along] = squares(columns.entries, 0, ones_);
    return distance(diagonal, squared, along);
  }

  std::size_t size() const { return rows_.size(); }
  RowList list() const { return {&points_, rows_.data(), rows_.size()}; }

  void factor(const Variables& basis) {
    rows_ = qp_.rows_of(basis);
    ones_.clear();
    ones_squared_ = 0;
    if (size() == 0) return;
    std::vector<float> matrix(size() * size());
    symmetric_matrix(setup_, list(), n_threads_, matrix.data());
    double mean = 0;
    for (std::size_t i = 0; i < size(); ++i) mean += matrix[i * size() + i];
    mean = std::abs(mean) / static_cast<double>(size());
    bool is_definite = false;
    for (double ridge = first_ridge; !is_definite && ridge < max_ridge; ridge *= ridge_step) {
      ridge_ = ridge * mean;
      cholesky_.reset(size());
      for (std::size_t i = 0; i < size(); ++i) {
        for (std::size_t j = 0; j <= i; ++j) cholesky_.at(i, j) = matrix[i * size() + j];
        cholesky_.at(i, i) += ridge_;
      }
      is_definite = cholesky_.factor(n_threads_);
    }
    if (!is_definite) {  // an indefinite kernel has no span: use an empty basis
      rows_.clear();
      return;
    }
    if (qp_.n_constraints == 0) return;
    Columns columns;
    reset(columns);
    for (std::size_t i = 0; i < size(); ++i) columns.entries[i * batch] = 1.0;
    solve(columns, 0);
    for (std::size_t i = 0; i < size(); ++i) ones_.push_back(columns.entries[i * batch]);
    for (const double value : ones_) ones_squared_ += value * value;
  }

  void reset(Columns& columns) const {
    columns.entries.clear();
    if (size() > 0) cholesky_.reset(columns);
  }
  void solve(Columns& columns, std::size_t first) const {
    if (size() > 0) cholesky_.divide(columns, first);
  }

  std::vector<double> diagonal_of(const Variables& variables) const {
    const Variables rows = qp_.rows_of(variables);
    std::vector<double> diagonal(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      float value = 0;
      const RowList one{&points_, rows.data() + i, 1};
      kernel_matrix(setup_, one, one, 1, &value);
      diagonal[i] = value;
    }
    return diagonal;
  }

  const KernelSetup& setup_;
  const Points& points_;
  const BoxQP& qp_;
  int n_threads_;
  Cholesky cholesky_;
  double ridge_ = 0, ones_squared_ = 0;
  Variables rows_;
  std::vector<double> ones_;  // inverse of the factor times the vector of ones
};

}  // namespace

void squared_spans(const KernelSetup& setup, const Points& points, const BoxQP& qp,
                   const Clusters& clusters, const double* alpha, const std::uint8_t* is_target,
                   std::size_t n_exact, int n_threads, double* span) {
  parallel_for({n_threads, clusters.n_clusters}, [&](std::size_t k) {
    Variables targets, free;
    for (std::int64_t m = clusters.start[k]; m < clusters.start[k + 1]; ++m) {
      const std::int32_t i = clusters.members[m];
      if (alpha[i] == 0) continue;
      if (is_target[i]) targets.push_back(i);
      if (alpha[i] > qp.lower[i] && alpha[i] < qp.upper[i]) free.push_back(i);
    }
    if (targets.empty()) return;
    std::sort(targets.begin(), targets.end());
    std::sort(free.begin(), free.end());
    Basis(setup, points, qp, n_threads).spans(targets, spaced(free, max_basis), n_exact, span);
  });
}

}  // namespace dcsvm
