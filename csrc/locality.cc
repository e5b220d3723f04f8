#include "locality.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace dcsvm {

namespace {

constexpr std::size_t leaf_rows = 64;
constexpr std::size_t worth_threads = 8192;  // rows of a node from which on threads share them
// Keeps a computed distance below the true one: far more than the rounding of its sum.
constexpr double outward = 1.0 - 1e-9;
// A split that leaves less than this part of the rows on one side is made at the median instead.
constexpr double smallest_part = 1.0 / 64;

struct Node {
  std::size_t begin, end;        // in the order
  std::int32_t left, right;      // -1 for a leaf
  std::int32_t leaf;             // number of the first leaf below
  std::int32_t feature;          // to split by, -1 where all rows are equal
  bool is_one_component = true;  // once known, for good
};

class BoxTree {
 public:
  BoxTree(const Points& points, int n_threads)
      : points_(points), d_(points.n_features), n_threads_(n_threads) {
    order_.resize(points.n_samples);
    std::iota(order_.begin(), order_.end(), 0);
    add(0, order_.size(), -1);
  }

  // The tree below the root.
  void grow() {
    for (std::size_t at = 0; at < nodes_.size(); ++at) {
      const std::size_t begin = nodes_[at].begin, end = nodes_[at].end;
      const std::size_t middle =
          end - begin > leaf_rows ? split(static_cast<std::int32_t>(at)) : end;
      if (middle == end) continue;
      nodes_[at].left = add(begin, middle, static_cast<std::int32_t>(at));
      nodes_[at].right = add(middle, end, static_cast<std::int32_t>(at));
    }
    for (std::size_t at = nodes_.size(); at-- > 0;) {
      Node& node = nodes_[at];
      if (node.left < 0) {
        node.leaf = static_cast<std::int32_t>(leaf_nodes_.size());
        leaf_nodes_.push_back(static_cast<std::int32_t>(at));
      } else {
        node.leaf = nodes_[static_cast<std::size_t>(node.left)].leaf;
        node.is_one_component = false;
      }
    }
  }

  std::vector<std::int32_t> order_;
  std::vector<Node> nodes_;
  std::vector<std::int32_t> leaf_nodes_;

  // A lower bound of |x - z|^2 for a row of each node.
  double squared_distance(std::int32_t a, std::int32_t b) const {
    const float *low_a = low(a), *high_a = high(a), *low_b = low(b), *high_b = high(b);
    double sum = 0;
    for (std::size_t k = 0; k < d_; ++k) {
      const double gap = std::max(static_cast<double>(low_a[k]) - high_b[k],
                                  static_cast<double>(low_b[k]) - high_a[k]);
      if (gap > 0) sum += gap * gap;
    }
    return sum * outward;
  }

  double squared_extent(std::int32_t node) const {
    double sum = 0;
    for (std::size_t k = 0; k < d_; ++k) {
      const double extent = static_cast<double>(high(node)[k]) - low(node)[k];
      sum += extent * extent;
    }
    return sum;
  }

 private:
  const float* low(std::int32_t node) const {
    return boxes_.data() + static_cast<std::size_t>(node) * 2 * d_;
  }
  const float* high(std::int32_t node) const { return low(node) + d_; }
  const float* row(std::size_t place) const {
    return points_.dense + static_cast<std::size_t>(order_[place]) * d_;
  }

  // Lowest, highest, sum and sum of squares of some features over some rows.
  struct Extent {
    explicit Extent(std::size_t d)
        : low(d, std::numeric_limits<float>::infinity()),
          high(d, -std::numeric_limits<float>::infinity()),
          sum(d, 0.0),
          squares(d, 0.0) {}
    void include(const float* row, const std::vector<std::size_t>& features) {
      for (std::size_t k = 0; k < low.size(); ++k) {
        const float x = row[features[k]];
        low[k] = std::min(low[k], x);
        high[k] = std::max(high[k], x);
        sum[k] += x;
        squares[k] += static_cast<double>(x) * x;
      }
    }
    void include(const Extent& other) {
      for (std::size_t k = 0; k < low.size(); ++k) {
        low[k] = std::min(low[k], other.low[k]);
        high[k] = std::max(high[k], other.high[k]);
        sum[k] += other.sum[k];
        squares[k] += other.squares[k];
      }
    }
    std::vector<float> low, high;
    std::vector<double> sum, squares;
  };

  // In as many parts whatever the number of threads, so that sums are the same.
  Extent extent_of(std::size_t begin, std::size_t end,
                   const std::vector<std::size_t>& features) const {
    const std::size_t n_parts = end - begin < worth_threads ? 1 : 16;
    std::vector<Extent> parts(n_parts, Extent(features.size()));
#pragma omp parallel for num_threads(n_threads_) if (n_threads_ > 1 && n_parts > 1)
    for (std::int64_t p = 0; p < static_cast<std::int64_t>(n_parts); ++p) {
      const auto part = static_cast<std::size_t>(p);
      const std::size_t first = begin + (end - begin) * part / n_parts,
                        last = begin + (end - begin) * (part + 1) / n_parts;
      for (std::size_t i = first; i < last; ++i) parts[part].include(row(i), features);
    }
    for (std::size_t part = 1; part < n_parts; ++part) parts[0].include(parts[part]);
    return parts[0];
  }

  // A node with its box and the feature to split it by: that of the largest extent, of equal ones
  // that of the largest variance, so two-valued features go first.
  // Features that are constant in the node above, the `parent`, are so here (-1: none above).
  std::int32_t add(std::size_t begin, std::size_t end, std::int32_t parent) {
    std::vector<std::size_t> features;
    for (std::size_t k = 0; k < d_; ++k) {
      if (parent < 0 || high(parent)[k] > low(parent)[k]) features.push_back(k);
    }
    const Extent extent = extent_of(begin, end, features);
    std::vector<float> box(2 * d_, 0.0f);
    if (parent >= 0) std::copy_n(low(parent), 2 * d_, box.begin());
    for (std::size_t k = 0; k < features.size(); ++k) {
      box[features[k]] = extent.low[k];
      box[d_ + features[k]] = extent.high[k];
    }
    boxes_.insert(boxes_.end(), box.begin(), box.end());
    const double n = static_cast<double>(end - begin);
    float largest = 0;
    double largest_variance = -1;
    std::int32_t feature = -1;
    for (std::size_t k = 0; k < features.size(); ++k) {
      const float size = extent.high[k] - extent.low[k];
      const double mean = extent.sum[k] / n, variance = extent.squares[k] / n - mean * mean;
      if (size > largest || (size == largest && size > 0 && variance > largest_variance)) {
        largest = size;
        largest_variance = variance;
        feature = static_cast<std::int32_t>(features[k]);
      }
    }
    nodes_.push_back({begin, end, -1, -1, -1, feature});
    return static_cast<std::int32_t>(nodes_.size() - 1);
  }

  // Sorts a node's rows into two parts at the middle of the extent of its feature. Returns where
  // the second part begins, or the end when all rows are equal.
  std::size_t split(std::int32_t node) {
    const Node& whole = nodes_[static_cast<std::size_t>(node)];
    const std::size_t begin = whole.begin, end = whole.end;
    if (whole.feature < 0) return end;
    const auto best = static_cast<std::size_t>(whole.feature);
    const auto part = [this, best](std::size_t first, std::size_t last, double at) {
      const auto place = std::partition(
          order_.begin() + static_cast<std::ptrdiff_t>(first),
          order_.begin() + static_cast<std::ptrdiff_t>(last), [this, best, at](std::int32_t i) {
            return points_.dense[static_cast<std::size_t>(i) * d_ + best] <= at;
          });
      return static_cast<std::size_t>(place - order_.begin());
    };
    const double center = 0.5 * (static_cast<double>(high(node)[best]) + low(node)[best]);
    const std::size_t middle = part(begin, end, center);
    const double smaller = static_cast<double>(std::min(middle - begin, end - middle));
    if (smaller >= smallest_part * static_cast<double>(end - begin)) return middle;
    std::vector<float> values(end - begin);
    for (std::size_t i = begin; i < end; ++i) values[i - begin] = row(i)[best];
    const auto median = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), median, values.end());
    const bool separates = *median < high(node)[best];
    return part(begin, end, separates ? *median : center);
  }

  const Points& points_;
  std::size_t d_;
  int n_threads_;
  std::vector<float> boxes_;  // lowest and highest of every node
};

// Connected components of leaves that are not provably apart.
class Components {
 public:
  Components(BoxTree& tree, double squared_distance)
      : tree_(tree), squared_distance_(squared_distance), parent_(tree.leaf_nodes_.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (std::size_t at = tree_.nodes_.size(); at-- > 0;) {  // children come after their parents
      const Node& node = tree_.nodes_[at];
      if (node.left >= 0) connect(node.left, node.right);
    }
  }

  std::int32_t find(std::int32_t leaf) {
    while (parent(leaf) != leaf) {
      parent(leaf) = parent(parent(leaf));
      leaf = parent(leaf);
    }
    return leaf;
  }

 private:
  std::int32_t& parent(std::int32_t leaf) { return parent_[static_cast<std::size_t>(leaf)]; }
  Node& node(std::int32_t at) { return tree_.nodes_[static_cast<std::size_t>(at)]; }

  bool is_one(std::int32_t at) {
    Node& n = node(at);
    if (!n.is_one_component) {
      n.is_one_component = node(n.left).is_one_component && node(n.right).is_one_component &&
                           find(node(n.left).leaf) == find(node(n.right).leaf);
    }
    return n.is_one_component;
  }

  void connect(std::int32_t first, std::int32_t second) {
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs{{first, second}};
    while (!pairs.empty()) {
      const auto [a, b] = pairs.back();
      pairs.pop_back();
      if (is_one(a) && is_one(b) && find(node(a).leaf) == find(node(b).leaf)) continue;
      if (tree_.squared_distance(a, b) >= squared_distance_) continue;
      const bool a_is_leaf = node(a).left < 0, b_is_leaf = node(b).left < 0;
      if (a_is_leaf && b_is_leaf) {
        parent(find(node(a).leaf)) = find(node(b).leaf);
        continue;
      }
      const bool divide_a =
          b_is_leaf || (!a_is_leaf && tree_.squared_extent(a) >= tree_.squared_extent(b));
      const Node divided = node(divide_a ? a : b);
      const std::int32_t other = divide_a ? b : a;
      pairs.emplace_back(divided.left, other);
      pairs.emplace_back(divided.right, other);
    }
  }

  BoxTree& tree_;
  double squared_distance_;
  std::vector<std::int32_t> parent_;
};

}  // namespace

Groups find_groups(const Points& points, double squared_distance, std::size_t smallest_group,
                   int n_threads) {
  Groups groups;
  BoxTree tree(points, n_threads);
  groups.start.push_back(0);
  if (tree.squared_extent(0) < squared_distance) {
    groups.order.resize(points.n_samples);
    std::iota(groups.order.begin(), groups.order.end(), 0);
    groups.start.push_back(static_cast<std::int64_t>(points.n_samples));
    return groups;
  }
  tree.grow();
  Components components(tree, squared_distance);
  // leaves in the order of their rows, component by component in the order of their first rows
  std::vector<std::int32_t> leaves(tree.leaf_nodes_.size());
  std::iota(leaves.begin(), leaves.end(), 0);
  const auto begin_of = [&tree](std::int32_t leaf) {
    return tree.nodes_[static_cast<std::size_t>(tree.leaf_nodes_[static_cast<std::size_t>(leaf)])]
        .begin;
  };
  std::vector<std::size_t> first(leaves.size(), points.n_samples);
  for (const std::int32_t leaf : leaves) {
    std::size_t& at = first[static_cast<std::size_t>(components.find(leaf))];
    at = std::min(at, begin_of(leaf));
  }
  std::sort(leaves.begin(), leaves.end(), [&](std::int32_t a, std::int32_t b) {
    const std::size_t first_a = first[static_cast<std::size_t>(components.find(a))],
                      first_b = first[static_cast<std::size_t>(components.find(b))];
    return first_a != first_b ? first_a < first_b : begin_of(a) < begin_of(b);
  });
  std::int32_t previous = -1;
  for (const std::int32_t leaf : leaves) {
    const std::int32_t component = components.find(leaf);
    const auto n = static_cast<std::int64_t>(groups.order.size());
    if (component != previous &&
        n - groups.start.back() >= static_cast<std::int64_t>(smallest_group))
      groups.start.push_back(n);
    previous = component;
    const Node& node =
        tree.nodes_[static_cast<std::size_t>(tree.leaf_nodes_[static_cast<std::size_t>(leaf)])];
    groups.order.insert(groups.order.end(),
                        tree.order_.begin() + static_cast<std::ptrdiff_t>(node.begin),
                        tree.order_.begin() + static_cast<std::ptrdiff_t>(node.end));
  }
  groups.start.push_back(static_cast<std::int64_t>(groups.order.size()));
  return groups;
}

}  // namespace dcsvm
