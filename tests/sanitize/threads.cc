// Run the OpenMP code on generated data for the thread sanitizer: 4 threads must give the bits of
// one thread. Prints only failures.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernel/kernel_matrix.h"
#include "kernel/kernel_product.h"
#include "rows/bytes.h"
#include "rows/codes.h"
#include "rows/components.h"
#include "solver/cluster_solver.h"
#include "text/svmlight_errors.h"
#include "text/svmlight_reader.h"
#include "text/svmlight_writer.h"

using namespace dcsvm;

namespace {

constexpr int n_threads = 4;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not as with one thread, or not reached: %s\n", what);
  std::exit(1);
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Rows of small integers and a one-hot group of `flags` columns. The labels are random.
struct Data {
  Data(std::size_t rows, std::size_t numbers, std::size_t flags, int largest)
      : n(rows), d(numbers + flags), dense(n * d), y(n), row_terms(n), indptr{0} {
    std::mt19937 random(1);
    for (std::size_t i = 0; i < n; ++i) {
      float* row = dense.data() + i * d;
      for (std::size_t k = 0; k < numbers; ++k)
        row[k] = static_cast<float>(random() % static_cast<unsigned>(largest + 1));
      if (flags) row[numbers + random() % flags] = 1;
      y[i] = random() % 2 ? 1.0 : -1.0;
      for (std::size_t k = 0; k < d; ++k) {
        if (row[k] == 0) continue;
        indices.push_back(static_cast<std::int32_t>(k));
        values.push_back(row[k]);
      }
      indptr.push_back(static_cast<std::int64_t>(values.size()));
    }
  }

  Points points(bool sparse = false) {
    Points all;
    all.n_samples = n;
    all.n_features = d;
    all.row_terms = row_terms.data();
    if (!sparse) {
      all.dense = dense.data();
      all.dense_stride = d;
      return all;
    }
    all.indptr = indptr.data();
    all.indices = indices.data();
    all.values = values.data();
    return all;
  }

  std::size_t n, d;
  std::vector<float> dense;
  std::vector<double> y, row_terms;
  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> indices;
  std::vector<float> values;
};

KernelSetup fitted(Data& data, const Points& points, const Kernel& kernel) {
  const KernelSetup setup = choose_setup(points, kernel, largest_squared_norm(points, n_threads));
  compute_row_terms(points, setup, n_threads, data.row_terms.data());
  return setup;
}

void check_products(const KernelSetup& setup, const Points& points, const Cutoff& cutoff) {
  const RowList rows{&points, nullptr, points.n_samples};
  const std::vector<double> weights(rows.size, 0.5);
  for (const Precision precision : {Precision::single_tiles, Precision::double_tiles}) {
    std::vector<double> one(rows.size), several(rows.size);
    kernel_product(setup, rows, rows, {1, nullptr, nullptr, weights.data()}, precision, cutoff, 1,
                   one.data());
    kernel_product(setup, rows, rows, {1, nullptr, nullptr, weights.data()}, precision, cutoff,
                   n_threads, several.data());
    require(same(one, several), "kernel_product");
  }
  const RowList part{&points, nullptr, 300};
  std::vector<float> one(rows.size * part.size), several(one.size());
  kernel_matrix(setup, rows, part, 1, one.data());
  kernel_matrix(setup, rows, part, n_threads, several.data());
  require(same(one, several), "kernel_matrix");
}

struct Solution {
  std::vector<double> alpha, gradient, base;
  std::vector<GradientState> known;
  std::vector<SolveReport> reports;

  Iterate iterate() { return {alpha.data(), gradient.data(), base.data(), known.data()}; }
};

// Solve a C-SVC with a bias, for clusters of consecutive rows with these sizes. With a `stop`,
// every progress call brings the iterate up to date and reads it.
Solution solved(const KernelSetup& setup, const Data& data, const Points& points,
                const std::vector<std::int64_t>& sizes, double C, int threads,
                Stop* stop = nullptr) {
  std::vector<double> lower, upper;
  std::vector<std::int32_t> members;
  for (std::size_t i = 0; i < data.n; ++i) {
    lower.push_back(data.y[i] > 0 ? 0 : -C);
    upper.push_back(data.y[i] > 0 ? C : 0);
    members.push_back(static_cast<std::int32_t>(i));
  }
  const std::vector<std::int8_t> constraint_of(data.n, 0);
  std::vector<std::int64_t> start{0};
  for (const std::int64_t size : sizes) start.push_back(start.back() + size);
  BoxQP qp;
  qp.size = data.n;
  qp.linear = data.y.data();
  qp.lower = lower.data();
  qp.upper = upper.data();
  qp.constraint_of = constraint_of.data();
  qp.n_constraints = 1;
  const std::vector<double> zeros(data.n);
  Solution solution{
      zeros, zeros, zeros, std::vector<GradientState>(data.n, GradientState::unknown), {}};
  ClusterOptions options;
  options.memory_bytes = std::size_t{1} << 27;
  options.solve.n_threads = threads;
  options.solve.stop = stop;
  std::size_t n_calls = 0;
  double sum = 0;
  options.progress = [&](const ClusterProgress&) {
    ++n_calls;
    if (stop) sum += std::accumulate(solution.alpha.begin(), solution.alpha.end(), 0.0);
    return stop != nullptr;
  };
  std::vector<ClusterState> states(sizes.size());
  solve_clusters(setup, points, qp, {sizes.size(), start.data(), members.data()},
                 solution.iterate(), options, states);
  for (const ClusterState& state : states) solution.reports.push_back(state.report);
  require(stop || n_calls >= sizes.size(), "progress");
  return solution;
}

Solution check_solver(const KernelSetup& setup, const Data& data, const Points& points,
                      const std::vector<std::int64_t>& sizes, double C) {
  const Solution one = solved(setup, data, points, sizes, C, 1);
  const Solution several = solved(setup, data, points, sizes, C, n_threads);
  require(same(one.alpha, several.alpha) && same(one.gradient, several.gradient), "solve");
  for (const SolveReport& report : several.reports) require(report.converged, "convergence");
  return several;
}

void check_stop(const KernelSetup& setup, const Data& data, const Points& points,
                const std::vector<std::int64_t>& sizes) {
  for (const int milliseconds : {0, 1, 10, 100}) {
    Stop stop;
    std::thread other([&stop, milliseconds] {
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      stop.request();
    });
    solved(setup, data, points, sizes, 100, n_threads, &stop);
    other.join();
  }
}

Kernel rbf_kernel(double gamma) { return {Argument::squared_distance, Function::decay, gamma}; }

void check_kernels() {
  const Kernel rbf = rbf_kernel(0.05);
  const std::vector<std::int64_t> even(12, 100), one_large{900, 100, 100, 100}, whole{1200};
  Data data(1200, 6, 8, 9);
  for (const bool sparse : {false, true}) {
    const Points points = data.points(sparse);
    const KernelSetup setup = fitted(data, points, rbf);
    check_products(setup, points, {});
    for (const auto& sizes : {even, one_large, whole}) check_solver(setup, data, points, sizes, 1);
    for (const auto& sizes : {even, one_large}) check_stop(setup, data, points, sizes);
  }
  Points coded = data.points();
  CodeSearch search(coded.n_features);
  search.see(coded, n_threads);
  const CodedColumns columns = search.found();
  require(!columns.codes.empty(), "codes");
  std::vector<float> in_one_piece(data.n * columns.row_size() / sizeof(float));
  auto* const rows = reinterpret_cast<std::uint8_t*>(in_one_piece.data());
  encode(coded, columns, n_threads, rows);
  take_coded(columns, rows, coded);
  check_solver(fitted(data, coded, rbf), data, coded, one_large, 1);

  Points bytes = data.points();
  if (may_be_bytes(bytes.n_features, rbf.argument) && are_bytes(bytes, n_threads)) {
    std::vector<std::uint8_t> of_rows(data.n * bytes.byte_row_size());
    std::vector<std::int32_t> sums(data.n);
    encode_bytes(bytes, n_threads, of_rows.data(), sums.data());
    bytes.bytes = of_rows.data();
    bytes.byte_sums = sums.data();
    check_solver(fitted(data, bytes, rbf), data, bytes, one_large, 1);
  }
}

// More rows than a working set holds, most of them free: this runs shrinking, Newton steps with
// many variables, and a kernel row cache for sparse rows, which are expensive.
void check_large() {
  Data data(1600, 40, 0, 9);
  for (const bool sparse : {false, true}) {
    const Points points = data.points(sparse);
    const KernelSetup setup = fitted(data, points, rbf_kernel(0.0005));
    const SolveReport report = check_solver(setup, data, points, {1600}, 1e4).reports[0];
    require(report.newton_steps > 0, "Newton steps");
    require(sparse == (report.rows_reused > 0), "rows from the cache");
  }
}

void check_cluster_product(const KernelSetup& setup, const Points& points, const Cutoff& cutoff) {
  const std::size_t n = points.n_samples;
  std::vector<std::int32_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  const RowList rows{&points, numbers.data(), n};
  const auto end = static_cast<std::int64_t>(n);
  const std::vector<std::int64_t> start{0, 100, 300, end}, begin{0, 300, 300}, stop{300, 300, end};
  const ClusterRanges ranges{start.data(), begin.data(), stop.data(), 3};
  const std::vector<double> weights(n, 0.5);
  const SourceWeights all{1, nullptr, nullptr, weights.data()};
  std::vector<double> one(n), several(n);
  cluster_product(setup, rows, rows, all, ranges, Precision::single_tiles, cutoff, 1, one.data());
  cluster_product(setup, rows, rows, all, ranges, Precision::single_tiles, cutoff, n_threads,
                  several.data());
  require(same(one, several), "cluster_product");
}

void check_locality() {
  Data data(20000, 3, 0, 30);
  for (std::size_t i = 0; i < data.n; ++i) data.dense[i * data.d] += 200.0f * (i % 5);
  const Points points = data.points();
  const Distance far{2000, Argument::squared_distance};
  const Components one = find_components(points, far, 10, 1 << 20, 1);
  const Components several = find_components(points, far, 10, 1 << 20, n_threads);
  require(one.start.size() == 6, "groups");
  require(same(one.order, several.order) && same(one.start, several.start), "find_components");
  const RowList ordered{&points, several.order.data(), several.order.size()};
  require(share_apart(ordered, far, 100, 1) == share_apart(ordered, far, 100, n_threads),
          "share_apart");
  const KernelSetup setup = fitted(data, points, rbf_kernel(0.05));
  const Cutoff cutoff{{500}, 1e-10};
  check_products(setup, points, cutoff);
  check_cluster_product(setup, points, cutoff);
}

// Reordering, comparing and hashing of rows, half of which are equal to others.
void check_rows() {
  Data data(5000, 4, 0, 9);
  const std::size_t n = data.n, row_bytes = data.d * sizeof(float);
  std::vector<std::int32_t> order(n), first(n), other(n);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(2));
  std::vector<float> one = data.dense, several = data.dense;
  const auto bytes = [](std::vector<float>& rows) {
    return reinterpret_cast<std::uint8_t*>(rows.data());
  };
  reorder_rows(bytes(one), row_bytes, order.data(), n, 1);
  reorder_rows(bytes(several), row_bytes, order.data(), n, n_threads);
  require(same(one, several), "reorder_rows");
  const std::vector<std::uint64_t> factors{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9,
                                           0x94d049bb133111eb, 0xd6e8feb86659fd93};
  std::vector<std::uint32_t> words(n * data.d);
  std::memcpy(words.data(), several.data(), n * row_bytes);
  std::vector<std::uint64_t> keys(n), again(n);
  hash_rows(words.data(), n, data.d, factors.data(), data.d, 1, keys.data());
  hash_rows(words.data(), n, data.d, factors.data(), data.d, n_threads, again.data());
  require(same(keys, again), "hash_rows");
  find_first_equal(keys.data(), n, 1, first.data());
  find_first_equal(keys.data(), n, n_threads, other.data());
  require(same(first, other), "find_first_equal");
  std::iota(order.begin(), order.end(), 0);
  require(!same(first, order) &&
              are_equal_rows(bytes(several), row_bytes, order.data(), first.data(), n, n_threads),
          "are_equal_rows");
}

void check_reader() {
  const Data data(1000, 6, 8, 9);
  std::string written;
  const TextLines lines{data.y.data(), 1, nullptr, data.n};
  write_rows(written, lines, TextDense{data.dense.data(), data.n, data.d}, n_threads);
  const TextFormat format{1, "label", 1, false};
  const auto scanned = [](const std::string& text) {
    return scan_text({text.data(), -1, 0, text.size()}, n_threads, 512);
  };
  const Text text = scanned(written);
  require(text.chunks.size() > 10 && text.n_rows == data.n, "chunks");
  std::vector<double> labels(data.n);
  std::vector<float> dense(data.n * data.d), values(text.n_pairs);
  std::vector<std::int64_t> indptr(data.n + 1);
  std::vector<std::int32_t> indices(text.n_pairs);
  parse_dense(text, format, labels.data(), dense.data(), n_threads);
  require(same(labels, data.y) && same(dense, data.dense), "parse_dense");
  const CsrTarget<float> rows{indptr.data(), indices.data(), values.data()};
  parse_csr(text, format, labels.data(), rows, n_threads);
  require(same(indptr, data.indptr) && same(values, data.values), "parse_csr");
  std::fill(dense.begin(), dense.end(), 0.0f);
  densify({indptr.data(), indices.data(), values.data(), data.n, values.size()}, data.d,
          dense.data(), n_threads);
  require(same(dense, data.dense), "densify");

  std::string damaged = written;
  for (std::size_t at = damaged.size() / 3; at < damaged.size(); at += 999) damaged[at] = 'x';
  try {
    parse_csr(scanned(damaged), format, labels.data(), rows, n_threads);
    require(false, "an error");
  } catch (const ParseError& error) {
    require(error.line > 300 && error.line < 400, "the first error");
  }
}

}  // namespace

int main() {
  check_reader();
  check_locality();
  check_rows();
  check_kernels();
  check_large();
}
