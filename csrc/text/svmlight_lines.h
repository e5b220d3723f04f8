// One line of LIBSVM text, parsed: the prefix, then index:value pairs, or all values of a
// precomputed kernel. Fast where the line is well formed; a fault goes to svmlight_errors.h.
//
// Numbers go to `rows`, anything with store(column, value), as they are read. Lines end in '\n',
// and read_ahead bytes can be read after that: no bounds are checked. For svmlight_reader.cc only.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "text/decimal.h"
#include "text/svmlight_errors.h"
#include "text/text_format.h"

namespace dcsvm {

// Scans the number that is the token at p, and moves p to its end.
template <class Number>
inline bool scan_number(const char*& p, bool lenient, Number& value) {
  double found;
  const char* end = scan_short_decimal(p, found);
  if (end == p || !ends_token(end)) {
    end = token_end(p);
    if (!scan_decimal(p, end, found) && !(lenient && scan_hexadecimal(p, end, found))) return false;
  }
  if constexpr (std::is_same_v<Number, float>) {
    value = round_to_float(found);
  } else {
    value = found;
  }
  p = end;
  return true;
}

inline const char* parse_prefix(const char* p, const Line& line, const TextFormat& format,
                                double* prefix) {
  for (std::size_t k = 0; k < format.n_prefix; ++k) {
    const char* token = p = skip_blanks(p);
    if (!scan_number(p, format.lenient, prefix[k])) {
      fail_prefix(line, token, k, format.n_prefix, format.prefix_name);
    }
    if (std::isinf(prefix[k])) {
      fail(line, token, format.prefix_name + (" " + quoted(token, p)) + " is too large");
    }
  }
  return p;
}

template <class Number>
inline const char* parse_value(const char* p, const Line& line, const char* token, bool lenient,
                               Number& value) {
  if (lenient) p = skip_blanks(p);
  if (ends_token(p)) fail(line, token, "no value after the colon in " + quoted(token, p));
  const char* begin = p;
  if (!scan_number(p, lenient, value)) fail_number(line, begin, "value");
  if (std::isinf(value)) {
    const bool single = std::numeric_limits<Number>::digits == 24;
    fail(line, begin,
         "value " + quoted(begin, p) + " is too large" + (single ? " for float32" : ""));
  }
  return p;
}

// Where the line ends, if the rest of it from p is words that LIBSVM's reader drops, which have no
// colon; else null.
inline const char* end_of_dropped(const char* p) {
  for (; !ends_line(p); ++p) {
    if (*p == ':' || *p == '\0') return nullptr;
  }
  return p;
}

// The number at p, which moves past it; above largest_index it is not read to its end.
inline std::int64_t scan_index(const char*& p) {
  std::int64_t index = 0;
  p += *p == '+';
  for (; is_digit(*p) && index <= largest_index; ++p) index = index * 10 + (*p - '0');
  return index;
}

template <class Number, class Rows>
inline const char* parse_features(const char* p, const Line& line, const TextFormat& format,
                                  Rows& rows, std::int64_t previous) {
  const std::int64_t last_index = largest_index + format.first_index - 1;
  for (p = skip_blanks(p); !ends_line(p); p = skip_blanks(p)) {
    const char* token = p;
    const std::int64_t index = scan_index(p);
    if (*p != ':' || index <= previous || index > last_index) {
      const char* end = format.lenient ? end_of_dropped(token) : nullptr;
      if (end != nullptr) return end;
      fail_index(line, token, previous, format.first_index);
    }
    Number value;
    p = parse_value(p + 1, line, token, format.lenient, value);
    previous = index;
    if (value != 0) rows.store(index - format.first_index, value);
  }
  return p;
}

// Returns where the value of "index:value" at token begins.
inline const char* expect_index(const char* token, const Line& line, std::int64_t expected) {
  const char* p = token;
  if (ends_line(p)) fail_missing(line, token, expected);
  const std::int64_t index = scan_index(p);
  const bool is_index = *p == ':' && p != token && is_digit(p[-1]);
  if (is_index && index > expected && index <= largest_index) fail_missing(line, token, expected);
  if (!is_index || index != expected) fail_index(line, token, expected - 1);
  return p + 1;
}

// The serial number and all columns of a precomputed kernel.
template <class Number, class Rows>
const char* parse_kernel_values(const char* p, const Line& line, const TextFormat& format,
                                std::int64_t n_columns, double& serial, Rows& rows) {
  const char* token = skip_blanks(p);
  p = parse_value(expect_index(token, line, 0), line, token, format.lenient, serial);
  const bool is_column =
      serial >= 1 && serial <= static_cast<double>(n_columns) && serial == std::floor(serial);
  if (format.serials == Serials::training && !is_column) {
    fail(line, token,
         "the serial number in " + quoted(token, p) + " is not one of the columns 1 to " +
             std::to_string(n_columns));
  }
  for (std::int64_t column = 1; column <= n_columns; ++column) {
    token = skip_blanks(p);
    Number value;
    p = parse_value(expect_index(token, line, column), line, token, format.lenient, value);
    if (value != 0) rows.store(column - 1, value);
  }
  return p;
}

}  // namespace dcsvm
