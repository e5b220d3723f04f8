// How a LIBSVM text is to be read: what stands before the features, and how strictly.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dcsvm {

// Lines of a precomputed kernel are 0:serial_number, then the columns 1, 2, 3, ... with none left
// out. Serial numbers for `training` are those of columns; `any` may be any number.
enum class Serials { none, training, any };

struct TextFormat {
  std::size_t n_prefix;     // numbers before the features of a line, at least 1
  const char* prefix_name;  // what such a number is called in errors
  std::size_t first_line;   // number of the first line, for errors
  bool lenient;             // accept what LIBSVM's reader drops or reads differently
  Serials serials = Serials::none;
  std::int64_t first_index = 1;  // of the features, 0 or 1: the column 0 of rows

  // Numbers a line has in `prefix`: the serial number is the last of them.
  std::size_t prefix_size() const { return n_prefix + (serials != Serials::none); }
};

}  // namespace dcsvm
