// Error messages for malformed lines of LIBSVM text, which quote the text.
//
// The parser (svmlight_reader.cc) calls these functions once it knows that a line is malformed;
// they find out why. Lines end in '\n'.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace dcsvm {

constexpr std::int64_t max_index = 2147483646;  // 2^31 - 2

// Line 0 means the whole text.
struct ParseError : std::runtime_error {
  ParseError(std::size_t line_number, std::size_t column_number, const std::string& reason)
      : std::runtime_error(reason), line(line_number), column(column_number) {}
  std::size_t line;
  std::size_t column;
};

// Feature index 0 in text with the first index 1.
struct ZeroIndex : ParseError {
  using ParseError::ParseError;
};

struct Line {
  const char* begin;
  std::size_t number;
};

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }
inline bool ends_line(const char* p) { return *p == '\n' || (*p == '\r' && p[1] == '\n'); }
inline bool is_comment(const char* p) { return *p == '#'; }
// Whether p begins with "qid:", the query of a row in a file for ranking.
inline bool is_query(const char* p) {
  return p[0] == 'q' && p[1] == 'i' && p[2] == 'd' && p[3] == ':';
}
inline bool ends_token(const char* p) { return is_blank(*p) || ends_line(p); }

inline const char* skip_blanks(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}

inline const char* token_end(const char* p) {
  while (!ends_token(p)) ++p;
  return p;
}

inline const char* line_end(const char* p) {
  while (*p != '\n') ++p;
  return p;
}

// Throws a ParseError for the whole text.
[[noreturn]] void fail_text(const std::string& reason);

// Throw a ParseError at `at` or `token`, a position in the line.
[[noreturn]] void fail(const Line& line, const char* at, const std::string& reason);
[[noreturn]] void fail_number(const Line& line, const char* token, const std::string& name);
[[noreturn]] void fail_prefix(const Line& line, const char* token, std::size_t position,
                              std::size_t n_prefix, const std::string& name);
[[noreturn]] void fail_index(const Line& line, const char* token, std::int64_t previous,
                             std::int64_t first_index = 1);
// For a precomputed kernel: its lines must contain every index. Index 0 is the serial number.
[[noreturn]] void fail_missing(const Line& line, const char* token, std::int64_t index);

// Returns the text in quotation marks, shortened if long, with unprintable bytes as \x41.
std::string quoted(const char* begin, const char* end);

}  // namespace dcsvm
