// Kernel rows of the active variables, one lane for each: the row cache and gradient updates.
//
// If kernel rows are expensive, they are cached with all lanes. Cheap kernel rows are recomputed
// each time, without the pairs beyond the cutoff. Threads divide the lanes: one thread computes a
// sum, in a fixed order.
#pragma once

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

  std::size_t n_lanes() const { return lanes_.n_panels() * panel_rows; }

  struct Added {
    bool is_complete = true;   // false: stopped
    bool has_skipped = false;  // pairs beyond the cutoff were skipped
  };

  // Adds K(active, changed) step to the n_lanes() entries of `sums`; `changed` are positions of
  // active variables. After a stop, sums and cached rows are invalid, but contents() and the report
  // are unchanged.
  Added add(const std::vector<std::int32_t>& changed, const std::vector<double>& step, double* sums,
            const Stop* stop = nullptr);

  // Save the keys of the cache, or restore them after load(). Restored rows are recomputed on
  // demand and not counted. Throws std::invalid_argument for invalid keys.
  const RowCache::Contents& contents();
  void set_contents(const RowCache::Contents& contents);
  // Recomputes the restored rows of these positions, if not done yet.
  void compute_absent(const std::vector<std::int32_t>& positions);

  // Returns the cached kernel row of an active variable, valid until add(), or null.
  const float* cached(std::int32_t position) {
    return has_cache_ ? cache_.find(position) : nullptr;
  }

  // Returns the kernel row of an active variable, n_lanes() entries, without using the cache.
  std::vector<float> kernel_values(std::int32_t position);

 private:
  // Cache slots of the changed kernel rows. A slot is null if the cache is full. Rows marked as
  // missing must be computed.
  struct StoredRows {
    std::vector<float*> rows;
    std::vector<std::uint8_t> is_missing;
    std::size_t n_missing = 0;
  };

  void pack(const std::vector<std::int32_t>& rows);
  StoredRows look_up(const std::vector<std::int32_t>& changed);
  // A tile of the update: `n` changed variables from `first`, `lanes` lanes from `begin`.
  struct Part {
    std::size_t first, n, begin, lanes;
  };

  void collect_rows(const std::vector<std::int32_t>& changed, const StoredRows& stored,
                    const Part& part, TileScratch& scratch, float* tile, const float** rows) const;
  template <class Use>
  void for_parts(const std::vector<std::int32_t>& changed, const StoredRows& stored,
                 const Stop* stop, Use use) const;
  bool add_cached(const std::vector<std::int32_t>& changed, const std::vector<double>& step,
                  double* sums, const Stop* stop);
  bool add_computed(const std::vector<std::int32_t>& changed, const std::vector<double>& step,
                    double* sums, const Stop* stop);

  const KernelSetup& setup_;
  const Points& points_;
  const SolveOptions& options_;
  SolveReport& report_;
  double row_cost_;
  bool has_cache_;
  std::vector<std::int32_t> rows_;
  RowPanels lanes_;
  BoundingBoxes boxes_;
  RowCache cache_;
  RowCache::Contents contents_;  // before the last add()
  bool was_stopped_ = false;     // whether the last add() was stopped
};

}  // namespace dcsvm
