#include "rows/components.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rows/box_tree.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

using Node = BoxTree::Node;

// Every row whose number is a multiple of this begins a piece of a cycle of a permutation.
constexpr std::size_t piece_rows = 256;
constexpr int part_bits = 5;  // of a key: its part, which one thread takes

// Connected components of leaves that are not provably apart.
class UnionFind {
 public:
  UnionFind(BoxTree& tree, double distance)
      : tree_(tree), distance_(distance), parent_(tree.n_leaves()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    // nodes of one level have different leaves
    tree_.from_leaves(1, [&](std::size_t at) {
      const Node& parent = node(static_cast<std::int32_t>(at));
      if (parent.left >= 0) connect(parent.left, parent.right);
    });
  }

  // Returns the leaf that represents the component of a leaf.
  std::int32_t find(std::int32_t leaf) {
    while (parent(leaf) != leaf) {
      parent(leaf) = parent(parent(leaf));
      leaf = parent(leaf);
    }
    return leaf;
  }

 private:
  std::int32_t& parent(std::int32_t leaf) { return parent_[static_cast<std::size_t>(leaf)]; }
  Node& node(std::int32_t at) { return tree_.node(at); }

  // Returns whether all leaves of a node are in one component.
  bool is_one(std::int32_t at) {
    Node& n = node(at);
    if (!n.is_one_component) {
      n.is_one_component = node(n.left).is_one_component && node(n.right).is_one_component &&
                           find(node(n.left).leaf) == find(node(n.right).leaf);
    }
    return n.is_one_component;
  }

  // Joins the components of leaves of two nodes that are not provably apart.
  void connect(std::int32_t first, std::int32_t second) {
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs{{first, second}};
    while (!pairs.empty()) {
      const auto [a, b] = pairs.back();
      pairs.pop_back();
      if (is_one(a) && is_one(b) && find(node(a).leaf) == find(node(b).leaf)) continue;
      if (tree_.distance(a, b) >= distance_) continue;
      const bool a_is_leaf = node(a).left < 0, b_is_leaf = node(b).left < 0;
      if (a_is_leaf && b_is_leaf) {
        parent(find(node(a).leaf)) = find(node(b).leaf);
        continue;
      }
      const bool divide_a = b_is_leaf || (!a_is_leaf && tree_.diameter(a) >= tree_.diameter(b));
      const Node divided = node(divide_a ? a : b);
      const std::int32_t other = divide_a ? b : a;
      pairs.emplace_back(divided.left, other);
      pairs.emplace_back(divided.right, other);
    }
  }

  BoxTree& tree_;
  double distance_;
  std::vector<std::int32_t> parent_;
};

// Returns all leaves by component, in the order of their rows. Components are in the order of their
// first rows.
std::vector<std::int32_t> by_component(const BoxTree& tree, UnionFind& components) {
  std::vector<std::int32_t> leaves(tree.n_leaves());
  std::iota(leaves.begin(), leaves.end(), 0);
  std::vector<std::size_t> first(leaves.size(), tree.order().size());
  for (const std::int32_t leaf : leaves) {
    std::size_t& at = first[static_cast<std::size_t>(components.find(leaf))];
    at = std::min(at, tree.leaf(leaf).begin);
  }
  std::sort(leaves.begin(), leaves.end(), [&](std::int32_t a, std::int32_t b) {
    const std::size_t first_a = first[static_cast<std::size_t>(components.find(a))],
                      first_b = first[static_cast<std::size_t>(components.find(b))];
    return first_a != first_b ? first_a < first_b : tree.leaf(a).begin < tree.leaf(b).begin;
  });
  return leaves;
}

}  // namespace

Components find_components(const Points& points, const Distance& distance,
                           std::size_t min_component, std::size_t memory_bytes, int n_threads) {
  BoxTree tree(points, distance.argument, memory_bytes, n_threads);
  if (tree.diameter(0) < distance.value)
    return {tree.order(), {0, static_cast<std::int64_t>(points.n_samples)}};
  tree.grow(distance.value);
  UnionFind components(tree, distance.value);
  Components groups;
  groups.start.push_back(0);
  std::int32_t previous = -1;
  for (const std::int32_t leaf : by_component(tree, components)) {
    const std::int32_t component = components.find(leaf);
    const auto n = static_cast<std::int64_t>(groups.order.size());
    if (component != previous &&
        n - groups.start.back() >= static_cast<std::int64_t>(min_component))
      groups.start.push_back(n);
    previous = component;
    const Node& node = tree.leaf(leaf);
    groups.order.insert(groups.order.end(),
                        tree.order().begin() + static_cast<std::ptrdiff_t>(node.begin),
                        tree.order().begin() + static_cast<std::ptrdiff_t>(node.end));
  }
  groups.start.push_back(static_cast<std::int64_t>(groups.order.size()));
  return groups;
}

std::vector<std::int32_t> neighbour_order(const Points& points, int n_threads) {
  BoxTree tree(points, default_distance, std::numeric_limits<std::size_t>::max(), n_threads);
  tree.grow(std::numeric_limits<double>::infinity());
  return tree.order();
}

// Follows the cycles of the permutation, from each piece's first row to that of the next piece.
void reorder_rows(std::uint8_t* rows, std::size_t row_bytes, const std::int32_t* order,
                  std::size_t n_rows, int n_threads) {
  std::vector<std::uint8_t> is_left(n_rows, 0);  // not bits: threads write neighbours
  const auto source = [order](std::size_t i) { return static_cast<std::size_t>(order[i]); };
  for (std::size_t i = 0; i < n_rows; ++i) is_left[source(i)] = 1;
  if (std::count(is_left.begin(), is_left.end(), 0) > 0)
    throw std::invalid_argument("an order of rows names every row once");
  const auto take = [&](const std::uint8_t* row, std::size_t to) {
    std::copy_n(row, row_bytes, rows + to * row_bytes);
    is_left[to] = 0;
  };
  const std::size_t n_pieces = (n_rows + piece_rows - 1) / piece_rows;
  std::vector<std::uint8_t> first(n_pieces * row_bytes);
  parallel_for({n_threads, n_pieces, batch_rows}, [&](std::size_t piece) {
    std::copy_n(rows + piece * piece_rows * row_bytes, row_bytes, first.data() + piece * row_bytes);
  });
  parallel_for({n_threads, n_pieces}, [&](std::size_t piece) {
    std::size_t to = piece * piece_rows;
    for (std::size_t from; (from = source(to)) % piece_rows != 0; to = from)
      take(rows + from * row_bytes, to);
    take(first.data() + source(to) / piece_rows * row_bytes, to);
  });
  // short cycles without the first row of a piece
  std::vector<std::uint8_t> aside(row_bytes);
  for (std::size_t start = 0; start < n_rows; ++start) {
    if (!is_left[start] || source(start) == start) continue;
    std::copy_n(rows + start * row_bytes, row_bytes, aside.data());
    std::size_t to = start;
    for (std::size_t from; (from = source(to)) != start; to = from)
      take(rows + from * row_bytes, to);
    take(aside.data(), to);
  }
}

void hash_rows(const std::uint32_t* words, std::size_t n_rows, std::size_t stride,
               const std::uint64_t* factors, std::size_t n_words, int n_threads,
               std::uint64_t* hashes) {
  parallel_for({n_threads, n_rows, batch_rows}, [&](std::size_t i) {
    const std::uint32_t* row = words + i * stride;
    std::uint64_t hash = 0;
    for (std::size_t k = 0; k < n_words; ++k) {
      const std::uint64_t word = row[k];
      hash += (word ^ (word >> 15)) * factors[k];
    }
    hashes[i] = hash ^ (hash >> 32);
  });
}

bool are_equal_rows(const std::uint8_t* rows, std::size_t row_bytes, const std::int32_t* first,
                    const std::int32_t* second, std::size_t n, int n_threads) {
  std::atomic<bool> are_equal{true};
  parallel_for({n_threads, n, batch_rows}, [&](std::size_t i) {
    const auto row = [&](std::int32_t number) {
      return rows + static_cast<std::size_t>(number) * row_bytes;
    };
    if (std::memcmp(row(first[i]), row(second[i]), row_bytes) != 0) are_equal = false;
  });
  return are_equal;
}

// Each thread takes the keys of a part, in order, into a hash table of its own (linear probing).
void find_first_equal(const std::uint64_t* keys, std::size_t n, int n_threads,
                      std::int32_t* first) {
  parallel_for({n_threads, std::size_t{1} << part_bits}, [&](std::size_t part) {
    std::vector<std::size_t> members;
    members.reserve(n >> (part_bits - 1));
    for (std::size_t i = 0; i < n; ++i) {
      if (keys[i] >> (64 - part_bits) == part) members.push_back(i);
    }
    std::size_t size = 1;
    while (size < 2 * members.size()) size *= 2;
    std::vector<std::int32_t> table(size, -1);
    for (const std::size_t i : members) {
      std::size_t slot = keys[i] & (size - 1);
      const auto other = [&] { return static_cast<std::size_t>(table[slot]); };
      while (table[slot] >= 0 && keys[other()] != keys[i]) slot = (slot + 1) & (size - 1);
      if (table[slot] < 0) table[slot] = static_cast<std::int32_t>(i);
      first[i] = table[slot];
    }
  });
}

}  // namespace dcsvm
