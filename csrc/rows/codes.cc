#include "rows/codes.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "rows/points.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

constexpr std::size_t columns_of_code = no_code;  // maximum
// Limits of the search: the table of column pairs takes 16 MiB, the comparisons a few seconds.
constexpr std::size_t max_columns = 4096;
constexpr double max_comparisons = 1e9;  // pairs of ones in a row, over all rows

constexpr std::size_t scanned_at_once = 256, rows_seen_together = std::size_t{1} << 14;

// Values that a thread scans at once. For fewer, another thread takes longer to begin than to scan,
// and a time slice if another program has its core.
constexpr std::size_t values_at_once = std::size_t{1} << 14;

// Returns the bits of a float, which compare without a branch, unlike floats with NaN.
std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
bool is_zero(std::uint32_t bits) { return bits << 1 == 0; }

enum ColumnKind : std::uint8_t { zero = 0, binary = 1, other = 2 };

// Calls visit(column, value) for the nonzero values of a row.
template <class Visit>
void for_each_value(const Points& points, std::size_t row, const Visit& visit) {
  const float* x = features_of(points, row);
  for (std::size_t begin = 0; begin < points.n_features; begin += scanned_at_once) {
    const std::size_t end = std::min(begin + scanned_at_once, points.n_features);
    std::uint32_t places[scanned_at_once];  // columns, found without a branch per value
    std::size_t n = 0;
    for (std::size_t k = begin; k < end; ++k) {
      places[n] = static_cast<std::uint32_t>(k);
      n += x[k] != 0.0f;
    }
    for (std::size_t at = 0; at < n; ++at) visit(std::size_t{places[at]}, x[places[at]]);
  }
}

// Calls visit(accumulator, row) for points first to before last. The rows are cut into fixed parts
// with one accumulator each, so the result does not depend on the number of threads.
template <class Accumulator, class Visit>
std::vector<Accumulator> over_rows(const Points& points, std::size_t first, std::size_t last,
                                   int n_threads, const Accumulator& empty, Visit visit) {
  constexpr std::size_t n_parts = 16;
  std::vector<Accumulator> parts(n_parts, empty);
  const std::size_t values_of_part = (last - first) * points.n_features / n_parts;
  const std::size_t parts_at_once = 1 + values_at_once / (values_of_part + 1);
  parallel_for({n_threads, n_parts, parts_at_once}, [&](std::size_t p) {
    const std::size_t begin = first + (last - first) * p / n_parts,
                      end = first + (last - first) * (p + 1) / n_parts;
    for (std::size_t i = begin; i < end; ++i) visit(parts[p], i);
  });
  return parts;
}

}  // namespace

CodeSearch::CodeSearch(std::size_t n_features)
    : kinds_(n_features, zero),
      ones_(n_features),
      together_(n_features <= max_columns ? n_features * n_features : 0) {}

void CodeSearch::see(const Points& part, int n_threads) {
  for (std::size_t begin = 0; begin < part.n_samples; begin += rows_seen_together) {
    const std::size_t end = std::min(begin + rows_seen_together, part.n_samples);
    count(part, begin, end, n_threads);
    if (!is_too_much()) compare(part, begin, end, n_threads);
  }
}

bool CodeSearch::is_too_much() const {
  return kinds_.size() > max_columns || comparisons_ > max_comparisons;
}

void CodeSearch::count(const Points& part, std::size_t begin, std::size_t end, int n_threads) {
  struct Seen {
    std::vector<std::uint8_t> kinds;
    std::vector<std::int64_t> ones;
    double comparisons = 0;
  };
  const Seen empty{kinds_, std::vector<std::int64_t>(kinds_.size()), 0};
  const std::vector<Seen> parts =
      over_rows(part, begin, end, n_threads, empty, [&](Seen& seen, std::size_t row) {
        double ones = 0;
        for_each_value(part, row, [&](std::size_t k, float value) {
          const std::uint8_t kind = value == 1.0f ? binary : other;
          seen.kinds[k] = std::max(seen.kinds[k], kind);
          seen.ones[k] += kind == binary;
          ones += kind == binary;
        });
        seen.comparisons += 0.5 * ones * ones;
      });
  for (const Seen& seen : parts) {
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      kinds_[k] = std::max(kinds_[k], seen.kinds[k]);
      ones_[k] += seen.ones[k];
    }
    comparisons_ += seen.comparisons;
  }
  n_rows_ += static_cast<std::int64_t>(end - begin);
}

void CodeSearch::compare(const Points& part, std::size_t begin, std::size_t end, int n_threads) {
  const std::size_t d = kinds_.size();
  over_rows(part, begin, end, n_threads, std::vector<std::size_t>(),
            [&](auto& ones, std::size_t row) {
              ones.clear();
              for_each_value(part, row, [&](std::size_t b, float) {
                if (kinds_[b] != binary) return;
                for (const std::size_t a : ones) {
                  std::atomic<bool>& entry = together_[std::min(a, b) * d + std::max(a, b)];
                  if (!entry.load(std::memory_order_relaxed))
                    entry.store(true, std::memory_order_relaxed);
                }
                ones.push_back(b);
              });
            });
}

bool CodeSearch::fits(const std::vector<std::int32_t>& code, std::int32_t column) const {
  return !is_too_much() && code.size() < columns_of_code &&
         std::none_of(
             code.begin(), code.end(),
             [&](std::int32_t other_column) {
               const auto a = static_cast<std::size_t>(other_column);
               return together_[a * kinds_.size() + static_cast<std::size_t>(column)].load(
                   std::memory_order_relaxed);
             });
}

CodedColumns CodeSearch::found() const {
  CodedColumns result;
  std::int64_t n_set = 0;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const auto column = static_cast<std::int32_t>(k);
    if (kinds_[k] == other) result.numeric.push_back(column);
    if (kinds_[k] != binary) continue;
    n_set += ones_[k];
    // the latest, since neighbouring columns usually belong together
    const auto latest = std::find_if(result.codes.rbegin(), result.codes.rend(),
                                     [&](const auto& code) { return fits(code, column); });
    if (latest == result.codes.rend()) {
      result.codes.push_back({column});
    } else {
      latest->push_back(column);
    }
  }
  result.mean_set = n_rows_ > 0 ? static_cast<double>(n_set) / static_cast<double>(n_rows_) : 0;
  return result;
}

void find_fitting(const Points& points, const CodedColumns& columns, Argument argument,
                  int n_threads, std::uint8_t* fits, double* others) {
  std::vector<bool> is_listed(points.n_features, false);
  for (const std::int32_t k : columns.numeric) is_listed[static_cast<std::size_t>(k)] = true;
  for (const std::vector<std::int32_t>& members : columns.codes) {
    for (const std::int32_t k : members) is_listed[static_cast<std::size_t>(k)] = true;
  }
  std::vector<std::size_t> unlisted;
  for (std::size_t k = 0; k < points.n_features; ++k) {
    if (!is_listed[k]) unlisted.push_back(k);
  }
  const std::uint32_t bits_of_one = bits_of(1.0f);
  const auto fits_code = [=](const float* row, const std::vector<std::int32_t>& members) {
    int ones = 0, others = 0;
    for (const std::int32_t k : members) {
      const std::uint32_t bits = bits_of(row[k]);
      ones += bits == bits_of_one;
      others += !is_zero(bits);
    }
    return others == ones && ones <= 1;
  };
  parallel_for({n_threads, points.n_samples, batch_rows}, [&](std::size_t i) {
    const float* row = features_of(points, i);
    fits[i] = std::all_of(columns.codes.begin(), columns.codes.end(),
                          [&](const auto& members) { return fits_code(row, members); });
    others[i] = 0;
    with_distance(argument, [&](auto of) {
      for (const std::size_t k : unlisted) others[i] += of.row_term(double{row[k]});
    });
  });
}

void encode(const Points& points, const CodedColumns& columns, int n_threads, std::uint8_t* rows) {
  const std::size_t n_numeric = columns.numeric.size(), row_size = columns.row_size();
  parallel_for({n_threads, points.n_samples, batch_rows}, [&](std::size_t i) {
    const float* row = features_of(points, i);
    std::uint8_t *const to = rows + i * row_size, *const codes = to + sizeof(float) * n_numeric;
    std::fill(codes, to + row_size, std::uint8_t{0});
    for (std::size_t k = 0; k < n_numeric; ++k)
      std::memcpy(to + sizeof(float) * k, row + columns.numeric[k], sizeof(float));
    for (std::size_t c = 0; c < columns.codes.size(); ++c) {
      const std::vector<std::int32_t>& members = columns.codes[c];
      std::uint8_t code = no_code;  // one column at a time, without a branch per value
      for (std::size_t m = 0; m < members.size(); ++m)
        code = is_zero(bits_of(row[members[m]])) ? code : static_cast<std::uint8_t>(m);
      codes[c] = code;
    }
  });
}

void take_coded(const CodedColumns& columns, const std::uint8_t* rows, Points& points) {
  const CodedRow first = columns.row(rows, 0);
  points.dense = first.numeric;
  points.dense_stride = columns.row_size() / sizeof(float);
  points.dense_bytes = nullptr;
  points.is_mapped = false;
  points.n_features = columns.numeric.size();
  points.n_codes = columns.codes.size();
  points.mean_set = columns.mean_set;
  points.codes = first.codes;
  points.codes_stride = columns.row_size();
}

}  // namespace dcsvm
