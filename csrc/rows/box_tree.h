// A binary tree of boxes around dense rows: each node holds consecutive rows of an order.
//
// The distance of two boxes is a lower bound on the distance of their rows. A node is split in the
// middle of its widest feature, as in a k-d tree (Bentley 1975). The tree does not depend on the
// number of threads. Codes are ignored: the tree is for rows without codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rows/cutoff.h"
#include "rows/points.h"
#include "threads/parallel.h"

namespace dcsvm {

class BoxTree {
 public:
  struct Node {
    std::size_t begin, end;              // in the order
    std::int32_t left = -1, right = -1;  // -1 for a leaf; children come after their parents
    std::int32_t leaf = -1;              // index of the first leaf below
    std::int32_t feature = -1;           // to split by; -1 if all rows are equal
    bool is_one_component = true;        // for components.cc: once true, it stays true
  };

  // Creates the root only, for a kind of distance. The tree takes at most memory_bytes.
  BoxTree(const Points& points, Argument distance, std::size_t memory_bytes, int n_threads);

  // Grows the rest of the tree. Small nodes are split only if rows in them may be this far apart,
  // and only while the tree has few nodes for its number of rows.
  void grow(double distance);

  std::size_t n_nodes() const { return nodes_.size(); }
  std::size_t n_leaves() const { return leaves_.size(); }
  Node& node(std::int32_t at) { return nodes_[static_cast<std::size_t>(at)]; }
  const Node& leaf(std::int32_t number) const {
    return nodes_[static_cast<std::size_t>(leaves_[static_cast<std::size_t>(number)])];
  }
  const std::vector<std::int32_t>& order() const { return order_; }

  // Calls use(at) for all nodes, children before their parents, `at_once` nodes of a level per
  // chunk.
  template <class Use>
  void from_leaves(std::size_t at_once, Use use) const {
    std::size_t end = nodes_.size();
    for (auto level = levels_.rbegin(); level != levels_.rend(); end = *level++) {
      parallel_for({n_threads_, end - *level, at_once}, [&](std::size_t i) { use(*level + i); });
    }
  }

  // Lower bound on the distance of rows of two nodes. Before grow(), boxes enclose only a sample of
  // the rows.
  double distance(std::int32_t a, std::int32_t b) const;
  // Upper bound on the distance of two rows of a node.
  double diameter(std::int32_t node) const;

 private:
  struct Extent;

  const float* low(std::int32_t node) const {
    return boxes_.get() + static_cast<std::size_t>(node) * 2 * d_;
  }
  const float* high(std::int32_t node) const { return low(node) + d_; }
  const float* row(std::size_t place) const {
    return features_of(points_, static_cast<std::size_t>(order_[place]));
  }
  Extent extent_of(std::size_t begin, std::size_t end, std::size_t step) const;
  void set_box(std::size_t node, const Extent& extent);
  double variance(std::size_t begin, std::size_t end, std::size_t step, std::size_t feature) const;
  void sample(std::size_t node);
  std::vector<std::size_t> to_split(std::size_t first, double distance) const;
  std::size_t divide_at(std::size_t begin, std::size_t end, std::size_t feature, double at);
  std::size_t divide(std::size_t node);
  void split(std::size_t node, std::size_t left);
  void number_leaves();
  void measure();

  const Points& points_;
  Argument argument_;  // the distance
  std::size_t d_;
  int n_threads_;
  std::size_t most_nodes_;
  std::vector<std::int32_t> order_;
  std::vector<Node> nodes_;
  std::vector<std::int32_t> leaves_;  // node index of each leaf
  std::vector<std::size_t> levels_;   // the first node of each
  std::unique_ptr<float[]> boxes_;    // per node: minima of the features, then maxima
};

}  // namespace dcsvm
