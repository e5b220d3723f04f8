// Rows on their way down a tree of clusters: to the nearest center among the parts of a node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernel/kernel_kmeans.h"
#include "threads/parallel.h"

namespace dcsvm {

// How the nodes of one level are divided into those of the next. A node with one part has no
// sampled rows.
struct NodeSplit {
  NodeSamples samples;
  const std::int32_t* part = nullptr;         // of each sampled row, from 0 in its node
  const std::int64_t* first_child = nullptr;  // n_nodes + 1
  const std::int64_t* block_start = nullptr;  // as mean_products() takes it
  const double* products = nullptr;

  std::size_t n_parts(std::size_t node) const {
    return static_cast<std::size_t>(first_child[node + 1] - first_child[node]);
  }
};

// Where a row goes: its nearest child; the one across the nearest border, -1 where its node has one
// part; and the distance to that border in kernel space, infinite where there is none.
struct Assignment {
  std::int32_t nearest;
  std::int32_t second = -1;
  double distance = std::numeric_limits<double>::infinity();
};

// That of a row of a node, by its mean kernel values with the node's parts; what is across the
// border only if `second` is wanted.
template <class Real>
Assignment nearest_child(const NodeSplit& split, std::size_t node, const Real* means, bool second);

// The same of many rows; `second` and `distance` may be null.
struct AssignmentArrays {
  std::int32_t* nearest;
  std::int32_t* second;
  double* distance;
};

// node[i] is where targets[i] is, -1 for one that is nowhere and stays there. False when stopped.
bool route(const KernelSetup& setup, const RowList& targets, const std::int32_t* node,
           const NodeSplit& split, int n_threads, const AssignmentArrays& out,
           const Stop* stop = nullptr);

}  // namespace dcsvm
