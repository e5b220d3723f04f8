#include "kernel/kernel_product.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "kernel/kernel_setup.h"
#include "kernel/lane_product.h"
#include "kernel/linear_rows.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Columns of sums that are transposed together, so that they stay in the first-level cache.
constexpr std::size_t batch_columns = 32;
// Maximum number of sums of a block of lanes: more would not fit the second-level cache.
constexpr std::size_t max_sums = 65536;
// Terms of a sum that take as long as one kernel evaluation.
constexpr std::size_t terms_per_value = 8;

template <class Real>
ProductCount product(const KernelSetup& setup, const RowList& targets, const RowList& source_list,
                     const SourceWeights& weights, const Cutoff& cutoff, int n_threads, double* out,
                     const Stop* stop) {
  std::vector<std::int32_t> numbers;
  const RowList target_rows = indexed(targets, numbers);
  const SourceView sources(setup, source_list, weights, cutoff);
  const std::size_t n_columns = weights.n_columns;
  std::size_t block = panels_per_block(setup, *targets.points) * panel_rows;
  std::size_t n_terms = source_list.size;  // of a target
  if (weights.indptr) {
    n_terms += sources.placed.size() / terms_per_value;
    // boxes around blocks of another size would skip other pairs
    if (sources.boxes.empty())
      block = std::clamp(max_sums / n_columns / panel_rows * panel_rows, panel_rows, block);
  }
  const std::size_t n_blocks = (targets.size + block - 1) / block;
  ProductCount count;
  parallel_for(
      {threads_for(targets.size * n_terms, n_threads), n_blocks},
      [&] { return LaneProduct<Real>(sources, stop); },
      [&](LaneProduct<Real>& one, std::size_t b) {
        if (is_requested(stop)) return;
        const std::size_t begin = b * block;
        const RowPanels lanes(setup, target_rows.slice(begin, begin + block));
        const std::size_t n_lanes = lanes.n_panels() * panel_rows;
        BoundingBoxes box;
        if (!sources.boxes.empty())
          box = BoundingBoxes(*targets.points, target_rows.index + begin, lanes.size(), block);
        const double* sums = one.product(lanes, box, n_columns);
        for (std::size_t first = 0; first < n_columns; first += batch_columns) {
          const std::size_t end = std::min(first + batch_columns, n_columns);
          for (std::size_t i = 0; i < lanes.size(); ++i) {
            for (std::size_t c = first; c < end; ++c)
              out[(begin + i) * n_columns + c] = sums[c * n_lanes + i];
          }
        }
      },
      [&](const LaneProduct<Real>& one) { count.add(one.count()); });
  count.complete = !is_requested(stop);
  return count;
}

template <class Real>
ProductCount add_to_lanes(const SourceView& sources, const RowPanels& lanes,
                          const BoundingBoxes& boxes, int n_threads, double* sums, const Stop* stop,
                          const Task& task) {
  const std::size_t panels = panels_per_block(sources.setup, lanes.points());
  const std::size_t n_blocks = (lanes.n_panels() + panels - 1) / panels;
  ProductCount count;
  parallel_for(
      {n_threads, n_blocks}, task, [&] { return LaneProduct<Real>(sources, stop); },
      [&](LaneProduct<Real>& one, std::size_t b) {
        const std::size_t first = b * panels;
        one.select(lanes, first, std::min(panels, lanes.n_panels() - first), boxes, b);
        one.add(sums + first * panel_rows);
      },
      [&](const LaneProduct<Real>& one) { count.add(one.count()); });
  return count;
}

// If pairs can be skipped, lanes are grouped by their blocks, whose boxes decide.
template <class Real>
void add_to_lanes_at(const SourceView& sources, const RowList& all_lanes,
                     const std::vector<std::int32_t>& places, const BoundingBoxes& boxes,
                     int n_threads, double* sums) {
  const std::size_t block = panels_per_block(sources.setup, sources.points) * panel_rows;
  std::vector<std::size_t> begin;  // of the places in each block that has any
  std::vector<std::int32_t> rows;
  for (std::size_t k = 0; k < places.size(); ++k) {
    const auto lane = static_cast<std::size_t>(places[k]);
    const bool is_next =
        boxes.empty() ? k % panel_rows == 0
                      : k == 0 || lane / block != static_cast<std::size_t>(places[k - 1]) / block;
    if (is_next) begin.push_back(k);
    rows.push_back(all_lanes.index[lane]);
  }
  begin.push_back(places.size());
  parallel_for(
      {n_threads, begin.size() - 1}, [&] { return LaneProduct<Real>(sources); },
      [&](LaneProduct<Real>& product, std::size_t b) {
        const std::size_t n = begin[b + 1] - begin[b];
        const RowPanels lanes(sources.setup, {all_lanes.points, rows.data() + begin[b], n});
        AlignedVector<double> own(lanes.n_panels() * panel_rows);
        std::copy_n(sums + begin[b], n, own.begin());
        product.select(lanes, 0, lanes.n_panels(), boxes,
                       static_cast<std::size_t>(places[begin[b]]) / block);
        product.add(own.data());
        std::copy_n(own.begin(), n, sums + begin[b]);
      });
}

// Maximum entries of X' W at a time: 16 MB.
constexpr std::size_t max_entries = 2000000;

// Returns whether a product of the linear kernel is computed as X (X' W), in float64: with more
// sources than columns of W this takes fewer operations and has no error of kernel values. The
// choice does not depend on the number of targets, so the sums of a row are bitwise independent of
// the other rows.
bool is_linear_product(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                       const SourceWeights& weights) {
  return is_linear(setup.kernel) && sources.size > weights.n_columns &&
         (targets.points == sources.points || sources.points->n_codes == 0);
}

// Computes X (X' W) without kernel values.
ProductCount linear_product(const RowList& targets, const RowList& sources,
                            const SourceWeights& weights, int n_threads, double* out,
                            const Stop* stop) {
  const LinearRows from(*sources.points), to(*targets.points);
  const std::size_t dimension = from.dimension();
  const std::size_t at_once = std::clamp<std::size_t>(
      max_entries / std::max<std::size_t>(dimension, 1), 1, weights.n_columns);
  ProductCount count;
  std::vector<double> w(at_once * dimension);
  for (std::size_t begin = 0; begin < weights.n_columns; begin += at_once) {
    if (is_requested(stop)) {
      count.complete = false;
      return count;
    }
    const std::size_t end = std::min(begin + at_once, weights.n_columns);
    std::fill(w.begin(), w.end(), 0.0);
    add_rows(from, sources, weights, begin, end, n_threads, w.data());
    const int threads = threads_for(targets.size * (end - begin), n_threads);
    parallel_for({threads, targets.size, batch_rows}, [&](std::size_t k) {
      for (std::size_t c = begin; c < end; ++c)
        out[k * weights.n_columns + c] = to.dot(targets[k], w.data() + (c - begin) * dimension);
    });
  }
  return count;
}

// K w if the targets are the sources: every kernel value is computed once, for both its rows.
//
// Rows are divided into parts, and every pair of parts is processed once, in rounds like a
// tournament. In a round each part is in one pair only. The sums of a part are accumulated in the
// order of the rounds, for any number of threads: a pair waits until both its parts have finished
// the rounds before. Threads take the pairs in order, so they seldom wait.

// Minimum number of rows: saving half of the kernel evaluations then outweighs packing lanes again.
constexpr std::size_t min_rows = 512;
// Enough parts to occupy all threads of a large machine in a round; larger parts need less packing
// and scheduling, up to max_part rows.
constexpr std::size_t wanted_parts = 128, max_part = 1024;

// Rows of a part: whole blocks of lanes and of sources.
std::size_t rows_of_part(std::size_t n_rows, std::size_t block) {
  const std::size_t unit = std::max(block, source_block);
  const std::size_t wanted = std::clamp(n_rows / wanted_parts, unit, max_part);
  return (wanted + unit - 1) / unit * unit;
}

// Pair `k` in round `round` of a tournament of an even number of players: any two players meet once
// in players - 1 rounds. The last player keeps its seat, the others rotate.
struct Pair {
  std::size_t first, second;
};

Pair pair_of(std::size_t players, std::size_t round, std::size_t k) {
  const std::size_t others = players - 1;
  if (k == 0) return {round, others};
  const std::size_t a = (round + k) % others, b = (round + others - k) % others;
  return {std::min(a, b), std::max(a, b)};
}

class Parts {
 public:
  Parts(const KernelSetup& setup, const RowList& rows, const SourceWeights& weights,
        const Cutoff& cutoff, double* out)
      : sources_(setup, rows, weights, cutoff),
        block_(panels_per_block(setup, *rows.points) * panel_rows),
        size_(rows_of_part(rows.size, block_)),
        out_(out) {
    const double start = sources_.taken_off.empty() ? 0.0 : sources_.taken_off[0];
    std::fill_n(out, rows.size, start);
    if (!sources_.boxes.empty())
      boxes_ = BoundingBoxes(sources_.points, sources_.rows.index, rows.size, block_);
  }

  std::size_t n_parts() const { return (sources_.rows.size + size_ - 1) / size_; }
  LaneProduct<float> product(const Stop* stop) const { return LaneProduct<float>(sources_, stop); }

  // Adds the product of a pair of parts, or of one part with itself, to the sums.
  void meet(LaneProduct<float>& product, std::size_t lanes, std::size_t sources) const {
    const std::size_t n = sources_.rows.size;
    const std::size_t begin = sources * size_, end = std::min(begin + size_, n);
    std::vector<double> lane_sums(block_), lane_weights(block_), source_sums(end - begin);
    const std::size_t lanes_end = std::min((lanes + 1) * size_, n);
    for (std::size_t at = lanes * size_; at < lanes_end; at += block_) {
      const std::size_t n_lanes = std::min(block_, lanes_end - at);
      const RowPanels panels(sources_.setup, sources_.rows.slice(at, at + n_lanes));
      std::fill(lane_sums.begin(), lane_sums.end(), 0.0);
      std::fill(lane_weights.begin(), lane_weights.end(), 0.0);
      // a part with itself: its sources and lanes are the same rows, so one product is enough
      if (lanes != sources)
        std::copy_n(sources_.weights.values + at, n_lanes, lane_weights.begin());
      product.select(panels, 0, panels.n_panels(), boxes_, at / block_);
      product.add_both(begin, end, lane_weights.data(), lane_sums.data(), source_sums.data());
      for (std::size_t k = 0; k < n_lanes; ++k) out_[at + k] += lane_sums[k];
    }
    for (std::size_t k = 0; k < end - begin; ++k) out_[begin + k] += source_sums[k];
  }

 private:
  SourceView sources_;
  std::size_t block_;    // lanes of a tile
  std::size_t size_;     // of a part
  BoundingBoxes boxes_;  // around the blocks of lanes; empty: no pair is skipped
  double* out_;
};

// Returns whether targets and sources are the same list with one weight each, and computing each
// kernel value once pays for the kernel and the number of rows.
bool is_symmetric_product(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                          const SourceWeights& weights) {
  const bool is_same = targets.points == sources.points && targets.index == sources.index &&
                       targets.size == sources.size;
  return is_same && weights.indptr == nullptr && targets.size >= min_rows &&
         setup.form != Form::precomputed;
}

// Waits until the counter has reached a value that another thread is working on, or that thread has
// failed.
void await(const std::atomic<std::size_t>& counter, std::size_t value,
           const std::atomic<bool>& has_failed) {
  while (counter < value && !has_failed) std::this_thread::yield();
}

ProductCount symmetric_product(const KernelSetup& setup, const RowList& rows,
                               const SourceWeights& weights, const Cutoff& cutoff, int n_threads,
                               double* out, const Stop* stop) {
  const Parts parts(setup, rows, weights, cutoff, out);
  const std::size_t n_parts = parts.n_parts(), players = n_parts + n_parts % 2;
  const int threads = threads_for(rows.size * rows.size / 2, n_threads);
  ProductCount count;
  // finished rounds of each part; in round 0 it meets itself
  std::vector<std::atomic<std::size_t>> finished(players);
  std::atomic<bool> has_failed{false};
  const auto telling_failure = [&](const auto& work) {
    try {
      return work();
    } catch (...) {  // other threads must not wait forever
      has_failed = true;
      throw;
    }
  };
  const std::size_t n_pairs = players / 2;
  parallel_for(
      {threads, n_parts + (players - 1) * n_pairs},
      [&] { return telling_failure([&] { return parts.product(stop); }); },
      [&](LaneProduct<float>& product, std::size_t k) {
        const std::size_t round = k < n_parts ? 0 : 1 + (k - n_parts) / n_pairs;
        const Pair pair =
            round == 0 ? Pair{k, k} : pair_of(players, round - 1, (k - n_parts) % n_pairs);
        const bool is_pair = pair.second < n_parts;  // else one player has no part
        await(finished[pair.first], round, has_failed);
        if (is_pair) await(finished[pair.second], round, has_failed);
        telling_failure([&] {
          if (is_pair && !has_failed && !is_requested(stop))
            parts.meet(product, pair.first, pair.second);
        });
        finished[pair.first] = finished[pair.second] = round + 1;
      },
      [&](const LaneProduct<float>& product) { count.add(product.count()); });
  count.complete = !is_requested(stop);
  return count;
}

}  // namespace

ProductCount kernel_product(const KernelSetup& setup, const RowList& targets,
                            const RowList& sources, const SourceWeights& weights,
                            Precision precision, const Cutoff& cutoff, int n_threads, double* out,
                            const Stop* stop) {
  if (is_linear_product(setup, targets, sources, weights))
    return linear_product(targets, sources, weights, n_threads, out, stop);
  const bool is_single = precision == Precision::single_tiles;
  if (is_single && is_symmetric_product(setup, targets, sources, weights))
    return symmetric_product(setup, sources, weights, cutoff, n_threads, out, stop);
  return is_single
             ? product<float>(setup, targets, sources, weights, cutoff, n_threads, out, stop)
             : product<double>(setup, targets, sources, weights, cutoff, n_threads, out, stop);
}

void add_weights(const SourceWeights& w, std::size_t begin, std::size_t end, double* sums) {
  for (std::size_t j = begin; j < end; ++j) {
    if (!w.indptr) {
      sums[0] += w.values[j];
      continue;
    }
    for (std::int64_t at = w.indptr[j]; at < w.indptr[j + 1]; ++at)
      sums[w.columns[at]] += w.values[at];
  }
}

BoundingBoxes lane_boxes(const KernelSetup& setup, const Points& points,
                         const std::vector<std::int32_t>& rows, const Cutoff& cutoff) {
  if (!can_skip(setup, cutoff)) return {};
  return {points, rows.data(), rows.size(), panels_per_block(setup, points) * panel_rows};
}

ProductCount add_product(const KernelSetup& setup, const RowPanels& lanes,
                         const BoundingBoxes& boxes, const RowList& source_list,
                         const double* weights, Precision precision, const Cutoff& cutoff,
                         int n_threads, double* sums, const Stop* stop, const Task& task) {
  const SourceView sources(setup, source_list, {1, nullptr, nullptr, weights}, cutoff);
  return precision == Precision::double_tiles
             ? add_to_lanes<double>(sources, lanes, boxes, n_threads, sums, stop, task)
             : add_to_lanes<float>(sources, lanes, boxes, n_threads, sums, stop, task);
}

void add_product_at(const KernelSetup& setup, const RowList& lanes,
                    const std::vector<std::int32_t>& places, const BoundingBoxes& boxes,
                    const RowList& source_list, const double* weights, Precision precision,
                    const Cutoff& cutoff, int n_threads, double* sums) {
  const SourceView sources(setup, source_list, {1, nullptr, nullptr, weights}, cutoff);
  if (precision == Precision::double_tiles) {
    add_to_lanes_at<double>(sources, lanes, places, boxes, n_threads, sums);
  } else {
    add_to_lanes_at<float>(sources, lanes, places, boxes, n_threads, sums);
  }
}

ProductCount cluster_product(const KernelSetup& setup, const RowList& targets,
                             const RowList& sources, const SourceWeights& weights,
                             const ClusterRanges& ranges, Precision precision, const Cutoff& cutoff,
                             int n_threads, double* out, const Stop* stop) {
  const auto sizes = [&](std::size_t c) {
    return std::pair(static_cast<std::size_t>(ranges.target_start[c + 1] - ranges.target_start[c]),
                     static_cast<std::size_t>(ranges.source_end[c] - ranges.source_begin[c]));
  };
  std::size_t n_values = 0;
  for (std::size_t c = 0; c < ranges.n_clusters; ++c) {
    const auto [n_targets, n_sources] = sizes(c);
    n_values += n_targets * n_sources;
  }
  const int threads = threads_for(n_values, n_threads);
  ProductCount total;
  parallel_for(
      {threads, ranges.n_clusters}, [] { return ProductCount(); },
      [&](ProductCount& count, std::size_t c) {
        const auto [n_targets, n_sources] = sizes(c);
        const auto begin = static_cast<std::size_t>(ranges.target_start[c]),
                   first = static_cast<std::size_t>(ranges.source_begin[c]);
        double* const sums = out + begin * weights.n_columns;
        if (n_targets == 0 || n_sources == 0) {
          std::fill_n(sums, n_targets * weights.n_columns, 0.0);
          return;
        }
        count.add(kernel_product(setup, targets.slice(begin, begin + n_targets),
                                 sources.slice(first, first + n_sources), weights.from(first),
                                 precision, cutoff, threads, sums, stop));
      },
      [&](const ProductCount& count) { total.add(count); });
  return total;
}

}  // namespace dcsvm
