// Decimal numbers in text, to the nearest double or to the float nearest to that double.
//
// Few digits and a small power of ten need one exactly rounded operation (Clinger, "How to read
// floating point numbers accurately", 1990); all others go to strtod, as an integer with an
// exponent, so that the locale's decimal point never matters. Digits after the point are taken
// eight at a time (Lemire, "Number parsing at a gigabyte per second", 2021): the caller of
// scan_decimal makes sure that read_ahead bytes can be read from wherever the number ends.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace dcsvm {

constexpr std::size_t read_ahead = 8;

struct Decimal {
  const char* begin;
  const char* end;
  std::uint64_t digits;           // as one integer; meaningless with more than 19 digits
  std::int64_t n_digits;          // leading zeros included
  std::int64_t exponent;          // of ten, to be applied to `digits`
  std::int64_t written_exponent;  // the part after the "e"
  bool negative;
};

constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr std::int64_t largest_power = 22;  // the last one a double holds exactly
constexpr std::uint64_t largest_exact = std::uint64_t{1} << 53;
constexpr double float_overflow = 0x1.ffffffp127;          // from here on, rounding gives infinity
constexpr std::int64_t power_cap = std::int64_t{1} << 40;  // of what is written after an "e"

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

// Scans [sign] digits [. digits] [e [sign] digits]; false when no such number starts at p.
inline bool scan_decimal(const char* p, Decimal& number) {
  number.begin = p;
  number.negative = *p == '-';
  p += number.negative | (*p == '+');  // no branch: half of all signs would be guessed wrong
  std::uint64_t digits = 0;
  const char* start = p;
  p = scan_digits(p, digits);
  number.n_digits = p - start;
  number.exponent = 0;
  if (*p == '.') {
    start = ++p;
    p = scan_long_digits(p, digits);
    number.exponent = start - p;
    number.n_digits += p - start;
  }
  number.digits = digits;
  number.end = p;
  number.written_exponent = 0;
  if (number.n_digits == 0) return false;
  if (*p == 'e' || *p == 'E') {
    const bool down = *++p == '-';
    p += (*p == '-' || *p == '+');
    if (!is_digit(*p)) return false;
    std::int64_t power = 0;
    for (; is_digit(*p); ++p) power = std::min(power * 10 + (*p - '0'), power_cap);
    number.written_exponent = down ? -power : power;
    number.exponent += number.written_exponent;
    number.end = p;
  }
  return true;
}

// The magnitude of any decimal, correctly rounded; and the float nearest to that, which for 16 to
// 19 digits is usually found without computing it.
double exact_magnitude(const Decimal& number);
float long_magnitude(const Decimal& number);

// The value of [begin, end) as hexadecimal, "0x1.8p3" with or without a sign; false if it is none.
bool scan_hexadecimal(const char* begin, const char* end, double& value);

inline double scaled(const Decimal& number) {
  const double digits = static_cast<double>(number.digits);
  return number.exponent < 0 ? digits / powers_of_ten[-number.exponent]
                             : digits * powers_of_ten[number.exponent];
}

inline bool has_small_parts(const Decimal& number) {
  return number.n_digits <= 19 && number.exponent >= -largest_power &&
         number.exponent <= largest_power;
}

inline float round_to_float(double magnitude) {
  return magnitude < float_overflow ? static_cast<float>(magnitude)
                                    : std::numeric_limits<float>::infinity();
}

// The sign as a factor: exact, and no branch either.
inline double sign(const Decimal& number) {
  constexpr double signs[] = {1, -1};
  return signs[number.negative];
}

// Infinity when the number is too large.
inline void convert(const Decimal& number, double& value) {
  const bool fast = has_small_parts(number) && number.digits <= largest_exact;
  const double magnitude = fast ? scaled(number) : exact_magnitude(number);
  value = sign(number) * magnitude;
}

inline void convert(const Decimal& number, float& value) {
  const bool fast = has_small_parts(number) && number.digits <= largest_exact;
  const float magnitude = fast ? round_to_float(scaled(number)) : long_magnitude(number);
  value = static_cast<float>(sign(number)) * magnitude;
}

}  // namespace dcsvm
