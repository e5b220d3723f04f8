// Tiles of kernel values for dense rows, rows of bytes and sparse rows. Part of isa_impl.h, inside
// its namespace.
//
// Dense rows sum differences or products over the features and count equal codes. In every tile,
// the sum of a pair of rows runs over the features in ascending order, so that a value does not
// depend on how a kernel product is divided into tiles.

// Returns the arguments, given the sums of pair() and the terms of a query and of the lanes.
template <class Of, class Real>
DCSVM_INLINE typename Traits<Real>::Vector argument_from(typename Traits<Real>::Vector pairs,
                                                         double query_term,
                                                         const double* lane_terms) {
  if constexpr (!Of::is_distance) return pairs * Real(Of::factor);
  const auto row_terms = load_doubles<Real>(lane_terms) + static_cast<Real>(query_term);
  return maximum(row_terms + pairs * Real(Of::factor), typename Traits<Real>::Vector{});
}

// Counts the equal codes of a query and each row of a panel, in bytes that hold up to 255. Only
// codes that the query has set can be equal.
DCSVM_INLINE void count_matches(const DenseTile& t, std::size_t query, float* matches) {
  typedef std::uint8_t Bytes __attribute__((vector_size(panel_rows)));
  const SetCode *next = t.query_codes[query], *const end = t.query_codes[query + 1];
  bool is_first = true;
  do {
    const SetCode* const chain_end = end - next > 255 ? next + 255 : end;
    Bytes count = {};
#pragma GCC unroll 4
    for (; next != chain_end; ++next) {
      Bytes lanes;
      std::memcpy(&lanes, t.panel_codes + next->offset, sizeof lanes);
      count -= (Bytes)((Bytes{} + next->code) == lanes);
    }
    for (std::size_t lane = 0; lane < panel_rows; ++lane) {
      const auto found = static_cast<float>(count[lane]);
      matches[lane] = is_first ? found : matches[lane] + found;
    }
    is_first = false;
  } while (next != end);
}

// Up to tile_queries queries of a tile; the last one is repeated to fill the block.
struct QueryBlock {
  const float* rows[tile_queries];
  double terms[tile_queries];
  const float* matches[tile_queries];  // numbers of equal codes, if rows have codes
  float counted[tile_queries][panel_rows];
};

DCSVM_INLINE void select_queries(const DenseTile& t, std::size_t first, std::size_t n,
                                 QueryBlock& q) {
  for (std::size_t r = 0; r < tile_queries; ++r) {
    const std::size_t k = r < n ? r : n - 1;
    q.rows[r] = t.queries[first + k];
    q.terms[r] = t.query_terms[first + k];
    q.matches[r] = q.counted[k];
    if (t.n_codes > 0 && r < n) count_matches(t, first + r, q.counted[r]);
  }
}

// Returns the contribution of codes, an exact integer: to a dot product the number of equal codes,
// to a distance the number of columns set in only one of the rows.
template <class Sum, bool difference>
DCSVM_INLINE typename Traits<Sum>::Vector coded_part(const DenseTile& t, const float* matches,
                                                     double term, std::size_t at) {
  const auto equal = load_lanes<Sum>(matches + at);
  if constexpr (!difference) return equal;
  return load_doubles<Sum>(t.lane_terms + at) + static_cast<Sum>(term) - (equal + equal);
}

// Returns n float values as Real: the values, or a copy converted into the buffer.
template <class Real>
DCSVM_INLINE const Real* converted(const float* values, std::size_t n, Real* buffer) {
  if constexpr (sizeof(Real) == sizeof(float)) {
    return values;
  } else {
    for (std::size_t k = 0; k < n; ++k) buffer[k] = values[k];
    return buffer;
  }
}

// Adds a chain of features to the sums of a tile: the results of gap() or of pair().
template <class Of, bool difference, class Real, std::size_t n_vectors>
DCSVM_INLINE void add_chain(const Real* const* query, const float* panel, std::size_t n,
                            typename Traits<Real>::Vector (&sum)[tile_queries][n_vectors]) {
  using Vector = typename Traits<Real>::Vector;
  for (std::size_t k = 0; k < n; ++k, panel += panel_rows) {
    Vector b[n_vectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < n_vectors; ++v) b[v] = load_lanes<Real>(panel + v * width<Real>);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < tile_queries; ++r) {
      const Vector a = broadcast<Vector>(query[r][k]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < n_vectors; ++v) {
        if constexpr (difference) {
          sum[r][v] += Of::gap(b[v], a);
        } else {
          sum[r][v] += Of::pair(a, b[v]);
        }
      }
    }
  }
}

DCSVM_INLINE std::size_t chain_end(const DenseTile& t, std::size_t begin) {
  return begin + chain_length < t.n_features ? begin + chain_length : t.n_features;
}

// Computes the arguments of n_queries queries and n_vectors vectors of lanes from `lane` on, in the
// precision of the output.
template <class Of, class Real, bool difference, std::size_t n_vectors>
DCSVM_INLINE void dense_tile(const DenseTile& t, const QueryBlock& q, std::size_t lane,
                             std::size_t n_queries, Real* out) {
  using Vector = typename Traits<Real>::Vector;
  Vector total[tile_queries][n_vectors] = {};
  if (t.n_codes > 0) {
#pragma GCC unroll 8
    for (std::size_t r = 0; r < tile_queries; ++r) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < n_vectors; ++v) {
        total[r][v] =
            coded_part<Real, difference>(t, q.matches[r], q.terms[r], lane + v * width<Real>);
      }
    }
  }
  for (std::size_t begin = 0; begin < t.n_features; begin += chain_length) {
    const std::size_t n = chain_end(t, begin) - begin;
    Real buffer[tile_queries][chain_length];
    const Real* rows[tile_queries];
    for (std::size_t r = 0; r < tile_queries; ++r)
      rows[r] = converted<Real>(q.rows[r] + begin, n, buffer[r]);
    Vector sum[tile_queries][n_vectors] = {};
    add_chain<Of, difference>(rows, t.panel + begin * panel_rows + lane, n, sum);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < tile_queries; ++r) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < n_vectors; ++v) total[r][v] += sum[r][v];
    }
  }
  for (std::size_t r = 0; r < n_queries; ++r) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      const std::size_t at = lane + v * width<Real>;
      Vector argument = total[r][v];
      if constexpr (!difference)
        argument = argument_from<Of, Real>(argument, q.terms[r], t.lane_terms + at);
      store(out + r * t.out_stride + at, argument);
    }
  }
}

DCSVM_INLINE void add_lanes(const float* part, std::size_t n, double* total) {
  for (std::size_t k = 0; k < n; k += width<double>)
    store(total + k, load<DoubleVector>(total + k) + load_lanes<double>(part + k));
}

// Computes arguments from dot products of integers. Sums over a chain are exact in float; totals
// are double, so that arguments are rounded once.
template <class Of, class Real>
DCSVM_INLINE void exact_tile(const DenseTile& t, const QueryBlock& q, std::size_t lane,
                             std::size_t n_queries, Real* out) {
  constexpr std::size_t lanes = tile_vectors * width<float>;
  double total[tile_queries][lanes] = {};
  float part[tile_queries][lanes];
  if (t.n_codes > 0) {
    for (std::size_t r = 0; r < tile_queries; ++r) add_lanes(q.matches[r] + lane, lanes, total[r]);
  }
  for (std::size_t begin = 0; begin < t.n_features; begin += chain_length) {
    const float* rows[tile_queries];
    for (std::size_t r = 0; r < tile_queries; ++r) rows[r] = q.rows[r] + begin;
    FloatVector sum[tile_queries][tile_vectors] = {};
    add_chain<Of, false>(rows, t.panel + begin * panel_rows + lane, chain_end(t, begin) - begin,
                         sum);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < tile_queries; ++r) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < tile_vectors; ++v) store(&part[r][v * width<float>], sum[r][v]);
    }
    add_lanes(part[0], tile_queries * lanes, total[0]);
  }
  for (std::size_t r = 0; r < n_queries; ++r) {
    for (std::size_t k = 0; k < lanes; k += width<double>) {
      store(total[r] + k, argument_from<Of, double>(load<DoubleVector>(total[r] + k), q.terms[r],
                                                    t.lane_terms + lane + k));
    }
    for (std::size_t k = 0; k < lanes; k += width<Real>) {
      store(out + r * t.out_stride + lane + k, load_doubles<Real>(total[r] + k));
    }
  }
}

// Computes the arguments of rows of codes alone.
template <class Of, class Real, bool difference>
static void coded_tiles(const DenseTile& t, Real* out) {
  for (std::size_t r = 0; r < t.n_queries; ++r) {
    float matches[panel_rows];
    count_matches(t, r, matches);
    for (std::size_t lane = 0; lane < panel_rows; lane += width<Real>) {
      auto argument = coded_part<Real, difference>(t, matches, t.query_terms[r], lane);
      if constexpr (!difference)
        argument = argument_from<Of, Real>(argument, t.query_terms[r], t.lane_terms + lane);
      store(out + r * t.out_stride + lane, argument);
    }
  }
}

// One function per combination: a single function took 7 % longer for rows of few features and
// codes.
template <class Of, class Real, bool difference, bool exact>
static __attribute__((noinline)) void dense_tiles(const DenseTile& t, Real* out) {
  constexpr std::size_t lanes = tile_vectors * (exact ? width<float> : width<Real>);
  if (t.n_features == 0 && t.n_codes > 0) return coded_tiles<Of, Real, difference>(t, out);
  for (std::size_t first = 0; first < t.n_queries; first += tile_queries) {
    const std::size_t n = t.n_queries - first < tile_queries ? t.n_queries - first : tile_queries;
    QueryBlock q;
    select_queries(t, first, n, q);
    Real* rows = out + first * t.out_stride;
    for (std::size_t lane = 0; lane < t.n_lanes; lane += lanes) {
      if constexpr (exact) {
        exact_tile<Of, Real>(t, q, lane, n, rows);
      } else if (t.n_lanes - lane <= width<Real>) {
        dense_tile<Of, Real, difference, 1>(t, q, lane, n, rows);
      } else {
        dense_tile<Of, Real, difference, tile_vectors>(t, q, lane, n, rows);
      }
    }
  }
}

// The function is qualified because kernel.h has one of the same name, for numbers.
template <class Real>
static void dense(const DenseTile& t, Real* out) {
  DCSVM_ISA::with_argument(t.kernel->argument, [&](auto of) {
    using Of = decltype(of);
    if constexpr (Of::is_distance) {
      if (t.form == Form::difference) return dense_tiles<Of, Real, true, false>(t, out);
    }
    if constexpr (Of::sums == Sums::products) {
      if (t.exact_products) {
        dense_tiles<Of, Real, false, true>(t, out);
      } else {
        dense_tiles<Of, Real, false, false>(t, out);
      }
    }
  });
  const std::size_t n_lanes = (t.n_lanes + width<Real> - 1) / width<Real> * width<Real>;
  take_function(*t.kernel, t.n_queries, n_lanes, t.out_stride, out);
}

// Computes kernel values of rows of bytes from the sums of byte_loop(). Arguments are integers
// below 2^30, rounded once, like in exact_tile.
template <class Real>
static void bytes(const ByteTile& t, Real* out) {
  using Vector = typename Traits<Real>::Vector;
  using Integers = typename Traits<Real>::Lanes32;
  for (std::size_t r = 0; r < t.n_queries; ++r) {
    for (std::size_t lane = 0; lane < panel_rows; lane += width<Real>) {
      const Integers argument = load<Integers>(t.sums + r * panel_rows + lane) * t.factor +
                                load<Integers>(t.lane_terms + lane) + t.query_terms[r];
      store(out + r * t.out_stride + lane, __builtin_convertvector(argument, Vector));
    }
  }
  take_function(*t.kernel, t.n_queries, panel_rows, t.out_stride, out);
}

// Sums over the stored entries of each sparse query, in float64. The panel is packed by column; its
// slots locate the query's columns, and columns that no lane has are skipped.
template <class Of, class Real>
DCSVM_INLINE void sparse_of(const SparseTile& t, Real* out) {
  constexpr std::size_t n_vectors = panel_rows / width<double>;
  for (std::size_t r = 0; r < t.n_queries; ++r) {
    DoubleVector sum[n_vectors] = {};
    const std::int64_t row = t.queries[r];
    for (std::int64_t k = t.indptr[row]; k < t.indptr[row + 1]; ++k) {
      const std::int32_t slot = t.slot[t.indices[k]];
      if (slot == 0) continue;
      const float* lanes = t.packed + static_cast<std::size_t>(slot) * panel_rows;
      const DoubleVector a = broadcast<DoubleVector>(static_cast<double>(t.values[k]));
#pragma GCC unroll 16
      for (std::size_t v = 0; v < n_vectors; ++v)
        sum[v] += Of::pair(a, load_lanes<double>(lanes + v * width<double>));
    }
    double arguments[panel_rows];
    for (std::size_t v = 0; v < n_vectors; ++v) {
      const std::size_t lane = v * width<double>;
      store(arguments + lane,
            argument_from<Of, double>(sum[v], t.query_terms[r], t.lane_terms + lane));
    }
    for (std::size_t lane = 0; lane < panel_rows; lane += width<Real>)
      store(out + r * t.out_stride + lane, load_doubles<Real>(arguments + lane));
  }
  take_function(*t.kernel, t.n_queries, panel_rows, t.out_stride, out);
}

template <class Real>
static void sparse(const SparseTile& t, Real* out) {
  DCSVM_ISA::with_argument(t.kernel->argument, [&](auto of) {
    using Of = decltype(of);
    if constexpr (!std::is_same_v<Of, NoArgument>) sparse_of<Of>(t, out);
  });
}
