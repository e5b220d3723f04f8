// The options of a solve, what it tells on the way, and its report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "kernel/kernel_product.h"
#include "kernel/stop.h"
#include "rows/reach.h"

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
  // `published` is called.
  std::function<bool(const SolveProgress&)> progress;
  std::function<void()> published;
};

struct SolveReport {
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

}  // namespace dcsvm
