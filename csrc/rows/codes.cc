#include "rows/codes.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "rows/features.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

constexpr std::size_t columns_of_code = 254;  // at most: codes 0 to 253; no_code and its lane twin
// What the search may cost: the table of column pairs takes 16 MiB, the comparisons a few seconds.
constexpr std::size_t most_columns = 4096;
constexpr double most_comparisons = 1e9;  // pairs of ones in a row, over all rows

enum ColumnKind : std::uint8_t { zero = 0, binary = 1, other = 2 };

// Calls visit(accumulator, row) for all rows, which are cut into fixed parts with an accumulator
// each: the result does not depend on the threads.
template <class Accumulator, class Visit>
std::vector<Accumulator> over_rows(const Points& points, int n_threads, const Accumulator& empty,
                                   Visit visit) {
  constexpr std::size_t n_parts = 16;
  std::vector<Accumulator> parts(n_parts, empty);
  parallel_for({n_threads, n_parts}, [&](std::size_t p) {
    const std::size_t begin = points.n_samples * p / n_parts,
                      end = points.n_samples * (p + 1) / n_parts;
    for (std::size_t i = begin; i < end; ++i) visit(parts[p], features_of(points, i));
  });
  return parts;
}

struct Columns {
  std::vector<std::uint8_t> kind;
  double comparisons = 0;
};

Columns classify(const Points& points, int n_threads) {
  const std::size_t d = points.n_features;
  const auto parts = over_rows(
      points, n_threads, Columns{std::vector<std::uint8_t>(d, zero), 0},
      [d](Columns& seen, const float* row) {
        double ones = 0;
        for (std::size_t k = 0; k < d; ++k) {
          const std::uint8_t kind = row[k] == 0.0f ? zero : row[k] == 1.0f ? binary : other;
          seen.kind[k] = std::max(seen.kind[k], kind);
          ones += kind == binary;
        }
        seen.comparisons += 0.5 * ones * ones;
      });
  Columns all{std::vector<std::uint8_t>(d, zero), 0};
  for (const Columns& part : parts) {
    for (std::size_t k = 0; k < d; ++k) all.kind[k] = std::max(all.kind[k], part.kind[k]);
    all.comparisons += part.comparisons;
  }
  return all;
}

// together[a * n + b], a < b: some row has both columns set. One table for all threads, since it
// may be large; they only set entries.
std::vector<std::atomic<bool>> set_together(const Points& points,
                                            const std::vector<std::int32_t>& columns,
                                            int n_threads) {
  const std::size_t n = columns.size();
  std::vector<std::atomic<bool>> together(n * n);
  over_rows(points, n_threads, nullptr, [&columns, &together, n](std::nullptr_t, const float* row) {
    std::vector<std::size_t> ones;
    for (std::size_t b = 0; b < n; ++b) {
      if (row[columns[b]] == 0.0f) continue;
      for (const std::size_t a : ones) {
        std::atomic<bool>& entry = together[a * n + b];
        if (!entry.load(std::memory_order_relaxed)) entry.store(true, std::memory_order_relaxed);
      }
      ones.push_back(b);
    }
  });
  return together;
}

// Assigns columns greedily, in their order, to codes: each to the latest that has no column set
// together with it, since neighbouring columns usually belong together.
std::vector<std::vector<std::size_t>> assign_codes(const std::vector<std::atomic<bool>>& together,
                                                   std::size_t n) {
  std::vector<std::vector<std::size_t>> codes;
  for (std::size_t b = 0; b < n; ++b) {
    const auto fits = [&together, n, b](const std::vector<std::size_t>& code) {
      return code.size() < columns_of_code &&
             std::none_of(
                 code.begin(), code.end(),
                 [&](std::size_t a) {
                   return together[a * n + b].load(std::memory_order_relaxed);
                 });
    };
    const auto found = std::find_if(codes.rbegin(), codes.rend(), fits);
    if (found == codes.rend()) {
      codes.push_back({b});
    } else {
      found->push_back(b);
    }
  }
  return codes;
}

}  // namespace

CodedColumns find_codes(const Points& points, int n_threads) {
  CodedColumns result;
  const Columns columns = classify(points, n_threads);
  std::vector<std::int32_t> candidates;
  for (std::size_t k = 0; k < points.n_features; ++k) {
    if (columns.kind[k] == binary) candidates.push_back(static_cast<std::int32_t>(k));
    if (columns.kind[k] == other) result.numeric.push_back(static_cast<std::int32_t>(k));
  }
  if (candidates.size() > most_columns || columns.comparisons > most_comparisons) {
    result.numeric.insert(result.numeric.end(), candidates.begin(), candidates.end());
  } else {
    const std::vector<std::atomic<bool>> together = set_together(points, candidates, n_threads);
    for (const std::vector<std::size_t>& code : assign_codes(together, candidates.size())) {
      if (code.size() == 1) {
        result.numeric.push_back(candidates[code[0]]);
        continue;
      }
      result.codes.emplace_back();
      for (const std::size_t a : code) result.codes.back().push_back(candidates[a]);
    }
  }
  std::sort(result.numeric.begin(), result.numeric.end());
  return result;
}

void find_fitting(const Points& points, const CodedColumns& columns, int n_threads,
                  std::uint8_t* fits, double* squares) {
  std::vector<bool> is_listed(points.n_features, false);
  for (const std::int32_t k : columns.numeric) is_listed[static_cast<std::size_t>(k)] = true;
  for (const std::vector<std::int32_t>& members : columns.codes) {
    for (const std::int32_t k : members) is_listed[static_cast<std::size_t>(k)] = true;
  }
  std::vector<std::size_t> others;
  for (std::size_t k = 0; k < points.n_features; ++k) {
    if (!is_listed[k]) others.push_back(k);
  }
  const auto fits_code = [](const float* row, const std::vector<std::int32_t>& members) {
    int ones = 0;
    bool are_binary = true;
    for (const std::int32_t k : members) {
      ones += row[k] == 1.0f;
      are_binary &= row[k] == 0.0f || row[k] == 1.0f;
    }
    return are_binary && ones <= 1;
  };
  parallel_for({n_threads, points.n_samples, rows_at_once}, [&](std::size_t i) {
    const float* row = features_of(points, i);
    fits[i] = std::all_of(columns.codes.begin(), columns.codes.end(),
                          [&](const auto& members) { return fits_code(row, members); });
    squares[i] = 0;
    for (const std::size_t k : others) squares[i] += static_cast<double>(row[k]) * row[k];
  });
}

void encode(const Points& points, const CodedColumns& columns, int n_threads, float* numeric,
            std::uint8_t* codes) {
  const std::size_t n_numeric = columns.numeric.size(), n_codes = columns.codes.size();
  parallel_for({n_threads, points.n_samples, rows_at_once}, [&](std::size_t at) {
    const float* row = features_of(points, at);
    for (std::size_t k = 0; k < n_numeric; ++k)
      numeric[at * n_numeric + k] = row[columns.numeric[k]];
    for (std::size_t c = 0; c < n_codes; ++c) {
      const std::vector<std::int32_t>& members = columns.codes[c];
      std::uint8_t code = no_code;
      for (std::size_t k = 0; k < members.size(); ++k) {
        if (row[members[k]] != 0.0f) code = static_cast<std::uint8_t>(k);
      }
      codes[at * n_codes + c] = code;
    }
  });
}

}  // namespace dcsvm
