// The loop behind byte_dots() of isa.h, included once per register width by byte_dots.cc, which
// defines DCSVM_WIDTH_NAME (a namespace name), DCSVM_VECTOR_BYTES, DCSVM_BYTE_QUERIES (queries of a
// tile, as many as the registers hold) and DCSVM_DOT(sum, a, b). Therefore no include guard.

namespace dcsvm {
namespace DCSVM_WIDTH_NAME {

typedef std::int32_t IntVector __attribute__((vector_size(DCSVM_VECTOR_BYTES)));

static void byte_dots(const std::uint8_t* queries, std::size_t stride, std::size_t n_queries,
                      const std::int8_t* panel, std::size_t n_quads, std::int32_t* out) {
  constexpr std::size_t n_vectors = 2, width = DCSVM_VECTOR_BYTES / sizeof(std::int32_t);
  constexpr std::size_t tile = DCSVM_BYTE_QUERIES;
  static_assert(byte_query_group % tile == 0, "queries are padded to whole tiles");
  for (std::size_t first = 0; first < n_queries; first += tile) {
    const std::uint8_t* query = queries + first * stride;
    for (std::size_t lane = 0; lane < panel_rows; lane += n_vectors * width) {
      IntVector sum[tile][n_vectors] = {};
      const std::int8_t* lanes = panel + lane * batch_bytes;
      for (std::size_t k = 0; k < n_quads; ++k, lanes += panel_rows * batch_bytes) {
        IntVector b[n_vectors];
#pragma GCC unroll 8
        for (std::size_t v = 0; v < n_vectors; ++v)
          std::memcpy(&b[v], lanes + v * DCSVM_VECTOR_BYTES, sizeof b[v]);
#pragma GCC unroll 8
        for (std::size_t r = 0; r < tile; ++r) {
          std::int32_t four;
          std::memcpy(&four, query + r * stride + k * batch_bytes, sizeof four);
          const IntVector a = IntVector{} + four;
#pragma GCC unroll 8
          for (std::size_t v = 0; v < n_vectors; ++v) sum[r][v] = DCSVM_DOT(sum[r][v], a, b[v]);
        }
      }
      for (std::size_t r = 0; r < tile; ++r)
        std::memcpy(out + (first + r) * panel_rows + lane, sum[r], sizeof sum[r]);
    }
  }
}

}  // namespace DCSVM_WIDTH_NAME
}  // namespace dcsvm

#undef DCSVM_WIDTH_NAME
#undef DCSVM_VECTOR_BYTES
#undef DCSVM_BYTE_QUERIES
#undef DCSVM_DOT
