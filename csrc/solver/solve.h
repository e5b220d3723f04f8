// solve(): the working-set SMO solver on one box QP, the second of the project's two verbs.
//
// Every outer step solves a working set in memory (working_step.h), then updates the gradient of
// the active variables from the kernel rows of those that changed. Variables that stay at a bound
// are shrunk away and memory is compacted to the rest (Joachims, "Making large-scale SVM learning
// practical", 1999); before convergence is declared a kernel product brings their gradient up to
// date. What the variables mean (labels, classes, problem types) is not known here.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

#include "kernel/kernel_product.h"
#include "kernel/kernel_setup.h"
#include "rows/reach.h"
#include "solver/box_qp.h"
#include "solver/snapshot.h"
#include "threads/parallel.h"

namespace dcsvm {

struct SolveProgress {
  double violation = 0;
  std::size_t n_active = 0;
  std::int64_t outer_steps = 0;
};

struct SolveOptions {
  double tolerance = 1e-3;           // in the unit of the problem
  double attainable = 0;             // a smaller violation, in no unit, is not asked for
  std::int64_t max_iterations = -1;  // coordinate updates; negative: no limit
  std::size_t cache_bytes = 0;       // of kernel rows
  std::size_t lane_bytes = 0;        // of packed rows of the active variables; changes no bit
  int n_threads = 1;
  double gradient_error = 0;  // bound of what is missing in a gradient that is known on entry
  Reach reach;                // kernel values that may be left out
  Precision precision = Precision::single_tiles;  // of kernel values
  Stop* stop = nullptr;
  // Called between outer steps. Where it returns true the iterate is brought up to date and
  // `published` is called, with a snapshot; so it is where the solve is stopped.
  std::function<bool(const SolveProgress&)> progress;
  std::function<void(const Snapshot&)> published;

  std::int64_t iterations_left(std::int64_t done) const {
    return max_iterations < 0 ? std::numeric_limits<std::int64_t>::max() : max_iterations - done;
  }
  double tolerance_in(double violation_scale) const {
    return std::max(tolerance * violation_scale, attainable);
  }
};

struct SolveReport {
  bool finished = false;  // it was not stopped
  bool converged = false;
  double violation = 0;
  double objective = 0;
  double gap = 0;
  double neglected = 0;         // bound of what was left out of an entry of the gradient
  std::int64_t iterations = 0;  // coordinate updates
  std::int64_t outer_steps = 0;
  std::int64_t newton_steps = 0;
  std::int64_t rebuilds = 0;
  std::int64_t kernel_evaluations = 0;
  std::int64_t pairs_skipped = 0;  // kernel values out of reach
  std::int64_t rows_computed = 0;
  std::int64_t rows_reused = 0;
  double seconds_tiles = 0;  // rows and gradient updates
  double seconds_inner = 0;  // working sets, Newton included
  double seconds_newton = 0;
  double seconds_selection = 0;  // selection and shrinking
  double seconds_rebuild = 0;    // kernel products: initial gradient, rebuilt gradients

  // Counts the work of another solve of the same problem.
  void add_work(const SolveReport& other) {
    iterations += other.iterations;
    outer_steps += other.outer_steps;
    newton_steps += other.newton_steps;
    rebuilds += other.rebuilds;
    kernel_evaluations += other.kernel_evaluations;
    rows_computed += other.rows_computed;
    rows_reused += other.rows_reused;
    seconds_tiles += other.seconds_tiles;
    seconds_inner += other.seconds_inner;
    seconds_newton += other.seconds_newton;
    seconds_selection += other.seconds_selection;
    seconds_rebuild += other.seconds_rebuild;
  }
};

// Adds the seconds that a scope takes to a total. For reports only: nothing is decided by clocks.
class Timer {
 public:
  explicit Timer(double& total) : total_(total), start_(Clock::now()) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { total_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;

  double& total_;
  Clock::time_point start_;
};

// What solve() allocates besides caches and packed rows: the kernel matrix of a working set with
// its factor, and the arrays with an entry for every variable.
std::size_t matrix_bytes(std::size_t n_variables, Precision precision);
std::size_t array_bytes(std::size_t n_variables);

// Improves the alpha of `iterate`, which is feasible, in place; never makes the objective worse.
// Starts from its gradient unless some entry is `nothing`; leaves all entries `at_alpha` unless it
// is stopped. Goes on from where a solve of the same problem was, if `begin_with` is a snapshot
// that it has published with this iterate: all that follows, and all that is counted, is as without
// the stop, but for rows that another cache has no room for. Throws for what is no snapshot.
// Converged means: violation <= tolerance over all variables. Violation, objective and gap are
// reported where the whole gradient is known at the end.
SolveReport solve(const KernelSetup& setup, const Points& points, const BoxQP& qp,
                  const Iterate& iterate, const SolveOptions& options,
                  const Snapshot& begin_with = {});

// The same of a linear kernel, in the space of w = X' alpha: coordinate descent and proximal Newton
// steps (linear_newton.h) take turns, by the work they have done. Descent is fast where rows have
// few values in common, Newton steps where there are few features or the box is large. No kernel
// value is computed, and gradients are float64 sums.
//
// As solve(). Of the iterate only alpha counts on entry; all its entries are `at_alpha` at the end,
// however it ends. Memory: six vectors of n_features float64 besides arrays of variables, and up
// to 24 MB.
SolveReport solve_linear(const Points& points, const BoxQP& qp, const Iterate& iterate,
                         const SolveOptions& options, const Snapshot& begin_with);

}  // namespace dcsvm
