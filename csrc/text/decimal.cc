#include "text/decimal.h"

#include <charconv>
#include <string>

#include "system/text.h"

namespace dcsvm {

bool scan_decimal(const char* begin, const char* end, double& value) {
  const bool negative = *begin == '-';
  const char* const digits = begin + (negative || *begin == '+');
  if (!is_digit(*digits) && *digits != '.') return false;  // infinity, or a second sign
#if defined(__cpp_lib_to_chars)
  const auto [stop, error] = std::from_chars(digits, end, value);
  if (stop != end || error == std::errc::invalid_argument) return false;
  const bool is_done = error != std::errc::result_out_of_range;
#else
  if (digits[1] == 'x' || digits[1] == 'X') return false;
  const bool is_done = false;
#endif
  char* last = nullptr;
  if (!is_done)
    value = parse_in_c_locale(
        digits, &last);  // from_chars does not distinguish 0 from infinity when out of range
  if (negative) value = -value;
  return is_done || last == end;
}

bool scan_hexadecimal(const char* begin, const char* end, double& value) {
  const std::string text(begin, end);
  const std::size_t start = text[0] == '-' || text[0] == '+';
  const bool marked = text.compare(start, 2, "0x") == 0 || text.compare(start, 2, "0X") == 0;
  if (!marked || text.find_first_not_of("0123456789abcdefABCDEFxXpP.+-") != std::string::npos) {
    return false;
  }
  char* stop;
  value = parse_in_c_locale(text.c_str(), &stop);
  return stop == text.c_str() + text.size();
}

}  // namespace dcsvm
