#include "solver/held_out_job.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/kernel_matrix.h"
#include "kernel/kernel_product.h"
#include "solver/fold_path.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Rows of a cluster whose kernel matrix stays in memory; larger clusters use shrinking and the row
// cache.
constexpr std::size_t max_in_memory = 2048;

class Cluster {
 public:
  Cluster(const KernelSetup& setup, const Points& points, const BoxQP& qp, const HeldOutJob& job,
          const HeldOutOptions& options, std::size_t cluster)
      : setup_(setup), points_(points), qp_(qp), job_(job), options_(options), cluster_(cluster) {
    const std::int64_t* start = job_.start + cluster_ * job_.n_folds;
    for (std::int64_t e = start[0]; e < start[job_.n_folds]; ++e) rows_.push_back(job_.rows[e]);
    const std::int64_t* part = job_.parts.start + cluster_ * job_.n_columns;
    for (std::int64_t m = part[0]; m < part[job_.n_columns]; ++m) {
      const auto v = static_cast<std::size_t>(job_.parts.members[m]);
      rows_.push_back(static_cast<std::int32_t>(qp_.row_of(v)));
    }
    std::vector<std::int32_t> order = rows_;
    std::sort(rows_.begin(), rows_.end());
    rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
    // positions follow the folds, so that the rows of a fold are contiguous
    position_.assign(rows_.size(), -1);
    in_order_.reserve(rows_.size());
    for (const std::int32_t row : order) {
      std::int32_t& position = position_[index_of(row)];
      if (position >= 0) continue;
      position = static_cast<std::int32_t>(in_order_.size());
      in_order_.push_back(row);
    }
  }

  void solve(std::vector<HeldOutReport>& reports, double* values) {
    const std::size_t n = in_order_.size();
    if (n == 0) return;
    const std::size_t bytes = 2 * n * n * sizeof(float);
    const bool fits = bytes * static_cast<std::size_t>(options_.n_threads) <= options_.memory_bytes;
    if (n <= max_in_memory && fits) compute_kernel();
    const std::size_t n_steps = job_.n_columns * job_.n_folds;
    parallel_for(
        {options_.n_threads, n_steps},
        [&] { return std::vector<HeldOutReport>(options_.scales.size()); },
        [&](std::vector<HeldOutReport>& own, std::size_t step) {
          if (is_requested(options_.stop)) return;
          solve_path(step / job_.n_folds, step % job_.n_folds, own, values);
        },
        [&](const std::vector<HeldOutReport>& own) { add(own, reports); });
  }

  static void add(const std::vector<HeldOutReport>& from, std::vector<HeldOutReport>& to) {
    for (std::size_t s = 0; s < to.size(); ++s) {
      to[s].missed += from[s].missed;
      to[s].support += from[s].support;
      to[s].iterations += from[s].iterations;
    }
  }

 private:
  std::size_t index_of(std::int32_t row) const {
    return static_cast<std::size_t>(std::lower_bound(rows_.begin(), rows_.end(), row) -
                                    rows_.begin());
  }
  std::int32_t position_of(std::int32_t row) const { return position_[index_of(row)]; }

  void compute_kernel() {
    const std::size_t n = in_order_.size();
    const RowList all{&points_, in_order_.data(), n};
    kernel_.resize(n * n);
    symmetric_matrix(setup_, all, options_.n_threads, kernel_.data());
  }

  // Returns the problem of a column restricted to the training rows of a fold, sorted by position.
  FoldProblem problem_of(std::size_t column, std::size_t fold) const {
    const double* train_weight = job_.train_weight + fold * points_.n_samples;
    const std::size_t part = cluster_ * job_.n_columns + column;
    std::vector<std::int32_t> variables;
    for (std::int64_t m = job_.parts.start[part]; m < job_.parts.start[part + 1]; ++m) {
      const std::int32_t v = job_.parts.members[m];
      if (train_weight[qp_.row_of(static_cast<std::size_t>(v))] > 0) variables.push_back(v);
    }
    FoldProblem problem(qp_, variables, train_weight);
    if (!kernel_.empty()) {
      std::vector<std::int32_t> positions;
      for (const std::int32_t row : problem.rows) positions.push_back(position_of(row));
      problem.sort(positions);
    }
    return problem;
  }

  void solve_path(std::size_t column, std::size_t fold, std::vector<HeldOutReport>& reports,
                  double* values) const {
    const std::size_t n_entries =
        static_cast<std::size_t>(job_.start[job_.n_clusters * job_.n_folds]);
    const std::size_t k = cluster_ * job_.n_folds + fold;
    const auto first = static_cast<std::size_t>(job_.start[k]);
    const auto last = static_cast<std::size_t>(job_.start[k + 1]);
    if (first == last) return;
    const auto write = [&](std::size_t scale, const std::vector<double>& found) {
      double* out = values + scale * n_entries * job_.n_columns + column;
      for (std::size_t e = first; e < last; ++e) out[e * job_.n_columns] = found[e - first];
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
    const RowList targets{&points_, job_.rows + first, last - first};
    bool is_final = false;
    for (std::size_t s = 0; s < options_.scales.size(); ++s) {
      if (!is_final) {
        if (is_requested(options_.stop)) return;
        const FoldPath::Step step = path.solve(options_.scales[s]);
        reports[s].missed += !step.converged;
        reports[s].iterations += step.iterations;
        is_final = step.converged && path.has_no_bounded();
        values_of(path, targets, found);
      }
      reports[s].support += path.n_support();
      write(s, found);
    }
  }

  void values_of(const FoldPath& path, const RowList& targets, std::vector<double>& found) const {
    std::vector<std::int32_t> positions;
    if (!kernel_.empty()) {
      for (std::size_t e = 0; e < targets.size; ++e)
        positions.push_back(position_of(targets.index[e]));
    }
    path.sums(targets, positions, found.data());
    const double offset = path.offset(options_.decides, options_.is_classification);
    for (double& value : found) value -= offset;
  }

  const KernelSetup& setup_;
  const Points& points_;
  const BoxQP& qp_;
  const HeldOutJob& job_;
  const HeldOutOptions& options_;
  std::size_t cluster_;
  std::vector<std::int32_t> rows_, position_;  // ascending rows, and the position of each
  std::vector<std::int32_t> in_order_;         // row at each position
  std::vector<float> kernel_;                  // by positions; empty: not in memory
};

}  // namespace

std::vector<HeldOutReport> held_out_values(const KernelSetup& setup, const Points& points,
                                           const BoxQP& qp, const HeldOutJob& job,
                                           const HeldOutOptions& options, double* values) {
  std::vector<HeldOutReport> reports(options.scales.size());
  parallel_for(
      {options.n_threads, job.n_clusters},
      [&] { return std::vector<HeldOutReport>(options.scales.size()); },
      [&](std::vector<HeldOutReport>& own, std::size_t c) {
        if (is_requested(options.stop)) return;
        Cluster(setup, points, qp, job, options, c).solve(own, values);
      },
      [&](const std::vector<HeldOutReport>& own) { Cluster::add(own, reports); });
  if (is_requested(options.stop)) reports.clear();
  return reports;
}

}  // namespace dcsvm
