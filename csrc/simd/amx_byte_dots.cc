// Eight registers of 16 x 64 bytes each. Sums of 16 queries with 16 lanes are in 0 and 1, those of
// the next 16 queries in 2 and 3; 4 and 5 hold 64 features of queries and of lanes, 6 and 7 the
// features that are left. GCC's intrinsics take nothing but literals for registers.
#include "simd/amx_byte_dots.h"

#if defined(__x86_64__) && defined(__linux__) && __has_include(<amxint8intrin.h>)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "simd/isa.h"

namespace dcsvm {

namespace {

constexpr std::size_t tile_rows = 16, tile_bytes = 64;
constexpr std::size_t tile_quads = tile_bytes / bytes_at_once;
// of a row of a panel: four features of panel_rows rows
constexpr std::size_t quad_stride = panel_rows * bytes_at_once;
static_assert(byte_queries == tile_rows && panel_rows == 2 * tile_rows, "2 x 2 tiles of sums");

// What the processor loads to shape its tile registers (palette 1).
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  void set(int tile, std::size_t n_rows, std::size_t n_bytes) {
    rows[tile] = static_cast<std::uint8_t>(n_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(n_bytes);
  }
};

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("amx-tile,amx-int8"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("amx-tile,amx-int8")
#endif

void shape_tiles(std::size_t rest_quads) {
  TileShapes shapes;
  for (int tile = 0; tile < 6; ++tile) shapes.set(tile, tile_rows, tile_bytes);
  if (rest_quads > 0) {
    shapes.set(6, tile_rows, rest_quads * bytes_at_once);
    shapes.set(7, rest_quads, tile_bytes);
  }
  _tile_loadconfig(&shapes);
}

// Two rows of tiles of sums, or, `is_single`, only the first.
template <bool is_single>
void two_tiles(const std::uint8_t* query, std::size_t stride, const std::int8_t* lanes,
               std::size_t n_quads, std::int32_t* out) {
  const std::size_t next = tile_rows * stride;
  _tile_zero(0);
  _tile_zero(1);
  if (!is_single) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::size_t k = n_quads / tile_quads; k > 0;
       --k, query += tile_bytes, lanes += tile_quads * quad_stride) {
    _tile_loadd(4, query, stride);
    _tile_loadd(5, lanes, quad_stride);
    _tile_dpbusd(0, 4, 5);
    _tile_loadd(5, lanes + tile_bytes, quad_stride);
    _tile_dpbusd(1, 4, 5);
    if (is_single) continue;
    _tile_loadd(4, query + next, stride);
    _tile_dpbusd(3, 4, 5);
    _tile_loadd(5, lanes, quad_stride);
    _tile_dpbusd(2, 4, 5);
  }
  if (n_quads % tile_quads > 0) {
    _tile_loadd(6, query, stride);
    _tile_loadd(7, lanes, quad_stride);
    _tile_dpbusd(0, 6, 7);
    _tile_loadd(7, lanes + tile_bytes, quad_stride);
    _tile_dpbusd(1, 6, 7);
    if (!is_single) {
      _tile_loadd(6, query + next, stride);
      _tile_dpbusd(3, 6, 7);
      _tile_loadd(7, lanes, quad_stride);
      _tile_dpbusd(2, 6, 7);
    }
  }
  constexpr std::size_t out_stride = panel_rows * sizeof *out;
  _tile_stored(0, out, out_stride);
  _tile_stored(1, out + tile_rows, out_stride);
  if (is_single) return;
  out += tile_rows * panel_rows;
  _tile_stored(2, out, out_stride);
  _tile_stored(3, out + tile_rows, out_stride);
}

void tile_dots(const std::uint8_t* queries, std::size_t stride, std::size_t n_queries,
               const std::int8_t* panel, std::size_t n_quads, std::int32_t* out) {
  shape_tiles(n_quads % tile_quads);
  for (std::size_t first = 0; first < n_queries; first += 2 * tile_rows) {
    const std::uint8_t* query = queries + first * stride;
    std::int32_t* to = out + first * panel_rows;
    if (n_queries - first > tile_rows) {
      two_tiles<false>(query, stride, panel, n_quads, to);
    } else {
      two_tiles<true>(query, stride, panel, n_quads, to);
    }
  }
  _tile_release();
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

bool has_amx_int8() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned tile = 1u << 24, int8 = 1u << 25;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & tile) && (edx & int8);
}

// Linux lends the large registers to a process that asks for them, for all of its threads.
bool is_lent() {
  constexpr long request_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace

ByteDots amx_byte_dots() {
  const char* name = std::getenv("DCSVM_ISA");
  const bool is_any = !name || !*name;
  return is_any && has_amx_int8() && is_lent() ? tile_dots : nullptr;
}

}  // namespace dcsvm

#else

namespace dcsvm {

ByteDots amx_byte_dots() { return nullptr; }

}  // namespace dcsvm

#endif
