// The loop over tiles. amx_byte_dots.cc includes this file twice (hence no include guard), for the
// processor's registers and for emulated ones, and defines:
//   DCSVM_AMX: the name of a namespace
//   DCSVM_TILE_ZERO(tile), DCSVM_TILE_LOAD(tile, from, stride), DCSVM_TILE_STREAM(the same, past
//   the L1 cache), DCSVM_TILE_STORE(tile, to, stride)
//   DCSVM_TILE_ADD(sums, queries, lanes): adds to tile `sums` the dot products of the rows of tile
//   `queries` with the lanes of tile `lanes`
// Names of registers are literals, as GCC's intrinsics require.
//
// There are eight registers of 16 x 64 bytes. Registers 0 and 1 hold the sums of 16 queries with
// 2 x 16 lanes, 2 and 3 the sums of the next 16 queries; 4 and 7 hold 64 features of the queries,
// 5 and 6 the same features of the lanes. Queries stay in the L1 cache from one panel to the next;
// panels come from the L2 cache.

namespace dcsvm {
namespace DCSVM_AMX {

// Sums the products of two groups of queries, or one if `is_single`, with the lanes of a panel.
template <bool is_single>
static void sum_tiles(const std::uint8_t* queries, std::size_t stride, const std::uint8_t* lanes,
                      std::size_t n_batches, std::int32_t* out) {
  DCSVM_TILE_ZERO(0);
  DCSVM_TILE_ZERO(1);
  if (!is_single) {
    DCSVM_TILE_ZERO(2);
    DCSVM_TILE_ZERO(3);
  }
  for (std::size_t k = 0; k < n_batches; k += tile_batches) {
    DCSVM_TILE_LOAD(4, queries, stride);
    DCSVM_TILE_STREAM(5, lanes, batch_stride);
    DCSVM_TILE_ADD(0, 4, 5);
    DCSVM_TILE_STREAM(6, lanes + tile_bytes, batch_stride);
    DCSVM_TILE_ADD(1, 4, 6);
    if (!is_single) {
      DCSVM_TILE_LOAD(7, queries + tile_rows * stride, stride);
      DCSVM_TILE_ADD(2, 7, 5);
      DCSVM_TILE_ADD(3, 7, 6);
    }
    queries += tile_bytes;
    lanes += tile_batches * batch_stride;
  }
  constexpr std::size_t out_stride = panel_rows * sizeof *out;
  DCSVM_TILE_STORE(0, out, out_stride);
  DCSVM_TILE_STORE(1, out + tile_rows, out_stride);
  if (is_single) return;
  out += tile_rows * panel_rows;
  DCSVM_TILE_STORE(2, out, out_stride);
  DCSVM_TILE_STORE(3, out + tile_rows, out_stride);
}

static void sum(const std::uint8_t* queries, std::size_t stride, std::size_t n_queries,
                const std::uint8_t* panel, std::size_t n_batches, std::int32_t* out) {
  if (n_queries > tile_rows) {
    sum_tiles<false>(queries, stride, panel, n_batches, out);
  } else {
    sum_tiles<true>(queries, stride, panel, n_batches, out);
  }
}

}  // namespace DCSVM_AMX
}  // namespace dcsvm

#undef DCSVM_AMX
#undef DCSVM_TILE_ZERO
#undef DCSVM_TILE_LOAD
#undef DCSVM_TILE_STREAM
#undef DCSVM_TILE_STORE
#undef DCSVM_TILE_ADD
