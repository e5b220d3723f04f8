#include "kernel/row_panels.h"

#include <algorithm>
#include <cstring>

#include "rows/codes.h"
#include "rows/points.h"
#include "simd/isa.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Features packed at a time: their part of a panel (8 KiB) stays in the first-level cache.
constexpr std::size_t batch_packed = 64, batch_bytes_packed = 256;
// Panels of a block. With few panels, a tile of 64 queries stays in the first-level cache.
constexpr std::size_t few_panels = 4, many_panels = 16;
constexpr std::size_t long_byte_row = 256, many_codes = 64, bytes_of_block = std::size_t{1} << 19;
// Panels a thread packs at a time.
constexpr std::size_t batch_panels = 8;

// Packs the d features of the rows of one panel. Rows begin `stride` values apart.
template <class Value>
void pack_features(const Value* matrix, std::size_t stride, std::size_t d, const std::int32_t* rows,
                   float* features) {
  for (std::size_t begin = 0; begin < d; begin += batch_packed) {
    const std::size_t end = std::min(begin + batch_packed, d);
    for (std::size_t lane = 0; lane < panel_rows; ++lane) {
      const Value* x = matrix + static_cast<std::size_t>(rows[lane]) * stride;
      __builtin_prefetch(x + end);
      for (std::size_t k = begin; k < end; ++k)
        features[k * panel_rows + lane] = static_cast<float>(x[k]);
    }
  }
}

// Packs the features and codes of the rows of one panel.
void pack_dense(const Points& points, const std::int32_t* rows, float* features,
                std::uint8_t* codes) {
  const std::size_t d = points.n_features, n_codes = points.n_codes;
  if (points.dense) {
    pack_features(points.dense, points.dense_stride, d, rows, features);
  } else if (points.dense_bytes) {
    pack_features(points.dense_bytes, points.byte_row_size(), d, rows, features);
  } else {
    for (std::size_t lane = 0; lane < panel_rows; ++lane) {
      const float* x = widened_row(points, static_cast<std::size_t>(rows[lane]));
      for (std::size_t k = 0; k < d; ++k) features[k * panel_rows + lane] = x[k];
    }
  }
  for (std::size_t lane = 0; lane < panel_rows; ++lane) {
    const std::uint8_t* code = points.codes_of(static_cast<std::size_t>(rows[lane]));
    for (std::size_t k = 0; k < n_codes; ++k) codes[k * panel_rows + lane] = code[k];
  }
}

// Packs the bytes of the rows of one panel, each changed by an exclusive or. The adjacent features
// of a row fill a word and are moved at once.
template <class Word>
void pack_words(const Points& points, const std::int32_t* rows, Word change, std::uint8_t* bytes) {
  const std::size_t d = points.byte_row_size();
  for (std::size_t begin = 0; begin < d; begin += batch_bytes_packed) {
    const std::size_t end = std::min(begin + batch_bytes_packed, d);
    for (std::size_t lane = 0; lane < panel_rows; ++lane) {
      const std::uint8_t* x = points.bytes + static_cast<std::size_t>(rows[lane]) * d;
      const auto put = [&](Word word, std::size_t k) {
        word ^= change;
        std::memcpy(bytes + k * panel_rows + lane * sizeof word, &word, sizeof word);
      };
      std::size_t k = begin;
      for (Word word; k + sizeof word <= end; k += sizeof word) {
        std::memcpy(&word, x + k, sizeof word);
        put(word, k);
      }
      if (k == end) continue;
      Word rest = 0;  // a row ends within the word
      std::memcpy(&rest, x + k, end - k);
      put(rest, k);
    }
  }
}

void pack_bytes(const KernelSetup& setup, const Points& points, const std::int32_t* rows,
                std::uint8_t* bytes) {
  constexpr std::uint32_t less_128 = 0x80808080;  // of each byte
  if (byte_batch(sums_of(setup.kernel.argument)) == sizeof less_128) {
    pack_words(points, rows, less_128, bytes);
  } else {
    pack_words(points, rows, std::uint64_t{0}, bytes);
  }
}

}  // namespace

std::size_t packed_row_bytes(const KernelSetup& setup, const Points& points) {
  switch (setup.form) {
    case Form::difference:
    case Form::product:
      return points.n_features * sizeof(float) + points.n_codes;
    case Form::bytes: {
      const std::size_t batch = byte_batch(sums_of(setup.kernel.argument));
      return (points.n_features + batch - 1) / batch * batch;
    }
    case Form::sparse:
    case Form::precomputed:
      break;
  }
  return 0;
}

std::size_t panels_per_block(const KernelSetup& setup, const Points& points) {
  if (setup.form == Form::sparse) return points.has_only_ones ? few_panels : 1;
  // gathering long rows of bytes, or finding the codes that are set, takes as long as tiles of a
  // few panels, and more panels stay in the second-level cache
  const bool has_bytes = setup.form == Form::bytes;
  const std::size_t row_bytes = has_bytes ? points.byte_row_size() : points.n_codes;
  if (row_bytes < (has_bytes ? long_byte_row : many_codes)) return few_panels;
  return std::clamp(bytes_of_block / (row_bytes * panel_rows), few_panels, many_panels);
}

void PackedLanes::pack(const KernelSetup& setup, const Points& points, const std::int32_t* rows,
                       std::size_t n_panels, int n_threads) {
  const bool is_dense = setup.form == Form::difference || setup.form == Form::product;
  const std::size_t n = n_panels * panel_rows, d = is_dense ? points.n_features : 0,
                    n_codes = is_dense ? points.n_codes : 0,
                    n_bytes = setup.form == Form::bytes ? packed_row_bytes(setup, points) : 0;
  features.resize(n * d);
  codes.resize(n * n_codes);
  bytes.resize(n_bytes > 0 ? n * n_bytes + max_byte_row_unit * panel_rows : 0);
  parallel_for({n_threads, n_panels, batch_panels}, [&](std::size_t p) {
    const std::size_t first = p * panel_rows;
    if (is_dense)
      pack_dense(points, rows + first, features.data() + first * d, codes.data() + first * n_codes);
    if (n_bytes > 0) pack_bytes(setup, points, rows + first, bytes.data() + first * n_bytes);
  });
}

RowPanels::RowPanels(const KernelSetup& setup, const RowList& rows, int n_threads, bool packed)
    : points_(rows.points), size_(rows.size), is_packed_(packed) {
  const std::size_t padded = n_panels() * panel_rows;
  rows_.resize(padded);
  row_terms_.resize(padded);
  for (std::size_t i = 0; i < padded; ++i) {
    rows_[i] = static_cast<std::int32_t>(rows[std::min(i, size_ - 1)]);
    row_terms_[i] = points_->row_terms[rows_[i]];
  }
  if (packed) packed_.pack(setup, *points_, rows_.data(), n_panels(), n_threads);
}

}  // namespace dcsvm
