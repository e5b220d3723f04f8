#include "kernel/kernel_kmeans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernel/kernel_matrix.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

constexpr int max_steps = 20;
constexpr double same_point = 1e-6;  // relative to K(x, x): a smaller squared distance is 0

// The sampled rows of a node: their kernel matrix, and kernel sums with the children of the node.
class Sample {
 public:
  void take(const KernelSetup& setup, const RowList& rows) {
    n_ = rows.size;
    matrix_.resize(n_ * n_);
    symmetric_matrix(setup, rows, 1, matrix_.data());
  }

  void cluster(std::size_t n_parts, std::uint64_t seed, std::int32_t* part) {
    choose_seeds(n_parts, seed);
    for (std::size_t i = 0; i < n_; ++i) part[i] = nearest_seed(i);
    std::vector<std::int32_t> before(n_);
    for (int step = 0; step < max_steps; ++step) {
      without_gaps(part);
      std::copy_n(part, n_, before.begin());
      add_up(part);
      for (std::size_t i = 0; i < n_; ++i) part[i] = nearest_mean(i, before[i]);
      if (std::equal(before.begin(), before.end(), part)) break;
    }
    without_gaps(part);
  }

  // Computes the inner products of the centers, n_parts x n_parts.
  void products(const std::int32_t* part, double* out) {
    n_parts_ = static_cast<std::size_t>(*std::max_element(part, part + n_)) + 1;
    add_up(part);
    std::fill_n(out, n_parts_ * n_parts_, 0.0);
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t c = 0; c < n_parts_; ++c) {
        out[static_cast<std::size_t>(part[i]) * n_parts_ + c] += sum(i, c);
      }
    }
    for (std::size_t a = 0; a < n_parts_; ++a) {
      for (std::size_t b = 0; b < n_parts_; ++b) {
        out[a * n_parts_ + b] =
            a == b ? squared_norm_[a] : out[a * n_parts_ + b] / sizes_[a] / sizes_[b];
      }
    }
  }

 private:
  double value(std::size_t i, std::size_t j) const { return matrix_[i * n_ + j]; }
  double sum(std::size_t i, std::size_t c) const { return sums_[c * n_ + i]; }

  void choose_seeds(std::size_t n_parts, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto uniform = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    std::vector<double> distance(n_, std::numeric_limits<double>::infinity());
    seeds_.assign(1, static_cast<std::size_t>(uniform() * static_cast<double>(n_)));
    while (seeds_.size() < n_parts) {
      const std::size_t last = seeds_.back();
      double total = 0;
      for (std::size_t i = 0; i < n_; ++i) {
        const double squared = value(i, i) + value(last, last) - 2 * value(last, i);
        distance[i] = std::min(distance[i], std::max(squared, 0.0));
        if (distance[i] <= same_point * std::abs(value(i, i))) distance[i] = 0;
        total += distance[i];
      }
      if (!(total > 0)) return;
      double left = uniform() * total;
      std::size_t chosen = n_, i = 0;
      for (; i < n_; ++i) {
        if (distance[i] == 0) continue;
        chosen = i;
        left -= distance[i];
        if (left < 0) break;
      }
      seeds_.push_back(chosen);
    }
  }

  std::int32_t nearest_seed(std::size_t i) const {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < seeds_.size(); ++c) {
      const double distance = value(seeds_[c], seeds_[c]) - 2 * value(i, seeds_[c]);
      if (distance < least) least = distance, best = c;
    }
    return static_cast<std::int32_t>(best);
  }

  // Computes the kernel sums of each row with each child, and sizes and squared norms of children.
  void add_up(const std::int32_t* part) {
    sums_.assign(n_ * n_parts_, 0.0);
    sizes_.assign(n_parts_, 0.0);
    squared_norm_.assign(n_parts_, 0.0);
    std::vector<double> diagonal(n_parts_, 0.0);
    for (std::size_t j = 0; j < n_; ++j) {  // the matrix is symmetric: value(j, i) is value(i, j)
      double* to = sums_.data() + static_cast<std::size_t>(part[j]) * n_;
      for (std::size_t i = 0; i < n_; ++i) to[i] += value(j, i);
    }
    for (std::size_t i = 0; i < n_; ++i) {
      const auto own = static_cast<std::size_t>(part[i]);
      sizes_[own] += 1;
      squared_norm_[own] += sum(i, own);
      diagonal[own] += value(i, i);
    }
    for (std::size_t c = 0; c < n_parts_; ++c) {
      const double n = sizes_[c];
      if (n > 1) squared_norm_[c] = (squared_norm_[c] - diagonal[c]) / (n * (n - 1));
    }
  }

  std::int32_t nearest_mean(std::size_t i, std::int32_t own) const {
    std::size_t best = static_cast<std::size_t>(own);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < n_parts_; ++c) {
      const bool is_own = c == static_cast<std::size_t>(own) && sizes_[c] > 1;
      const double mean =
          is_own ? (sum(i, c) - value(i, i)) / (sizes_[c] - 1) : sum(i, c) / sizes_[c];
      const double distance = squared_norm_[c] - 2 * mean;
      if (distance < least) least = distance, best = c;
    }
    return static_cast<std::int32_t>(best);
  }

  void without_gaps(std::int32_t* part) {
    const auto largest = static_cast<std::size_t>(*std::max_element(part, part + n_));
    std::vector<std::int32_t> number(largest + 1, 0);
    for (std::size_t i = 0; i < n_; ++i) number[static_cast<std::size_t>(part[i])] = 1;
    std::int32_t n_used = 0;
    for (std::int32_t& one : number) one = one ? n_used++ : 0;
    for (std::size_t i = 0; i < n_; ++i) part[i] = number[static_cast<std::size_t>(part[i])];
    n_parts_ = static_cast<std::size_t>(n_used);
  }

  std::size_t n_ = 0, n_parts_ = 0;
  std::vector<float> matrix_;
  std::vector<std::size_t> seeds_;
  std::vector<double> sums_, sizes_, squared_norm_;
};

// Calls use(sample, node) for the nodes that have sampled rows.
template <class Use>
void for_samples(const KernelSetup& setup, const NodeSamples& nodes, int n_threads, Use use) {
  parallel_for(
      {n_threads, nodes.n_nodes}, [] { return Sample(); },
      [&](Sample& sample, std::size_t node) {
        if (nodes.size(node) == 0) return;
        sample.take(setup, nodes.of(node));
        use(sample, node);
      });
}

}  // namespace

void kernel_kmeans(const KernelSetup& setup, const NodeSamples& nodes, const std::int32_t* n_parts,
                   std::uint64_t seed, int n_threads, std::int32_t* part) {
  for_samples(setup, nodes, n_threads, [&](Sample& sample, std::size_t p) {
    sample.cluster(static_cast<std::size_t>(n_parts[p]), seed + p, part + nodes.start[p]);
  });
}

void mean_products(const KernelSetup& setup, const NodeSamples& nodes, const std::int32_t* part,
                   const std::int64_t* block_start, int n_threads, double* products) {
  for_samples(setup, nodes, n_threads, [&](Sample& sample, std::size_t p) {
    sample.products(part + nodes.start[p], products + block_start[p]);
  });
}

}  // namespace dcsvm
