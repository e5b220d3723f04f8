#include "kernel/kernel_tile.h"

#include <algorithm>
#include <cstring>

#include "rows/codes.h"
#include "rows/points.h"
#include "simd/isa.h"

namespace dcsvm {

namespace {

// Prefetch distance in rows: from the row being copied to the row being prefetched.
constexpr std::size_t rows_ahead = 8;

// Bytes of a row to prefetch; the hardware prefetcher continues.
constexpr std::size_t touched_bytes = 512;

// An argument from a sum of byte_loop(): factor times the sum, per_query and per_lane times the sum
// of the bytes of the row, and `fixed`, beside the row terms.
struct ByteTerms {
  std::int32_t factor = 1, per_query = 0, per_lane = 0, fixed = 0;
};

// |x - z|^2 = |x|^2 + |z|^2 - 2 x'z. For queries x = a + s j and lanes z = b + t k, with bytes j
// and k of n features, x'z = n a b + b s sum(j) + a t sum(k) + s t j'k; j'k follows from the dot
// product with the packed k - 128. Absolute differences are of rows with the same a and s: they are
// those of the bytes, in units of s.
ByteTerms byte_terms(Argument argument, const Points& queries, const Points& lanes) {
  return with_argument(argument, [&](auto of) -> ByteTerms {
    if constexpr (of.sums != Sums::products) {
      return {};
    } else {
      const std::int32_t a = queries.byte_origin, b = lanes.byte_origin, s = queries.byte_step,
                         t = lanes.byte_step, factor = of.factor * s * t;
      return {factor, factor * 128 + of.factor * b * s, of.factor * a * t,
              of.factor * a * b * static_cast<std::int32_t>(lanes.n_features)};
    }
  });
}

// Returns a bit for each of 64 codes: whether it is set.
std::uint64_t bits_of_set(const std::uint8_t* codes) {
  constexpr std::uint64_t low = 0x7f7f7f7f7f7f7f7f;  // bits of each byte
  static_assert(no_code == 255, "the inverse is 0");
  std::uint64_t bits = 0;
  for (int k = 0; k < 64; k += 8) {
    std::uint64_t word;
    std::memcpy(&word, codes + k, sizeof word);
    word = ~word;
    word = (((word & low) + low) | word) & ~low;  // the highest bit of each byte that is not 0
    bits |= (word >> 7) * 0x0102040810204080 >> 56 << k;
  }
  return bits;
}

// Lists the codes of a row that are set; returns the end of the list. Branches on single codes
// would be mispredicted.
SetCode* list_codes(const std::uint8_t* codes, std::size_t n, SetCode* next) {
  std::size_t begin = 0;
  for (; begin + 64 <= n; begin += 64) {
    for (std::uint64_t set = bits_of_set(codes + begin); set != 0; set &= set - 1) {
      const std::size_t k = begin + static_cast<std::size_t>(__builtin_ctzll(set));
      *next++ = {static_cast<std::uint32_t>(k * panel_rows), codes[k]};
    }
  }
  for (std::size_t k = begin; k < n; ++k) {
    *next = {static_cast<std::uint32_t>(k * panel_rows), codes[k]};
    next += codes[k] != no_code;
  }
  return next;
}

}  // namespace

void TileScratch::select(const KernelSetup& setup, const RowPanels& lanes, std::size_t first_panel,
                         std::size_t n_panels) {
  setup_ = setup;
  lanes_ = &lanes;
  first_panel_ = first_panel;
  n_panels_ = n_panels;
  packed_ = lanes.is_packed_ ? &lanes.packed_ : &packed_block_;
  first_packed_ = lanes.is_packed_ ? first_panel * panel_rows : 0;
  if (setup.form == Form::sparse) {
    pack_sparse(lanes.points_->has_only_ones);
  } else if (!lanes.is_packed_) {
    packed_block_.pack(setup, *lanes.points_, lanes.rows_.data() + first_panel * panel_rows,
                       n_panels, 1);
  }
}

void TileScratch::pack_sparse(bool as_codes) {
  const Points& points = *lanes_->points_;
  const std::int32_t* const rows = lanes_->rows_.data() + first_panel_ * panel_rows;
  const auto for_each_value = [&](const auto& visit) {
    for (std::size_t lane = 0; lane < n_panels_ * panel_rows; ++lane) {
      for (std::int64_t k = points.indptr[rows[lane]]; k < points.indptr[rows[lane] + 1]; ++k)
        visit(lane, slot_[static_cast<std::size_t>(points.indices[k])], k);
    }
  };
  slot_.resize(points.n_features, 0);
  for (const std::int32_t column : columns_) slot_[static_cast<std::size_t>(column)] = 0;
  columns_.clear();
  for_each_value([&](std::size_t, std::int32_t& slot, std::int64_t k) {
    if (slot != 0) return;
    columns_.push_back(points.indices[k]);
    slot = static_cast<std::int32_t>(columns_.size());
  });
  has_packed_codes_ = as_codes;
  const std::size_t size = n_panels_ * packed_sparse_size();
  packed_sparse_.assign(as_codes ? 0 : size, 0.0f);
  packed_sparse_codes_.assign(as_codes ? size : 0, no_code);
  for_each_value([&](std::size_t lane, std::int32_t slot, std::int64_t k) {
    const std::size_t at = lane / panel_rows * packed_sparse_size() +
                           static_cast<std::size_t>(slot) * panel_rows + lane % panel_rows;
    if (as_codes) {
      packed_sparse_codes_[at] = 0;
    } else {
      packed_sparse_[at] = points.values[k];
    }
  });
}

template <class Real>
void TileScratch::rows(const Points& query_points, const std::int32_t* queries,
                       std::size_t n_queries, Real* out, std::size_t stride) {
  const Queries q{query_points, queries, n_queries};
  switch (setup_.form) {
    case Form::difference:
    case Form::product:
      return dense_rows(q, out, stride);
    case Form::sparse:
      return sparse_rows(q, out, stride);
    case Form::bytes:
      return byte_rows(q, out, stride);
    case Form::precomputed:
      return precomputed_rows(q, out, stride);
  }
}

const double* TileScratch::lane_terms() const {
  return lanes_->row_terms_.data() + first_panel_ * panel_rows;
}

void TileScratch::gather_terms(const Queries& q) {
  query_terms_.resize(q.size);
  for (std::size_t j = 0; j < q.size; ++j) query_terms_[j] = q.points.row_terms[q.rows[j]];
}

template <class Real>
void TileScratch::dense_rows(const Queries& q, Real* out, std::size_t stride) {
  const std::size_t d = lanes_->points_->n_features, n_codes = lanes_->points_->n_codes;
  gather_terms(q);
  query_rows_.resize(q.size);
  set_codes_.resize(q.size * n_codes + 1);
  query_codes_.resize(q.size + 1);
  SetCode* next = set_codes_.data();
  if (!q.points.dense) widened_queries_.resize(q.size * d);
  for (std::size_t j = 0; j < q.size; ++j) {
    const auto row = static_cast<std::size_t>(q.rows[j]);
    if (q.points.dense) {
      query_rows_[j] = q.points.dense_row(row);
      touch(query_rows_[j], std::min(d * sizeof(float), touched_bytes));
    } else {
      widen_row(q.points, row, widened_queries_.data() + j * d);
      query_rows_[j] = widened_queries_.data() + j * d;
    }
    query_codes_[j] = next;
    if (j + rows_ahead < q.size)
      touch(q.points.codes_of(static_cast<std::size_t>(q.rows[j + rows_ahead])), n_codes);
    next = list_codes(q.points.codes_of(row), n_codes, next);
  }
  query_codes_[q.size] = next;
  for (std::size_t p = 0; p < n_panels_; ++p) {
    const std::size_t at = first_packed_ + p * panel_rows;
    const DenseTile tile{&setup_.kernel,
                         setup_.form,
                         setup_.exact_products,
                         d,
                         n_codes,
                         query_rows_.data(),
                         query_terms_.data(),
                         q.size,
                         packed_->features.data() + at * d,
                         query_codes_.data(),
                         packed_->codes.data() + at * n_codes,
                         lane_terms() + p * panel_rows,
                         std::min(lanes_->size() - (first_panel_ + p) * panel_rows, panel_rows),
                         stride};
    loops<Real>().dense(tile, out + p * panel_rows);
  }
}

// Rows of ones meet as codes: each column that the lanes have is one.
template <class Real>
void TileScratch::sparse_rows(const Queries& q, Real* out, std::size_t stride) {
  gather_terms(q);
  const bool as_codes = q.points.has_only_ones && lanes_->points_->has_only_ones;
  if (as_codes != has_packed_codes_) pack_sparse(as_codes);
  if (as_codes) {
    query_rows_.resize(q.size);
    query_codes_.resize(q.size + 1);
    set_codes_.resize(q.size * columns_.size() + 1);
    SetCode* next = set_codes_.data();
    for (std::size_t j = 0; j < q.size; ++j) {
      query_codes_[j] = next;
      for (std::int64_t k = q.points.indptr[q.rows[j]]; k < q.points.indptr[q.rows[j] + 1]; ++k) {
        const auto slot =
            static_cast<std::size_t>(slot_[static_cast<std::size_t>(q.points.indices[k])]);
        *next = {static_cast<std::uint32_t>(slot * panel_rows), 0};
        next += slot != 0;
      }
    }
    query_codes_[q.size] = next;
  }
  for (std::size_t p = 0; p < n_panels_; ++p) {
    const double* const terms = lane_terms() + p * panel_rows;
    const std::size_t at = p * packed_sparse_size();
    if (as_codes) {
      const DenseTile tile{&setup_.kernel,
                           is_distance(setup_.kernel.argument) ? Form::difference : Form::product,
                           false,
                           0,
                           columns_.size() + 1,
                           query_rows_.data(),
                           query_terms_.data(),
                           q.size,
                           nullptr,
                           query_codes_.data(),
                           packed_sparse_codes_.data() + at,
                           terms,
                           panel_rows,
                           stride};
      loops<Real>().dense(tile, out + p * panel_rows);
    } else {
      const SparseTile tile{&setup_.kernel,  q.points.indptr, q.points.indices,
                            q.points.values, q.rows,          query_terms_.data(),
                            q.size,          slot_.data(),    packed_sparse_.data() + at,
                            terms,           stride};
      loops<Real>().sparse(tile, out + p * panel_rows);
    }
  }
}

template <class Real>
void TileScratch::byte_rows(const Queries& q, Real* out, std::size_t stride) {
  const Points& lanes = *lanes_->points_;
  const ByteTerms terms = byte_terms(setup_.kernel.argument, q.points, lanes);
  const ByteLoop& loop = *byte_loop(setup_.kernel.argument);
  const std::size_t d = lanes.byte_row_size(), lane_bytes = packed_row_bytes(setup_, lanes),
                    padded = (lane_bytes + loop.row_unit - 1) / loop.row_unit * loop.row_unit;
  gathered_bytes_.resize((q.size + byte_query_group) * padded);
  byte_query_terms_.resize(q.size);
  const auto row = [&](std::size_t j) {
    return q.points.bytes + static_cast<std::size_t>(q.rows[j]) * d;
  };
  for (std::size_t j = 0; j < q.size; ++j) {
    if (j + rows_ahead < q.size) touch(row(j + rows_ahead), d);
    std::uint8_t* const gathered = gathered_bytes_.data() + j * padded;
    std::fill(std::copy_n(row(j), d, gathered), gathered + padded, std::uint8_t{0});
    byte_query_terms_[j] = static_cast<std::int32_t>(q.points.row_terms[q.rows[j]]) + terms.fixed +
                           terms.per_query * q.points.byte_sums[q.rows[j]];
  }
  byte_lane_terms_.resize(n_panels_ * panel_rows);
  const std::int32_t* const lane_rows = lanes_->rows_.data() + first_panel_ * panel_rows;
  for (std::size_t lane = 0; lane < byte_lane_terms_.size(); ++lane) {
    byte_lane_terms_[lane] = static_cast<std::int32_t>(lane_terms()[lane]);
    if (terms.per_lane != 0)
      byte_lane_terms_[lane] += terms.per_lane * lanes.byte_sums[lane_rows[lane]];
  }
  byte_loop_sums_.resize(byte_queries * panel_rows);
  const std::size_t n_batches = lane_bytes / byte_batch(sums_of(setup_.kernel.argument));
  loop.begin();
  for (std::size_t first = 0; first < q.size; first += byte_queries) {
    const std::size_t n = std::min(byte_queries, q.size - first);
    for (std::size_t p = 0; p < n_panels_; ++p) {
      loop.sum(gathered_bytes_.data() + first * padded, padded, n,
               packed_->bytes.data() + (first_packed_ + p * panel_rows) * lane_bytes, n_batches,
               byte_loop_sums_.data());
      const ByteTile tile{&setup_.kernel,
                          byte_loop_sums_.data(),
                          terms.factor,
                          byte_query_terms_.data() + first,
                          byte_lane_terms_.data() + p * panel_rows,
                          n,
                          stride};
      loops<Real>().bytes(tile, out + first * stride + p * panel_rows);
    }
  }
  loop.end();
}

// A value is in the query's row at the lane's column, or in the lane's row at the query's column if
// only the lanes' rows are known.
template <class Real>
void TileScratch::precomputed_rows(const Queries& q, Real* out, std::size_t stride) const {
  const Points& lane_points = *lanes_->points_;
  const std::size_t n_lanes = n_panels_ * panel_rows;
  const std::int32_t* lane_rows = lanes_->rows_.data() + first_panel_ * panel_rows;
  if (q.points.is_dense() && lane_points.columns) {
    for (std::size_t j = 0; j < q.size; ++j) {
      const float* row = q.points.dense_row(static_cast<std::size_t>(q.rows[j]));
      for (std::size_t lane = 0; lane < n_lanes; ++lane)
        out[j * stride + lane] = row[lane_points.columns[lane_rows[lane]]];
    }
    return;
  }
  for (std::size_t lane = 0; lane < n_lanes; ++lane) {
    const float* row = lane_points.dense_row(static_cast<std::size_t>(lane_rows[lane]));
    for (std::size_t j = 0; j < q.size; ++j)
      out[j * stride + lane] = row[q.points.columns[q.rows[j]]];
  }
}

template void TileScratch::rows<float>(const Points&, const std::int32_t*, std::size_t, float*,
                                       std::size_t);
template void TileScratch::rows<double>(const Points&, const std::int32_t*, std::size_t, double*,
                                        std::size_t);

}  // namespace dcsvm
