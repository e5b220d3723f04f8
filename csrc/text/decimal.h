// Parsing of decimal numbers to the nearest double, or to the float nearest to that double.
//
// A number with few digits and a small power of ten takes one correctly rounded operation (Clinger,
// "How to read floating point numbers accurately", 1990); other numbers go to std::from_chars, or
// to strtod if the library has no from_chars for doubles. The locale is ignored. Digits after the
// point are parsed eight at a time (Lemire, "Number parsing at a gigabyte per second", 2021), which
// may read `read_ahead` bytes beyond the end of a number.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace dcsvm {

constexpr std::size_t read_ahead = 8;

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Appends the digits at p to `digits`; returns their end.
inline const char* scan_digits(const char* p, std::uint64_t& digits) {
  for (; is_digit(*p); ++p) digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
  return p;
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
// Like scan_digits(), faster for many digits.
inline const char* scan_long_digits(const char* p, std::uint64_t& digits) {
  constexpr std::uint64_t powers[] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};
  for (;;) {
    std::uint64_t bytes;
    std::memcpy(&bytes, p, read_ahead);
    bytes ^= 0x3030303030303030;
    const std::uint64_t others = ((bytes + 0x7676767676767676) | bytes) & 0x8080808080808080;
    const int n = others ? __builtin_ctzll(others) >> 3 : 8;
    if (n == 0) return p;
    bytes <<= 64 - 8 * n;  // as if preceded by zeros
    bytes = (bytes * 2561) >> 8;
    bytes = ((bytes & 0x00ff00ff00ff00ff) * 6553601) >> 16;
    bytes = ((bytes & 0x0000ffff0000ffff) * 42949672960001) >> 32;
    digits = digits * powers[n] + bytes;
    p += n;
    if (n < 8) return p;
  }
}
#else
inline const char* scan_long_digits(const char* p, std::uint64_t& digits) {
  return scan_digits(p, digits);
}
#endif

// Parses [begin, end) as [sign] digits [. digits] [e [sign] digits]; the value is infinity if it is
// too large. Returns false for other text. The next byte in memory must be a blank or a newline.
bool scan_decimal(const char* begin, const char* end, double& value);

// Parses [begin, end) as a hexadecimal number such as "0x1.8p3", with or without a sign. Returns
// false for other text.
bool scan_hexadecimal(const char* begin, const char* end, double& value);

// Parses [sign] digits [. digits] at p, with few enough digits to be exact in a double. Returns the
// end, or p for other text.
inline const char* scan_short_decimal(const char* const p, double& value) {
  constexpr double powers_of_ten[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  constexpr std::ptrdiff_t max_digits = 15;
  constexpr double signs[] = {1, -1};
  const bool negative = *p == '-';
  const char* const begin =
      p + (negative | (*p == '+'));  // without a branch, which would often be mispredicted
  std::uint64_t digits = 0;
  const char* end = scan_digits(begin, digits);
  std::ptrdiff_t n_digits = end - begin, n_decimals = 0;
  if (*end == '.') {
    const char* const decimals = end + 1;
    end = scan_long_digits(decimals, digits);
    n_decimals = end - decimals;
    n_digits += n_decimals;
  }
  if (n_digits == 0 || n_digits > max_digits) return p;
  value = signs[negative] * (static_cast<double>(digits) / powers_of_ten[n_decimals]);
  return end;
}

// Returns infinity on overflow.
inline float round_to_float(double value) {
  constexpr double overflow = 0x1.ffffffp127;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  return std::fabs(value) < overflow ? static_cast<float>(value) : value < 0 ? -infinity : infinity;
}

}  // namespace dcsvm
