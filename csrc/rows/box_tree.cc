#include "rows/box_tree.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "rows/points.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Maximum rows of a leaf, if memory allows. Smaller leaves are made only if rows in them may be in
// different components, down to an average of rows_of_node rows per node. Both limits trade the
// time and memory of the tree against components that are joined because they share a leaf.
constexpr std::size_t leaf_rows = 64;
constexpr std::size_t rows_of_node = 8;
constexpr std::size_t sampled_rows = 256;   // maximum, to choose the split of a node
constexpr std::size_t batch_nodes = 16;     // whose boxes a thread computes
constexpr std::size_t divided_rows = 8192;  // of a node that a thread divides
// Keeps a computed distance below the true one: far more than the rounding error of its sum.
constexpr double outward = 1.0 - 1e-9;
// A split with less than this share of the rows on one side is made at the median instead. The
// depth of the tree stays proportional to the logarithm of the number of rows.
constexpr double min_part = 1.0 / 64;

}  // namespace

// Minimum and maximum of every feature.
struct BoxTree::Extent {
  explicit Extent(std::size_t d)
      : low(d, std::numeric_limits<float>::infinity()),
        high(d, -std::numeric_limits<float>::infinity()) {}
  void include(const float* lowest, const float* highest) {
    float *const least = low.data(), *const most = high.data();
    const std::size_t d = low.size();
    for (std::size_t k = 0; k < d; ++k) {
      least[k] = std::min(least[k], lowest[k]);
      most[k] = std::max(most[k], highest[k]);
    }
  }
  std::vector<float> low, high;
};

BoxTree::BoxTree(const Points& points, Argument distance, std::size_t memory_bytes, int n_threads)
    : points_(points), argument_(distance), d_(points.n_features), n_threads_(n_threads) {
  const std::size_t node_bytes = sizeof(Node) + 2 * d_ * sizeof(float);
  most_nodes_ = std::min(points.n_samples / rows_of_node * 2, memory_bytes / node_bytes);
  nodes_.reserve(most_nodes_);
  boxes_.reset(new float[std::max<std::size_t>(most_nodes_, 1) * 2 * d_]);
  order_.resize(points.n_samples);
  std::iota(order_.begin(), order_.end(), 0);
  nodes_.push_back({0, order_.size()});
  sample(0);
}

void BoxTree::grow(double distance) {
  for (std::size_t begin = 0, end; begin < (end = nodes_.size()); begin = end) {
    const std::vector<std::size_t> wide = to_split(begin, distance);
    levels_.push_back(begin);
    nodes_.resize(end + 2 * wide.size());
    parallel_for({n_threads_, wide.size()}, [&](std::size_t i) { split(wide[i], end + 2 * i); });
  }
  number_leaves();
  measure();
}

// Selects the nodes to split from the last level, which begins with node `first`.
std::vector<std::size_t> BoxTree::to_split(std::size_t first, double distance) const {
  const std::size_t most_wide = points_.n_samples / rows_of_node;
  std::vector<std::size_t> chosen;
  for (std::size_t at = first; at < nodes_.size(); ++at) {
    const std::size_t n_nodes = nodes_.size() + 2 * chosen.size();
    if (n_nodes + 2 > most_nodes_) break;
    if (nodes_[at].feature < 0) continue;
    if (nodes_[at].end - nodes_[at].begin > leaf_rows ||
        (n_nodes < most_wide && diameter(static_cast<std::int32_t>(at)) >= distance))
      chosen.push_back(at);
  }
  return chosen;
}

void BoxTree::number_leaves() {
  for (std::size_t at = nodes_.size(); at-- > 0;) {
    Node& node = nodes_[at];
    if (node.left < 0) {
      node.leaf = static_cast<std::int32_t>(leaves_.size());
      leaves_.push_back(static_cast<std::int32_t>(at));
    } else {
      node.leaf = nodes_[static_cast<std::size_t>(node.left)].leaf;
      node.is_one_component = false;
    }
  }
}

// Computes the boxes of all rows: of leaves from their rows, of other nodes from their children.
void BoxTree::measure() {
  from_leaves(batch_nodes, [&](std::size_t at) {
    const Node& node = nodes_[at];
    if (node.left < 0) {
      set_box(at, extent_of(node.begin, node.end, 1));
      return;
    }
    Extent extent(d_);
    for (const std::int32_t child : {node.left, node.right})
      extent.include(low(child), high(child));
    set_box(at, extent);
  });
}

double BoxTree::distance(std::int32_t a, std::int32_t b) const {
  return least_distance(argument_, d_, low(a), high(a), low(b), high(b)) * outward;
}

double BoxTree::diameter(std::int32_t node) const {
  return largest_distance(argument_, d_, low(node), high(node), low(node), high(node));
}

// Returns the extent of every step-th row.
BoxTree::Extent BoxTree::extent_of(std::size_t begin, std::size_t end, std::size_t step) const {
  Extent extent(d_);
  for (std::size_t i = begin; i < end; i += step) {
    const float* x = row(i);
    extent.include(x, x);
  }
  return extent;
}

void BoxTree::set_box(std::size_t node, const Extent& extent) {
  std::copy(extent.low.begin(), extent.low.end(), boxes_.get() + node * 2 * d_);
  std::copy(extent.high.begin(), extent.high.end(), boxes_.get() + node * 2 * d_ + d_);
}

// Returns the variance of a feature over every step-th row.
double BoxTree::variance(std::size_t begin, std::size_t end, std::size_t step,
                         std::size_t feature) const {
  double n = 0, sum = 0, squares = 0;
  const FeatureColumn column(points_, feature);
  for (std::size_t i = begin; i < end; i += step) {
    const double x = column[static_cast<std::size_t>(order_[i])];
    n += 1;
    sum += x;
    squares += x * x;
  }
  return squares / n - sum / n * (sum / n);
}

// Sets the box of a node from a sample of its rows, and the feature to split by: the one with the
// largest extent, ties by the largest variance, so that binary features come first.
void BoxTree::sample(std::size_t at) {
  const std::size_t begin = nodes_[at].begin, end = nodes_[at].end;
  std::size_t step = (end - begin + sampled_rows - 1) / sampled_rows;
  Extent extent = extent_of(begin, end, step);
  if (step > 1 && extent.low == extent.high) extent = extent_of(begin, end, step = 1);
  set_box(at, extent);
  float largest = 0;
  for (std::size_t k = 0; k < d_; ++k) largest = std::max(largest, extent.high[k] - extent.low[k]);
  double largest_variance = -1;
  for (std::size_t k = 0; k < d_; ++k) {
    if (!(largest > 0) || extent.high[k] - extent.low[k] < largest) continue;
    const double spread = variance(begin, end, step, k);
    if (spread > largest_variance) {
      largest_variance = spread;
      nodes_[at].feature = static_cast<std::int32_t>(k);
    }
  }
}

// Moves rows whose feature is at most `at` to the front, and keeps the order on both sides. Returns
// where the second side begins. Without branches: the side of a row is unpredictable.
std::size_t BoxTree::divide_at(std::size_t begin, std::size_t end, std::size_t feature, double at) {
  const FeatureColumn column(points_, feature);
  std::int32_t* const rows = order_.data() + begin;
  const std::size_t n = end - begin, n_parts = (n + divided_rows - 1) / divided_rows;
  std::vector<std::int32_t> others(n);
  std::vector<std::size_t> n_first(n_parts);
  // both sides of each part begin where the part does
  parallel_for({n_threads_, n_parts}, [&](std::size_t part) {
    const std::size_t start = part * divided_rows;
    std::int32_t *const first = rows + start, *const second = others.data() + start;
    std::size_t n_left = 0, n_right = 0;
    for (std::size_t i = 0; i < std::min(divided_rows, n - start); ++i) {
      const std::int32_t number = first[i];
      const bool is_first = column[static_cast<std::size_t>(number)] <= at;
      first[n_left] = second[n_right] = number;
      n_left += is_first;
      n_right += !is_first;
    }
    n_first[part] = n_left;
  });
  // the sides of all parts one after the other
  std::int32_t* to = rows;
  for (std::size_t part = 0; part < n_parts; ++part)
    to = std::copy_n(rows + part * divided_rows, n_first[part], to);
  const auto middle = static_cast<std::size_t>(to - order_.data());
  for (std::size_t part = 0; part < n_parts; ++part) {
    const std::size_t start = part * divided_rows;
    to = std::copy_n(others.data() + start, std::min(divided_rows, n - start) - n_first[part], to);
  }
  return middle;
}

// Splits a node into two at the middle of the extent of its feature, or at the median.
void BoxTree::split(std::size_t at, std::size_t left) {
  Node& node = nodes_[at];
  node.left = static_cast<std::int32_t>(left);
  node.right = static_cast<std::int32_t>(left + 1);
  const std::size_t middle = divide(at);
  nodes_[left] = {node.begin, middle};
  nodes_[left + 1] = {middle, node.end};
  sample(left);
  sample(left + 1);
}

// Reorders the rows of a node by child. Returns where the second child begins.
std::size_t BoxTree::divide(std::size_t node) {
  const std::size_t begin = nodes_[node].begin, end = nodes_[node].end;
  const auto feature = static_cast<std::size_t>(nodes_[node].feature);
  const auto at = static_cast<std::int32_t>(node);
  const double center = 0.5 * (static_cast<double>(high(at)[feature]) + low(at)[feature]);
  const std::size_t middle = divide_at(begin, end, feature, center);
  const double smaller = static_cast<double>(std::min(middle - begin, end - middle));
  if (smaller >= min_part * static_cast<double>(end - begin)) return middle;
  const FeatureColumn column(points_, feature);
  std::vector<float> values(end - begin);
  for (std::size_t i = begin; i < end; ++i)
    values[i - begin] = column[static_cast<std::size_t>(order_[i])];
  const auto median = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), median, values.end());
  const bool separates = *median < high(at)[feature];
  return divide_at(begin, end, feature, separates ? *median : center);
}

}  // namespace dcsvm
