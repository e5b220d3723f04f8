// solve(): the working-set SMO solver on one box QP, the second of the project's two verbs.
//
// Every outer step takes a working set of up to q variables: the free variables of the last one
// and the most violating others. It is solved in memory (working_set.h), then the gradient of the
// active variables is updated from the kernel rows of those that changed. Variables that sit
// quietly at a bound are shrunk away, and memory is compacted to the rest; what changed since is
// added to their gradient by a kernel product before convergence is declared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "box_qp.h"
#include "kernel_tile.h"
#include "reach.h"
#include "stop.h"

namespace dcsvm {

struct SolveProgress {
  double violation = 0;
  std::size_t n_active = 0;
  std::int64_t outer_steps = 0;
};

// What is known of the gradient of a variable.
enum class Known : std::uint8_t {
  nothing,
  at_base,   // it is that of `base`
  at_alpha,  // it is that of `alpha`
};

// Where a solve is, in arrays of the problem's size: it can end anywhere and go on from there.
struct Iterate {
  double* alpha = nullptr;
  double* gradient = nullptr;
  double* base = nullptr;  // an earlier alpha
  Known* known = nullptr;
};

struct SolveOptions {
  double tolerance = 1e-3;
  std::int64_t max_iterations = -1;  // coordinate updates; negative: no limit
  std::size_t cache_bytes = 0;       // of kernel rows
  std::size_t lane_bytes = 0;        // of packed rows of the active variables; changes no bit
  int n_threads = 1;
  double gradient_error = 0;  // bound of what was left out of a gradient that is known on entry
  Reach reach;                // kernel values that may be left out
  Stop* stop = nullptr;
  // Told between outer steps; where it returns true the iterate is brought up to date, and
  // `published` is called.
  std::function<bool(const SolveProgress&)> progress;
  std::function<void()> published;
};

struct SolveReport {
  bool converged = false;
  double violation = 0;
  double objective = 0;
  double gap = 0;
  double neglected = 0;         // what was left out changes no entry of the gradient by more
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
};

// What solve() takes besides caches and packed rows: the kernel matrix of a working set and its
// factor, and an array entry here and there for every variable.
std::size_t matrix_bytes(std::size_t n_variables);
std::size_t array_bytes(std::size_t n_variables);

// Improves the alpha of `iterate` (feasible) in place. Starts from its gradient where something is
// known of all its entries, and leaves it known `at_alpha` unless it is stopped. Never makes the
// objective worse. Converged means: violation <= tolerance over all variables. Violation, objective
// and gap are reported where the whole gradient is known.
SolveReport solve(const KernelSetup& setup, const Points& points, const BoxQp& qp,
                  const Iterate& iterate, const SolveOptions& options);

}  // namespace dcsvm
