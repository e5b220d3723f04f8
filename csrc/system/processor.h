// Registers that the operating system lends.
#pragma once

#if defined(__x86_64__) && defined(__linux__)
#define DCSVM_LENDS_TILES

#include <sys/syscall.h>
#include <unistd.h>

namespace dcsvm {

// Requests the tile registers of AMX for all threads of the process; returns whether they are lent.
inline bool borrow_tiles() {
  constexpr long request_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace dcsvm

#endif
