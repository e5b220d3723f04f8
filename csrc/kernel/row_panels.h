// The lane side of tiles: rows in panels of panel_rows, feature by feature.
//
// Rows are packed once if memory allows. Otherwise, and always for sparse rows, each TileScratch
// packs blocks when it selects them (kernel_tile.h). Values do not depend on this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/kernel_setup.h"
#include "rows/points.h"
#include "simd/aligned_vector.h"
#include "simd/isa.h"

namespace dcsvm {

// Bytes of a row in packed lanes; 0 for forms that are never packed beforehand.
std::size_t packed_row_bytes(const KernelSetup& setup, const Points& points);

// Packed panels: dense features and codes, or bytes as byte_loop() takes them.
struct PackedLanes {
  AlignedVector<float> features;
  AlignedVector<std::uint8_t> codes;
  AlignedVector<std::uint8_t> bytes;

  // Packs the rows of whole panels.
  void pack(const KernelSetup& setup, const Points& points, const std::int32_t* rows,
            std::size_t n_panels, int n_threads);
};

class RowPanels {
 public:
  RowPanels() = default;
  // Unless `packed`, each TileScratch packs the lanes that it selects.
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
  std::vector<double> row_terms_;  // padded to whole panels
  PackedLanes packed_;
};

// Returns the number of panels that are evaluated together: several for dense rows and sparse rows
// of ones, so that queries are read once for all of them; one for other sparse rows. Sparse panels
// are packed when they are selected.
std::size_t panels_per_block(const KernelSetup& setup, const Points& points);

}  // namespace dcsvm
