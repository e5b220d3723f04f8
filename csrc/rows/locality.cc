#include "rows/locality.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace dcsvm {

namespace {

constexpr std::size_t leaf_rows = 64;
constexpr std::size_t rows_of_node = 8;    // at least, on average, where smaller leaves are made
constexpr std::size_t sampled_rows = 256;  // at most, to choose where a node is split
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
  BoxTree(const Points& points, std::size_t memory_bytes, int n_threads)
      : points_(points), d_(points.n_features), n_threads_(n_threads) {
    const std::size_t node_bytes = sizeof(Node) + 2 * d_ * sizeof(float);
    most_nodes_ = std::min(points.n_samples / rows_of_node * 2, memory_bytes / node_bytes);
    nodes_.reserve(most_nodes_);
    boxes_.reserve(most_nodes_ * 2 * d_);
    order_.resize(points.n_samples);
    std::iota(order_.begin(), order_.end(), 0);
    add(0, order_.size());
  }

  // The tree below the root. Small nodes are divided only where rows in them may be that far from
  // each other, and not for ever.
  void grow(double squared_distance) {
    const std::size_t most_nodes = points_.n_samples / rows_of_node;
    for (std::size_t at = 0; at < nodes_.size(); ++at) {
      const std::size_t begin = nodes_[at].begin, end = nodes_[at].end;
      const bool wide = nodes_.size() < most_nodes &&
                        squared_extent(static_cast<std::int32_t>(at)) >= squared_distance;
      const bool divided = nodes_.size() + 2 <= most_nodes_ && (end - begin > leaf_rows || wide);
      const std::size_t middle = divided ? split(static_cast<std::int32_t>(at)) : end;
      if (middle == end) continue;
      nodes_[at].left = add(begin, middle);
      nodes_[at].right = add(middle, end);
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
    measure();
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

  // Lowest and highest of every feature.
  struct Extent {
    explicit Extent(std::size_t d)
        : low(d, std::numeric_limits<float>::infinity()),
          high(d, -std::numeric_limits<float>::infinity()) {}
    void include(const float* lowest, const float* highest) {
      for (std::size_t k = 0; k < low.size(); ++k) {
        low[k] = std::min(low[k], lowest[k]);
        high[k] = std::max(high[k], highest[k]);
      }
    }
    std::vector<float> low, high;
  };

  Extent extent_of(std::size_t begin, std::size_t end, std::size_t step) const {
    Extent extent(d_);
    for (std::size_t i = begin; i < end; i += step) extent.include(row(i), row(i));
    return extent;
  }

  void set_box(std::size_t node, const Extent& extent) {
    std::copy(extent.low.begin(), extent.low.end(), boxes_.data() + node * 2 * d_);
    std::copy(extent.high.begin(), extent.high.end(), boxes_.data() + node * 2 * d_ + d_);
  }

  // The boxes of all rows: those of the leaves from their rows, the others from their children.
  void measure() {
    const auto n_leaves = static_cast<std::int64_t>(leaf_nodes_.size());
#pragma omp parallel for num_threads(n_threads_) schedule(dynamic, 64) if (n_threads_ > 1)
    for (std::int64_t leaf = 0; leaf < n_leaves; ++leaf) {
      const auto at = static_cast<std::size_t>(leaf_nodes_[static_cast<std::size_t>(leaf)]);
      set_box(at, extent_of(nodes_[at].begin, nodes_[at].end, 1));
    }
    for (std::size_t at = nodes_.size(); at-- > 0;) {
      if (nodes_[at].left < 0) continue;
      Extent extent(d_);
      for (const std::int32_t child : {nodes_[at].left, nodes_[at].right})
        extent.include(low(child), high(child));
      set_box(at, extent);
    }
  }

  // Variance of a feature over every step-th row.
  double variance(std::size_t begin, std::size_t end, std::size_t step, std::size_t feature) const {
    double n = 0, sum = 0, squares = 0;
    for (std::size_t i = begin; i < end; i += step) {
      const double x = row(i)[feature];
      n += 1;
      sum += x;
      squares += x * x;
    }
    return squares / n - sum / n * (sum / n);
  }

  // A node with the box of some of its rows and the feature to split it by: that of the largest
  // extent, of equal ones that of the largest variance, so two-valued features go first.
  std::int32_t add(std::size_t begin, std::size_t end) {
    std::size_t step = (end - begin + sampled_rows - 1) / sampled_rows;
    Extent extent = extent_of(begin, end, step);
    if (step > 1 && extent.low == extent.high) extent = extent_of(begin, end, step = 1);
    const std::size_t at = nodes_.size();
    boxes_.resize((at + 1) * 2 * d_);
    set_box(at, extent);
    float largest = 0;
    for (std::size_t k = 0; k < d_; ++k)
      largest = std::max(largest, extent.high[k] - extent.low[k]);
    std::int32_t feature = -1;
    double largest_variance = -1;
    for (std::size_t k = 0; k < d_; ++k) {
      if (!(largest > 0) || extent.high[k] - extent.low[k] < largest) continue;
      const double spread = variance(begin, end, step, k);
      if (spread > largest_variance) {
        largest_variance = spread;
        feature = static_cast<std::int32_t>(k);
      }
    }
    nodes_.push_back({begin, end, -1, -1, -1, feature});
    return static_cast<std::int32_t>(at);
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
  std::size_t most_nodes_;
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
                   std::size_t memory_bytes, int n_threads) {
  Groups groups;
  BoxTree tree(points, memory_bytes, n_threads);
  groups.start.push_back(0);
  if (tree.squared_extent(0) < squared_distance) {
    groups.order.resize(points.n_samples);
    std::iota(groups.order.begin(), groups.order.end(), 0);
    groups.start.push_back(static_cast<std::int64_t>(points.n_samples));
    return groups;
  }
  tree.grow(squared_distance);
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
