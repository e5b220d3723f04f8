#include "solver/cluster_solver.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <numeric>

#include "kernel/kernel_cost.h"
#include "kernel/row_panels.h"
#include "kernel/varying_rows.h"

namespace dcsvm {

namespace {

constexpr double too_long = 1.1;

// A box QP restricted to some variables: its data, copied unless they stand side by side in the
// whole problem, and a copy of their part of the iterate.
class SubProblem {
 public:
  SubProblem(const BoxQp& whole, const std::int32_t* members, std::size_t n)
      : members_(members), qp_(whole), alpha_(n), gradient_(n), base_(n), known_(n) {
    qp_.size = n;
    if (whole.row && is_contiguous()) {
      const auto first = static_cast<std::size_t>(members[0]);
      qp_.row += first;
      qp_.linear += first;
      qp_.lower += first;
      qp_.upper += first;
      if (qp_.group) qp_.group += first;
      return;
    }
    row_.resize(n);
    for (std::size_t k = 0; k < n; ++k)
      row_[k] = static_cast<std::int32_t>(whole.row_of(static_cast<std::size_t>(members[k])));
    qp_.row = row_.data();
    qp_.linear = copy(whole.linear, linear_);
    qp_.lower = copy(whole.lower, lower_);
    qp_.upper = copy(whole.upper, upper_);
    if (whole.group) qp_.group = copy(whole.group, group_);
  }
  SubProblem(const SubProblem&) = delete;
  SubProblem& operator=(const SubProblem&) = delete;

  static constexpr std::size_t copied_bytes = 3 * sizeof(double) + sizeof(std::int32_t) + 1;

  const BoxQp& qp() const { return qp_; }
  RowList rows(const Points& points) const { return {&points, qp_.row, qp_.size}; }
  // From here on variable k uses row k, of a copy of the rows.
  void renumber_rows() {
    row_.resize(qp_.size);
    std::iota(row_.begin(), row_.end(), 0);
    qp_.row = row_.data();
  }

  Iterate iterate() { return {alpha_.data(), gradient_.data(), base_.data(), known_.data()}; }
  void read(const Iterate& whole) {
    for (std::size_t k = 0; k < qp_.size; ++k) {
      alpha_[k] = whole.alpha[members_[k]];
      gradient_[k] = whole.gradient[members_[k]];
      base_[k] = whole.base[members_[k]];
      known_[k] = whole.known[members_[k]];
    }
  }
  void write(const Iterate& whole) const {
    for (std::size_t k = 0; k < qp_.size; ++k) {
      whole.alpha[members_[k]] = alpha_[k];
      whole.gradient[members_[k]] = gradient_[k];
      whole.base[members_[k]] = base_[k];
      whole.known[members_[k]] = known_[k];
    }
  }

 private:
  bool is_contiguous() const {
    for (std::size_t k = 1; k < qp_.size; ++k) {
      if (members_[k] != members_[k - 1] + 1) return false;
    }
    return true;
  }
  template <class Value>
  const Value* copy(const Value* values, std::vector<Value>& own) const {
    own.resize(qp_.size);
    for (std::size_t k = 0; k < qp_.size; ++k) own[k] = values[members_[k]];
    return own.data();
  }

  const std::int32_t* members_;
  BoxQp qp_;
  std::vector<std::int32_t> row_;
  std::vector<double> linear_, lower_, upper_;
  std::vector<std::int8_t> group_;
  std::vector<double> alpha_, gradient_, base_;
  std::vector<Known> known_;
};

class LevelSolver {
 public:
  LevelSolver(const KernelSetup& setup, const Points& points, const BoxQp& qp,
              const Clusters& clusters, const Iterate& iterate, const ClusterOptions& options)
      : setup_(setup),
        points_(points),
        qp_(qp),
        clusters_(clusters),
        iterate_(iterate),
        options_(options) {}

  std::vector<SolveReport> run() {
    std::vector<std::size_t> order(clusters_.n_clusters);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [this](std::size_t a, std::size_t b) { return size(a) > size(b); });
    for (const std::size_t c : order) total_cost_ += cost(c);
    reports_.resize(clusters_.n_clusters);
    if (!order.empty())
      spare_ = options_.memory_bytes - std::min(options_.memory_bytes, least_bytes(order[0]));
    const int n_threads = options_.solve.n_threads;
    std::size_t first = 0;
    int together = 1;
    for (; first < order.size(); ++first) {
      together = n_side_by_side(order, first);
      if (together > 1 && !leaves_threads_idle(order, first, together)) break;
      solve_one(order[first], n_threads);
    }
    const auto n = static_cast<std::int64_t>(order.size());
#pragma omp parallel for num_threads(together) schedule(dynamic) if (together > 1)
    for (std::int64_t k = static_cast<std::int64_t>(first); k < n; ++k)
      solve_one(order[static_cast<std::size_t>(k)], 1);
    if (error_) std::rethrow_exception(error_);
    return reports_;
  }

 private:
  std::size_t size(std::size_t c) const {
    return static_cast<std::size_t>(clusters_.start[c + 1] - clusters_.start[c]);
  }
  double cost(std::size_t c) const {
    return static_cast<double>(size(c)) * static_cast<double>(size(c));
  }

  // Whether clusters solved by one thread each, those from `first` on in this order and so many
  // together, would take too much longer than if all threads had work to the end.
  bool leaves_threads_idle(const std::vector<std::size_t>& order, std::size_t first,
                           int together) const {
    std::vector<double> busy(static_cast<std::size_t>(together), 0.0);
    double sum = 0;
    for (std::size_t k = first; k < order.size(); ++k) {
      *std::min_element(busy.begin(), busy.end()) += cost(order[k]);
      sum += cost(order[k]);
    }
    const double longest = *std::max_element(busy.begin(), busy.end());
    return longest * options_.solve.n_threads > too_long * sum;
  }

  // What the largest cluster leaves of the memory is for copies of rows and for caches. Copies are
  // made where they take at most half of it; the rest is shared out by cost. None of this depends
  // on the number of threads, since decisions of the solver depend on it.
  std::size_t least_bytes(std::size_t c) const {
    const bool is_whole = size(c) == qp_.size;  // and not copied
    return matrix_bytes(size(c)) + array_bytes(size(c)) +
           (is_whole ? 0 : size(c) * SubProblem::copied_bytes);
  }
  std::size_t copy_bytes(std::size_t c) const {
    const std::size_t row_bytes = packed_row_bytes(setup_, points_) + sizeof(double);
    const std::size_t copies = setup_.form == Form::difference ? 2 : 1;
    return std::min(spare_ / 2, size(c) * row_bytes * copies);
  }
  std::size_t cache_bytes(std::size_t c) const {
    if (!caching_pays(setup_, points_)) return 0;
    const double rest = static_cast<double>(spare_ - copy_bytes(c));
    return static_cast<std::size_t>(
        std::min(rest * cost(c) / total_cost_,
                 sizeof(float) * (cost(c) + static_cast<double>(panel_rows * size(c)))));
  }

  // How many clusters from place `first` of the order on there is memory for at a time.
  int n_side_by_side(const std::vector<std::size_t>& order, std::size_t first) const {
    std::size_t bytes = 0;
    int n = 0;
    for (std::size_t k = first; k < order.size() && n < options_.solve.n_threads; ++k, ++n) {
      const std::size_t c = order[k];
      bytes += least_bytes(c) + copy_bytes(c) + cache_bytes(c);
      if (bytes > options_.memory_bytes) break;
    }
    return std::max(n, 1);
  }

  void solve_one(std::size_t c, int n_threads) {
    Stop* stop = options_.solve.stop;
    if (failed_ || size(c) == 0 || (stop && stop->is_requested())) return;
    try {
      SubProblem problem(qp_, clusters_.members + clusters_.start[c], size(c));
      const VaryingRows rows(setup_.form, problem.rows(points_), copy_bytes(c) / 2);
      if (rows.is_copy()) problem.renumber_rows();
      problem.read(iterate_);
      SolveOptions options = options_.solve;
      options.n_threads = n_threads;
      options.cache_bytes = cache_bytes(c);
      options.lane_bytes = copy_bytes(c) - rows.bytes();
      int published = n_wanted_;
      options.progress = [&](const SolveProgress& now) {
        tell(now, 0);
        return published != n_wanted_;
      };
      options.published = [&] {
        published = n_wanted_;
        write(problem);
      };
      reports_[c] = solve(setup_, rows.points(), problem.qp(), problem.iterate(), options);
      write(problem);
      tell({reports_[c].violation, 0, reports_[c].outer_steps}, size(c));
    } catch (...) {
#pragma omp critical(dcsvm_cluster_error)
      error_ = std::current_exception();
      failed_ = true;
      if (stop) stop->request();
    }
  }

  void write(const SubProblem& problem) {
#pragma omp critical(dcsvm_cluster_iterate)
    problem.write(iterate_);
  }

  // `variables` is the size of a cluster that is done, or 0.
  void tell(const SolveProgress& now, std::size_t variables) {
    if (!options_.progress) return;
#pragma omp critical(dcsvm_cluster_iterate)
    {
      progress_.clusters_done += variables > 0;
      progress_.variables_done += variables;
      progress_.current = now;
      if (!failed_ && options_.progress(progress_)) ++n_wanted_;
    }
  }

  const KernelSetup& setup_;
  const Points& points_;
  const BoxQp& qp_;
  const Clusters& clusters_;
  const Iterate iterate_;
  const ClusterOptions& options_;
  std::vector<SolveReport> reports_;
  ClusterProgress progress_;
  double total_cost_ = 0;
  std::size_t spare_ = 0;  // memory beyond what the largest cluster needs at least
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  std::atomic<int> n_wanted_{0};  // times that the iterate was to be brought up to date
};

}  // namespace

std::vector<SolveReport> solve_clusters(const KernelSetup& setup, const Points& points,
                                        const BoxQp& qp, const Clusters& clusters,
                                        const Iterate& iterate, const ClusterOptions& options) {
  return LevelSolver(setup, points, qp, clusters, iterate, options).run();
}

}  // namespace dcsvm
