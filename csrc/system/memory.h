// Memory of the operating system. Only this folder names what some systems lack: where one lacks a
// function, it does nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace dcsvm {

// Allocates `bytes`, a multiple of `unit`, at an address that is one; null if there are too few.
inline void* allocate_aligned(std::size_t unit, std::size_t bytes) {
  return std::aligned_alloc(unit, bytes);
}
inline void free_aligned(void* memory) { std::free(memory); }

// Requests huge pages for memory.
inline void prefer_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__)
  madvise(memory, bytes, MADV_HUGEPAGE);
#endif
}

// Returns freed memory that the C library retains to the system. glibc keeps arrays of up to 32 MB
// in its heap, where a block in use prevents the release of free memory below it.
inline void trim_heap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// Returns the bytes of a page, or 0 if read_soon() does nothing.
inline std::size_t page_bytes() {
#if defined(__linux__)
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
#else
  return 0;
#endif
}

// Makes the system read bytes of a mapped file, from the beginning of a page.
inline void read_soon([[maybe_unused]] std::uintptr_t begin, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__)
  madvise(reinterpret_cast<void*>(begin), bytes, MADV_WILLNEED);
#endif
}

}  // namespace dcsvm
