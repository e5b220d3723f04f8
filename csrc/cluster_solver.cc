#include "cluster_solver.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <numeric>

#include "varying_rows.h"

namespace dcsvm {

namespace {

constexpr double too_long = 1.1;

// A box QP restricted to some variables, with its own copies of their data.
struct SubProblem {
  SubProblem(const BoxQp& whole, const std::int32_t* variables, std::size_t n)
      : size(n), members(variables), alpha(n), gradient(n), base(n), known(n) {
    for (std::size_t k = 0; k < n; ++k) {
      const auto i = static_cast<std::size_t>(members[k]);
      row.push_back(static_cast<std::int32_t>(whole.row_of(i)));
      linear.push_back(whole.linear[i]);
      lower.push_back(whole.lower[i]);
      upper.push_back(whole.upper[i]);
      if (whole.group) group.push_back(whole.group[i]);
    }
    n_groups = whole.n_groups;
  }
  BoxQp qp() const {
    return {size,         row.data(),   linear.data(),
            lower.data(), upper.data(), group.empty() ? nullptr : group.data(),
            n_groups};
  }
  Iterate iterate() { return {alpha.data(), gradient.data(), base.data(), known.data()}; }
  void read(const Iterate& whole) {
    for (std::size_t k = 0; k < size; ++k) {
      alpha[k] = whole.alpha[members[k]];
      gradient[k] = whole.gradient[members[k]];
      base[k] = whole.base[members[k]];
      known[k] = whole.known[members[k]];
    }
  }
  void write(const Iterate& whole) const {
    for (std::size_t k = 0; k < size; ++k) {
      whole.alpha[members[k]] = alpha[k];
      whole.gradient[members[k]] = gradient[k];
      whole.base[members[k]] = base[k];
      whole.known[members[k]] = known[k];
    }
  }

  std::size_t size;
  const std::int32_t* members;
  std::vector<std::int32_t> row;
  std::vector<double> linear, lower, upper;
  std::vector<std::int8_t> group;
  int n_groups = 0;
  std::vector<double> alpha, gradient, base;
  std::vector<Known> known;
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
    const int n_threads = options_.solve.n_threads;
    std::size_t first = 0;
    while (first < order.size() && (n_threads == 1 || leaves_threads_idle(order, first)))
      solve_one(order[first++], n_threads);
    const auto n = static_cast<std::int64_t>(order.size());
#pragma omp parallel for num_threads(n_threads) schedule(dynamic) if (n_threads > 1)
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

  // Whether clusters solved by one thread each, those from `first` on in this order, would take too
  // much longer than if all threads had work to the end.
  bool leaves_threads_idle(const std::vector<std::size_t>& order, std::size_t first) const {
    std::vector<double> busy(static_cast<std::size_t>(options_.solve.n_threads), 0.0);
    double sum = 0;
    for (std::size_t k = first; k < order.size(); ++k) {
      *std::min_element(busy.begin(), busy.end()) += cost(order[k]);
      sum += cost(order[k]);
    }
    const double longest = *std::max_element(busy.begin(), busy.end());
    return longest * static_cast<double>(busy.size()) > too_long * sum;
  }

  void solve_one(std::size_t c, int n_threads) {
    Stop* stop = options_.solve.stop;
    if (failed_ || size(c) == 0 || (stop && stop->is_requested())) return;
    try {
      SubProblem problem(qp_, clusters_.members + clusters_.start[c], size(c));
      const VaryingRows rows(points_, setup_.form, problem.row);
      if (rows.is_copy()) std::iota(problem.row.begin(), problem.row.end(), 0);
      problem.read(iterate_);
      SolveOptions options = options_.solve;
      options.n_threads = n_threads;
      // a share by cost, whatever the number of threads, since decisions depend on it
      options.cache_bytes = static_cast<std::size_t>(
          static_cast<double>(options_.solve.cache_bytes) * cost(c) / total_cost_);
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
      tell({reports_[c].violation, 0, reports_[c].outer_steps}, problem.size);
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
