#include "kernel/kernel_tile.h"

#include <algorithm>
#include <cmath>

#include "rows/codes.h"
#include "simd/byte_dots.h"

namespace dcsvm {

namespace {

// Largest tolerated gamma |x|^2 2^-24 of the product form: the rounding of the dot product and of
// the norms then moves an RBF value by a few times this.
constexpr double product_error = 6e-8;
// Below this many features the difference form costs no more than the product form.
constexpr std::size_t difference_features = 64;
// Features whose part of a panel stays in the first-level cache while it is written.
constexpr std::size_t packed_at_once = 64;
// In lanes, so that it equals no query's no_code either.
constexpr std::uint8_t no_lane_code = no_code - 1;

// All features are integers and no sum of products over a chain reaches 2^24.
bool has_exact_products(const Points& points) {
  for (std::size_t i = 0; i < points.n_samples; ++i) {
    const float* row = points.dense + i * points.n_features;
    for (std::size_t begin = 0; begin < points.n_features; begin += chain_length) {
      double sum = static_cast<double>(points.n_codes);
      for (std::size_t k = begin; k < std::min(begin + chain_length, points.n_features); ++k) {
        if (row[k] != std::nearbyint(row[k])) return false;
        sum += static_cast<double>(row[k]) * row[k];
      }
      if (sum >= 16777216.0) return false;
    }
  }
  return true;
}

// The rows of one panel, their features and codes.
void pack_dense(const Points& points, const std::int32_t* rows, float* values,
                std::uint8_t* codes) {
  const std::size_t d = points.n_features, n_codes = points.n_codes;
  for (std::size_t begin = 0; begin < d; begin += packed_at_once) {
    const std::size_t end = std::min(begin + packed_at_once, d);
    for (std::size_t lane = 0; lane < panel_rows; ++lane) {
      const float* x = points.dense + static_cast<std::size_t>(rows[lane]) * d;
      for (std::size_t k = begin; k < end; ++k) values[k * panel_rows + lane] = x[k];
    }
  }
  for (std::size_t lane = 0; lane < panel_rows; ++lane) {
    const std::uint8_t* code = points.codes + static_cast<std::size_t>(rows[lane]) * n_codes;
    for (std::size_t k = 0; k < n_codes; ++k)
      codes[k * panel_rows + lane] = code[k] == no_code ? no_lane_code : code[k];
  }
}

// The same as bytes.
void pack_bytes(const Points& points, const std::int32_t* rows, std::int8_t* bytes) {
  const std::size_t d = points.byte_row_size();
  for (std::size_t lane = 0; lane < panel_rows; ++lane) {
    const std::uint8_t* x = points.bytes + static_cast<std::size_t>(rows[lane]) * d;
    for (std::size_t k = 0; k < d; k += bytes_at_once) {
      for (std::size_t b = 0; b < bytes_at_once; ++b) {
        bytes[k * panel_rows + lane * bytes_at_once + b] = static_cast<std::int8_t>(x[k + b] - 128);
      }
    }
  }
}

}  // namespace

void compute_half_norms(const Points& points, Form form, int n_threads, double* half_norms) {
  const auto n = static_cast<std::int64_t>(points.n_samples);
  if (form == Form::precomputed) {
    std::fill_n(half_norms, points.n_samples, 0.0);
    return;
  }
#pragma omp parallel for num_threads(n_threads) schedule(static) if (n_threads > 1)
  for (std::int64_t i = 0; i < n; ++i) {
    const auto row = static_cast<std::size_t>(i);
    const float* begin = points.is_dense() ? points.dense + row * points.n_features
                                           : points.values + points.indptr[i];
    const float* end =
        points.is_dense() ? begin + points.n_features : points.values + points.indptr[i + 1];
    double sum = 0;
    if (form != Form::difference) {
      for (const float* x = begin; x != end; ++x) sum += static_cast<double>(*x) * *x;
    }
    for (std::size_t k = 0; k < points.n_codes; ++k)
      sum += points.codes[row * points.n_codes + k] != no_code;
    half_norms[row] = 0.5 * sum;
  }
}

KernelSetup choose_setup(const Points& points, const Kernel& kernel) {
  if (kernel.type == KernelType::precomputed) return {kernel, Form::precomputed, false};
  KernelSetup setup{kernel, points.bytes ? Form::bytes : Form::sparse, false};
  if (points.bytes || !points.is_dense()) return setup;
  double largest = 0;
  for (std::size_t i = 0; i < points.n_samples; ++i)
    largest = std::max(largest, points.half_norms[i]);
  const bool is_rbf = kernel.type == KernelType::rbf;
  setup.form =
      is_rbf && points.n_features <= difference_features ? Form::difference : Form::product;
  if (setup.form == Form::difference) return setup;
  setup.exact_products = has_exact_products(points);
  const bool accurate = kernel.gamma * 2 * largest * 5.9604644775390625e-8 <= product_error;
  if (is_rbf && !accurate && !setup.exact_products) setup.form = Form::difference;
  return setup;
}

double tile_cost(const KernelSetup& setup, const Points& points) {
  const double d =
      static_cast<double>(points.n_features) + 0.6 * static_cast<double>(points.n_codes);
  switch (setup.form) {
    case Form::difference:
      return 0.3 + 0.027 * d;
    case Form::product:
      return 0.4 + 0.018 * d;
    case Form::bytes:
      return 0.26 + 0.0019 * d;
    case Form::precomputed:
      return 0.5;
    case Form::sparse:
      break;
  }
  const double stored = static_cast<double>(points.indptr[points.n_samples]) /
                        static_cast<double>(std::max<std::size_t>(points.n_samples, 1));
  return 0.5 + 0.15 * stored;
}

bool caching_pays(const KernelSetup& setup, const Points& points) {
  return tile_cost(setup, points) > 2.0;
}

bool has_expensive_rows(const KernelSetup& setup, const Points& points) {
  return tile_cost(setup, points) > 8.0 * cached_entry_cost;
}

std::size_t packed_row_bytes(const KernelSetup& setup, const Points& points) {
  switch (setup.form) {
    case Form::difference:
    case Form::product:
      return points.n_features * sizeof(float) + points.n_codes;
    case Form::bytes:
      return points.byte_row_size();
    case Form::sparse:
    case Form::precomputed:
      break;
  }
  return 0;
}

void PackedLanes::pack(const KernelSetup& setup, const Points& points, const std::int32_t* rows,
                       std::size_t n_panels, int n_threads) {
  const bool is_dense = setup.form == Form::difference || setup.form == Form::product;
  const std::size_t n = n_panels * panel_rows, d = is_dense ? points.n_features : 0,
                    n_codes = is_dense ? points.n_codes : 0,
                    n_bytes = setup.form == Form::bytes ? points.byte_row_size() : 0;
  values.resize(n * d);
  codes.resize(n * n_codes);
  bytes.resize(n * n_bytes);
#pragma omp parallel for num_threads(n_threads) schedule(static) if (n_threads > 1)
  for (std::int64_t p = 0; p < static_cast<std::int64_t>(n_panels); ++p) {
    const std::size_t first = static_cast<std::size_t>(p) * panel_rows;
    if (is_dense)
      pack_dense(points, rows + first, values.data() + first * d, codes.data() + first * n_codes);
    if (n_bytes > 0) pack_bytes(points, rows + first, bytes.data() + first * n_bytes);
  }
}

RowPanels::RowPanels(const KernelSetup& setup, const RowList& rows, int n_threads, bool packed)
    : points_(rows.points), size_(rows.size), is_packed_(packed) {
  const std::size_t padded = n_panels() * panel_rows;
  rows_.resize(padded);
  half_norms_.resize(padded);
  for (std::size_t i = 0; i < padded; ++i) {
    rows_[i] = static_cast<std::int32_t>(rows[std::min(i, size_ - 1)]);
    half_norms_[i] = points_->half_norms[rows_[i]];
  }
  if (packed) packed_.pack(setup, *points_, rows_.data(), n_panels(), n_threads);
}

void TileScratch::select(const KernelSetup& setup, const RowPanels& lanes, std::size_t first_panel,
                         std::size_t n_panels) {
  setup_ = setup;
  lanes_ = &lanes;
  first_panel_ = first_panel;
  n_panels_ = n_panels;
  packed_ = lanes.is_packed_ ? &lanes.packed_ : &packed_block_;
  first_packed_ = lanes.is_packed_ ? first_panel * panel_rows : 0;
  if (setup.form == Form::sparse) {
    pack_sparse(first_panel);
  } else if (!lanes.is_packed_) {
    packed_block_.pack(setup, *lanes.points_, lanes.rows_.data() + first_panel * panel_rows,
                       n_panels, 1);
  }
}

void TileScratch::pack_sparse(std::size_t panel) {
  const Points& points = *lanes_->points_;
  slot_.resize(points.n_features, 0);
  for (const std::int32_t column : columns_) slot_[static_cast<std::size_t>(column)] = 0;
  columns_.clear();
  packed_sparse_.assign(panel_rows, 0.0f);
  for (std::size_t lane = 0; lane < panel_rows; ++lane) {
    const std::int32_t row = lanes_->rows_[panel * panel_rows + lane];
    for (std::int64_t k = points.indptr[row]; k < points.indptr[row + 1]; ++k) {
      std::int32_t& slot = slot_[static_cast<std::size_t>(points.indices[k])];
      if (slot == 0) {
        columns_.push_back(points.indices[k]);
        slot = static_cast<std::int32_t>(columns_.size());
        packed_sparse_.resize(packed_sparse_.size() + panel_rows, 0.0f);
      }
      packed_sparse_[static_cast<std::size_t>(slot) * panel_rows + lane] = points.values[k];
    }
  }
}

// |x - z|^2 = |x|^2 + |z|^2 - 2 x'z, and x'z from the dot product with what a panel holds.
template <class Real>
void TileScratch::byte_rows(const Points& query_points, const std::int32_t* queries,
                            std::size_t n_queries, Real* out, std::size_t stride) {
  const bool is_rbf = setup_.kernel.type == KernelType::rbf;
  const std::int32_t factor = is_rbf ? -2 : 1;
  const std::size_t d = lanes_->points_->byte_row_size();
  const auto squared_norm = [is_rbf](double half_norm) {
    return is_rbf ? static_cast<std::int32_t>(2 * half_norm) : 0;
  };
  query_bytes_.resize(n_queries);
  query_terms_.resize(n_queries);
  for (std::size_t j = 0; j < n_queries; ++j) {
    query_bytes_[j] = query_points.bytes + static_cast<std::size_t>(queries[j]) * d;
    query_terms_[j] = squared_norm(query_points.half_norms[queries[j]]) +
                      factor * 128 * query_points.byte_sums[queries[j]];
  }
  dots_.resize(n_queries * panel_rows);
  for (std::size_t p = 0; p < n_panels_; ++p) {
    const std::size_t first = (first_panel_ + p) * panel_rows;
    std::int32_t lane_terms[panel_rows];
    for (std::size_t lane = 0; lane < panel_rows; ++lane)
      lane_terms[lane] = squared_norm(lanes_->half_norms_[first + lane]);
    byte_dots()(query_bytes_.data(), n_queries,
                packed_->bytes.data() + (first_packed_ + p * panel_rows) * d, d / bytes_at_once,
                dots_.data());
    const ByteTile tile{&setup_.kernel, dots_.data(), factor, query_terms_.data(),
                        lane_terms,     n_queries,    stride};
    if constexpr (sizeof(Real) == sizeof(float)) {
      isa().bytes_f32(tile, out + p * panel_rows);
    } else {
      isa().bytes_f64(tile, out + p * panel_rows);
    }
  }
}

// A value stands in the query's row at the lane's column, or the other way round where only the
// lanes' rows are known.
template <class Real>
void TileScratch::precomputed_rows(const Points& query_points, const std::int32_t* queries,
                                   std::size_t n_queries, Real* out, std::size_t stride) const {
  const Points& lane_points = *lanes_->points_;
  const std::size_t d = lane_points.n_features, n_lanes = n_panels_ * panel_rows;
  const std::int32_t* lane_rows = lanes_->rows_.data() + first_panel_ * panel_rows;
  if (query_points.is_dense() && lane_points.columns) {
    for (std::size_t j = 0; j < n_queries; ++j) {
      const float* row = query_points.dense + static_cast<std::size_t>(queries[j]) * d;
      for (std::size_t lane = 0; lane < n_lanes; ++lane)
        out[j * stride + lane] = row[lane_points.columns[lane_rows[lane]]];
    }
    return;
  }
  for (std::size_t lane = 0; lane < n_lanes; ++lane) {
    const float* row = lane_points.dense + static_cast<std::size_t>(lane_rows[lane]) * d;
    for (std::size_t j = 0; j < n_queries; ++j)
      out[j * stride + lane] = row[query_points.columns[queries[j]]];
  }
}

template <class Real>
void TileScratch::rows(const Points& query_points, const std::int32_t* queries,
                       std::size_t n_queries, Real* out, std::size_t stride) {
  constexpr bool is_float = sizeof(Real) == sizeof(float);
  if (setup_.form == Form::precomputed)
    return precomputed_rows(query_points, queries, n_queries, out, stride);
  if (setup_.form == Form::bytes) return byte_rows(query_points, queries, n_queries, out, stride);
  query_half_norms_.resize(n_queries);
  for (std::size_t j = 0; j < n_queries; ++j)
    query_half_norms_[j] = query_points.half_norms[queries[j]];
  const double* lane_norms = lanes_->half_norms_.data() + first_panel_ * panel_rows;
  if (setup_.form == Form::sparse) {
    const SparseTile tile{&setup_.kernel,
                          query_points.indptr,
                          query_points.indices,
                          query_points.values,
                          queries,
                          query_half_norms_.data(),
                          n_queries,
                          slot_.data(),
                          packed_sparse_.data(),
                          lane_norms,
                          stride};
    if constexpr (is_float) {
      isa().sparse_f32(tile, out);
    } else {
      isa().sparse_f64(tile, out);
    }
    return;
  }
  const std::size_t d = lanes_->points_->n_features, n_codes = lanes_->points_->n_codes;
  query_rows_.resize(n_queries);
  query_bytes_.resize(n_queries);
  for (std::size_t j = 0; j < n_queries; ++j) {
    query_rows_[j] = query_points.dense + static_cast<std::size_t>(queries[j]) * d;
    query_bytes_[j] = query_points.codes + static_cast<std::size_t>(queries[j]) * n_codes;
  }
  for (std::size_t p = 0; p < n_panels_; ++p) {
    const DenseTile tile{&setup_.kernel,
                         setup_.form,
                         setup_.exact_products,
                         d,
                         n_codes,
                         query_rows_.data(),
                         query_half_norms_.data(),
                         n_queries,
                         packed_->values.data() + (first_packed_ + p * panel_rows) * d,
                         query_bytes_.data(),
                         packed_->codes.data() + (first_packed_ + p * panel_rows) * n_codes,
                         lane_norms + p * panel_rows,
                         stride};
    if constexpr (is_float) {
      isa().dense_f32(tile, out + p * panel_rows);
    } else {
      isa().dense_f64(tile, out + p * panel_rows);
    }
  }
}

template void TileScratch::rows<float>(const Points&, const std::int32_t*, std::size_t, float*,
                                       std::size_t);
template void TileScratch::rows<double>(const Points&, const std::int32_t*, std::size_t, double*,
                                        std::size_t);

}  // namespace dcsvm
