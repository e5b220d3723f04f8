#include "solver/cluster_solver.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "kernel/kernel_setup.h"
#include "kernel/row_panels.h"
#include "rows/points.h"
#include "solver/box_qp.h"
#include "solver/solve.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Problems of the linear kernel up to this size go to the general solver first, which is more
// accurate.
constexpr std::size_t small_problem = 64;
// Largest problem that the general solver continues if the linear solver stalls far from the
// tolerance. Such stalls occur with an equality constraint if nearly all variables are at a bound
// (diabetes, both regressions).
constexpr std::size_t max_general = 20000;
constexpr double far_off = 100;
// Variables solved between two progress calls. A call costs as much as two updates of 64 variables.
// Smaller clusters make a call after this many outer steps, a number that few reach.
constexpr std::size_t progress_batch = 64;

template <class Value>
const Value* copy(const Value* whole, const std::int32_t* members, std::size_t n,
                  std::vector<Value>& own) {
  own.resize(n);
  for (std::size_t k = 0; k < n; ++k) own[k] = whole[members[k]];
  return own.data();
}

// A box QP restricted to some variables, with a copy of their part of the iterate.
//
// Problem data are copied unless the variables are contiguous. One thread uses the subproblem
// without locks; only read() and write() access the full iterate.
class SubProblem {
 public:
  // `members` must outlive the subproblem.
  SubProblem(const BoxQP& whole, const std::int32_t* members, std::size_t n)
      : members_(members), qp_(whole), alpha_(n), gradient_(n), base_(n), known_(n) {
    qp_.size = n;
    if (whole.row && is_contiguous()) {
      const auto first = static_cast<std::size_t>(members[0]);
      qp_.row += first;
      qp_.linear += first;
      qp_.lower += first;
      qp_.upper += first;
      if (qp_.constraint_of) qp_.constraint_of += first;
      return;
    }
    row_.resize(n);
    for (std::size_t k = 0; k < n; ++k)
      row_[k] = static_cast<std::int32_t>(whole.row_of(static_cast<std::size_t>(members[k])));
    qp_.row = row_.data();
    qp_.linear = copy(whole.linear, members, n, linear_);
    qp_.lower = copy(whole.lower, members, n, lower_);
    qp_.upper = copy(whole.upper, members, n, upper_);
    if (whole.constraint_of)
      qp_.constraint_of = copy(whole.constraint_of, members, n, constraint_of_);
  }

  SubProblem(const SubProblem&) = delete;
  SubProblem& operator=(const SubProblem&) = delete;

  // Bytes per variable of copied problem data.
  static constexpr std::size_t copied_bytes = 3 * sizeof(double) + sizeof(std::int32_t) + 1;

  const BoxQP& qp() const { return qp_; }
  RowList rows(const Points& points) const { return {&points, qp_.row, qp_.size}; }

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

  const std::int32_t* members_;
  BoxQP qp_;
  std::vector<std::int32_t> row_;
  std::vector<double> linear_, lower_, upper_;
  std::vector<std::int8_t> constraint_of_;
  std::vector<double> alpha_, gradient_, base_;
  std::vector<GradientState> known_;
};

// Solves a subproblem of the linear kernel by a sequence of solvers.
class LinearPart {
 public:
  LinearPart(const KernelSetup& setup, const Points& points, SubProblem& problem,
             const SolveOptions& options)
      : setup_(setup), points_(points), problem_(problem), options_(options) {
    options_.published = [this, &options](const Snapshot& snapshot) {
      solver_ = snapshot;
      Snapshot all;
      SnapshotWriter writer(all);
      archive(writer);
      options.published(all);
    };
  }

  SolveReport solve(const Snapshot& begin_with) {
    const BoxQP qp = problem_.qp();
    if (!begin_with.empty()) {
      SnapshotReader reader(begin_with);
      archive(reader);
      reader.check_end();
    }
    if (turn_ == 0 && qp.size > small_problem) {
      const SolveReport report = take_turn(true);
      if (!report.finished) return report;
      const bool is_ended = report.converged || options_.limits.has_any();
      const bool is_stuck = report.violation > far_off * options_.tolerance;
      if (is_ended || !is_stuck || qp.n_constraints == 0 || qp.size > max_general) return report;
      before_ = report;
    }
    if (turn_ <= 1) {
      turn_ = 1;
      SolveReport report = take_turn(false);
      before_.add_work(report);
      if (!report.finished) return before_;
    }
    turn_ = 2;
    SolveReport report = take_turn(true);  // reaches the solution, with a float64 gradient
    report.add_work(before_);
    return report;
  }

 private:
  SolveReport take_turn(bool in_primal_space) {
    const Snapshot begin_with = std::move(solver_);
    solver_ = {};
    const BoxQP qp = problem_.qp();
    return in_primal_space
               ? solve_linear(points_, qp, problem_.iterate(), options_, begin_with)
               : dcsvm::solve(setup_, points_, qp, problem_.iterate(), options_, begin_with);
  }

  template <class Archive>
  void archive(Archive& archive) {
    archive(turn_);
    archive(before_);
    archive(solver_);
  }

  const KernelSetup& setup_;
  const Points& points_;
  SubProblem& problem_;
  SolveOptions options_;
  int turn_ = 0;
  SolveReport before_;  // of finished turns
  Snapshot solver_;     // of the current turn
};

class LevelSolver {
 public:
  LevelSolver(const KernelSetup& setup, const Points& points, const BoxQP& qp,
              const Clusters& clusters, const Iterate& iterate, const ClusterOptions& options,
              std::vector<ClusterState>& states)
      : setup_(setup),
        points_(points),
        qp_(qp),
        clusters_(clusters),
        iterate_(iterate),
        options_(options),
        states_(states) {}

  void run() {
    std::vector<std::size_t> order(clusters_.n_clusters);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [this](std::size_t a, std::size_t b) { return size(a) > size(b); });
    for (const std::size_t c : order) {
      total_cost_ += cost(c);
      n_variables_ += size(c);
      if (states_[c].is_done) count_done(c);
    }
    if (!order.empty())
      spare_ = options_.memory_bytes - std::min(options_.memory_bytes, min_bytes(order[0]));
    const int n_threads = options_.solve.n_threads;
    std::size_t first = 0;
    int together = 1;
    for (; first < order.size(); ++first) {
      together = n_side_by_side(order, first);
      if (together > 1) break;
      solve_one(order[first]);
    }
    parallel_for({n_threads, order.size() - first, 1, together},
                 [&](std::size_t k) { solve_one(order[first + k]); });
  }

 private:
  std::size_t size(std::size_t c) const {
    return static_cast<std::size_t>(clusters_.start[c + 1] - clusters_.start[c]);
  }
  double cost(std::size_t c) const {
    return static_cast<double>(size(c)) * static_cast<double>(size(c));
  }

  // Memory beyond the minimum of the largest cluster holds copies of rows (up to half of it) and
  // caches (in proportion to cost). The solver's decisions depend on these sizes, so they must not
  // depend on the number of threads.
  std::size_t min_bytes(std::size_t c) const {
    const bool is_whole = size(c) == qp_.size;  // not copied
    return matrix_bytes(size(c), options_.solve.precision) + array_bytes(size(c)) +
           (is_whole ? 0 : size(c) * SubProblem::copied_bytes);
  }
  std::size_t copy_bytes(std::size_t c) const {
    const std::size_t row_bytes = packed_row_bytes(setup_, points_) + sizeof(double);
    return std::min(spare_ / 2, size(c) * row_bytes);
  }
  std::size_t cache_bytes(std::size_t c) const {
    if (!caching_pays(setup_, points_)) return 0;
    const double rest = static_cast<double>(spare_ - copy_bytes(c));
    return static_cast<std::size_t>(
        std::min(rest * cost(c) / total_cost_,
                 sizeof(float) * (cost(c) + static_cast<double>(panel_rows * size(c)))));
  }

  // Returns how many clusters, in order from `first`, fit the memory budget together.
  int n_side_by_side(const std::vector<std::size_t>& order, std::size_t first) const {
    std::size_t bytes = 0;
    int n = 0;
    for (std::size_t k = first; k < order.size() && n < options_.solve.n_threads; ++k, ++n) {
      const std::size_t c = order[k];
      bytes += min_bytes(c) + copy_bytes(c) + cache_bytes(c);
      if (bytes > options_.memory_bytes) break;
    }
    return std::max(n, 1);
  }

  void solve_one(std::size_t c) {
    Stop* stop = options_.solve.stop;
    ClusterState& state = states_[c];
    if (failed_ || state.is_done || is_requested(stop)) return;
    if (size(c) == 0) {
      state.is_done = true;
      return;
    }
    try {
      SubProblem problem(qp_, clusters_.members + clusters_.start[c], size(c));
      prefetch(problem.rows(points_));
      problem.read(iterate_);
      SolveOptions options = options_.solve;
      options.cache_bytes = cache_bytes(c);
      options.lane_bytes = copy_bytes(c);
      int published = n_requests_;
      const std::int64_t interval = size(c) >= progress_batch ? 1 : progress_batch;
      options.progress = [&, interval](const SolveProgress& now) {
        if (now.outer_steps % interval != interval - 1) return false;
        const std::lock_guard<std::mutex> lock(one_at_a_time_);
        report_progress(now);
        return published != n_requests_;
      };
      options.published = [&](const Snapshot& snapshot) {
        published = n_requests_;
        write(problem, state, snapshot);
      };
      finish(c, problem, solve_part(problem, options, state.snapshot));
    } catch (...) {
      failed_ = true;
      if (stop) stop->request();
      throw;
    }
  }

  SolveReport solve_part(SubProblem& problem, const SolveOptions& options,
                         const Snapshot& begin_with) {
    if (is_linear(setup_.kernel))
      return LinearPart(setup_, points_, problem, options).solve(begin_with);
    return solve(setup_, points_, problem.qp(), problem.iterate(), options, begin_with);
  }

  void write(const SubProblem& problem, ClusterState& state, const Snapshot& snapshot) {
    const std::lock_guard<std::mutex> lock(one_at_a_time_);
    problem.write(iterate_);
    state.snapshot = snapshot;
  }

  void finish(std::size_t c, const SubProblem& problem, const SolveReport& report) {
    const std::lock_guard<std::mutex> lock(one_at_a_time_);
    states_[c].report = report;
    if (!report.finished) return;
    problem.write(iterate_);
    states_[c].is_done = true;
    states_[c].snapshot = {};
    count_done(c);
    n_unreported_ += size(c);
    if (n_unreported_ < progress_batch && progress_.variables_done < n_variables_) return;
    n_unreported_ = 0;
    report_progress({report.violation, 0, report.outer_steps});
  }

  void count_done(std::size_t c) {
    ++progress_.clusters_done;
    progress_.variables_done += size(c);
  }

  void report_progress(const SolveProgress& now) {
    if (!options_.progress) return;
    progress_.current = now;
    if (!failed_ && options_.progress(progress_)) ++n_requests_;
  }

  const KernelSetup& setup_;
  const Points& points_;
  const BoxQP& qp_;
  const Clusters& clusters_;
  const Iterate iterate_;
  const ClusterOptions& options_;
  std::vector<ClusterState>& states_;
  ClusterProgress progress_;
  std::size_t n_variables_ = 0,
              n_unreported_ = 0;  // in all clusters; in clusters done since the last report
  double total_cost_ = 0;
  std::size_t spare_ = 0;     // memory beyond the minimum of the largest cluster
  std::mutex one_at_a_time_;  // guards the iterate, the states and the progress
  std::atomic<bool> failed_{false};
  std::atomic<int> n_requests_{0};  // updates of the iterate requested by progress calls
};

}  // namespace

Snapshot bytes_of(std::vector<ClusterState>& states) {
  Snapshot bytes;
  SnapshotWriter writer(bytes);
  writer(states.size());
  for (ClusterState& state : states) state.archive(writer);
  return bytes;
}

std::vector<ClusterState> states_of(const std::uint8_t* bytes, std::size_t size) {
  SnapshotReader reader(bytes, size);
  std::size_t n = 0;
  reader(n);
  check_snapshot(n <= size);  // each state takes at least one byte
  std::vector<ClusterState> states(n);
  for (ClusterState& state : states) state.archive(reader);
  reader.check_end();
  return states;
}

void solve_clusters(const KernelSetup& setup, const Points& points, const BoxQP& qp,
                    const Clusters& clusters, const Iterate& iterate, const ClusterOptions& options,
                    std::vector<ClusterState>& states) {
  LevelSolver(setup, points, qp, clusters, iterate, options, states).run();
}

}  // namespace dcsvm
