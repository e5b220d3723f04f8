// Assignment of rows to a tree of clusters: from a node to the child with the nearest center.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernel/kernel_kmeans.h"
#include "kernel/kernel_product.h"
#include "threads/parallel.h"

namespace dcsvm {

// The split of all nodes of one level into the nodes of the next. A node with one child has no
// sampled rows.
struct NodeSplit {
  NodeSamples samples;
  const std::int32_t* part = nullptr;         // child of each sampled row, from 0 in its node
  const std::int64_t* first_child = nullptr;  // n_nodes + 1
  const std::int64_t* block_start = nullptr;  // as for mean_products()
  const double* products = nullptr;

  std::size_t n_parts(std::size_t node) const {
    return static_cast<std::size_t>(first_child[node + 1] - first_child[node]);
  }
};

// Assignment of a row: the nearest child; the second child, beyond the nearest cluster boundary;
// and the distance to this boundary in kernel space. A node with one child has no boundary: -1 and
// infinity.
struct Assignment {
  std::int32_t nearest;
  std::int32_t second = -1;
  double distance = std::numeric_limits<double>::infinity();
};

// Returns the assignment of a row of a node, from its mean kernel values with the node's children.
// The second child and the distance are computed only if `second`.
template <class Real>
Assignment nearest_child(const NodeSplit& split, std::size_t node, const Real* means, bool second);

// Assignments of many rows; `second` and `distance` may be null.
struct AssignmentArrays {
  std::int32_t* nearest;
  std::int32_t* second;
  double* distance;
};

// Assigns rows to the next level. node[i] is the node of targets[i]; -1: no node, and no child
// either. Returns false if stopped.
bool route(const KernelSetup& setup, const RowList& targets, const std::int32_t* node,
           const NodeSplit& split, Precision precision, int n_threads, const AssignmentArrays& out,
           const Stop* stop = nullptr);

}  // namespace dcsvm
