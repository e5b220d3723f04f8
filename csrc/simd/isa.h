// The loops that are compiled once per instruction set, and their run-time dispatch.
//
// One source (isa_impl.h), in GCC/Clang vector extensions, is compiled for the baseline of the
// target and, on x86-64, for AVX2 and AVX-512; isa() picks the widest one the processor runs, or
// the one the environment variable DCSVM_ISA names. Every kernel value of a run comes from the same
// instruction set, so a value is the same bits wherever it is computed, and K(x, z) is the same
// bits as K(z, x). Nothing here allocates, and nothing knows of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd/kernel.h"

namespace dcsvm {

// One side of a tile is packed in panels of this many rows, feature by feature, so that a vector
// holds the same feature of neighbouring rows: two vectors of float in the widest registers, which
// is what a tile keeps in them.
constexpr std::size_t panel_rows = 32;

// Features summed before the sum is added to the total. Shorter chains round less and stop more
// often; sums of products of 8-bit integers over a chain are below 2^24, which float holds exactly.
constexpr std::size_t chain_length = 256;

struct DenseTile {
  const Kernel* kernel;
  Form form;            // difference or product
  bool exact_products;  // float32 sums of products over a chain are exact
  std::size_t n_features, n_codes;
  const float* const* queries;     // n_queries pointers to dense rows
  const double* query_half_norms;  // n_queries
  std::size_t n_queries;
  const float* panel;                      // n_features x panel_rows
  const std::uint8_t* const* query_codes;  // n_queries pointers to n_codes codes
  const std::uint8_t* panel_codes;         // n_codes x panel_rows
  const double* lane_half_norms;           // panel_rows
  std::size_t n_lanes;                     // whose values are wanted; others may be computed, too
  std::size_t out_stride;                  // out[query * out_stride + lane]
};

// Arguments of the kernel as integers: a multiple of a dot product plus a term of each row.
struct ByteTile {
  const Kernel* kernel;
  const std::int32_t* dots;         // n_queries x panel_rows
  std::int32_t factor;              // of the dots
  const std::int32_t* query_terms;  // n_queries
  const std::int32_t* lane_terms;   // panel_rows
  std::size_t n_queries;
  std::size_t out_stride;
};

struct SparseTile {
  const Kernel* kernel;
  const std::int64_t* indptr;  // of all points
  const std::int32_t* indices;
  const float* values;
  const std::int32_t* queries;     // row numbers, n_queries
  const double* query_half_norms;  // n_queries
  std::size_t n_queries;
  const std::int32_t* slot;       // column -> row of `packed`, 0 for a column no lane has
  const float* packed;            // n_slots x panel_rows, row 0 all zero
  const double* lane_half_norms;  // panel_rows
  std::size_t out_stride;
};

// W of a product K W: one row of weights per source, in CSR form, whose first entry is at
// indptr[0]. Every target gets n_columns sums.
struct SourceWeights {
  std::size_t n_columns = 1;
  const std::int64_t* indptr = nullptr;  // null: exactly one weight per source, in column 0
  const std::int32_t* columns = nullptr;
  const double* values = nullptr;
};

// Curvatures below these count as these, so that equal or nearly equal rows give finite steps: of a
// pair, K_ii + K_jj - 2 K_ij (LIBSVM's tau); and of K_ii, the part that a second variable leaves.
constexpr double smallest_pair_curvature = 1e-12;
constexpr double smallest_share = 1e-6;

// State of coordinate descent on a working set, arrays padded to a multiple of panel_rows.
struct CoordinateState {
  std::size_t size;  // padded
  double* gradient;
  const float* side;    // 1 where alpha may only go up, -1 only down, 0 both, NaN neither
  const double* scale;  // 1/sqrt(K_ii): makes violations comparable; null: all 1
};

// Of descent on a working set whose kernel values are of one type.
template <class Real>
struct DescentPasses {
  // gradient += the steps times the rows; returns the place of the largest scaled violation
  std::size_t (*descend)(const CoordinateState&, const Real* first_row, double first_step,
                         const Real* second_row, double second_step, double* largest);
  // the variable that lowers the objective most when it moves together with `place`: gain is twice
  // the decrease beyond that of moving `place` alone
  std::size_t (*best_companion)(const CoordinateState&, const Real* diagonal, const Real* row,
                                std::size_t place, double* gain);
  // gradient += the steps times the rows; returns the variable with the largest -gradient (`up`) of
  // those that may go up; `down` is the smallest -gradient of those that may go down
  std::size_t (*descend_pair)(const CoordinateState&, const Real* first_row, double first_step,
                              const Real* second_row, double second_step, double* up, double* down);
  // the variable that lowers the objective most when it goes down by what `place` goes up: gain is
  // twice the decrease, not positive where there is none (Fan, Chen and Lin, JMLR 6, 2005)
  std::size_t (*best_partner)(const CoordinateState&, const Real* diagonal, const Real* row,
                              std::size_t place, double* gain);
};

struct Isa {
  const char* name;
  void (*dense_f32)(const DenseTile&, float* out);
  void (*dense_f64)(const DenseTile&, double* out);
  void (*bytes_f32)(const ByteTile&, float* out);
  void (*bytes_f64)(const ByteTile&, double* out);
  void (*sparse_f32)(const SparseTile&, float* out);
  void (*sparse_f64)(const SparseTile&, double* out);
  // sum[i] += weight[j] * rows[j][i] for i < lanes (a multiple of panel_rows), in the order of j
  void (*weighted_sum_f32)(const float* const* rows, const double* weight, std::size_t n,
                           std::size_t lanes, double* sum);
  void (*weighted_sum_f64)(const double* const* rows, const double* weight, std::size_t n,
                           std::size_t lanes, double* sum);
  // the same for one target, with a value of each of n sources: n_columns sums += values times W,
  // the same bits as weighted_sum_f32
  void (*add_in_order)(const float* values, const SourceWeights& weights, std::size_t n,
                       double* sums);
  DescentPasses<float> descent_f32;
  DescentPasses<double> descent_f64;
  // C -= A B' for tiles of a Cholesky factorisation; see cholesky.cc
  void (*subtract_product)(const double* a, const double* b_transposed, std::size_t depth,
                           std::size_t rows, std::size_t columns, double* c, std::size_t c_stride);
  // <x, w>, and w += weight x, of a dense row of n features
  double (*dot)(const float* x, const double* w, std::size_t n);
  void (*add_multiple)(const float* x, double weight, std::size_t n, double* w);
};

const Isa& isa();

// The same by the type of the output.
inline void evaluate(const DenseTile& t, float* out) { isa().dense_f32(t, out); }
inline void evaluate(const DenseTile& t, double* out) { isa().dense_f64(t, out); }
inline void evaluate(const ByteTile& t, float* out) { isa().bytes_f32(t, out); }
inline void evaluate(const ByteTile& t, double* out) { isa().bytes_f64(t, out); }
inline void evaluate(const SparseTile& t, float* out) { isa().sparse_f32(t, out); }
inline void evaluate(const SparseTile& t, double* out) { isa().sparse_f64(t, out); }
inline void add_weighted(const float* const* rows, const double* weight, std::size_t n,
                         std::size_t lanes, double* sum) {
  isa().weighted_sum_f32(rows, weight, n, lanes, sum);
}
inline void add_weighted(const double* const* rows, const double* weight, std::size_t n,
                         std::size_t lanes, double* sum) {
  isa().weighted_sum_f64(rows, weight, n, lanes, sum);
}

template <class Real>
const DescentPasses<Real>& descent();
template <>
inline const DescentPasses<float>& descent<float>() {
  return isa().descent_f32;
}
template <>
inline const DescentPasses<double>& descent<double>() {
  return isa().descent_f64;
}

}  // namespace dcsvm
