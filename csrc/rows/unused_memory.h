// Memory that was freed and that the C library keeps: glibc has arrays of up to 32 MB in its heap,
// where what lies above holds what lies below.
#pragma once

#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace dcsvm {

// Gives it back to the system.
inline void give_back_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace dcsvm
