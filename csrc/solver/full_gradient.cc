#include "solver/full_gradient.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernel/kernel_product.h"
#include "solver/solve.h"

namespace dcsvm {

namespace {

// A block has about this many kernel evaluations (one second), but at least `min_block` variables.
constexpr std::size_t kernel_values_of_block = 1000000000, min_block = 4096;

}  // namespace

bool FullGradient::has(GradientState known) const {
  const GradientState *begin = iterate.known, *end = begin + qp.size;
  return std::find(begin, end, known) != end;
}

std::vector<std::int32_t> FullGradient::variables(GradientState known) const {
  std::vector<std::int32_t> variables;
  for (std::size_t i = 0; i < qp.size; ++i) {
    if (iterate.known[i] == known) variables.push_back(static_cast<std::int32_t>(i));
  }
  return variables;
}

void FullGradient::set_to_zero() {
  for (std::size_t i = 0; i < qp.size; ++i) iterate.gradient[i] = -qp.linear[i];
  std::fill_n(iterate.base, qp.size, 0.0);
  std::fill_n(iterate.known, qp.size, GradientState::at_base);
}

void FullGradient::settle() {
  std::copy_n(iterate.alpha, qp.size, iterate.base);
  std::fill_n(iterate.known, qp.size, GradientState::at_alpha);
}

void FullGradient::take(const ActiveSet& active) {
  active.write_back(iterate.alpha);
  std::fill_n(iterate.known, qp.size, GradientState::at_base);
  for (std::size_t p = 0; p < active.size(); ++p) {
    iterate.gradient[active.index[p]] = active.gradient[p];
    iterate.known[active.index[p]] = GradientState::at_alpha;
  }
}

bool FullGradient::add_change(const std::vector<std::int32_t>& variables,
                              const std::function<void()>& between) {
  Timer timer(report.seconds_rebuild);
  std::vector<std::int32_t> changed;
  std::vector<double> weights;
  changed.reserve(qp.size);
  weights.reserve(qp.size);
  for (std::size_t i = 0; i < qp.size; ++i) {
    if (iterate.alpha[i] == iterate.base[i]) continue;
    changed.push_back(static_cast<std::int32_t>(i));
    weights.push_back(iterate.alpha[i] - iterate.base[i]);
  }
  if (changed.empty() || variables.empty()) return true;
  const std::vector<std::int32_t> sources = qp.rows_of(changed);
  std::vector<double> sums;
  const auto add = [&](const std::int32_t* targets, const RowList& rows) {
    sums.resize(rows.size);
    const ProductCount done =
        kernel_product(setup, rows, {&points, sources.data(), sources.size()},
                       {1, nullptr, nullptr, weights.data()}, options.precision, options.cutoff,
                       options.n_threads, sums.data(), options.stop);
    if (!done.complete) return false;
    for (std::size_t k = 0; k < rows.size; ++k) {
      iterate.gradient[targets[k]] += sums[k];
      iterate.known[targets[k]] = GradientState::at_alpha;
    }
    report.kernel_evaluations += done.evaluated;
    report.pairs_skipped += done.skipped;
    if (done.skipped > 0 && !has_skipped) neglect(weights);
    has_skipped |= done.skipped > 0;
    return true;
  };
  // kernel values among the changed variables are symmetric and computed once
  std::vector<std::int32_t> others = variables;
  if (std::includes(variables.begin(), variables.end(), changed.begin(), changed.end())) {
    others.clear();
    std::set_difference(variables.begin(), variables.end(), changed.begin(), changed.end(),
                        std::back_inserter(others));
    if (!add(changed.data(), {&points, sources.data(), sources.size()})) return false;
    if (!others.empty()) between();
  }
  const std::vector<std::int32_t> targets = qp.rows_of(others);
  const std::size_t block = std::max(min_block, kernel_values_of_block / sources.size());
  for (std::size_t begin = 0; begin < targets.size(); begin += block) {
    const std::size_t n = std::min(block, targets.size() - begin);
    if (!add(others.data() + begin, {&points, targets.data() + begin, n})) return false;
    if (begin + n < targets.size()) between();
  }
  has_skipped = false;
  ++report.rebuilds;
  return true;
}

void FullGradient::neglect(const std::vector<double>& weights) {
  for (const double w : weights) report.neglected += options.cutoff.value * std::fabs(w);
}

Optimality FullGradient::optimality() const {
  return dcsvm::optimality(qp, iterate.alpha, iterate.gradient);
}

}  // namespace dcsvm
