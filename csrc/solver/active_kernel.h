// Kernel rows against the active variables of a solve: packed lanes, the cache of whole rows where
// they are expensive, and gradient updates made of them.
//
// Cached rows have all lanes. Rows that are cheap are computed each time, and what is out of reach
// is left out of them. Threads share the lanes, so each sum is made by one thread in one order.
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
  // There is no cache of float64 rows. Lanes are packed once where that takes at most lane_bytes of
  // the options; which way changes no bit. What is computed is counted in the report.
  ActiveKernel(const KernelSetup& setup, const Points& points, const SolveOptions& options,
               SolveReport& report)
      : setup_(setup),
        points_(points),
        options_(options),
        report_(report),
        row_cost_(tile_cost(setup, points)),
        has_cache_(options.precision == Precision::single_tiles && caching_pays(setup, points)) {}

  bool has_cache() const { return has_cache_; }
  double row_cost() const { return row_cost_; }  // nanoseconds a kernel value, by a fixed model

  // Makes these the rows of the active variables; rows cached before are gone.
  void load(const std::vector<std::int32_t>& rows);
  // Keeps the active variables at these positions, ascending, whose rows these are.
  void compact(const std::vector<std::int32_t>& kept, const std::vector<std::int32_t>& rows);

  std::size_t n_lanes() const { return lanes_.n_panels() * panel_rows; }

  struct Added {
    bool is_complete = true;   // and not stopped
    bool has_skipped = false;  // kernel values out of reach were left out
  };

  // sums += K(active, changed) step for `changed` positions; sums has n_lanes() entries. When
  // stopped, sums and cached rows are left useless; contents() and the report are as before.
  Added add(const std::vector<std::int32_t>& changed, const std::vector<double>& step, double* sums,
            const Stop* stop = nullptr);

  // Which rows are cached; and to go on with these after load(). They are computed again when they
  // are needed, which is not counted. Throws for contents that cannot be of the active variables.
  const RowCache::Contents& contents();
  void set_contents(const RowCache::Contents& contents);
  // Computes the cached rows of variables at these positions, where they are absent.
  void compute_absent(const std::vector<std::int32_t>& positions);

  // The cached kernel row of the variable at a position, valid until add(); or null.
  const float* cached(std::int32_t position) {
    return has_cache_ ? cache_.find(position) : nullptr;
  }

  // Kernel values of the variable at a position with all active ones, n_lanes() of them.
  std::vector<float> kernel_values(std::int32_t position);

 private:
  // Where the cache has the kernel rows of some variables, or is to have those that are missing;
  // null where it has no room.
  struct StoredRows {
    std::vector<float*> rows;
    std::vector<std::uint8_t> is_missing;
    std::size_t n_missing = 0;
  };

  void pack(const std::vector<std::int32_t>& rows);
  StoredRows look_up(const std::vector<std::int32_t>& changed);
  // A tile of the update: n changed variables from `first`, some lanes from `begin`.
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
  Boxes boxes_;
  RowCache cache_;
  RowCache::Contents contents_;  // before the last add()
  bool was_stopped_ = false;     // the last add() was stopped
};

}  // namespace dcsvm
