// Serialized solver state; another process can resume from it.
//
// Each stateful class lists its members once, in archive(Archive&), which calls the archive for
// each; SnapshotWriter and SnapshotReader are such archives. Bytes have the machine's
// representation and may be damaged: readers validate anything used as an index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace dcsvm {

using Snapshot = std::vector<std::uint8_t>;

// Throws std::invalid_argument for damaged bytes.
inline void check_snapshot(bool is_good) {
  if (!is_good) throw std::invalid_argument("the state of a solver is damaged");
}

class SnapshotWriter {
 public:
  explicit SnapshotWriter(Snapshot& bytes) : bytes_(bytes) { bytes_.clear(); }

  template <class Value>
  void operator()(const Value& value) {
    add(&value, 1);
  }
  template <class Value>
  void operator()(const std::vector<Value>& values) {
    (*this)(values.size());
    add(values.data(), values.size());
  }

 private:
  template <class Value>
  void add(const Value* values, std::size_t n) {
    static_assert(std::is_trivially_copyable<Value>::value, "only its bytes are written");
    const auto* from = reinterpret_cast<const std::uint8_t*>(values);
    bytes_.insert(bytes_.end(), from, from + n * sizeof(Value));
  }

  Snapshot& bytes_;
};

class SnapshotReader {
 public:
  SnapshotReader(const std::uint8_t* bytes, std::size_t size) : at_(bytes), left_(size) {}
  explicit SnapshotReader(const Snapshot& bytes) : SnapshotReader(bytes.data(), bytes.size()) {}

  template <class Value>
  void operator()(Value& value) {
    take(&value, 1);
  }
  void operator()(bool& value) {
    std::uint8_t byte = 0;
    take(&byte, 1);
    check_snapshot(byte <= 1);
    value = byte == 1;
  }
  template <class Value>
  void operator()(std::vector<Value>& values) {
    std::size_t n = 0;
    (*this)(n);
    check_snapshot(n <= left_ / sizeof(Value));
    values.resize(n);
    take(values.data(), n);
  }
  void check_end() const { check_snapshot(left_ == 0); }

 private:
  template <class Value>
  void take(Value* values, std::size_t n) {
    static_assert(std::is_trivially_copyable<Value>::value, "only its bytes are read");
    const std::size_t n_bytes = n * sizeof(Value);
    check_snapshot(n_bytes <= left_);
    if (n_bytes > 0) std::memcpy(values, at_, n_bytes);
    at_ += n_bytes;
    left_ -= n_bytes;
  }

  const std::uint8_t* at_;
  std::size_t left_;
};

// Returns whether indices ascend strictly within [0, end).
inline bool are_positions(const std::vector<std::int32_t>& numbers, std::size_t end) {
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k] < 0 || static_cast<std::size_t>(numbers[k]) >= end) return false;
    if (k > 0 && numbers[k - 1] >= numbers[k]) return false;
  }
  return true;
}

}  // namespace dcsvm
