// Reading: the text is cut at newlines into chunks, the chunks are parsed side by side, and their
// arrays are joined in order. Every scanning loop below relies on one fact and checks no bounds:
// each line it sees ends in '\n' (an unfinished last line is copied and finished first).
//
// Numbers: few digits and a small power of ten need one exactly rounded operation (Clinger, "How
// to read floating point numbers accurately", 1990); all others go to strtod, as an integer with
// an exponent, so that the locale's decimal point never matters.
#include "svmlight.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <limits>
#include <utility>

namespace dcsvm {
namespace {

constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr std::int64_t kLargestPower = 22;  // the last one a double holds exactly
constexpr std::uint64_t kLargestExact = std::uint64_t{1} << 53;
constexpr double kFloatOverflow = 0x1.ffffffp127;  // from here on, rounding gives infinity
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kLargestIndex = 2147483646;         // 2^31 - 2
constexpr std::int64_t kPowerCap = std::int64_t{1} << 40;  // of what is written after an "e"
constexpr std::size_t kChunkBytes = std::size_t{1} << 18;
constexpr std::size_t kMostChunks = 1024;
constexpr std::size_t kQuotedChars = 30;

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_blank(char c) { return c == ' ' || c == '\t'; }
inline bool ends_line(const char* p) { return *p == '\n' || (*p == '\r' && p[1] == '\n'); }
inline bool ends_token(const char* p) { return is_blank(*p) || ends_line(p); }

inline const char* skip_blanks(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}

const char* token_end(const char* p) {
  while (!ends_token(p)) ++p;
  return p;
}

// ---------------------------------------------------------------------------------- numbers

struct Decimal {
  const char* begin;
  const char* end;
  std::uint64_t digits;           // as one integer; meaningless with more than 19 digits
  std::int64_t n_digits;          // leading zeros included
  std::int64_t exponent;          // of ten, to be applied to `digits`
  std::int64_t written_exponent;  // the part after the "e"
  bool negative;
};

// Scans [sign] digits [. digits] [e [sign] digits]; false when no such number starts at p.
inline bool scan_decimal(const char* p, Decimal& number) {
  number.begin = p;
  number.negative = *p == '-';
  p += (*p == '-' || *p == '+');
  std::uint64_t digits = 0;
  const char* start = p;
  for (; is_digit(*p); ++p) digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
  number.n_digits = p - start;
  number.exponent = 0;
  if (*p == '.') {
    start = ++p;
    for (; is_digit(*p); ++p) digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
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
    for (; is_digit(*p); ++p) power = std::min(power * 10 + (*p - '0'), kPowerCap);
    number.written_exponent = down ? -power : power;
    number.exponent += number.written_exponent;
    number.end = p;
  }
  return true;
}

// The magnitude of any decimal, correctly rounded. Digits after the 800th can only break a tie,
// which a single 1 in their place does as well.
double exact_magnitude(const Decimal& number) {
  constexpr std::size_t kDigits = 800;
  char text[kDigits + 32];
  std::size_t n = 0;
  bool after_point = false, rest = false;
  std::int64_t exponent = number.written_exponent;
  for (const char* p = number.begin; p != number.end && *p != 'e' && *p != 'E'; ++p) {
    if (*p == '.') after_point = true;
    if (!is_digit(*p)) continue;
    const bool kept = n < kDigits;
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

inline double scaled(const Decimal& number) {
  const double digits = static_cast<double>(number.digits);
  return number.exponent < 0 ? digits / kPowersOfTen[-number.exponent]
                             : digits * kPowersOfTen[number.exponent];
}

inline bool has_small_parts(const Decimal& number) {
  return number.n_digits <= 19 && number.exponent >= -kLargestPower &&
         number.exponent <= kLargestPower;
}

// Infinity when the number is too large.
inline double to_double(const Decimal& number) {
  const bool fast = has_small_parts(number) && number.digits <= kLargestExact;
  const double magnitude = fast ? scaled(number) : exact_magnitude(number);
  return number.negative ? -magnitude : magnitude;
}

inline float round_to_float(double magnitude) {
  return magnitude < kFloatOverflow ? static_cast<float>(magnitude) : kInfinity;
}

// 16 to 19 digits: scaled() is off by less than two of a double's last places. Where the doubles
// of that neighbourhood all round to one float, that float is the answer.
float long_magnitude(const Decimal& number) {
  if (has_small_parts(number)) {
    const double close = scaled(number);
    const float low = round_to_float(close * (1 - 0x1p-50));
    if (low == round_to_float(close * (1 + 0x1p-50))) return low;
  }
  return round_to_float(exact_magnitude(number));
}

inline float to_float(const Decimal& number) {
  const bool fast = has_small_parts(number) && number.digits <= kLargestExact;
  const float magnitude = fast ? round_to_float(scaled(number)) : long_magnitude(number);
  return number.negative ? -magnitude : magnitude;
}

// ----------------------------------------------------------------------------------- errors

struct Line {
  const char* begin;
  std::size_t number;
};

std::string quoted(const char* begin, const char* end) {
  std::string text = "\"";
  for (const char* p = begin; p != end; ++p) {
    const auto byte = static_cast<unsigned char>(*p);
    if (text.size() > kQuotedChars) return text + "...\"";
    if (byte >= 0x20 && byte < 0x7f) {
      text += *p;
    } else {
      const char* hex = "0123456789abcdef";
      text.append("\\x").append(1, hex[byte >> 4]).append(1, hex[byte & 15]);
    }
  }
  return text + "\"";
}

[[noreturn]] void fail(const Line& line, const char* at, const std::string& reason) {
  throw ParseError(line.number, static_cast<std::size_t>(at - line.begin) + 1, reason);
}

// Reports what is wrong with the token at `begin` whatever was expected there, if anything is.
void fail_if_alien(const Line& line, const char* begin) {
  const char* end = token_end(begin);
  const char* nul = std::find(begin, end, '\0');
  if (nul != end) fail(line, nul, "the line contains a NUL byte");
  if (*begin != '#') return;
  while (!ends_line(end)) ++end;
  fail(line, begin, "comments are not accepted: " + quoted(begin, end));
}

[[noreturn]] void fail_number(const Line& line, const char* token, const std::string& name) {
  fail_if_alien(line, token);
  const char* end = token_end(token);
  std::string word(token + (*token == '-' || *token == '+'), end);
  for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  const bool special = word == "nan" || word == "inf" || word == "infinity";
  fail(line, token,
       name + " " + quoted(token, end) + (special ? " is not finite" : " is not a decimal number"));
}

[[noreturn]] void fail_prefix(const Line& line, const char* token, std::size_t position,
                              std::size_t n_prefix, const std::string& name) {
  fail_if_alien(line, token);
  const char* end = token_end(token);
  if (token != end && std::find(token, end, ':') == end) fail_number(line, token, name);
  std::string reason = "missing " + name;
  if (n_prefix > 1) {
    reason += " " + std::to_string(position + 1) + " of " + std::to_string(n_prefix);
  }
  fail(line, token, token == end ? reason : reason + " before " + quoted(token, end));
}

[[noreturn]] void fail_index(const Line& line, const char* token, std::int64_t previous) {
  fail_if_alien(line, token);
  const char* end = token_end(token);
  const char* colon = std::find(token, end, ':');
  const std::string text = quoted(token, end);
  if (colon == end) fail(line, token, "no colon in " + text + ", expected index:value");
  if (colon == token) fail(line, token, "no index before the colon in " + text);
  const char* digits = token + (*token == '-' || *token == '+');
  if (digits == colon || !std::all_of(digits, colon, is_digit)) {
    fail(line, token, "the index in " + text + " is not a whole number");
  }
  digits = std::find_if(digits, colon, [](char c) { return c != '0'; });
  if (*token == '-' || digits == colon) {
    fail(line, token, "feature indices start at 1, found " + text);
  }
  const std::string index(digits, digits + std::min<std::ptrdiff_t>(colon - digits, 11));
  if (index.size() > 10 || std::stoll(index) > kLargestIndex) {
    fail(line, token, "the index in " + text + " is above " + std::to_string(kLargestIndex));
  }
  fail(line, token, "indices must ascend: " + index + " follows " + std::to_string(previous));
}

// ------------------------------------------------------------------------------------ lines

struct Prefix {
  std::size_t count;
  const char* name;
};

inline const char* parse_prefix(const char* p, const Line& line, const Prefix& prefix,
                                TextRows& rows) {
  for (std::size_t k = 0; k < prefix.count; ++k) {
    p = skip_blanks(p);
    Decimal number;
    if (!scan_decimal(p, number) || !ends_token(number.end)) {
      fail_prefix(line, p, k, prefix.count, prefix.name);
    }
    const double value = to_double(number);
    if (std::isinf(value)) {
      fail(line, p, prefix.name + (" " + quoted(p, number.end)) + " is too large");
    }
    rows.prefix.push_back(value);
    p = number.end;
  }
  return p;
}

inline const char* parse_value(const char* p, const Line& line, const char* token, float& value) {
  Decimal number;
  if (ends_token(p)) fail(line, token, "no value after the colon in " + quoted(token, p));
  if (!scan_decimal(p, number) || !ends_token(number.end)) fail_number(line, p, "value");
  value = to_float(number);
  if (std::isinf(value)) {
    fail(line, p, "value " + quoted(p, number.end) + " is too large for float32");
  }
  return number.end;
}

inline const char* parse_features(const char* p, const Line& line, TextRows& rows) {
  std::int64_t previous = 0;
  for (p = skip_blanks(p); !ends_line(p); p = skip_blanks(p)) {
    const char* token = p;
    std::int64_t index = 0;
    p += *p == '+';
    for (; is_digit(*p) && index <= kLargestIndex; ++p) index = index * 10 + (*p - '0');
    if (*p != ':' || index <= previous || index > kLargestIndex) fail_index(line, token, previous);
    float value;
    p = parse_value(p + 1, line, token, value);
    previous = index;
    if (value == 0) continue;
    rows.indices.push_back(static_cast<std::int32_t>(index - 1));
    rows.values.push_back(value);
  }
  rows.n_features = std::max(rows.n_features, static_cast<std::int32_t>(previous));
  return p;
}

// ----------------------------------------------------------------------------------- chunks

struct Chunk {
  const char* begin;
  const char* end;
  TextRows rows;
  std::exception_ptr error;
};

// Cuts lines into chunks; where it cuts depends on the text alone.
std::vector<Chunk> split(const char* begin, const char* end) {
  const auto size = static_cast<std::size_t>(end - begin);
  const std::size_t target = std::max(kChunkBytes, size / kMostChunks + 1);
  std::vector<Chunk> chunks;
  while (begin != end) {
    const auto left = static_cast<std::size_t>(end - begin);
    const char* last = begin + std::min(target, left) - 1;
    const char* newline =
        static_cast<const char*>(std::memchr(last, '\n', static_cast<std::size_t>(end - last)));
    chunks.push_back({begin, newline + 1, {}, nullptr});
    begin = newline + 1;
  }
  return chunks;
}

void parse_chunk(Chunk& chunk, const Prefix& prefix) {
  TextRows& rows = chunk.rows;
  Line line{chunk.begin, 0};
  rows.indptr.push_back(0);
  while (line.begin != chunk.end) {
    const char* p = skip_blanks(line.begin);
    if (ends_line(p)) fail(line, line.begin, "blank line");
    p = parse_prefix(p, line, prefix, rows);
    p = parse_features(p, line, rows);
    rows.indptr.push_back(static_cast<std::int64_t>(rows.indices.size()));
    line = {p + (*p == '\r') + 1, line.number + 1};
  }
}

// Parses all chunks up to the first bad one, and perhaps some after it.
void parse_chunks(std::vector<Chunk>& chunks, const Prefix& prefix, int threads) {
  std::atomic<std::size_t> first_bad{chunks.size()};
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1) num_threads(std::max(threads, 1))
#else
  static_cast<void>(threads);
#endif
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (i > first_bad.load()) continue;
    try {
      parse_chunk(chunks[i], prefix);
    } catch (...) {
      chunks[i].error = std::current_exception();
      std::size_t seen = first_bad.load();
      while (i < seen && !first_bad.compare_exchange_weak(seen, i)) {
      }
    }
  }
}

void throw_first_error(const std::vector<Chunk>& chunks, std::size_t first_line) {
  for (const Chunk& chunk : chunks) {
    try {
      if (chunk.error) std::rethrow_exception(chunk.error);
    } catch (const ParseError& error) {
      throw ParseError(first_line + error.line, error.column, error.what());
    }
    first_line += chunk.rows.indptr.size() - 1;
  }
}

template <class T>
void append(std::vector<T>& all, const std::vector<T>& part) {
  all.insert(all.end(), part.begin(), part.end());
}

// Joins the chunks in order, giving each one's memory back as soon as it is copied.
TextRows join(std::vector<Chunk>& chunks, std::size_t n_prefix) {
  if (chunks.size() == 1) {
    chunks[0].rows.n_prefix = n_prefix;
    return std::move(chunks[0].rows);
  }
  std::size_t n_rows = 0, n_values = 0;
  for (const Chunk& chunk : chunks) {
    n_rows += chunk.rows.indptr.size() - 1;
    n_values += chunk.rows.values.size();
  }
  TextRows all;
  all.n_prefix = n_prefix;
  all.prefix.reserve(n_rows * n_prefix);
  all.indptr.reserve(n_rows + 1);
  all.indices.reserve(n_values);
  all.values.reserve(n_values);
  all.indptr.push_back(0);
  for (Chunk& chunk : chunks) {
    const TextRows part = std::move(chunk.rows);
    const auto offset = static_cast<std::int64_t>(all.values.size());
    for (std::size_t r = 1; r < part.indptr.size(); ++r)
      all.indptr.push_back(part.indptr[r] + offset);
    append(all.prefix, part.prefix);
    append(all.indices, part.indices);
    append(all.values, part.values);
    all.n_features = std::max(all.n_features, part.n_features);
  }
  return all;
}

// ---------------------------------------------------------------------------------- writing

template <class Number>
void append_number(std::string& out, Number value) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void append_feature(std::string& out, std::size_t column, float value) {
  append_number(out, column + 1);
  out += ':';
  append_number(out, value);
  out += ' ';
}

// Whether the row lies inside the arrays, as indptr says.
bool has_sound_extent(const TextCsr& rows, std::size_t row) {
  const std::int64_t begin = rows.indptr[row], end = rows.indptr[row + 1];
  return 0 <= begin && begin <= end && static_cast<std::uint64_t>(end) <= rows.n_values;
}

[[noreturn]] void fail_row(std::size_t row, const char* what) {
  throw std::invalid_argument("row " + std::to_string(row) + " " + what);
}

void append_features(std::string& out, const TextDense& rows, std::size_t row) {
  const float* values = rows.values + row * rows.n_features;
  for (std::size_t j = 0; j < rows.n_features; ++j) {
    if (!std::isfinite(values[j])) fail_row(row, "holds a value that is not finite");
    if (values[j] != 0) append_feature(out, j, values[j]);
  }
}

void append_features(std::string& out, const TextCsr& rows, std::size_t row) {
  if (!has_sound_extent(rows, row)) fail_row(row, "does not lie inside the CSR arrays");
  std::int64_t previous = -1;
  for (auto k = rows.indptr[row]; k < rows.indptr[row + 1]; ++k) {
    if (rows.indices[k] <= previous) fail_row(row, "has columns that do not ascend from 0");
    if (!std::isfinite(rows.values[k])) fail_row(row, "holds a value that is not finite");
    previous = rows.indices[k];
    if (rows.values[k] == 0) continue;
    append_feature(out, static_cast<std::size_t>(previous), rows.values[k]);
  }
}

template <class Rows>
void append_lines(std::string& out, const TextLines& lines, const Rows& rows) {
  for (std::size_t line = 0; line < lines.n_lines; ++line) {
    const auto row = lines.row_numbers ? static_cast<std::size_t>(lines.row_numbers[line]) : line;
    if (row >= rows.n_rows) {
      throw std::out_of_range("line " + std::to_string(line) +
                              " asks for a row that is not one of " + std::to_string(rows.n_rows));
    }
    for (std::size_t k = 0; k < lines.n_prefix; ++k) {
      const double number = lines.prefix[line * lines.n_prefix + k];
      if (!std::isfinite(number)) fail_row(row, "has a prefix that is not finite");
      append_number(out, number);
      out += ' ';
    }
    append_features(out, rows, row);
    out += '\n';
  }
}

}  // namespace

TextRows parse_rows(const char* begin, const char* end, std::size_t n_prefix,
                    std::size_t first_line, int threads, const char* prefix_name) {
  if (n_prefix == 0) throw std::invalid_argument("n_prefix must be at least 1, got 0");
  if (begin == end) throw ParseError(first_line, 1, "no rows");
  const char* body_end =
      std::find(std::make_reverse_iterator(end), std::make_reverse_iterator(begin), '\n').base();
  std::vector<Chunk> chunks = split(begin, body_end);
  std::string unfinished(body_end, end);
  if (!unfinished.empty()) {
    unfinished += '\n';
    chunks.push_back({unfinished.data(), unfinished.data() + unfinished.size(), {}, nullptr});
  }
  parse_chunks(chunks, {n_prefix, prefix_name}, threads);
  throw_first_error(chunks, first_line);
  return join(chunks, n_prefix);
}

void densify(const TextCsr& rows, std::size_t n_features, float* out, int threads) {
  std::size_t first_bad = rows.n_rows;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(std::max(threads, 1)) \
    reduction(min : first_bad)
#else
  static_cast<void>(threads);
#endif
  for (std::size_t row = 0; row < rows.n_rows; ++row) {
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
    if (!sound) first_bad = std::min(first_bad, row);
  }
  if (first_bad != rows.n_rows) fail_row(first_bad, "does not fit the matrix");
}

void write_rows(std::string& out, const TextLines& lines, const TextDense& rows) {
  append_lines(out, lines, rows);
}

void write_rows(std::string& out, const TextLines& lines, const TextCsr& rows) {
  append_lines(out, lines, rows);
}

}  // namespace dcsvm
