// Open files, and numbers in text whatever the locale.
#pragma once

#include <locale.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__APPLE__) || defined(__FreeBSD__)
#include <xlocale.h>
#endif

#include <cstddef>

namespace dcsvm {

// Reads at most `size` bytes of an open file from `offset`, without moving its position. Returns
// their number, 0 at the end of the file, or -1 after an error, with errno.
inline std::ptrdiff_t read_at(int file, char* out, std::size_t size, std::size_t offset) {
  return pread(file, out, size, static_cast<off_t>(offset));
}

// Parses a number with a decimal point; sets `stop` to its end.
inline double parse_in_c_locale(const char* text, char** stop) {
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return strtod_l(text, stop, c_locale);
}

}  // namespace dcsvm
