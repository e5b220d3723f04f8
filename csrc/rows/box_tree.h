// A binary tree of boxes around dense rows: nodes hold consecutive rows of an order.
//
// The distance of two boxes is a lower bound of the distance of their rows. A node is split in the
// middle of its widest feature, as in a k-d tree (Bentley, 1975); which rows it has then does not
// depend on the number of threads. Codes are not looked at: the tree is for rows as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/cutoff.h"
#include "rows/points.h"

namespace dcsvm {

class BoxTree {
 public:
  struct Node {
    std::size_t begin, end;              // in the order
    std::int32_t left = -1, right = -1;  // -1 for a leaf; children come after their parents
    std::int32_t leaf = -1;              // number of the first leaf below
    std::int32_t feature = -1;           // to split by, -1 where all rows are equal
    bool is_one_component = true;        // for components.cc: once true of a node, for good
  };

  // The root only, for distances of one kind. The tree takes at most memory_bytes.
  BoxTree(const Points& points, Argument distance, std::size_t memory_bytes, int n_threads);

  // The rest of the tree. Small nodes are split only where rows in them may be that far from each
  // other, and only while there are few leaves for the number of rows.
  void grow(double distance);

  std::size_t n_nodes() const { return nodes_.size(); }
  std::size_t n_leaves() const { return leaves_.size(); }
  Node& node(std::int32_t at) { return nodes_[static_cast<std::size_t>(at)]; }
  const Node& leaf(std::int32_t number) const {
    return nodes_[static_cast<std::size_t>(leaves_[static_cast<std::size_t>(number)])];
  }
  const std::vector<std::int32_t>& order() const { return order_; }

  // At most the distance of any rows x and z of the nodes. Before grow(), boxes are those of a
  // sample.
  double distance(std::int32_t a, std::int32_t b) const;
  // At least the distance of any two rows of the node.
  double diameter(std::int32_t node) const;

 private:
  struct Extent;

  const float* low(std::int32_t node) const {
    return boxes_.data() + static_cast<std::size_t>(node) * 2 * d_;
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
  std::vector<std::int32_t> leaves_;  // nodes
  std::vector<float> boxes_;          // of each node, the lowest of each feature, then the highest
};

}  // namespace dcsvm
