// Kernel rows of the active variables, one lane for each: the row cache and gradient updates.
//
// If kernel rows are expensive, they are cached with all lanes. Cheap kernel rows are recomputed
// each time, without the pairs beyond the cutoff. Threads divide the lanes: one thread computes a
// sum, in a fixed order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/kernel_tile.h"
#include "kernel/row_panels.h"
#include "solver/row_cache.h"
#include "solver/solve.h"

namespace dcsvm {

class ActiveKernel {
 public:
  // float64 kernel rows are not cached. The active rows are packed once if that takes at most
  // `lane_bytes`; results do not depend on it. Kernel evaluations are counted in the report.
  ActiveKernel(const KernelSetup& setup, const Points& points, const SolveOptions& options,
               SolveReport& report)
      : setup_(setup),
        points_(points),
        options_(options),
        report_(report),
        row_cost_(tile_cost(setup, points)),
        has_cache_(options.precision == Precision::single_tiles && caching_pays(setup, points)) {}

  bool has_cache() const { return has_cache_; }
  double row_cost() const {
    return row_cost_;
  }  // nanoseconds per kernel value, by the fixed cost model

  // Sets the rows of the active variables and clears the cache.
  void load(const std::vector<std::int32_t>& rows);
  // Keeps the active variables at the given positions, ascending; `rows` are their rows.
  void compact(const std::vector<std::int32_t>& kept, const std::vector<std::int32_t>& rows);

  std::size_t n_lanes() const { return (rows_.size() + panel_rows - 1) / panel_rows * panel_rows; }

  // Whether add() leaves out the gradients of the members of the working set, which its solution
  // has: if rows are computed, and members are at least 1 / left_out_part of the active variables.
  bool leaves_out(std::size_t n_members) const;

  // Prepares to add the kernel rows of these active variables: looks up and computes the rows that
  // the cache has space for. `members`, ascending, are those of the working set. Returns false
  // after a stop.
  bool begin_add(const std::vector<std::int32_t>& changed, const std::vector<std::int32_t>& members,
                 const Stop* stop = nullptr);

  struct Added {
    bool is_complete = true;   // false: stopped
    bool has_skipped = false;  // pairs beyond the cutoff were skipped
  };

  // Adds K(active, changed) step, for the variables of begin_add(), to the n_lanes() entries of
  // `sums`, except for members that are left out. One thread carries out the task first. After a
  // stop, the sums are invalid; then, and after a stop of begin_add(), contents() and the report
  // are as before begin_add().
  Added add(const std::vector<double>& step, double* sums, const Stop* stop = nullptr,
            const Task& task = {});

  // Adds the same for a few active variables only, no members, with the same bits: sums[k] for
  // positions[k], ascending. These kernel values are not counted.
  void add_at(const std::vector<std::int32_t>& positions, const std::vector<double>& step,
              double* sums) const;

  // Save the keys of the cache, or restore them after load(). Restored rows are recomputed on
  // demand and not counted. Throws std::invalid_argument for invalid keys.
  const RowCache::Contents& contents();
  void set_contents(const RowCache::Contents& contents);
  // Recomputes the restored rows of these positions, if not done yet.
  void compute_absent(const std::vector<std::int32_t>& positions);

  // Returns the cached kernel row of an active variable, valid until begin_add(), or null.
  const float* cached(std::int32_t position) {
    return has_cache_ ? cache_.peek(position) : nullptr;
  }

  // Returns the kernel row of an active variable, n_lanes() entries; a new one is not cached.
  std::vector<float> kernel_values(std::int32_t position);

 private:
  // Cache slots of the changed kernel rows. A slot is null if the cache is full. Rows marked as
  // missing must be computed.
  struct StoredRows {
    std::vector<float*> rows;
    std::vector<std::uint8_t> is_missing;

    bool has_missing() const {
      return std::find(is_missing.begin(), is_missing.end(), 1) != is_missing.end();
    }
  };

  void set_rows(const std::vector<std::int32_t>& rows);
  void pack();
  void look_up();
  std::vector<std::int32_t> rows_of(const std::vector<std::int32_t>& positions) const;
  // A tile of the update: `n` changed variables from `first`, `lanes` lanes from `begin`.
  struct Part {
    std::size_t first, n, begin, lanes;
  };

  void collect_rows(const std::vector<std::int32_t>& changed, const StoredRows& stored,
                    const Part& part, TileScratch& scratch, float* tile, const float** rows) const;
  template <class Use>
  void for_parts(const std::vector<std::int32_t>& changed, const StoredRows& stored,
                 const Stop* stop, const Task& task, Use use) const;
  void compute(const std::vector<std::int32_t>& changed, const StoredRows& stored,
               const Stop* stop) const;

  const KernelSetup& setup_;
  const Points& points_;
  const SolveOptions& options_;
  SolveReport& report_;
  double row_cost_;
  bool has_cache_;
  std::vector<std::int32_t> rows_;
  RowPanels lanes_;  // of the rows; empty until a kernel row is needed
  BoundingBoxes boxes_;
  // of the active variables that are not left out; empty: none is
  std::vector<std::int32_t> others_, rows_of_others_;
  BoundingBoxes boxes_of_others_;
  RowCache cache_;
  RowCache::Contents contents_;  // before the last begin_add()
  bool was_stopped_ = false;     // whether the last begin_add() or add() was stopped
  // of the last begin_add()
  std::vector<std::int32_t> changed_;
  StoredRows stored_;
  std::int64_t n_computed_ = 0;  // rows that were not in the cache
};

}  // namespace dcsvm
