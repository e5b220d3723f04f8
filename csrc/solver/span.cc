#include "solver/span.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel/kernel_matrix.h"
#include "solver/cholesky.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

constexpr std::size_t at_once = 16;     // columns that are solved side by side
constexpr double first_ridge = 1e-6;    // of the mean K(x, x): about the error of kernel values
constexpr double ridge_step = 100;      // where that does not make the matrix definite
constexpr double largest_ridge = 1e-1;

// The free support vectors of a cluster that spans are of.
class Basis {
 public:
  Basis(const KernelSetup& setup, const Points& points, const BoxQp& qp, int n_threads)
      : setup_(setup), points_(points), qp_(qp), n_threads_(n_threads) {}

  void spans(const std::vector<std::int32_t>& support, const std::vector<std::int32_t>& basis,
             double* span) {
    factor(basis);
    std::vector<std::int32_t> others;
    std::set_difference(support.begin(), support.end(), basis.begin(), basis.end(),
                        std::back_inserter(others));
    const std::vector<double> diagonal = diagonal_of(others);
    const std::vector<std::int32_t> rows = qp_.rows_of(others);
    const std::size_t n_blocks = (others.size() + at_once - 1) / at_once;
    parallel_for(
        {n_threads_, n_blocks}, [this] { return Columns(size()); },
        [&](Columns& columns, std::size_t b) {
          const std::size_t begin = b * at_once, n = std::min(at_once, others.size() - begin);
          columns.kernel_values.resize(n * size());
          if (size() > 0) {
            kernel_matrix(setup_, {&points_, rows.data() + begin, n}, list(), 1,
                          columns.kernel_values.data());
          }
          columns.take(n);
          solve(columns, 0);
          for (std::size_t c = 0; c < n; ++c) {
            const auto [squared, along] = columns.product(c, ones_);
            double distance = diagonal[begin + c] - squared;
            if (ones_squared_ > 0) distance += (1 - along) * (1 - along) / ones_squared_;
            span[others[begin + c]] = std::max(distance, 0.0);
          }
        });
    parallel_for(
        {n_threads_, (size() + at_once - 1) / at_once}, [this] { return Columns(size()); },
        [&](Columns& columns, std::size_t b) {
          const std::size_t begin = b * at_once, n = std::min(at_once, size() - begin);
          columns.unit(begin, n);
          solve(columns, begin);
          for (std::size_t c = 0; c < n; ++c) {
            auto [inverse, along] = columns.product(c, ones_);
            if (size() > 1 && ones_squared_ > 0) inverse -= along * along / ones_squared_;
            span[basis[begin + c]] = inverse > 0 ? std::max(1 / inverse - ridge_, 0.0) : 0.0;
          }
        });
  }

 private:
  // Right-hand sides, entry by entry for all at_once of them.
  struct Columns {
    explicit Columns(std::size_t size) : entries(size * at_once) {}

    void take(std::size_t n) {
      const std::size_t size = entries.size() / at_once;
      std::fill(entries.begin(), entries.end(), 0.0);
      for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t i = 0; i < size; ++i) entries[i * at_once + c] = kernel_values[c * size + i];
      }
    }
    void unit(std::size_t begin, std::size_t n) {
      std::fill(entries.begin(), entries.end(), 0.0);
      for (std::size_t c = 0; c < n; ++c) entries[(begin + c) * at_once + c] = 1.0;
    }
    // Of column c the squared norm, and the product with another vector.
    std::pair<double, double> product(std::size_t c, const std::vector<double>& other) const {
      double squared = 0, along = 0;
      for (std::size_t i = 0; i < entries.size() / at_once; ++i) {
        const double value = entries[i * at_once + c];
        squared += value * value;
        if (!other.empty()) along += value * other[i];
      }
      return {squared, along};
    }

    std::vector<float> kernel_values;
    std::vector<double> entries;
  };

  std::size_t size() const { return rows_.size(); }
  RowList list() const { return {&points_, rows_.data(), rows_.size()}; }

  void factor(const std::vector<std::int32_t>& basis) {
    rows_ = qp_.rows_of(basis);
    ones_.clear();
    ones_squared_ = 0;
    if (size() == 0) return;
    std::vector<float> matrix(size() * size());
    kernel_matrix(setup_, list(), list(), n_threads_, matrix.data());
    double mean = 0;
    for (std::size_t i = 0; i < size(); ++i) mean += matrix[i * size() + i];
    mean = std::abs(mean) / static_cast<double>(size());
    bool is_definite = false;
    for (double ridge = first_ridge; !is_definite && ridge < largest_ridge; ridge *= ridge_step) {
      ridge_ = ridge * mean;
      cholesky_.reset(size());
      for (std::size_t i = 0; i < size(); ++i) {
        for (std::size_t j = 0; j <= i; ++j) cholesky_.at(i, j) = matrix[i * size() + j];
        cholesky_.at(i, i) += ridge_;
      }
      is_definite = cholesky_.factor(n_threads_);
    }
    if (!is_definite) {  // of an indefinite kernel nothing is known: spans of nothing
      rows_.clear();
      return;
    }
    if (qp_.n_sums == 0) return;
    Columns columns(size());
    for (std::size_t i = 0; i < size(); ++i) columns.entries[i * at_once] = 1.0;
    solve(columns, 0);
    for (std::size_t i = 0; i < size(); ++i) ones_.push_back(columns.entries[i * at_once]);
    for (const double value : ones_) ones_squared_ += value * value;
  }

  // L x = b for all columns, whose entries before `first` are 0.
  void solve(Columns& columns, std::size_t first) {
    double* entries = columns.entries.data();
    for (std::size_t i = first; i < size(); ++i) {
      double own[at_once];
      std::copy_n(entries + i * at_once, at_once, own);
      for (std::size_t j = first; j < i; ++j) {
        const double factor = cholesky_.at(i, j);
        for (std::size_t c = 0; c < at_once; ++c) own[c] -= factor * entries[j * at_once + c];
      }
      const double scale = 1.0 / cholesky_.at(i, i);
      for (std::size_t c = 0; c < at_once; ++c) entries[i * at_once + c] = own[c] * scale;
    }
  }

  std::vector<double> diagonal_of(const std::vector<std::int32_t>& variables) const {
    const std::vector<std::int32_t> rows = qp_.rows_of(variables);
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
  const BoxQp& qp_;
  int n_threads_;
  Cholesky cholesky_;
  double ridge_ = 0, ones_squared_ = 0;
  std::vector<std::int32_t> rows_;
  std::vector<double> ones_;  // the factor's inverse times ones
};

}  // namespace

void squared_spans(const KernelSetup& setup, const Points& points, const BoxQp& qp,
                   const Clusters& clusters, const double* alpha, std::size_t n_free,
                   int n_threads, double* span) {
  parallel_for({n_threads, clusters.n_clusters}, [&](std::size_t k) {
    std::vector<std::int32_t> support, free;
    for (std::int64_t m = clusters.start[k]; m < clusters.start[k + 1]; ++m) {
      const std::int32_t i = clusters.members[m];
      if (alpha[i] == 0) continue;
      support.push_back(i);
      if (alpha[i] > qp.lower[i] && alpha[i] < qp.upper[i]) free.push_back(i);
    }
    std::sort(support.begin(), support.end());
    std::sort(free.begin(), free.end());
    std::vector<std::int32_t> basis;
    const std::size_t n = std::min(free.size(), n_free);
    for (std::size_t j = 0; j < n; ++j) basis.push_back(free[j * free.size() / n]);
    Basis(setup, points, qp, n_threads).spans(support, basis, span);
  });
}

}  // namespace dcsvm
