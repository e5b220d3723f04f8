// A loop of byte_loop() in isa.h. byte_loops.cc includes this file once per loop, so that it has no
// include guard, and defines:
//   DCSVM_BYTE_LOOP: the name of the function
//   DCSVM_VECTOR_BYTES: bytes of a vector
//   DCSVM_BYTE_QUERIES: queries per tile, limited by the registers
//   DCSVM_BATCH: the integer type of a batch of features and of a sum
//   DCSVM_ADD(sum, a, b): the sum plus the contribution of the batches a and b

namespace dcsvm {

static void DCSVM_BYTE_LOOP(const std::uint8_t* queries, std::size_t stride, std::size_t n_queries,
                            const std::uint8_t* panel, std::size_t n_batches, std::int32_t* out) {
  constexpr std::size_t batch = sizeof(DCSVM_BATCH), width = DCSVM_VECTOR_BYTES / batch;
  typedef DCSVM_BATCH Vector __attribute__((vector_size(DCSVM_VECTOR_BYTES)));
  typedef std::int32_t Stored __attribute__((vector_size(width * sizeof(std::int32_t))));
  constexpr std::size_t n_vectors = 2, tile = DCSVM_BYTE_QUERIES;
  static_assert(byte_query_group % tile == 0, "queries are padded to whole tiles");
  for (std::size_t first = 0; first < n_queries; first += tile) {
    const std::uint8_t* query = queries + first * stride;
    for (std::size_t lane = 0; lane < panel_rows; lane += n_vectors * width) {
      Vector sum[tile][n_vectors] = {};
      const std::uint8_t* lanes = panel + lane * batch;
      for (std::size_t k = 0; k < n_batches; ++k, lanes += panel_rows * batch) {
        Vector b[n_vectors];
#pragma GCC unroll 8
        for (std::size_t v = 0; v < n_vectors; ++v)
          std::memcpy(&b[v], lanes + v * DCSVM_VECTOR_BYTES, sizeof b[v]);
#pragma GCC unroll 8
        for (std::size_t r = 0; r < tile; ++r) {
          DCSVM_BATCH features;
          std::memcpy(&features, query + r * stride + k * batch, sizeof features);
          const Vector a = Vector{} + features;
#pragma GCC unroll 8
          for (std::size_t v = 0; v < n_vectors; ++v) sum[r][v] = DCSVM_ADD(sum[r][v], a, b[v]);
        }
      }
      for (std::size_t r = 0; r < tile; ++r) {
        for (std::size_t v = 0; v < n_vectors; ++v) {
          const Stored stored = __builtin_convertvector(sum[r][v], Stored);
          std::memcpy(out + (first + r) * panel_rows + lane + v * width, &stored, sizeof stored);
        }
      }
    }
  }
}

}  // namespace dcsvm

#undef DCSVM_BYTE_LOOP
#undef DCSVM_VECTOR_BYTES
#undef DCSVM_BYTE_QUERIES
#undef DCSVM_BATCH
#undef DCSVM_ADD
