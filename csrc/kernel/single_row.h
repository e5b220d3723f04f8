// Decision values of a few rows, for models that are asked again and again.
//
// In kernel_product() targets are the lanes, which a row alone leaves nearly empty, and the sources
// are prepared in every call. Here the sources are the lanes, packed once, and a row is the query.
// K(x, z) is the same bits as K(z, x) and sums are taken in the same order, so decision values are
// the same bits as those of route() and kernel_product().
//
// For dense rows, with codes or without, or as bytes; not for products with a linear kernel that
// are taken feature by feature.
#pragma once

#include <cstddef>
#include <cstdint>
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

// One row of floats as some sources see it. It stays where it is.
class EncodedRow {
 public:
  // False where the row has other values in the columns of a code than rows of codes have, or is
  // not one of bytes where these are wanted. There are no codes where `coded` is null.
  bool encode(const float* row, std::size_t n_features, const CodedColumns* coded,
              const KernelSetup& setup);

  const Points& points() const { return points_; }

 private:
  Points points_;
  std::vector<float> coded_;  // aligned for them
  std::vector<std::uint8_t> bytes_;
  std::int32_t byte_sum_ = 0;
  double other_terms_ = 0, row_term_ = 0;
};

// All rows of a set as lanes, and their weights in sums. Views, but for what is packed.
class PackedSources {
 public:
  PackedSources(const KernelSetup& setup, const Points& points, const CodedColumns* coded,
                const SourceWeights& weights, Precision precision);

  bool encode(const float* row, std::size_t n_features, EncodedRow& out) const {
    return out.encode(row, n_features, coded_, setup_);
  }

  // sums[c] = K(row, sources begin to end) times their weights, for n_columns columns.
  void sum(const EncodedRow& row, std::size_t begin, std::size_t end, std::size_t n_columns,
           double* sums) const;

 private:
  KernelSetup setup_;  // of the tiles
  const CodedColumns* coded_;
  SourceWeights weights_;
  RowPanels lanes_;
  Precision precision_;
};

// The models of clusters: their sources are consecutive. One cluster and no tree is an exact model.
struct ClusterModels {
  std::size_t n_columns = 1;
  const std::int64_t* start = nullptr;  // of the sources of each cluster, n_clusters + 1
  const double* offsets = nullptr;      // n_clusters x n_columns: added to the sums
  double blend = 0;                     // distance to a border from which on one cluster answers
};

// What makes sums over sampled rows means of the parts of their nodes, fork after fork.
struct MeanWeights {
  explicit MeanWeights(const std::vector<NodeSplit>& splits);

  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> part;
  std::vector<double> values;
};

// The tree of clusters. The points are the sampled rows of its forks, in order.
class RoutingTree {
 public:
  RoutingTree(const KernelSetup& setup, const Points& points, const CodedColumns* coded,
              std::vector<NodeSplit> splits);

  bool encode(const float* row, std::size_t n_features, EncodedRow& out) const {
    return sample_.encode(row, n_features, out);
  }

  // As route(), from the root to the finest level; with what is across the nearest border where
  // `second` is wanted.
  Assignment place(const EncodedRow& row, bool second) const;

 private:
  Assignment step(const EncodedRow& row, std::size_t split, std::int32_t node, bool second) const;

  std::vector<NodeSplit> splits_;
  std::vector<std::size_t> first_;  // of the sampled rows of each fork
  MeanWeights weights_;
  PackedSources sample_;
};

// Decision values of one row, n_columns of them. False where it takes kernel_product(): a value is
// not finite, or the row does not fit the codes or bytes. `tree` is null for an exact model.
bool decision_values(const float* row, std::size_t n_features, const PackedSources& sources,
                     const ClusterModels& models, const RoutingTree* tree, double* out);

}  // namespace dcsvm
