// Least-recently-used cache of kernel rows within a memory budget.
//
// Rows are keyed by position among the active variables and hold one float per lane. All memory is
// one slab, allocated at the first insertion; the system commits its pages on first use. Shrinking
// compacts the cached rows together with the active variables.
//
// Contents saves the keys without the values. In the cache that restores them, the rows are absent
// until the caller has recomputed them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "simd/aligned_vector.h"

namespace dcsvm {

class RowCache {
 public:
  struct Contents {
    std::vector<std::int32_t> keys;
    std::vector<std::int64_t> used;  // time of last use
    std::size_t n_floats = 0;        // size of the slab

    template <class Archive>
    void archive(Archive& archive) {
      archive(keys);
      archive(used);
      archive(n_floats);
    }
  };

  // Clears the cache for rows of `stride` lanes, keys below n_keys and at most `budget` bytes.
  void reset(std::size_t n_keys, std::size_t stride, std::size_t budget) {
    stride_ = stride;
    budget_ = budget;
    slot_of_.assign(n_keys, -1);
    key_of_.clear();
    used_.clear();
    absent_.clear();
    capacity_ = std::min(n_keys, budget_ / (stride_ * sizeof(float)));
    slab_.reset();
  }

  void copy_contents(Contents& contents) const {
    contents.keys = key_of_;
    contents.used = used_;
    contents.n_floats = slab_ ? slab_size_ : 0;
  }
  // Restores keys after reset(): the most recently used ones that fit. All restored rows are
  // absent.
  void set_contents(const Contents& contents) {
    if (contents.n_floats == 0) return;
    slab_size_ = std::min(contents.n_floats, budget_ / sizeof(float));
    capacity_ = std::min(slot_of_.size(), slab_size_ / stride_);
    if (capacity_ == 0) return;
    slab_ = Slab(AlignedAllocator<float>().allocate(slab_size_));
    std::vector<std::size_t> order(contents.keys.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&contents](std::size_t a, std::size_t b) {
      return contents.used[a] < contents.used[b];
    });
    for (std::size_t k = order.size() - std::min(order.size(), capacity_); k < order.size(); ++k) {
      const std::int32_t key = contents.keys[order[k]];
      slot_of_[static_cast<std::size_t>(key)] = static_cast<std::int32_t>(key_of_.size());
      key_of_.push_back(key);
      used_.push_back(++clock_);
      absent_.push_back(1);
    }
  }
  // Returns the keys whose rows are absent and marks them as present; the caller must compute them.
  std::vector<std::int32_t> claim_absent(const std::vector<std::int32_t>& keys) {
    std::vector<std::int32_t> found;
    if (absent_.empty()) return found;
    for (const std::int32_t key : keys) {
      const std::int32_t slot = slot_of_[static_cast<std::size_t>(key)];
      if (slot < 0 || !is_absent(static_cast<std::size_t>(slot))) continue;
      absent_[static_cast<std::size_t>(slot)] = 0;
      found.push_back(key);
    }
    return found;
  }
  float* row_of(std::int32_t key) {
    return row(static_cast<std::size_t>(slot_of_[static_cast<std::size_t>(key)]));
  }

  // Returns the row of a key, or null, without counting it as used.
  const float* peek(std::int32_t key) {
    return slot_of_[static_cast<std::size_t>(key)] < 0 ? nullptr : row_of(key);
  }
  float* find(std::int32_t key) {
    const std::int32_t slot = slot_of_[static_cast<std::size_t>(key)];
    if (slot < 0) return nullptr;
    used_[static_cast<std::size_t>(slot)] = ++clock_;
    return row(static_cast<std::size_t>(slot));
  }

  // Starts a batch: until insert(), rows returned by find() are not evicted.
  void begin_batch() { batch_start_ = clock_; }
  // Allocates rows for new keys: rows[i] is the slot of keys[i], or null if rows of this batch fill
  // the budget.
  void insert(const std::vector<std::int32_t>& keys, std::vector<float*>& rows) {
    rows.assign(keys.size(), nullptr);
    const std::size_t fresh = std::min(capacity_ - key_of_.size(), keys.size());
    const std::vector<std::int32_t> victims = oldest(keys.size() - fresh);
    const std::size_t n_old = key_of_.size();
    if (!slab_ && capacity_ > 0) {
      slab_size_ = capacity_ * stride_;
      slab_ = Slab(AlignedAllocator<float>().allocate(slab_size_));
    }
    for (std::size_t i = 0; i < keys.size() && i < fresh + victims.size(); ++i) {
      std::size_t slot = n_old + i;
      if (i < fresh) {
        key_of_.push_back(keys[i]);
        used_.push_back(0);
      } else {
        slot = static_cast<std::size_t>(victims[i - fresh]);
        slot_of_[static_cast<std::size_t>(key_of_[slot])] = -1;
        key_of_[slot] = keys[i];
        if (is_absent(slot)) absent_[slot] = 0;
      }
      used_[slot] = ++clock_;
      slot_of_[static_cast<std::size_t>(keys[i])] = static_cast<std::int32_t>(slot);
      rows[i] = row(slot);
    }
  }

  // Keeps the given lanes and keys, ascending, and drops other rows.
  void compact(const std::vector<std::int32_t>& kept, std::size_t new_stride) {
    std::vector<std::int32_t> new_key(slot_of_.size(), -1);
    for (std::size_t i = 0; i < kept.size(); ++i)
      new_key[static_cast<std::size_t>(kept[i])] = static_cast<std::int32_t>(i);
    std::size_t n = 0;
    for (std::size_t slot = 0; slot < key_of_.size(); ++slot) {
      const std::int32_t key = new_key[static_cast<std::size_t>(key_of_[slot])];
      if (key < 0) continue;
      const float* from = row(slot);
      float* to = slab_.get() + n * new_stride;  // never ahead of `from`
      if (!is_absent(slot)) {
        for (std::size_t i = 0; i < kept.size(); ++i) to[i] = from[kept[i]];
        std::fill(to + kept.size(), to + new_stride, 0.0f);
      }
      if (n < absent_.size()) absent_[n] = is_absent(slot);
      key_of_[n] = key;
      used_[n] = used_[slot];
      ++n;
    }
    key_of_.resize(n);
    used_.resize(n);
    absent_.resize(std::min(n, absent_.size()));
    slot_of_.assign(kept.size(), -1);
    for (std::size_t slot = 0; slot < n; ++slot)
      slot_of_[static_cast<std::size_t>(key_of_[slot])] = static_cast<std::int32_t>(slot);
    stride_ = new_stride;
    capacity_ = std::min(kept.size(), (slab_ ? slab_size_ : budget_ / sizeof(float)) / new_stride);
  }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  using Slab = std::unique_ptr<float[], Free>;

  bool is_absent(std::size_t slot) const { return slot < absent_.size() && absent_[slot]; }

  float* row(std::size_t slot) { return slab_.get() + slot * stride_; }

  // Returns up to n slots not used since begin_batch(), oldest first.
  std::vector<std::int32_t> oldest(std::size_t n) const {
    std::vector<std::int32_t> slots;
    if (n == 0) return slots;
    for (std::size_t slot = 0; slot < used_.size(); ++slot) {
      if (used_[slot] <= batch_start_) slots.push_back(static_cast<std::int32_t>(slot));
    }
    n = std::min(n, slots.size());
    std::partial_sort(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(n), slots.end(),
                      [this](std::int32_t a, std::int32_t b) {
                        return used_[static_cast<std::size_t>(a)] <
                               used_[static_cast<std::size_t>(b)];
                      });
    slots.resize(n);
    return slots;
  }

  std::size_t stride_ = 1, budget_ = 0, capacity_ = 0, slab_size_ = 0;
  std::int64_t clock_ = 0, batch_start_ = 0;
  Slab slab_;
  std::vector<std::int32_t> slot_of_;  // key -> slot
  std::vector<std::int32_t> key_of_;   // slot -> key
  std::vector<std::int64_t> used_;     // slot -> time of last use
  // slot -> whether its row is absent; slots beyond the end are present
  std::vector<std::uint8_t> absent_;
};

}  // namespace dcsvm
