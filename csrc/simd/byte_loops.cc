// Compiles byte_loops_impl.h for dot products (AVX-VNNI and AVX-512 VNNI) and for sums of absolute
// differences (SSE2, AVX2, AVX-512BW and NEON), and chooses one of each, or AMX for dot products,
// at run time: see isa.h. The choice is limited to the instruction set that isa() selected, so
// DCSVM_ISA applies here, too.

#include <cstring>

#include "simd/amx_byte_dots.h"
#include "simd/isa.h"

namespace dcsvm {

static void nothing() {}

[[maybe_unused]] static ByteLoop loop_of(const char* name, decltype(ByteLoop::sum) sum, Sums sums) {
  return {name, byte_batch(sums), nothing, sum, nothing};
}

}  // namespace dcsvm

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

// PSADBW sums the absolute differences of eight bytes, here of one row, in a 64-bit integer.
#define DCSVM_BYTE_LOOP distances_sse2
#define DCSVM_VECTOR_BYTES 16
#define DCSVM_BYTE_QUERIES 4
#define DCSVM_BATCH std::int64_t
#define DCSVM_ADD(sum, a, b) ((sum) + (Vector)_mm_sad_epu8((__m128i)(a), (__m128i)(b)))
#include "simd/byte_loops_impl.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
#define DCSVM_BYTE_LOOP distances_avx2
#define DCSVM_VECTOR_BYTES 32
#define DCSVM_BYTE_QUERIES 4
#define DCSVM_BATCH std::int64_t
#define DCSVM_ADD(sum, a, b) ((sum) + (Vector)_mm256_sad_epu8((__m256i)(a), (__m256i)(b)))
#include "simd/byte_loops_impl.h"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw")
#endif
#define DCSVM_BYTE_LOOP distances_avx512
#define DCSVM_VECTOR_BYTES 64
#define DCSVM_BYTE_QUERIES 8
#define DCSVM_BATCH std::int64_t
#define DCSVM_ADD(sum, a, b) ((sum) + (Vector)_mm512_sad_epu8((__m512i)(a), (__m512i)(b)))
#include "simd/byte_loops_impl.h"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,avxvnni"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,avxvnni")
#endif
#define DCSVM_BYTE_LOOP dots_avx2
#define DCSVM_VECTOR_BYTES 32
#define DCSVM_BYTE_QUERIES 4
#define DCSVM_BATCH std::int32_t
#define DCSVM_ADD(sum, a, b) \
  (Vector) _mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(a), (__m256i)(b))
#include "simd/byte_loops_impl.h"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512vnni"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vnni")
#endif
#define DCSVM_BYTE_LOOP dots_avx512
#define DCSVM_VECTOR_BYTES 64
#define DCSVM_BYTE_QUERIES 8
#define DCSVM_BATCH std::int32_t
#define DCSVM_ADD(sum, a, b) \
  (Vector) _mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(a), (__m512i)(b))
#include "simd/byte_loops_impl.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace dcsvm {

static bool has_avx_vnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & (1u << 4));
}

static const ByteLoop* choose_dots() {
  static const ByteLoop narrow = loop_of("avx2", dots_avx2, Sums::products),
                        wide = loop_of("avx512", dots_avx512, Sums::products);
  const bool is_wide = std::strcmp(isa().name, "avx512") == 0;
  if (const ByteLoop* amx = is_wide ? amx_byte_dots() : nullptr) return amx;
  if (is_wide && __builtin_cpu_supports("avx512vnni")) return &wide;
  const bool is_narrow = std::strcmp(isa().name, "avx2") == 0;
  if ((is_wide || is_narrow) && has_avx_vnni()) return &narrow;
  return nullptr;
}

static const ByteLoop* choose_distances() {
  static const ByteLoop baseline = loop_of("sse2", distances_sse2, Sums::differences),
                        narrow = loop_of("avx2", distances_avx2, Sums::differences),
                        wide = loop_of("avx512", distances_avx512, Sums::differences);
  if (std::strcmp(isa().name, "avx512") == 0) return &wide;
  if (std::strcmp(isa().name, "avx2") == 0) return &narrow;
  return &baseline;
}

}  // namespace dcsvm

#elif defined(__aarch64__)

#include <arm_neon.h>

#define DCSVM_BYTE_LOOP distances_neon
#define DCSVM_VECTOR_BYTES 16
#define DCSVM_BYTE_QUERIES 4
#define DCSVM_BATCH std::int64_t
#define DCSVM_ADD(sum, a, b)              \
  (Vector) vpadalq_u32((uint64x2_t)(sum), \
                       vpaddlq_u16(vpaddlq_u8(vabdq_u8((uint8x16_t)(a), (uint8x16_t)(b)))))
#include "simd/byte_loops_impl.h"

namespace dcsvm {

static const ByteLoop* choose_dots() { return nullptr; }
static const ByteLoop* choose_distances() {
  static const ByteLoop neon = loop_of("neon", distances_neon, Sums::differences);
  return &neon;
}

}  // namespace dcsvm

#else

namespace dcsvm {

static const ByteLoop* choose_dots() { return nullptr; }
static const ByteLoop* choose_distances() { return nullptr; }

}  // namespace dcsvm

#endif

namespace dcsvm {

const ByteLoop* byte_loop(Argument argument) {
  static const ByteLoop *const dots = wanted_isa() == emulated_byte_dots().name
                                          ? &emulated_byte_dots()
                                          : choose_dots(),
                               *const distances = choose_distances();
  switch (sums_of(argument)) {
    case Sums::products:
      return dots;
    case Sums::differences:
      return distances;
    case Sums::others:
      break;
  }
  return nullptr;
}

}  // namespace dcsvm
