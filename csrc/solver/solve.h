// solve(): a decomposition method for a box QP. The core has one other operation, kernel_product().
//
// Each outer step solves a working set (working_step.h), then updates the gradient of the active
// variables from the kernel rows of the changed variables. Variables that stay at a bound are
// shrunk and memory is compacted (Joachims, "Making large-scale SVM learning practical", 1999).
// Before convergence is declared, a kernel product reconstructs the gradient of shrunk variables.
// Labels, classes and SVM types are unknown here.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

#include "kernel/kernel_product.h"
#include "kernel/kernel_setup.h"
#include "rows/cutoff.h"
#include "solver/box_qp.h"
#include "solver/snapshot.h"
#include "threads/parallel.h"

namespace dcsvm {

struct SolveProgress {
  double violation = 0;
  std::size_t n_active = 0;
  std::int64_t outer_steps = 0;
};

struct SolveReport {
  bool finished = false;  // not stopped early
  bool converged = false;
  double violation = 0;
  double objective = 0;
  double gap = 0;
  double neglected = 0;         // truncation error: bound on the omitted part of any gradient entry
  std::int64_t iterations = 0;  // updates of one or two variables
  std::int64_t outer_steps = 0;
  std::int64_t newton_steps = 0;
  std::int64_t rebuilds = 0;
  std::int64_t kernel_evaluations = 0;
  std::int64_t pairs_skipped = 0;  // kernel evaluations skipped by the cutoff
  std::int64_t rows_computed = 0;
  std::int64_t rows_reused = 0;
  double seconds_tiles = 0;  // kernel rows and gradient updates
  double seconds_inner = 0;  // working sets, including Newton steps
  double seconds_newton = 0;
  double seconds_selection = 0;  // selection and shrinking
  double seconds_rebuild = 0;    // kernel products: initial gradient and reconstructions

  // Adds the work of another solve of the same problem.
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

// Limits of the work of a solve, named as in SolveReport.
struct Limits {
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

  std::int64_t iterations = none;

  bool has_any() const { return iterations != none; }
  bool are_reached(const SolveReport& done) const { return done.iterations >= iterations; }
};

struct SolveOptions {
  double tolerance = 1e-3;  // in units of the problem's violation scale
  double attainable = 0;    // lower limit of the unscaled tolerance
  Limits limits;
  std::size_t cache_bytes = 0;  // budget of the kernel row cache
  std::size_t lane_bytes = 0;   // budget of packed active rows; does not affect results
  int n_threads = 1;
  double gradient_error = 0;  // bound on the truncation error of a gradient known on entry
  Cutoff cutoff;              // pairs beyond the cutoff are skipped
  Precision precision = Precision::single_tiles;  // of kernel evaluations
  Stop* stop = nullptr;
  // Called between outer steps. If it returns true, solve() updates the iterate and passes a
  // snapshot to `published`. A later solve can resume from iterate and snapshot.
  std::function<bool(const SolveProgress&)> progress;
  std::function<void(const Snapshot&)> published;

  double tolerance_in(double violation_scale) const {
    return std::max(tolerance * violation_scale, attainable);
  }
};

// Adds the elapsed seconds of a scope to a total. For reports only; clocks decide nothing.
class Timer {
 public:
  explicit Timer(double& total) : total_(total), start_(Clock::now()) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { total_ += seconds_since(start_); }

 private:
  double& total_;
  Clock::time_point start_;
};

// Return the bytes that solve() allocates besides caches and packed rows: for the kernel matrix of
// a working set and its factor, and for the arrays with one entry per variable.
std::size_t matrix_bytes(std::size_t n_variables, Precision precision);
std::size_t array_bytes(std::size_t n_variables);

// Improves the feasible alpha of `iterate` in place; never increases the objective. Uses the
// gradient of `iterate` unless an entry is `unknown`. On return all gradients are `at_alpha`,
// unless the solve was stopped.
//
// Resumes from the snapshot `begin_with` unless it is empty; `iterate` must be the iterate
// published with it. Results and counters are then the same as without the stop, unless a smaller
// cache cannot hold all restored rows. Throws std::invalid_argument for a damaged snapshot.
//
// Converged means violation <= tolerance over all variables. Violation, objective and gap are
// reported if the full gradient is known at the end.
SolveReport solve(const KernelSetup& setup, const Points& points, const BoxQP& qp,
                  const Iterate& iterate, const SolveOptions& options,
                  const Snapshot& begin_with = {});

// Solves the linear kernel's problem in the space of w = X' alpha: coordinate descent and proximal
// Newton steps (linear_newton.h) alternate, balanced by their work. Descent is fast when rows share
// few features, Newton steps when features are few or the box is large. No kernel value is
// evaluated, and gradients are float64 sums.
//
// Differences from solve(): only the alpha of `iterate` is read, and on return all gradients are
// `at_alpha` even after a stop. Memory: six float64 vectors of n_features, arrays of variables, and
// up to 24 MB.
SolveReport solve_linear(const Points& points, const BoxQP& qp, const Iterate& iterate,
                         const SolveOptions& options, const Snapshot& begin_with);

}  // namespace dcsvm
