#include "solver/held_out.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/kernel_matrix.h"
#include "kernel/kernel_product.h"
#include "solver/fold_path.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Rows of a cluster whose kernel matrix is kept: more are solved with shrinking and cached rows.
constexpr std::size_t most_in_memory = 2048;

class Cluster {
 public:
  Cluster(const KernelSetup& setup, const Points& points, const BoxQp& qp, const HeldOut& held,
          const HeldOutOptions& options, std::size_t number)
      : setup_(setup), points_(points), qp_(qp), held_(held), options_(options), number_(number) {
    const std::int64_t* start = held_.start + number_ * held_.n_folds;
    for (std::int64_t e = start[0]; e < start[held_.n_folds]; ++e) rows_.push_back(held_.rows[e]);
    const std::int64_t* part = held_.parts.start + number_ * held_.n_columns;
    for (std::int64_t m = part[0]; m < part[held_.n_columns]; ++m) {
      const auto v = static_cast<std::size_t>(held_.parts.members[m]);
      rows_.push_back(static_cast<std::int32_t>(qp_.row_of(v)));
    }
    std::vector<std::int32_t> order = rows_;
    std::sort(rows_.begin(), rows_.end());
    rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
    // places follow the folds, so that those of a fold lie side by side
    place_.assign(rows_.size(), -1);
    in_order_.reserve(rows_.size());
    for (const std::int32_t row : order) {
      std::int32_t& place = place_[index_of(row)];
      if (place >= 0) continue;
      place = static_cast<std::int32_t>(in_order_.size());
      in_order_.push_back(row);
    }
  }

  void solve(std::vector<HeldOutReport>& reports, double* values) {
    const std::size_t n = in_order_.size();
    if (n == 0) return;
    const std::size_t bytes = 2 * n * n * sizeof(float);
    const bool fits = bytes * static_cast<std::size_t>(options_.n_threads) <= options_.memory_bytes;
    if (n <= most_in_memory && fits) compute_kernel();
    const std::size_t n_steps = held_.n_columns * held_.n_folds;
    parallel_for(
        {options_.n_threads, n_steps},
        [&] { return std::vector<HeldOutReport>(options_.scales.size()); },
        [&](std::vector<HeldOutReport>& own, std::size_t step) {
          if (is_requested(options_.stop)) return;
          follow(step / held_.n_folds, step % held_.n_folds, own, values);
        },
        [&](const std::vector<HeldOutReport>& own) { add(own, reports); });
  }

  static void add(const std::vector<HeldOutReport>& some, std::vector<HeldOutReport>& to) {
    for (std::size_t s = 0; s < to.size(); ++s) {
      to[s].missed += some[s].missed;
      to[s].support += some[s].support;
      to[s].iterations += some[s].iterations;
    }
  }

 private:
  std::size_t index_of(std::int32_t row) const {
    return static_cast<std::size_t>(std::lower_bound(rows_.begin(), rows_.end(), row) -
                                    rows_.begin());
  }
  std::int32_t place_of(std::int32_t row) const { return place_[index_of(row)]; }

  void compute_kernel() {
    const std::size_t n = in_order_.size();
    const RowList all{&points_, in_order_.data(), n};
    kernel_.resize(n * n);
    symmetric_matrix(setup_, all, options_.n_threads, kernel_.data());
  }

  // The problem of a column without what a fold holds out, by places.
  FoldProblem problem_of(std::size_t column, std::size_t fold) const {
    const double* left = held_.left + fold * points_.n_samples;
    const std::size_t part = number_ * held_.n_columns + column;
    std::vector<std::int32_t> variables;
    for (std::int64_t m = held_.parts.start[part]; m < held_.parts.start[part + 1]; ++m) {
      const std::int32_t v = held_.parts.members[m];
      if (left[qp_.row_of(static_cast<std::size_t>(v))] > 0) variables.push_back(v);
    }
    FoldProblem problem(qp_, variables, left);
    if (!kernel_.empty()) {
      std::vector<std::int32_t> places;
      for (const std::int32_t row : problem.rows) places.push_back(place_of(row));
      problem.sort(places);
    }
    return problem;
  }

  void follow(std::size_t column, std::size_t fold, std::vector<HeldOutReport>& reports,
              double* values) const {
    const std::size_t n_entries =
        static_cast<std::size_t>(held_.start[held_.n_clusters * held_.n_folds]);
    const std::size_t k = number_ * held_.n_folds + fold;
    const auto first = static_cast<std::size_t>(held_.start[k]);
    const auto last = static_cast<std::size_t>(held_.start[k + 1]);
    if (first == last) return;
    const auto write = [&](std::size_t scale, const std::vector<double>& found) {
      double* out = values + scale * n_entries * held_.n_columns + column;
      for (std::size_t e = first; e < last; ++e) out[e * held_.n_columns] = found[e - first];
    };
    FoldProblem problem = problem_of(column, fold);
    std::vector<double> found(last - first, std::numeric_limits<double>::quiet_NaN());
    const bool is_one_class = options_.is_classification && problem.is_one_sided();
    if (problem.size() == 0 || (is_one_class && !options_.decides)) {
      for (std::size_t s = 0; s < options_.scales.size(); ++s) write(s, found);
      return;
    }
    FoldPath path(problem, {setup_, points_, kernel_.empty() ? nullptr : kernel_.data(),
                            in_order_.size(), options_.tolerance, options_.stop,
                            options_.memory_bytes / static_cast<std::size_t>(options_.n_threads)});
    const RowList targets{&points_, held_.rows + first, last - first};
    bool is_final = false;
    for (std::size_t s = 0; s < options_.scales.size(); ++s) {
      if (!is_final) {
        if (is_requested(options_.stop)) return;
        const FoldPath::Step step = path.solve(options_.scales[s]);
        reports[s].missed += !step.converged;
        reports[s].iterations += step.iterations;
        is_final = step.converged && path.is_inside();
        values_of(path, targets, found);
      }
      reports[s].support += path.n_support();
      write(s, found);
    }
  }

  void values_of(const FoldPath& path, const RowList& targets, std::vector<double>& found) const {
    std::vector<std::int32_t> places;
    if (!kernel_.empty()) {
      for (std::size_t e = 0; e < targets.size; ++e) places.push_back(place_of(targets.index[e]));
    }
    path.sums(targets, places, found.data());
    const double offset = path.offset(options_.decides, options_.is_classification);
    for (double& value : found) value -= offset;
  }

  const KernelSetup& setup_;
  const Points& points_;
  const BoxQp& qp_;
  const HeldOut& held_;
  const HeldOutOptions& options_;
  std::size_t number_;
  std::vector<std::int32_t> rows_, place_;  // ascending, and the place of each
  std::vector<std::int32_t> in_order_;      // the row at each place
  std::vector<float> kernel_;               // of all places; empty: not kept
};

}  // namespace

std::vector<HeldOutReport> held_out_values(const KernelSetup& setup, const Points& points,
                                           const BoxQp& qp, const HeldOut& held,
                                           const HeldOutOptions& options, double* values) {
  std::vector<HeldOutReport> reports(options.scales.size());
  parallel_for(
      {options.n_threads, held.n_clusters},
      [&] { return std::vector<HeldOutReport>(options.scales.size()); },
      [&](std::vector<HeldOutReport>& own, std::size_t c) {
        if (is_requested(options.stop)) return;
        Cluster(setup, points, qp, held, options, c).solve(own, values);
      },
      [&](const std::vector<HeldOutReport>& own) { Cluster::add(own, reports); });
  if (is_requested(options.stop)) reports.clear();
  return reports;
}

}  // namespace dcsvm
