#include "solver/active_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace dcsvm {

namespace {

// Consecutive outer steps at a bound before a variable is shrunk. A variable shrunk too early is
// found only at the end; a variable shrunk too late costs kernel evaluations in every step.
constexpr int shrink_delay = 3;

struct Candidate {
  double violation;
  std::uint32_t tie;
  std::int32_t position;

  bool operator<(const Candidate& other) const {
    if (violation != other.violation) return violation > other.violation;
    return tie != other.tie ? tie < other.tie : position < other.position;
  }
};

// Ties are broken by a hash of the index, which spreads them over all variables: in a cold start
// all violations are equal.
Candidate candidate(const ActiveSet& active, std::size_t p) {
  return {active.violation[p], static_cast<std::uint32_t>(active.index[p]) * 2654435761u,
          static_cast<std::int32_t>(p)};
}

void keep_largest(std::vector<Candidate>& candidates, std::size_t count) {
  if (candidates.size() <= count) return;
  std::nth_element(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count),
                   candidates.end());
  candidates.resize(count);
}

bool is_free(const ActiveSet& active, std::size_t p) {
  return active.alpha[p] > active.lower[p] && active.alpha[p] < active.upper[p];
}

// Histogram of violations in one direction by their leading bits: sign, exponent and one bit of the
// mantissa.
class Histogram {
 public:
  Histogram(const ActiveSet& active, bool up) : count_(std::size_t{1} << (64 - shift), 0) {
    for (const std::int32_t position : active.violators) {
      const auto p = static_cast<std::size_t>(position);
      if ((active.goes_up[p] != 0) != up) continue;
      ++count_[leading_bits(active.violation[p])];
      ++total_;
    }
  }

  std::size_t total() const { return total_; }

  // Returns a threshold that at least `target_size` violations reach, but few others, so that the
  // exact selection has few candidates.
  double floor_of_largest(std::size_t target_size) const {
    std::size_t total = 0, bucket = count_.size();
    while (bucket > 0 && total < target_size) total += count_[--bucket];
    const std::uint64_t bits = static_cast<std::uint64_t>(bucket) << shift;
    double floor;
    std::memcpy(&floor, &bits, sizeof floor);
    return floor;
  }

 private:
  static constexpr int shift = 51;
  static std::size_t leading_bits(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits >> shift;
  }

  std::vector<std::uint32_t> count_;
  std::size_t total_ = 0;
};

}  // namespace

void ActiveSet::load(const BoxQP& qp, const std::vector<std::int32_t>& variables,
                     const double* alpha_of, const double* gradient_of, std::size_t n_lanes) {
  index = variables;
  const std::size_t n = size();
  for (std::vector<double>* array : {&alpha, &gradient, &lower, &upper, &violation})
    array->assign(n_lanes, 0.0);
  shrinkable_steps_.assign(n, 0);
  goes_up.assign(n, 0);
  constraint_of.clear();
  if (qp.constraint_of) constraint_of.resize(n);
  for (std::size_t p = 0; p < n; ++p) {
    const auto i = static_cast<std::size_t>(index[p]);
    alpha[p] = alpha_of[i];
    gradient[p] = gradient_of[i];
    lower[p] = qp.lower[i];
    upper[p] = qp.upper[i];
    if (qp.constraint_of) constraint_of[p] = qp.constraint_of[i];
  }
}

void ActiveSet::write_back(double* alpha_of) const {
  for (std::size_t p = 0; p < size(); ++p) alpha_of[index[p]] = alpha[p];
}

std::vector<std::int32_t> ActiveSet::others(std::size_t n_variables) const {
  std::vector<std::int32_t> variables;
  std::size_t p = 0;
  for (std::size_t i = 0; i < n_variables; ++i) {
    if (p < size() && static_cast<std::size_t>(index[p]) == i) {
      ++p;
    } else {
      variables.push_back(static_cast<std::int32_t>(i));
    }
  }
  return variables;
}

double ActiveSet::measure(int n_constraints) {
  Violation measured =
      measure_violation({size(), alpha.data(), gradient.data(), lower.data(), upper.data(),
                         constraint_of.empty() ? nullptr : constraint_of.data(), n_constraints},
                        violation.data());
  largest_violation = measured.largest;
  multipliers = std::move(measured.multipliers);
  violators.clear();
  for (std::size_t p = 0; p < size(); ++p) {
    if (violation[p] > 0) violators.push_back(static_cast<std::int32_t>(p));
  }
  for (const std::int32_t p : violators)
    goes_up[static_cast<std::size_t>(p)] = reduced_gradient(static_cast<std::size_t>(p)) < 0;
  return largest_violation;
}

std::size_t ActiveSet::count_shrinkable(double max_margin) {
  const double margin = std::min(largest_violation, max_margin);
  std::size_t n_shrinkable = 0;
  for (std::size_t p = 0; p < size(); ++p) {
    const bool shrinkable = violation[p] == 0.0 && std::fabs(reduced_gradient(p)) > margin;
    const int steps = shrinkable_steps_[p] + (shrinkable_steps_[p] < shrink_delay);
    shrinkable_steps_[p] = static_cast<std::uint8_t>(shrinkable ? steps : 0);
    n_shrinkable += shrinkable_steps_[p] == shrink_delay;
  }
  return n_shrinkable;
}

std::vector<std::int32_t> ActiveSet::not_shrinkable() const {
  std::vector<std::int32_t> kept;
  for (std::size_t p = 0; p < size(); ++p) {
    if (shrinkable_steps_[p] < shrink_delay) kept.push_back(static_cast<std::int32_t>(p));
  }
  return kept;
}

std::vector<std::int32_t> ActiveSet::keep(const std::vector<std::int32_t>& kept,
                                          std::size_t n_lanes) {
  std::vector<std::int32_t> position(size(), -1);
  for (std::size_t k = 0; k < kept.size(); ++k)
    position[static_cast<std::size_t>(kept[k])] = static_cast<std::int32_t>(k);
  const auto keep_in = [&kept](auto& array) {
    for (std::size_t k = 0; k < kept.size(); ++k)
      array[k] = array[static_cast<std::size_t>(kept[k])];
    array.resize(kept.size());
  };
  keep_in(index);
  keep_in(shrinkable_steps_);
  keep_in(goes_up);
  if (!constraint_of.empty()) keep_in(constraint_of);
  for (std::vector<double>* array : {&alpha, &gradient, &lower, &upper, &violation}) {
    keep_in(*array);
    array->resize(n_lanes, 0.0);
  }
  std::vector<std::int32_t> violating;
  for (const std::int32_t p : violators) {
    if (position[static_cast<std::size_t>(p)] >= 0)
      violating.push_back(position[static_cast<std::size_t>(p)]);
  }
  violators = violating;
  return position;
}

void select_working_set(const ActiveSet& active, std::size_t target,
                        std::vector<std::int32_t>& working) {
  std::vector<std::uint8_t> chosen(active.size(), 0);
  std::vector<Candidate> candidates;
  for (const std::int32_t position : working) {
    const auto p = static_cast<std::size_t>(position);
    if (is_free(active, p)) candidates.push_back(candidate(active, p));
  }
  keep_largest(candidates, target * 3 / 4);
  working.clear();
  for (const Candidate& c : candidates) {
    working.push_back(c.position);
    chosen[static_cast<std::size_t>(c.position)] = 1;
  }
  const std::size_t carried = working.size(), n_open = target - carried;
  const Histogram upward(active, true), downward(active, false);
  const std::size_t n_up_at_least = n_open - std::min(n_open, downward.total());
  const std::size_t n_up = std::max((n_open + 1) / 2, n_up_at_least);
  const std::size_t n_down = n_open - std::min({n_up, upward.total(), n_open});
  for (const bool up : {true, false}) {
    const std::size_t target_size = up ? n_open - n_down : n_down;
    // carried members may be among the largest
    const double floor = (up ? upward : downward).floor_of_largest(target_size + carried);
    candidates.clear();
    for (const std::int32_t position : active.violators) {
      const auto p = static_cast<std::size_t>(position);
      if ((active.goes_up[p] != 0) == up && active.violation[p] >= floor && !chosen[p])
        candidates.push_back(candidate(active, p));
    }
    keep_largest(candidates, target_size);
    for (const Candidate& c : candidates) working.push_back(c.position);
  }
  std::sort(working.begin(), working.end());
}

std::int32_t most_violating(const ActiveSet& active) {
  return *std::max_element(active.violators.begin(), active.violators.end(),
                           [&active](std::int32_t p, std::int32_t q) {
                             return active.violation[p] < active.violation[q];
                           });
}

void select_neighbourhood(const ActiveSet& active, const std::vector<float>& kernel_values,
                          double negligible, std::size_t target,
                          std::vector<std::int32_t>& working) {
  struct Neighbour {
    float kernel_value;
    std::int32_t position;
  };
  std::vector<Neighbour> neighbours;
  for (const std::int32_t position : active.violators) {
    const auto p = static_cast<std::size_t>(position);
    if (active.violation[p] > negligible || is_free(active, p))
      neighbours.push_back({kernel_values[p], position});
  }
  const std::size_t n = std::min(target, neighbours.size());
  std::nth_element(neighbours.begin(), neighbours.begin() + static_cast<std::ptrdiff_t>(n),
                   neighbours.end(), [](const Neighbour& a, const Neighbour& b) {
                     return a.kernel_value != b.kernel_value ? a.kernel_value > b.kernel_value
                                                             : a.position < b.position;
                   });
  working.clear();
  for (std::size_t k = 0; k < n; ++k) working.push_back(neighbours[k].position);
  std::sort(working.begin(), working.end());
}

}  // namespace dcsvm
