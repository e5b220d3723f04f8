// Vectors aligned to cache lines. Large vectors use huge pages if available, since scattered short
// reads would otherwise miss the TLB.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "system/memory.h"

namespace dcsvm {

template <class T>
struct AlignedAllocator {
  using value_type = T;

  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}

  T* allocate(std::size_t n) {
    constexpr std::size_t cache_line = 64, huge_page = std::size_t{1} << 21;
    const bool is_large = n * sizeof(T) >= huge_page / 2;
    const std::size_t unit = is_large ? huge_page : cache_line;
    const std::size_t bytes = (n * sizeof(T) + unit - 1) / unit * unit;
    void* memory = allocate_aligned(unit, bytes);
    if (!memory) throw std::bad_alloc();
    if (is_large) prefer_huge_pages(memory, bytes);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { free_aligned(memory); }

  template <class U>
  bool operator==(const AlignedAllocator<U>&) const {
    return true;
  }
  template <class U>
  bool operator!=(const AlignedAllocator<U>&) const {
    return false;
  }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

// resize() leaves new entries uninitialized: the threads that write them also fault their pages in.
template <class T>
struct UninitializedAllocator : AlignedAllocator<T> {
  template <class U>
  struct rebind {
    using other = UninitializedAllocator<U>;
  };
  UninitializedAllocator() = default;
  template <class U>
  UninitializedAllocator(const UninitializedAllocator<U>&) {}

  void construct(T*) {}
  template <class... Value>
  void construct(T* entry, Value&&... value) {
    ::new (entry) T(std::forward<Value>(value)...);
  }
};

template <class T>
using UninitializedVector = std::vector<T, UninitializedAllocator<T>>;

}  // namespace dcsvm
