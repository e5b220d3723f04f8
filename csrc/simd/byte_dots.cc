// Compiles byte_dots_impl.h for AVX-VNNI and AVX-512 VNNI and picks one of these at run time: see
// isa.h. The instruction set that isa() runs bounds the choice, so DCSVM_ISA holds here too.

#include <cstring>

#include "simd/isa.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,avxvnni"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,avxvnni")
#endif
#define DCSVM_WIDTH_NAME narrow
#define DCSVM_VECTOR_BYTES 32
#define DCSVM_BYTE_QUERIES 4
#define DCSVM_DOT(sum, a, b) \
  (IntVector) _mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(a), (__m256i)(b))
#include "simd/byte_dots_impl.h"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512vnni"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vnni")
#endif
#define DCSVM_WIDTH_NAME wide
#define DCSVM_VECTOR_BYTES 64
#define DCSVM_BYTE_QUERIES 8
#define DCSVM_DOT(sum, a, b) \
  (IntVector) _mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(a), (__m512i)(b))
#include "simd/byte_dots_impl.h"
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

static ByteDots choose() {
  const bool is_wide = std::strcmp(isa().name, "avx512") == 0;
  if (is_wide && __builtin_cpu_supports("avx512vnni")) return wide::byte_dots;
  const bool is_narrow = std::strcmp(isa().name, "avx2") == 0;
  if ((is_wide || is_narrow) && has_avx_vnni()) return narrow::byte_dots;
  return nullptr;
}

}  // namespace dcsvm

#else

namespace dcsvm {

static ByteDots choose() { return nullptr; }

}  // namespace dcsvm

#endif  // __x86_64__

namespace dcsvm {

ByteDots byte_dots() {
  static const ByteDots chosen = choose();
  return chosen;
}

}  // namespace dcsvm
