// Compiles isa_impl.h for every instruction set and picks one at run time: see isa.h.
#include "simd/isa.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#define DCSVM_ISA baseline
#define DCSVM_ISA_NAME "baseline"
#define DCSVM_VECTOR_BYTES 16
#include "simd/isa_impl.h"

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define DCSVM_ISA avx2
#define DCSVM_ISA_NAME "avx2"
#define DCSVM_VECTOR_BYTES 32
#include "simd/isa_impl.h"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push( \
    __attribute__((target("avx2,fma,avx512f,avx512vl,avx512bw,avx512dq"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512vl,avx512bw,avx512dq")
#endif
#define DCSVM_ISA avx512
#define DCSVM_ISA_NAME "avx512"
#define DCSVM_VECTOR_BYTES 64
#include "simd/isa_impl.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif  // __x86_64__

namespace dcsvm {

std::string_view wanted_isa() {
  const char* name = std::getenv("DCSVM_ISA");
  return name ? name : "";
}

// Returns the widest set that this processor supports, or the one named by the environment variable
// DCSVM_ISA; the baseline if the named one is not supported.
static const Isa& choose() {
  const std::string_view name = wanted_isa();
  const auto wanted = [name](const Isa& candidate) {
    return name.empty() || name == candidate.name;
  };
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  if (has_avx512 && wanted(avx512::functions)) return avx512::functions;
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_avx2 && wanted(avx2::functions)) return avx2::functions;
#else
  static_cast<void>(wanted);
#endif
  return baseline::functions;
}

const Isa& isa() {
  static const Isa& chosen = choose();
  return chosen;
}

}  // namespace dcsvm
