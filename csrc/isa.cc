// Run-time dispatch: see isa.h.
#include "isa.h"

#include <cstring>

#define DCSVM_ISA baseline
#define DCSVM_ISA_NAME "baseline"
#define DCSVM_VECTOR_BYTES 16
#include "isa_impl.h"
#undef DCSVM_ISA
#undef DCSVM_ISA_NAME
#undef DCSVM_VECTOR_BYTES

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
#include "isa_impl.h"
#undef DCSVM_ISA
#undef DCSVM_ISA_NAME
#undef DCSVM_VECTOR_BYTES
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
#include "isa_impl.h"
#undef DCSVM_ISA
#undef DCSVM_ISA_NAME
#undef DCSVM_VECTOR_BYTES
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif  // __x86_64__

namespace dcsvm {

static const Isa& choose() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    return avx512::functions;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::functions;
#endif
  return baseline::functions;
}

const Isa& isa() {
  static const Isa& chosen = choose();
  return chosen;
}

}  // namespace dcsvm
