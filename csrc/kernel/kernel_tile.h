// Tiles of the kernel matrix: a block of rows in SIMD lanes against a list of query rows.
//
// RowPanels holds the lane side (packed once where there is memory for it, else block by block as
// blocks are selected, as sparse rows always are). TileScratch evaluates queries against a block of
// panels. Values do not depend on how a product is cut into tiles, nor on when lanes are packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/points.h"
#include "simd/isa.h"
#include "simd/kernel.h"

namespace dcsvm {

// What a kernel value is made of in one run: the kernel and one form for all its tiles.
struct KernelSetup {
  Kernel kernel;
  Form form = Form::product;
  bool exact_products = false;  // float32 sums of products over a chain are exact
};

// Half of what two rows' terms add to a kernel value's argument, in float64: 1/2 |x|^2, codes
// included; for the difference form the codes alone.
void compute_half_norms(const Points& points, Form form, int n_threads, double* half_norms);

// The setup for a kernel on points: precomputed for that kernel, sparse for CSR, bytes where the
// points have them; for dense RBF the product form only where it is both cheaper and accurate:
// |x|^2 gamma 2^-24 must stay below `product_error`, or all features are integers and float32 holds
// their products' sums over a chain exactly.
KernelSetup choose_setup(const Points& points, const Kernel& kernel);

// Nanoseconds of one kernel value on one core, by a fixed model (never measured at run time).
double tile_cost(const KernelSetup& setup, const Points& points);
// The same for reading a cached value while a gradient is updated.
constexpr double cached_entry_cost = 0.3;
// Whether kernel rows are worth keeping: a value costs more than memory that is touched for the
// first time.
bool caching_pays(const KernelSetup& setup, const Points& points);
// Whether computing a kernel row costs many times reading it.
bool has_expensive_rows(const KernelSetup& setup, const Points& points);

// Bytes of a row as lanes hold it, packed; 0 for forms that are never packed beforehand.
std::size_t packed_row_bytes(const KernelSetup& setup, const Points& points);

// What the lanes of some panels hold: dense features and codes, or bytes less 128.
struct PackedLanes {
  std::vector<float> values;
  std::vector<std::uint8_t> codes;
  std::vector<std::int8_t> bytes;

  // Packs these rows, whole panels of them.
  void pack(const KernelSetup& setup, const Points& points, const std::int32_t* rows,
            std::size_t n_panels, int n_threads);
};

class RowPanels {
 public:
  RowPanels() = default;
  // Lanes that are not packed here are packed where a TileScratch selects them.
  RowPanels(const KernelSetup& setup, const RowList& rows, int n_threads = 1, bool packed = true);

  std::size_t size() const { return size_; }
  std::size_t n_panels() const { return (size_ + panel_rows - 1) / panel_rows; }
  const Points& points() const { return *points_; }

 private:
  friend class TileScratch;
  const Points* points_ = nullptr;
  std::size_t size_ = 0;
  bool is_packed_ = false;
  std::vector<std::int32_t> rows_;
  std::vector<double> half_norms_;  // padded to whole panels
  PackedLanes packed_;
};

// Panels evaluated together: several for dense rows, so that the queries are read once for all of
// them; one for sparse rows, whose panel is packed when it is selected.
constexpr std::size_t panels_per_block(const KernelSetup& setup) {
  return setup.form == Form::sparse ? 1 : 4;
}

// Per-thread scratch for evaluating tiles of one block of panels.
class TileScratch {
 public:
  // Chooses the block of panels [first_panel, first_panel + n_panels) of `lanes`.
  void select(const KernelSetup& setup, const RowPanels& lanes, std::size_t first_panel,
              std::size_t n_panels);

  // Kernel values of queries against the selected lanes: out[query * stride + lane]. Lanes beyond
  // the number of rows repeat the last row.
  template <class Real>
  void rows(const Points& query_points, const std::int32_t* queries, std::size_t n_queries,
            Real* out, std::size_t stride);

 private:
  void pack_sparse(std::size_t panel);
  template <class Real>
  void precomputed_rows(const Points& query_points, const std::int32_t* queries,
                        std::size_t n_queries, Real* out, std::size_t stride) const;
  template <class Real>
  void byte_rows(const Points& query_points, const std::int32_t* queries, std::size_t n_queries,
                 Real* out, std::size_t stride);

  KernelSetup setup_;
  const RowPanels* lanes_ = nullptr;
  std::size_t first_panel_ = 0;
  std::size_t n_panels_ = 0;
  PackedLanes packed_block_;             // of lanes that are not packed
  const PackedLanes* packed_ = nullptr;  // that block, or all lanes,
  std::size_t first_packed_ = 0;         // where the selected panels begin in it
  std::vector<const float*> query_rows_;
  std::vector<double> query_half_norms_;
  std::vector<std::int32_t> slot_;     // column -> packed row, 0 = none
  std::vector<std::int32_t> columns_;  // columns with a slot
  std::vector<float> packed_sparse_;
  std::vector<const std::uint8_t*> query_bytes_;
  std::vector<std::int32_t> query_terms_, dots_;
};

}  // namespace dcsvm
