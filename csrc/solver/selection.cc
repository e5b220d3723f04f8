#include "solver/selection.h"

#include <algorithm>
#include <cstring>

namespace dcsvm {

namespace {

struct Candidate {
  double violation;
  std::uint32_t tie;
  std::int32_t position;

  bool operator<(const Candidate& other) const {
    if (violation != other.violation) return violation > other.violation;
    return tie != other.tie ? tie < other.tie : position < other.position;
  }
};

// Equal violations are spread over the whole list: a cold start has nothing else.
Candidate candidate(const SelectionView& view, std::size_t p) {
  return {view.violation[p], static_cast<std::uint32_t>(view.id[p]) * 2654435761u,
          static_cast<std::int32_t>(p)};
}

void keep_largest(std::vector<Candidate>& candidates, std::size_t count) {
  if (candidates.size() <= count) return;
  std::nth_element(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count),
                   candidates.end());
  candidates.resize(count);
}

bool is_free(const SelectionView& view, std::size_t p) {
  return view.alpha[p] > view.lower[p] && view.alpha[p] < view.upper[p];
}

// Violations of variables that should go up, or down, counted by their leading bits: sign, exponent
// and one bit of the mantissa.
class Histogram {
 public:
  Histogram(const SelectionView& view, bool up) : count_(std::size_t{1} << (64 - shift), 0) {
    for (const std::int32_t position : view.violators) {
      const auto p = static_cast<std::size_t>(position);
      if ((view.goes_up[p] != 0) != up) continue;
      ++count_[leading_bits(view.violation[p])];
      ++total_;
    }
  }

  std::size_t total() const { return total_; }

  // A violation that at least `wanted` variables reach, and not many more: the exact choice is then
  // made among few.
  double floor_of_largest(std::size_t wanted) const {
    std::size_t total = 0, bucket = count_.size();
    while (bucket > 0 && total < wanted) total += count_[--bucket];
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

void select_working_set(const SelectionView& view, std::size_t target,
                        std::vector<std::int32_t>& working) {
  std::vector<std::uint8_t> chosen(view.size, 0);
  std::vector<Candidate> candidates;
  for (const std::int32_t position : working) {
    const auto p = static_cast<std::size_t>(position);
    if (is_free(view, p)) candidates.push_back(candidate(view, p));
  }
  keep_largest(candidates, target * 3 / 4);
  working.clear();
  for (const Candidate& c : candidates) {
    working.push_back(c.position);
    chosen[static_cast<std::size_t>(c.position)] = 1;
  }
  const std::size_t carried = working.size(), room = target - carried;
  const Histogram upward(view, true), downward(view, false);
  const std::size_t spare = room - std::min(room, downward.total());
  const std::size_t n_up = std::max((room + 1) / 2, spare);
  const std::size_t n_down = room - std::min({n_up, upward.total(), room});
  for (const bool up : {true, false}) {
    const std::size_t wanted = up ? room - n_down : n_down;
    // the carried ones may be among the largest
    const double floor = (up ? upward : downward).floor_of_largest(wanted + carried);
    candidates.clear();
    for (const std::int32_t position : view.violators) {
      const auto p = static_cast<std::size_t>(position);
      if ((view.goes_up[p] != 0) == up && view.violation[p] >= floor && !chosen[p])
        candidates.push_back(candidate(view, p));
    }
    keep_largest(candidates, wanted);
    for (const Candidate& c : candidates) working.push_back(c.position);
  }
  std::sort(working.begin(), working.end());
}

std::int32_t most_violating(const SelectionView& view) {
  return *std::max_element(
      view.violators.begin(), view.violators.end(),
      [&view](std::int32_t p, std::int32_t q) { return view.violation[p] < view.violation[q]; });
}

void select_neighbourhood(const SelectionView& view, const std::vector<float>& kernel_values,
                          double negligible, std::size_t target,
                          std::vector<std::int32_t>& working) {
  struct Neighbour {
    float kernel_value;
    std::int32_t position;
  };
  std::vector<Neighbour> neighbours;
  for (const std::int32_t position : view.violators) {
    const auto p = static_cast<std::size_t>(position);
    if (view.violation[p] > negligible || is_free(view, p))
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
