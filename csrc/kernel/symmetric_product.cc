#include "kernel/symmetric_product.h"

#include <algorithm>
#include <vector>

#include "kernel/kernel_cost.h"
#include "kernel/lane_product.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Rows from which on half of the kernel values are more than what packing lanes again costs.
constexpr std::size_t fewest_rows = 512;
// So many parts keep all threads of a large machine at work in a round; larger ones have less to
// pack and to hand out, and no part need be larger than that.
constexpr std::size_t wanted_parts = 128, largest_part = 1024;

// Rows of a part: whole blocks of lanes and of sources.
std::size_t rows_of_part(std::size_t n_rows, std::size_t block) {
  const std::size_t unit = std::max(block, source_block);
  const std::size_t wanted = std::clamp(n_rows / wanted_parts, unit, largest_part);
  return (wanted + unit - 1) / unit * unit;
}

// The partner of place `k` in round `round` of a tournament of an even number of players: everybody
// meets everybody once in players - 1 rounds. The last player stays, the others go round.
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
        const Reach& reach, double* out)
      : sources_(setup, rows, weights, reach),
        block_(panels_per_block(setup, *rows.points) * panel_rows),
        size_(rows_of_part(rows.size, block_)),
        out_(out) {
    const double start = sources_.taken_off.empty() ? 0.0 : sources_.taken_off[0];
    std::fill_n(out, rows.size, start);
    if (!sources_.boxes.empty())
      boxes_ = Boxes(sources_.points, sources_.rows.index, rows.size, block_);
  }

  std::size_t n_parts() const { return (sources_.rows.size + size_ - 1) / size_; }
  LaneProduct<float> product(const Stop* stop) const { return LaneProduct<float>(sources_, stop); }

  // Adds to the sums of two parts what they are to each other, or to those of one part.
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
      // a part by itself: its sources meet all its lanes, and once is enough
      if (lanes != sources)
        std::copy_n(sources_.weights.values + at, n_lanes, lane_weights.begin());
      product.select(panels, 0, panels.n_panels(), boxes_, at / block_);
      product.add_both(begin, end, lane_weights.data(), lane_sums.data(), source_sums.data());
      for (std::size_t k = 0; k < n_lanes; ++k) out_[at + k] += lane_sums[k];
    }
    for (std::size_t k = 0; k < end - begin; ++k) out_[begin + k] += source_sums[k];
  }

 private:
  Sources sources_;
  std::size_t block_;  // lanes of a tile
  std::size_t size_;   // of a part
  Boxes boxes_;        // around the blocks of lanes; empty: nothing is left out
  double* out_;
};

}  // namespace

bool is_symmetric_product(const KernelSetup& setup, const RowList& targets, const RowList& sources,
                          const SourceWeights& weights) {
  const bool is_same = targets.points == sources.points && targets.index == sources.index &&
                       targets.size == sources.size;
  return is_same && weights.indptr == nullptr && targets.size >= fewest_rows &&
         setup.form != Form::precomputed;
}

ProductCount symmetric_product(const KernelSetup& setup, const RowList& rows,
                               const SourceWeights& weights, const Reach& reach, int n_threads,
                               double* out, const Stop* stop) {
  const Parts parts(setup, rows, weights, reach, out);
  const std::size_t n_parts = parts.n_parts(), players = n_parts + n_parts % 2;
  const int threads = threads_pay(n_threads, rows.size * rows.size / 2) ? n_threads : 1;
  ProductCount count;
  const auto is_stopped = [&] { return stop && stop->is_requested(); };
  const auto round = [&](std::size_t n_pairs, auto pair) {
    parallel_for(
        {threads, n_pairs}, [&] { return parts.product(stop); },
        [&](LaneProduct<float>& product, std::size_t k) {
          const Pair met = pair(k);
          if (!is_stopped() && met.second < n_parts) parts.meet(product, met.first, met.second);
        },
        [&](const LaneProduct<float>& product) { count.add(product.count()); });
  };
  round(n_parts, [](std::size_t k) { return Pair{k, k}; });
  for (std::size_t r = 0; r + 1 < players && !is_stopped(); ++r)
    round(players / 2, [&](std::size_t k) { return pair_of(players, r, k); });
  count.complete = !is_stopped();
  return count;
}

}  // namespace dcsvm
