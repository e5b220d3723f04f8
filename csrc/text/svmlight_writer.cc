#include "text/svmlight_writer.h"

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "threads/parallel.h"

namespace dcsvm {
namespace {

// Lines that one thread writes at a time: a line takes microseconds.
constexpr std::size_t lines_of_text = 32;

template <class Number>
void append_number(std::string& out, Number value) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void append_feature(std::string& out, std::size_t index, float value, bool float64) {
  append_number(out, index);
  out += ':';
  if (float64) {
    append_number(out, static_cast<double>(value));
  } else {
    append_number(out, value);
  }
  out += ' ';
}

// Returns whether the row lies inside the arrays according to indptr.
bool has_sound_extent(const TextCsr& rows, std::size_t row) {
  const std::int64_t begin = rows.indptr[row], end = rows.indptr[row + 1];
  return 0 <= begin && begin <= end && static_cast<std::uint64_t>(end) <= rows.n_values;
}

[[noreturn]] void fail_row(std::size_t row, const char* what) {
  throw std::invalid_argument("row " + std::to_string(row) + " " + what);
}

void append_features(std::string& out, const TextDense& rows, std::size_t row,
                     const TextLines& lines) {
  const float* values = rows.values + row * rows.n_features;
  for (std::size_t j = 0; j < rows.n_features; ++j) {
    if (!std::isfinite(values[j])) fail_row(row, "holds a value that is not finite");
    if (values[j] != 0) append_feature(out, j + lines.first_index, values[j], lines.float64);
  }
}

void append_features(std::string& out, const TextCsr& rows, std::size_t row,
                     const TextLines& lines) {
  if (!has_sound_extent(rows, row)) fail_row(row, "does not lie inside the CSR arrays");
  std::int64_t previous = -1;
  for (auto k = rows.indptr[row]; k < rows.indptr[row + 1]; ++k) {
    if (rows.indices[k] <= previous) fail_row(row, "has columns that do not ascend from 0");
    if (!std::isfinite(rows.values[k])) fail_row(row, "holds a value that is not finite");
    previous = rows.indices[k];
    if (rows.values[k] == 0) continue;
    append_feature(out, static_cast<std::size_t>(previous) + lines.first_index, rows.values[k],
                   lines.float64);
  }
}

template <class Rows>
void append_line(std::string& out, const TextLines& lines, const Rows& rows, std::size_t line) {
  const auto row = lines.row_numbers ? static_cast<std::size_t>(lines.row_numbers[line]) : line;
  if (row >= rows.n_rows) {
    throw std::out_of_range("line " + std::to_string(line) + " asks for a row that is not one of " +
                            std::to_string(rows.n_rows));
  }
  for (std::size_t k = 0; k < lines.n_prefix; ++k) {
    const double number = lines.prefix[line * lines.n_prefix + k];
    if (!std::isfinite(number)) fail_row(row, "has a prefix that is not finite");
    append_number(out, number);
    out += ' ';
  }
  append_features(out, rows, row, lines);
  out += '\n';
}

}  // namespace

template <class Rows>
void write_rows(std::string& out, const TextLines& lines, const Rows& rows, int threads) {
  std::vector<std::string> texts((lines.n_lines + lines_of_text - 1) / lines_of_text);
  parallel_for({threads, lines.n_lines, lines_of_text}, [&](std::size_t line) {
    append_line(texts[line / lines_of_text], lines, rows, line);
  });
  std::size_t size = out.size();
  for (const std::string& text : texts) size += text.size();
  out.reserve(size);
  for (const std::string& text : texts) out += text;
}

template void write_rows(std::string&, const TextLines&, const TextDense&, int);
template void write_rows(std::string&, const TextLines&, const TextCsr&, int);

void densify(const TextCsr& rows, std::size_t n_features, float* out, int threads) {
  parallel_for({threads, rows.n_rows, batch_rows}, [&](std::size_t row) {
    bool sound = has_sound_extent(rows, row);
    const auto end = sound ? rows.indptr[row + 1] : 0;
    for (auto k = sound ? rows.indptr[row] : 0; k < end; ++k) {
      const auto column = static_cast<std::size_t>(rows.indices[k]);
      if (column < n_features) {
        out[row * n_features + column] = rows.values[k];
      } else {
        sound = false;
      }
    }
    if (!sound) fail_row(row, "does not fit the matrix");
  });
}

}  // namespace dcsvm
