#include "kernel/single_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rows/bytes.h"
#include "simd/isa.h"

namespace dcsvm {

namespace {

// sums += values times weights, with the same operations as in a product of many rows. The contents
// of the other lanes of the vectors, up to panel_rows beyond the values, do not matter.
void add_values(const double* values, const SourceWeights& w, std::size_t n, double* sums) {
  std::vector<std::vector<const double*>> rows(w.n_columns);
  std::vector<std::vector<double>> weights(w.n_columns);
  for (std::size_t j = 0; j < n; ++j) {
    const auto begin = w.indptr ? w.indptr[j] : static_cast<std::int64_t>(j);
    const auto end = w.indptr ? w.indptr[j + 1] : begin + 1;
    for (std::int64_t at = begin; at < end; ++at) {
      const auto column = w.indptr ? static_cast<std::size_t>(w.columns[at]) : 0;
      rows[column].push_back(values + j);
      weights[column].push_back(w.values[at]);
    }
  }
  double lanes[panel_rows] = {};
  for (std::size_t c = 0; c < w.n_columns; ++c) {
    lanes[0] = sums[c];
    loops<double>().add_weighted(rows[c].data(), weights[c].data(), rows[c].size(), panel_rows,
                                 lanes);
    sums[c] = lanes[0];
  }
}

// Computes the decision values of one cluster.
void cluster_values(const EncodedRow& row, const PackedSources& sources,
                    const ClusterModels& models, std::int32_t cluster, double* out) {
  const auto c = static_cast<std::size_t>(cluster);
  sources.sum(row, static_cast<std::size_t>(models.start[c]),
              static_cast<std::size_t>(models.start[c + 1]), models.n_columns, out);
  for (std::size_t k = 0; k < models.n_columns; ++k)
    out[k] += models.offsets[c * models.n_columns + k];
}

// Blends in the values of the cluster beyond the boundary. If one value is NaN the other counts.
void blend_with(const std::vector<double>& second, double share, double* out) {
  for (std::size_t k = 0; k < second.size(); ++k) {
    const double mean = share * out[k] + (1.0 - share) * second[k];
    out[k] = !std::isnan(mean) ? mean : std::isnan(out[k]) ? second[k] : out[k];
  }
}

}  // namespace

bool EncodedRow::encode(const float* row, std::size_t n_features, const CodedColumns* coded,
                        const KernelSetup& setup) {
  points_ = Points();
  points_.n_samples = 1;
  points_.n_features = n_features;
  points_.dense = row;
  points_.dense_stride = n_features;
  if (setup.form == Form::bytes) {
    std::uint8_t fits = 0;
    find_bytes(points_, 1, &fits);
    if (!fits) return false;
    bytes_.resize(points_.byte_row_size());
    encode_bytes(points_, 1, bytes_.data(), &byte_sum_);
    points_.bytes = bytes_.data();
    points_.byte_sums = &byte_sum_;
  }
  if (coded) {
    std::uint8_t fits = 0;
    find_fitting(points_, *coded, setup.kernel.argument, 1, &fits, &other_terms_);
    if (!fits) return false;
    coded_.resize(coded->row_size() / sizeof(float));
    auto* const rows = reinterpret_cast<std::uint8_t*>(coded_.data());
    dcsvm::encode(points_, *coded, 1, rows);
    take_coded(*coded, rows, points_);
    points_.other_terms = &other_terms_;
  }
  points_.row_terms = &row_term_;
  compute_row_terms(points_, setup, 1, &row_term_);
  return true;
}

PackedSources::PackedSources(const KernelSetup& setup, const Points& points,
                             const CodedColumns* coded, const SourceWeights& weights,
                             Precision precision)
    : setup_(setup.is_flat ? setup.less_one() : setup),
      coded_(coded),
      weights_(weights),
      lanes_(setup, {&points, nullptr, points.n_samples}),
      precision_(precision) {}

void PackedSources::sum(const EncodedRow& row, std::size_t begin, std::size_t end,
                        std::size_t n_columns, double* sums) const {
  std::fill_n(sums, n_columns, 0.0);
  if (begin == end) return;
  if (setup_.kernel.less_one) add_weights(weights_, begin, end, sums);
  const std::size_t first = begin / panel_rows, n = (end - 1) / panel_rows + 1 - first;
  TileScratch tile;
  const std::int32_t query = 0;
  tile.select(setup_, lanes_, first, n);
  SourceWeights own = weights_.from(begin);
  own.n_columns = n_columns;
  const std::size_t skipped = begin - first * panel_rows;
  if (precision_ == Precision::double_tiles) {
    std::vector<double> values((n + 1) * panel_rows);
    tile.rows(row.points(), &query, 1, values.data(), n * panel_rows);
    add_values(values.data() + skipped, own, end - begin, sums);
    return;
  }
  std::vector<float> values(n * panel_rows);
  tile.rows(row.points(), &query, 1, values.data(), values.size());
  isa().add_in_order(values.data() + skipped, own, end - begin, sums);
}

MeanWeights::MeanWeights(const std::vector<NodeSplit>& splits) : indptr{0} {
  for (const NodeSplit& split : splits) {
    const NodeSamples& samples = split.samples;
    for (std::size_t node = 0; node < samples.n_nodes; ++node) {
      const auto begin = static_cast<std::size_t>(samples.start[node]);
      const std::size_t end = begin + samples.size(node);
      std::vector<double> sizes(split.n_parts(node), 0.0);
      for (std::size_t s = begin; s < end; ++s) sizes[static_cast<std::size_t>(split.part[s])] += 1;
      for (std::size_t s = begin; s < end; ++s) {
        part.push_back(split.part[s]);
        values.push_back(1.0 / sizes[static_cast<std::size_t>(split.part[s])]);
        indptr.push_back(static_cast<std::int64_t>(part.size()));
      }
    }
  }
}

RoutingTree::RoutingTree(const KernelSetup& setup, const Points& points, const CodedColumns* coded,
                         std::vector<NodeSplit> splits)
    : splits_(std::move(splits)),
      weights_(splits_),
      sample_(setup, points, coded,
              {1, weights_.indptr.data(), weights_.part.data(), weights_.values.data()},
              Precision::single_tiles) {
  std::size_t first = 0;
  for (const NodeSplit& split : splits_) {
    first_.push_back(first);
    first += split.samples.rows.size;
  }
}

Assignment RoutingTree::step(const EncodedRow& row, std::size_t k, std::int32_t at,
                             bool second) const {
  const NodeSplit& split = splits_[k];
  const auto node = static_cast<std::size_t>(at);
  const std::size_t n_parts = split.n_parts(node);
  if (n_parts == 1) return {static_cast<std::int32_t>(split.first_child[node])};
  std::vector<double> means(n_parts);
  const auto begin = first_[k] + static_cast<std::size_t>(split.samples.start[node]);
  sample_.sum(row, begin, begin + split.samples.size(node), n_parts, means.data());
  return nearest_child(split, node, means.data(), second);
}

Assignment RoutingTree::place(const EncodedRow& row, bool second) const {
  Assignment at{0};
  for (std::size_t k = 0; k < splits_.size(); ++k) {
    const Assignment next = step(row, k, at.nearest, second);
    if (!second || next.distance < at.distance) {
      at = next;
      continue;
    }
    at.nearest = next.nearest;
    // the nearest boundary is higher in the tree: the second cluster is followed downwards as well
    if (at.second >= 0) at.second = step(row, k, at.second, false).nearest;
  }
  return at;
}

bool decision_values(const float* row, std::size_t n_features, const PackedSources& sources,
                     const ClusterModels& models, const RoutingTree* tree, double* out) {
  for (std::size_t k = 0; k < n_features; ++k)
    if (!std::isfinite(row[k]) || std::fabs(row[k]) > models.largest_value) return false;
  EncodedRow own;
  Assignment at{0};
  if (tree) {
    if (!tree->encode(row, n_features, own)) return false;
    at = tree->place(own, models.blend > 0);
  }
  if (!sources.encode(row, n_features, own)) return false;
  cluster_values(own, sources, models, at.nearest, out);
  if (!(models.blend > 0) || at.second < 0) return true;
  const double share = 0.5 * (1.0 + at.distance / models.blend);
  if (share >= 1) return true;
  std::vector<double> second(models.n_columns);
  cluster_values(own, sources, models, at.second, second.data());
  blend_with(second, share, out);
  return true;
}

}  // namespace dcsvm
