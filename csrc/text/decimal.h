// Decimal numbers in text, to the nearest double or to the float nearest to that double.
//
// Few digits and a small power of ten need one exactly rounded operation (Clinger, "How to read
// floating point numbers accurately", 1990); all others go to std::from_chars, or to strtod where
// the library has none for doubles. The locale's decimal point never matters. Digits after the
// point are taken eight at a time (Lemire, "Number parsing at a gigabyte per second", 2021):
// read_ahead bytes can be read from wherever a number ends.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace dcsvm {

constexpr std::size_t read_ahead = 8;

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Appends the digits at p to `digits`; returns where they end.
inline const char* scan_digits(const char* p, std::uint64_t& digits) {
  for (; is_digit(*p); ++p) digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
  return p;
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
// The same where there are usually many digits.
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
    bytes <<= 64 - 8 * n;  // as if zeros stood before the digits
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

// The value of [begin, end), [sign] digits [. digits] [e [sign] digits]; infinity where it is too
// large. False where it is no such number. What follows in memory must be a blank or a newline.
bool scan_decimal(const char* begin, const char* end, double& value);

// The value of [begin, end) as hexadecimal, "0x1.8p3" with or without a sign; false if it is none.
bool scan_hexadecimal(const char* begin, const char* end, double& value);

// Scans [sign] digits [. digits] at p, with at most so many digits that a double is exact. Returns
// where it ends; p where there is no such number.
inline const char* scan_short_decimal(const char* const p, double& value) {
  constexpr double powers_of_ten[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  constexpr std::ptrdiff_t max_digits = 15;
  constexpr double signs[] = {1, -1};
  const bool negative = *p == '-';
  const char* const begin =
      p + (negative | (*p == '+'));  // no branch, half of which would be wrong
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

// Infinity from where rounding gives that.
inline float round_to_float(double value) {
  constexpr double overflow = 0x1.ffffffp127;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  return std::fabs(value) < overflow ? static_cast<float>(value) : value < 0 ? -infinity : infinity;
}

}  // namespace dcsvm
