#include "solver/linear_state.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dcsvm {

namespace {
constexpr int max_restorations = 50;  // each iteration but the last moves a variable to a bound
}  // namespace

LinearState::LinearState(const Points& points, const BoxQP& problem, const double* start,
                         int threads)
    : rows(points),
      qp(problem),
      n_threads(threads),
      row(qp.rows_of(qp.everything())),
      diagonal(qp.size),
      alpha(start, start + qp.size),
      w(rows.dimension()),
      totals(static_cast<std::size_t>(qp.n_constraints)),
      excess(totals.size()),
      multipliers(totals.size()) {
  double total = 0;
  for (std::size_t i = 0; i < qp.size; ++i) {
    const std::size_t k = qp.row_of(i);
    diagonal[i] = rows.squared_norm(k);
    n_values += static_cast<double>(rows.stored(k));
    total += diagonal[i];
    largest_diagonal = std::max(largest_diagonal, diagonal[i]);
  }
  if (total > 0) mean_diagonal = total / static_cast<double>(qp.size);
  recompute();
  totals = excess;
  std::fill(excess.begin(), excess.end(), 0.0);
}

void LinearState::recompute() {
  std::fill(w.begin(), w.end(), 0.0);
  add_rows(rows, row_list(), {1, nullptr, nullptr, alpha.data()}, 0, 1, n_threads, w.data());
  for (std::size_t s = 0; s < totals.size(); ++s) excess[s] = -totals[s];
  for (std::size_t i = 0; i < qp.size && !totals.empty(); ++i) {
    if (qp.constraint_at(i) >= 0) excess[static_cast<std::size_t>(qp.constraint_at(i))] += alpha[i];
  }
}

void LinearState::restore_constraints() {
  for (int s = 0; s < qp.n_constraints; ++s) {
    std::vector<std::size_t> free, others;
    double excess_left = -totals[static_cast<std::size_t>(s)], size = 0;
    for (std::size_t i = 0; i < qp.size; ++i) {
      if (qp.constraint_at(i) != s) continue;
      const bool is_free = alpha[i] > qp.lower[i] && alpha[i] < qp.upper[i];
      (is_free ? free : others).push_back(i);
      excess_left += alpha[i];
      size += std::fabs(alpha[i]);
    }
    // bounded variables move only if the free ones do not suffice
    for (auto* movable : {&free, &others}) {
      for (int k = 0; k < max_restorations && std::fabs(excess_left) > 1e-15 * size; ++k) {
        std::size_t n_movable = 0;
        for (const std::size_t i : *movable)
          n_movable += excess_left > 0 ? alpha[i] > qp.lower[i] : alpha[i] < qp.upper[i];
        if (n_movable == 0) break;
        const double step = excess_left / static_cast<double>(n_movable);
        for (const std::size_t i : *movable) {
          const double moved = std::clamp(alpha[i] - step, qp.lower[i], qp.upper[i]);
          excess_left -= alpha[i] - moved;
          alpha[i] = moved;
        }
      }
    }
  }
  recompute();
}

void LinearState::gradient(double* out) const {
  multiply_rows(rows, row_list(), w.data(), n_threads, out);
  for (std::size_t i = 0; i < qp.size; ++i) out[i] -= qp.linear[i];
}

}  // namespace dcsvm
