// Eight registers of 16 x 64 bytes each. Sums of 16 queries with 16 lanes are in 0 and 1, those of
// the next 16 queries in 2 and 3; 4 and 7 hold 64 features of queries, 5 and 6 of lanes. GCC's
// intrinsics take nothing but literals for registers.
//
// Queries stay in the first-level cache from one panel to the next. Panels come from the second
// level, past the first.
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
static_assert(byte_query_group == tile_rows && panel_rows == 2 * tile_rows, "2 x 2 tiles of sums");
static_assert(byte_row_unit == tile_bytes, "whole tiles of queries");

// What the processor loads to shape its tile registers (palette 1).
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("amx-tile,amx-int8"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("amx-tile,amx-int8")
#endif

void begin() {
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) {
    shapes.rows[tile] = tile_rows;
    shapes.row_bytes[tile] = tile_bytes;
  }
  // GCC's intrinsic tells the compiler of the first bytes only
  __asm__ volatile("" : : "r"(&shapes) : "memory");
  _tile_loadconfig(&shapes);
}

// Up to two rows of tiles of sums, or, `is_single`, one.
template <bool is_single>
void multiply_tiles(const std::uint8_t* queries, std::size_t stride, const std::int8_t* lanes,
                    std::size_t n_quads, std::int32_t* out) {
  _tile_zero(0);
  _tile_zero(1);
  if (!is_single) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::size_t k = 0; k < n_quads; k += tile_quads) {
    _tile_loadd(4, queries, stride);
    _tile_stream_loadd(5, lanes, quad_stride);
    _tile_dpbusd(0, 4, 5);
    _tile_stream_loadd(6, lanes + tile_bytes, quad_stride);
    _tile_dpbusd(1, 4, 6);
    if (!is_single) {
      _tile_loadd(7, queries + tile_rows * stride, stride);
      _tile_dpbusd(2, 7, 5);
      _tile_dpbusd(3, 7, 6);
    }
    queries += tile_bytes;
    lanes += tile_quads * quad_stride;
  }
  constexpr std::size_t out_stride = panel_rows * sizeof *out;
  _tile_stored(0, out, out_stride);
  _tile_stored(1, out + tile_rows, out_stride);
  if (is_single) return;
  out += tile_rows * panel_rows;
  _tile_stored(2, out, out_stride);
  _tile_stored(3, out + tile_rows, out_stride);
}

void multiply(const std::uint8_t* queries, std::size_t stride, std::size_t n_queries,
              const std::int8_t* panel, std::size_t n_quads, std::int32_t* out) {
  if (n_queries > tile_rows) {
    multiply_tiles<false>(queries, stride, panel, n_quads, out);
  } else {
    multiply_tiles<true>(queries, stride, panel, n_quads, out);
  }
}

void end() { _tile_release(); }

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

const ByteDots* amx_byte_dots() {
  const char* name = std::getenv("DCSVM_ISA");
  const bool is_any = !name || !*name;
  static const ByteDots dots{begin, multiply, end};
  return is_any && has_amx_int8() && is_lent() ? &dots : nullptr;
}

}  // namespace dcsvm

#else

namespace dcsvm {

const ByteDots* amx_byte_dots() { return nullptr; }

}  // namespace dcsvm

#endif
