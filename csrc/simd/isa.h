// The loops that are compiled once per instruction set, and their run-time dispatch.
//
// One source (isa_impl.h), in GCC/Clang vector extensions, is compiled for the baseline of the
// target and, on x86-64, for AVX2 and AVX-512. isa() selects the widest one the processor supports,
// or the one named by the environment variable DCSVM_ISA. All kernel values of a run use the same
// instruction set, so that they are bitwise reproducible, and K(x, z) equals K(z, x) bitwise. The
// loops do not allocate or use threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "simd/kernel.h"

namespace dcsvm {

// How a tile computes the argument of the kernel from two rows.
//   difference:  sum of each feature's contribution to a distance (dense; accurate for any norm)
//   product:     dot product, plus norms for a distance (dense; cheaper; accurate for small norms)
//   sparse:      sum over the features that both rows store, in float64, plus a term of each row;
//                rows of ones count these features, as codes
//   bytes:       dot product or sum of absolute differences of 8-bit integers, exact
//   precomputed: no argument; the value is an entry of one row, at the other row's column
enum class Form { difference, product, sparse, bytes, precomputed };

// Rows per panel: two float vectors of the widest registers. One side of a tile is packed into
// panels, feature by feature, so that a vector holds the same feature of consecutive rows.
constexpr std::size_t panel_rows = 32;

// Features that are summed before the sum is added to the total. Shorter chains have smaller
// rounding errors but interrupt the loop more often. For 8-bit integers, sums of products over a
// chain are below 2^24, so that float is exact.
constexpr std::size_t chain_length = 256;

// A code of a row that has a column set (rows/codes.h), and the offset of its lanes in a panel.
struct SetCode {
  std::uint32_t offset;
  std::uint8_t code;
};

struct DenseTile {
  const Kernel* kernel;
  Form form;            // difference or product
  bool exact_products;  // float32 sums of products over a chain are exact
  std::size_t n_features, n_codes;
  const float* const* queries;  // n_queries pointers to dense rows
  const double* query_terms;    // n_queries
  std::size_t n_queries;
  const float* panel;                 // n_features x panel_rows
  const SetCode* const* query_codes;  // n_queries + 1 pointers: where the codes of a query begin
  const std::uint8_t* panel_codes;    // n_codes x panel_rows
  const double* lane_terms;           // panel_rows
  std::size_t n_lanes;                // lanes to compute; others may be computed, too
  std::size_t out_stride;             // out[query * out_stride + lane]
};

// Arguments of the kernel as integers: `factor` times a sum of byte_loop(), plus a term of each
// row.
struct ByteTile {
  const Kernel* kernel;
  const std::int32_t* sums;         // n_queries x panel_rows
  std::int32_t factor;              // of the sums
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
  const std::int32_t* queries;  // row numbers, n_queries
  const double* query_terms;    // n_queries
  std::size_t n_queries;
  const std::int32_t* slot;  // column -> row of `packed`, 0 if no lane has the column
  const float* packed;       // n_slots x panel_rows, row 0 all zero
  const double* lane_terms;  // panel_rows
  std::size_t out_stride;
};

// W of a kernel product K W, in CSR form: one row of weights per source, with its first entry at
// indptr[0]. Every target gets n_columns sums.
struct SourceWeights {
  std::size_t n_columns = 1;
  const std::int64_t* indptr = nullptr;  // null: exactly one weight per source, in column 0
  const std::int32_t* columns = nullptr;
  const double* values = nullptr;

  // Returns the weights from source `begin` on.
  SourceWeights from(std::size_t begin) const {
    return indptr ? SourceWeights{n_columns, indptr + begin, columns, values}
                  : SourceWeights{n_columns, nullptr, nullptr, values + begin};
  }
};

// Rows, a panel of others, and a weight of each row for each row of the panel.
struct SignTile {
  std::size_t n_rows, n_features;
  const float* rows;     // n_rows x n_features
  const float* panel;    // n_features x panel_rows
  const float* weights;  // n_rows x panel_rows
};

// Lower limits of curvatures, so that equal or nearly equal rows give finite steps.
// min_pair_curvature (LIBSVM's tau) limits K_ii + K_jj - 2 K_ij. min_share limits the curvature of
// one variable while another follows at its optimum, as a fraction of K_ii.
constexpr double min_pair_curvature = 1e-12;
constexpr double min_share = 1e-6;

// State of coordinate descent on a working set, arrays padded to a multiple of panel_rows.
struct CoordinateState {
  std::size_t size;  // padded
  double* gradient;
  const float* side;    // alpha may only increase: 1, only decrease: -1, both: 0, neither: NaN
  const double* scale;  // 1/sqrt(K_ii): makes violations comparable; null: all 1
};

// Loops for kernel values of one type.
template <class Real>
struct Loops {
  void (*dense)(const DenseTile&, Real* out);
  void (*bytes)(const ByteTile&, Real* out);
  void (*sparse)(const SparseTile&, Real* out);
  // sum[i] += weight[j] * rows[j][i] for i < lanes (a multiple of panel_rows), in the order of j
  void (*add_weighted)(const Real* const* rows, const double* weight, std::size_t n,
                       std::size_t lanes, double* sum);
  // gradient += the steps times the rows; returns the index of the largest scaled violation
  std::size_t (*descend)(const CoordinateState&, const Real* first_row, double first_step,
                         const Real* second_row, double second_step, double* largest);
  // returns the variable that lowers the objective most together with `place`; gain is twice the
  // decrease in excess of moving `place` alone
  std::size_t (*best_companion)(const CoordinateState&, const Real* diagonal, const Real* row,
                                std::size_t place, double* gain);
  // gradient += the steps times the rows; returns the variable with the largest -gradient (`up`)
  // that can increase; `down` is the smallest -gradient of variables that can decrease
  std::size_t (*descend_pair)(const CoordinateState&, const Real* first_row, double first_step,
                              const Real* second_row, double second_step, double* up, double* down);
  // returns the variable that lowers the objective most if it decreases as much as `place`
  // increases; gain is twice the decrease, or not positive (Fan, Chen and Lin, JMLR 6, 2005)
  std::size_t (*best_partner)(const CoordinateState&, const Real* diagonal, const Real* row,
                              std::size_t place, double* gain);
};

struct Isa {
  const char* name;
  Loops<float> f32;
  Loops<double> f64;
  // sums += W' values for one target: one kernel value for each of n sources, n_columns sums; the
  // sums are bitwise equal to those of add_weighted()
  void (*add_in_order)(const float* values, const SourceWeights& weights, std::size_t n,
                       double* sums);
  // C -= A B' for tiles of a Cholesky factorisation; see cholesky.cc
  void (*subtract_product)(const double* a, const double* b_transposed, std::size_t depth,
                           std::size_t rows, std::size_t columns, double* c, std::size_t c_stride);
  // dot: <x, w>; add_multiple: w += weight x; x is a dense row of n features
  double (*dot)(const float* x, const double* w, std::size_t n);
  void (*add_multiple)(const float* x, double weight, std::size_t n, double* w);
  // out[feature * panel_rows + lane] = sum over the rows of weights[row][lane] times the sign of
  // rows[row][feature] - panel[feature][lane], which is 0 for equal values
  void (*sign_sums)(const SignTile&, float* out);
};

const Isa& isa();

// Returns the value of the environment variable DCSVM_ISA, or an empty string.
std::string_view wanted_isa();

template <class Real>
const Loops<Real>& loops() {
  if constexpr (std::is_same_v<Real, float>) {
    return isa().f32;
  } else {
    return isa().f64;
  }
}

// Loops over rows of 8-bit integers: dot products, for processors that have an instruction for
// them, and sums of absolute differences. Sums are exact: 32-bit integers.

// Maximum number of queries per call, and the group size: rows of queries are read in whole groups.
constexpr std::size_t byte_queries = 32, byte_query_group = 16;

// Returns how many features of a row are contiguous in a panel. The instruction for products adds
// four to a sum, the one for absolute differences eight.
constexpr std::size_t byte_batch(Sums sums) { return sums == Sums::products ? 4 : 8; }

// The largest ByteLoop::row_unit. A loop may read this many features past the end of a panel.
constexpr std::size_t max_byte_row_unit = 64;

struct ByteLoop {
  const char* name;
  // rows of queries are padded with zeros to a multiple of this number of bytes
  std::size_t row_unit;
  // a thread calls begin() before and end() after its sums
  void (*begin)();
  // out[query * panel_rows + lane] = sum of query[k] * panel[k][lane], or of their absolute
  // differences. The queries begin `stride` bytes apart. A panel holds n_batches batches of
  // panel_rows rows; a batch is byte_batch() consecutive features of a row. The instruction for
  // products multiplies unsigned by signed bytes. Therefore panels for products hold every value
  // minus 128, and the caller corrects the sums (kernel_tile.cc).
  void (*sum)(const std::uint8_t* queries, std::size_t stride, std::size_t n_queries,
              const std::uint8_t* panel, std::size_t n_batches, std::int32_t* out);
  void (*end)();
};

// Returns the loop whose sums give an argument, or null if the processor lacks the instruction.
// DCSVM_ISA limits the choice: AMX is chosen only if it is not set.
const ByteLoop* byte_loop(Argument argument);

}  // namespace dcsvm
