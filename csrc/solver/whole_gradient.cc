#include "solver/whole_gradient.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernel/kernel_product.h"
#include "solver/timer.h"

namespace dcsvm {

namespace {

// A block has so many kernel values, which take about a second, but at least so many variables.
constexpr std::size_t kernel_values_of_block = 1000000000, smallest_block = 4096;

}  // namespace

bool WholeGradient::has(Known known) const {
  const Known *begin = iterate_.known, *end = begin + qp_.size;
  return std::find(begin, end, known) != end;
}

std::vector<std::int32_t> WholeGradient::at_base() const {
  std::vector<std::int32_t> variables;
  for (std::size_t i = 0; i < qp_.size; ++i) {
    if (iterate_.known[i] == Known::at_base) variables.push_back(static_cast<std::int32_t>(i));
  }
  return variables;
}

void WholeGradient::set_to_zero() {
  for (std::size_t i = 0; i < qp_.size; ++i) iterate_.gradient[i] = -qp_.linear[i];
  std::fill_n(iterate_.base, qp_.size, 0.0);
  std::fill_n(iterate_.known, qp_.size, Known::at_base);
}

void WholeGradient::settle() {
  std::copy_n(iterate_.alpha, qp_.size, iterate_.base);
  std::fill_n(iterate_.known, qp_.size, Known::at_alpha);
}

void WholeGradient::take(const ActiveSet& active) {
  active.write_back(iterate_.alpha);
  std::fill_n(iterate_.known, qp_.size, Known::at_base);
  for (std::size_t p = 0; p < active.size(); ++p) {
    iterate_.gradient[active.index[p]] = active.gradient[p];
    iterate_.known[active.index[p]] = Known::at_alpha;
  }
}

bool WholeGradient::add_change(const std::vector<std::int32_t>& variables,
                               const std::function<void()>& between) {
  Timer timer(report_.seconds_rebuild);
  std::vector<std::int32_t> changed;
  std::vector<double> weights;
  changed.reserve(qp_.size);
  weights.reserve(qp_.size);
  for (std::size_t i = 0; i < qp_.size; ++i) {
    if (iterate_.alpha[i] == iterate_.base[i]) continue;
    changed.push_back(static_cast<std::int32_t>(i));
    weights.push_back(iterate_.alpha[i] - iterate_.base[i]);
  }
  if (changed.empty() || variables.empty()) return true;
  const std::vector<std::int32_t> sources = qp_.rows_of(changed);
  std::vector<double> sums;
  ProductCount count;
  const auto add = [&](const std::int32_t* targets, const RowList& rows) {
    sums.resize(rows.size);
    const ProductCount done =
        kernel_product(setup_, rows, {&points_, sources.data(), sources.size()},
                       {1, nullptr, nullptr, weights.data()}, options_.precision, options_.reach,
                       options_.n_threads, sums.data(), options_.stop);
    count.add(done);
    for (std::size_t k = 0; done.complete && k < rows.size; ++k) {
      iterate_.gradient[targets[k]] += sums[k];
      iterate_.known[targets[k]] = Known::at_alpha;
    }
  };
  // those that changed meet themselves, each kernel value once; then the others meet them
  std::vector<std::int32_t> others = variables;
  if (std::includes(variables.begin(), variables.end(), changed.begin(), changed.end())) {
    others.clear();
    std::set_difference(variables.begin(), variables.end(), changed.begin(), changed.end(),
                        std::back_inserter(others));
    add(changed.data(), {&points_, sources.data(), sources.size()});
    if (!others.empty()) between();
  }
  const std::vector<std::int32_t> targets = qp_.rows_of(others);
  const std::size_t block = std::max(smallest_block, kernel_values_of_block / sources.size());
  for (std::size_t begin = 0; begin < targets.size() && count.complete; begin += block) {
    const std::size_t n = std::min(block, targets.size() - begin);
    add(others.data() + begin, {&points_, targets.data() + begin, n});
    if (begin + n < targets.size()) between();
  }
  report_.kernel_evaluations += count.evaluated;
  report_.pairs_skipped += count.skipped;
  if (count.skipped > 0) neglect(weights);
  ++report_.rebuilds;
  return count.complete;
}

void WholeGradient::neglect(const std::vector<double>& weights) {
  for (const double w : weights) report_.neglected += options_.reach.value * std::fabs(w);
}

Optimality WholeGradient::optimality() const {
  return dcsvm::optimality(qp_, iterate_.alpha, iterate_.gradient);
}

}  // namespace dcsvm
