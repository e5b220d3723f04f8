// Compiles amx_byte_dots_impl.h for the processor's tile registers, which Linux grants to a process
// on request, and for emulated ones: see amx_byte_dots.h. Sums of integers are exact, so all loops
// for dot products give the same bits.
#include "simd/amx_byte_dots.h"

#include <array>
#include <cstring>

#include "system/processor.h"

namespace dcsvm {

constexpr std::size_t tile_rows = 16, tile_bytes = 64;
constexpr std::size_t batch = byte_batch(Sums::products), tile_batches = tile_bytes / batch;
constexpr std::size_t batch_stride = panel_rows * batch;  // from one batch of a panel to the next
static_assert(byte_query_group == tile_rows && panel_rows == 2 * tile_rows &&
                  byte_queries == 2 * tile_rows,
              "two by two tiles of sums");
static_assert(max_byte_row_unit >= tile_bytes, "whole tiles are read at the end of a panel");

namespace {

// An emulated register, as rows of bytes, and the instructions on it.
using Tile = std::array<std::array<std::uint8_t, tile_bytes>, tile_rows>;

thread_local std::array<Tile, 8> tiles;

void load(Tile& tile, const void* from, std::size_t stride) {
  for (std::size_t row = 0; row < tile_rows; ++row)
    std::memcpy(tile[row].data(), static_cast<const char*>(from) + row * stride, tile_bytes);
}

void store(const Tile& tile, void* to, std::size_t stride) {
  for (std::size_t row = 0; row < tile_rows; ++row)
    std::memcpy(static_cast<char*>(to) + row * stride, tile[row].data(), tile_bytes);
}

// sums[row][lane] += unsigned queries[row][4 k + i] * signed lanes[k][4 lane + i] for all k and i
void add(Tile& sums, const Tile& queries, const Tile& lanes) {
  for (std::size_t row = 0; row < tile_rows; ++row) {
    for (std::size_t lane = 0; lane < tile_rows; ++lane) {
      std::int32_t sum;
      std::memcpy(&sum, &sums[row][lane * sizeof sum], sizeof sum);
      for (std::size_t k = 0; k < tile_bytes; ++k) {
        const std::uint8_t value = lanes[k / batch][lane * batch + k % batch];
        sum += queries[row][k] * static_cast<std::int8_t>(value);
      }
      std::memcpy(&sums[row][lane * sizeof sum], &sum, sizeof sum);
    }
  }
}

void nothing() {}

}  // namespace

}  // namespace dcsvm

#define DCSVM_AMX emulated
#define DCSVM_TILE_ZERO(tile) tiles[tile] = Tile()
#define DCSVM_TILE_LOAD(tile, from, stride) load(tiles[tile], from, stride)
#define DCSVM_TILE_STREAM(tile, from, stride) load(tiles[tile], from, stride)
#define DCSVM_TILE_STORE(tile, to, stride) store(tiles[tile], to, stride)
#define DCSVM_TILE_ADD(sums, queries, lanes) add(tiles[sums], tiles[queries], tiles[lanes])
#include "simd/amx_byte_dots_impl.h"

namespace dcsvm {

const ByteLoop& emulated_byte_dots() {
  static const ByteLoop loop{"amx_emulated", tile_bytes, nothing, emulated::sum, nothing};
  return loop;
}

}  // namespace dcsvm

#if defined(DCSVM_LENDS_TILES) && __has_include(<amxint8intrin.h>)

#include <cpuid.h>
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("amx-tile,amx-int8"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("amx-tile,amx-int8")
#endif

#define DCSVM_AMX amx
#define DCSVM_TILE_ZERO(tile) _tile_zero(tile)
#define DCSVM_TILE_LOAD(tile, from, stride) _tile_loadd(tile, from, stride)
#define DCSVM_TILE_STREAM(tile, from, stride) _tile_stream_loadd(tile, from, stride)
#define DCSVM_TILE_STORE(tile, to, stride) _tile_stored(tile, to, stride)
#define DCSVM_TILE_ADD(sums, queries, lanes) _tile_dpbusd(sums, queries, lanes)
#include "simd/amx_byte_dots_impl.h"

namespace dcsvm {

// Operand of the instruction that sets the shapes of the tile registers (palette 1).
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

static void shape_tiles() {
  TileShapes shapes;
  for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
    shapes.rows[tile] = tile_rows;
    shapes.row_bytes[tile] = tile_bytes;
  }
  // GCC's intrinsic declares only the first bytes as input
  __asm__ volatile("" : : "r"(&shapes) : "memory");
  _tile_loadconfig(&shapes);
}

static void release_tiles() { _tile_release(); }

}  // namespace dcsvm

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace dcsvm {

static bool has_amx_int8() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned tile = 1u << 24, int8 = 1u << 25;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & tile) && (edx & int8);
}

const ByteLoop* amx_byte_dots() {
  static const ByteLoop loop{"amx", tile_bytes, shape_tiles, amx::sum, release_tiles};
  return wanted_isa().empty() && has_amx_int8() && borrow_tiles() ? &loop : nullptr;
}

}  // namespace dcsvm

#else

namespace dcsvm {

const ByteLoop* amx_byte_dots() { return nullptr; }

}  // namespace dcsvm

#endif
