// Decision values of single rows, for models that predict a few rows at a time.
//
// In kernel_product() the targets are the lanes: a single row leaves most lanes empty, and every
// call prepares the sources. Here the sources are the lanes, packed once, and the row is the query.
// K(x, z) and K(z, x) have the same bits and sums have the same order, so decision values have the
// same bits as with route() and kernel_product().
//
// For dense rows, with or without codes, or as bytes. Not for a linear kernel whose product is
// computed as X (X' W).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "kernel/kernel_product.h"
#include "kernel/kernel_setup.h"
#include "kernel/kernel_tile.h"
#include "kernel/routing.h"
#include "kernel/row_panels.h"
#include "rows/codes.h"
#include "rows/points.h"

namespace dcsvm {

// One row of floats, encoded like the sources. It has pointers to its members: do not copy or move.
class EncodedRow {
 public:
  // Returns false if the row cannot be encoded: the columns of a code are neither one-hot nor zero,
  // or the form is bytes and a feature is not a byte. A null `coded` means no codes.
  bool encode(const float* row, std::size_t n_features, const CodedColumns* coded,
              const KernelSetup& setup);

  const Points& points() const { return points_; }

 private:
  Points points_;
  std::vector<float> coded_;  // the encoded row, aligned for floats
  std::vector<std::uint8_t> bytes_;
  std::int32_t byte_sum_ = 0;
  double other_terms_ = 0, row_term_ = 0;
};

// All sources as lanes, with their weights. Only the packed lanes are copies, the rest are views.
class PackedSources {
 public:
  PackedSources(const KernelSetup& setup, const Points& points, const CodedColumns* coded,
                const SourceWeights& weights, Precision precision);

  bool encode(const float* row, std::size_t n_features, EncodedRow& out) const {
    return out.encode(row, n_features, coded_, setup_);
  }

  // sums[c] = K(row, sources begin to before end) times their weights, for n_columns columns.
  void sum(const EncodedRow& row, std::size_t begin, std::size_t end, std::size_t n_columns,
           double* sums) const;

 private:
  KernelSetup setup_;  // of the tiles
  const CodedColumns* coded_;
  SourceWeights weights_;
  RowPanels lanes_;
  Precision precision_;
};

// The models of clusters, with consecutive sources each. An exact model is one cluster and no tree.
struct ClusterModels {
  std::size_t n_columns = 1;
  const std::int64_t* start = nullptr;  // of the sources of each cluster, n_clusters + 1
  const double* offsets = nullptr;      // n_clusters x n_columns: added to the sums
  double blend = 0;                     // distance to a boundary below which models are blended
  double largest_value = std::numeric_limits<double>::infinity();  // limit of |feature| of a row
};

// Weights that turn sums over sampled rows into means of the children of nodes, split by split.
struct MeanWeights {
  explicit MeanWeights(const std::vector<NodeSplit>& splits);

  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> part;
  std::vector<double> values;
};

// The tree of clusters. The points are the sampled rows of its node splits, in order.
class RoutingTree {
 public:
  RoutingTree(const KernelSetup& setup, const Points& points, const CodedColumns* coded,
              std::vector<NodeSplit> splits);

  bool encode(const float* row, std::size_t n_features, EncodedRow& out) const {
    return sample_.encode(row, n_features, out);
  }

  // Assigns a row as route() does, from the root to the finest level. The second cluster and the
  // distance are computed only if `second`.
  Assignment place(const EncodedRow& row, bool second) const;

 private:
  Assignment step(const EncodedRow& row, std::size_t split, std::int32_t node, bool second) const;

  std::vector<NodeSplit> splits_;
  std::vector<std::size_t> first_;  // first sampled row of each split
  MeanWeights weights_;
  PackedSources sample_;
};

// Computes the decision values of one row, n_columns values. Returns false if a feature is not
// finite or too large, or if the row cannot be encoded: kernel_product() is needed then. `tree` is
// null for an exact model.
bool decision_values(const float* row, std::size_t n_features, const PackedSources& sources,
                     const ClusterModels& models, const RoutingTree* tree, double* out);

}  // namespace dcsvm
