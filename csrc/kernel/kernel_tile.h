// Tiles of the kernel matrix: query rows against a block of packed panels.
//
// TileScratch gathers the inputs of the loops of isa.h for all forms. Values depend neither on the
// division into tiles nor on when lanes are packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/kernel_setup.h"
#include "kernel/row_panels.h"
#include "rows/points.h"
#include "simd/aligned_vector.h"

namespace dcsvm {

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
  struct Queries {
    const Points& points;
    const std::int32_t* rows;
    std::size_t size;
  };

  // Packs the selected panels of sparse rows: as codes, or as floats.
  void pack_sparse(bool as_codes);
  // Values of a packed panel; row 0 is that of absent columns.
  std::size_t packed_sparse_size() const { return (columns_.size() + 1) * panel_rows; }
  const double* lane_terms() const;
  void gather_terms(const Queries& q);
  template <class Real>
  void dense_rows(const Queries& q, Real* out, std::size_t stride);
  template <class Real>
  void sparse_rows(const Queries& q, Real* out, std::size_t stride);
  template <class Real>
  void byte_rows(const Queries& q, Real* out, std::size_t stride);
  template <class Real>
  void precomputed_rows(const Queries& q, Real* out, std::size_t stride) const;

  KernelSetup setup_;
  const RowPanels* lanes_ = nullptr;
  std::size_t first_panel_ = 0;
  std::size_t n_panels_ = 0;
  PackedLanes packed_block_;             // of lanes that are not packed beforehand
  const PackedLanes* packed_ = nullptr;  // that block, or all lanes
  std::size_t first_packed_ = 0;         // the row of `packed_` where the selected panels begin
  std::vector<const float*> query_rows_;
  std::vector<float> widened_queries_;  // of rows of bytes
  std::vector<double> query_terms_;
  std::vector<std::int32_t> slot_;     // column -> packed row; 0: absent
  std::vector<std::int32_t> columns_;  // columns with a slot
  std::vector<float> packed_sparse_;
  std::vector<std::uint8_t> packed_sparse_codes_;
  bool has_packed_codes_ = false;               // else packed_sparse_
  std::vector<SetCode> set_codes_;              // of the queries, one after the other
  std::vector<const SetCode*> query_codes_;     // where those of a query begin
  AlignedVector<std::uint8_t> gathered_bytes_;  // of the queries
  std::vector<std::int32_t> byte_query_terms_, byte_lane_terms_;
  AlignedVector<std::int32_t> byte_loop_sums_;
};

}  // namespace dcsvm
