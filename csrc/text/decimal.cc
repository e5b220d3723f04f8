#include "text/decimal.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace dcsvm {

// As an integer and an exponent for strtod. Digits after the 800th can only break a tie, and a
// single 1 in their place does so too.
double exact_magnitude(const Decimal& number) {
  constexpr std::size_t kept_digits = 800;
  char text[kept_digits + 32];
  std::size_t n = 0;
  bool after_point = false, rest = false;
  std::int64_t exponent = number.written_exponent;
  for (const char* p = number.begin; p != number.end && *p != 'e' && *p != 'E'; ++p) {
    if (*p == '.') after_point = true;
    if (!is_digit(*p)) continue;
    const bool kept = n < kept_digits;
    if (kept && (n > 0 || *p != '0')) text[n++] = *p;
    if (!kept) rest = rest || *p != '0';
    exponent += (kept ? 0 : 1) - (after_point ? 1 : 0);
  }
  if (n == 0) return 0;
  if (rest) {
    text[n++] = '1';
    --exponent;
  }
  text[n++] = 'e';
  exponent = std::clamp<std::int64_t>(exponent, -100000, 100000);
  *std::to_chars(text + n, text + sizeof text - 1, exponent).ptr = '\0';
  return std::strtod(text, nullptr);
}

// scaled() is off by less than two of a double's last places. Where the doubles of that
// neighbourhood all round to one float, that float is the answer.
float long_magnitude(const Decimal& number) {
  if (has_small_parts(number)) {
    const double close = scaled(number);
    const float low = round_to_float(close * (1 - 0x1p-50));
    if (low == round_to_float(close * (1 + 0x1p-50))) return low;
  }
  return round_to_float(exact_magnitude(number));
}

bool scan_hexadecimal(const char* begin, const char* end, double& value) {
  const std::string text(begin, end);
  const std::size_t start = text[0] == '-' || text[0] == '+';
  const bool marked = text.compare(start, 2, "0x") == 0 || text.compare(start, 2, "0X") == 0;
  if (!marked || text.find_first_not_of("0123456789abcdefABCDEFxXpP.+-") != std::string::npos) {
    return false;
  }
  char* stop;
  value = std::strtod(text.c_str(), &stop);
  return stop == text.c_str() + text.size();
}

}  // namespace dcsvm
