#include "text/svmlight_errors.h"

#include <algorithm>

#include "text/decimal.h"

namespace dcsvm {
namespace {

constexpr std::size_t max_quoted = 30;

// Throws if the token at `begin` is invalid in any position: a NUL byte or a comment.
void fail_if_alien(const Line& line, const char* begin) {
  const char* end = token_end(begin);
  const char* nul = std::find(begin, end, '\0');
  if (nul != end) fail(line, nul, "the line contains a NUL byte");
  if (*begin != '#') return;
  while (!ends_line(end)) ++end;
  fail(line, begin, "comments are not accepted: " + quoted(begin, end));
}

}  // namespace

std::string quoted(const char* begin, const char* end) {
  std::string text = "\"";
  for (const char* p = begin; p != end; ++p) {
    const auto byte = static_cast<unsigned char>(*p);
    if (text.size() > max_quoted) return text + "...\"";
    if (byte >= 0x20 && byte < 0x7f) {
      text += *p;
    } else {
      const char* hex = "0123456789abcdef";
      text.append("\\x").append(1, hex[byte >> 4]).append(1, hex[byte & 15]);
    }
  }
  return text + "\"";
}

void fail_text(const std::string& reason) { throw ParseError(0, 0, reason); }

void fail(const Line& line, const char* at, const std::string& reason) {
  throw ParseError(line.number, static_cast<std::size_t>(at - line.begin) + 1, reason);
}

void fail_number(const Line& line, const char* token, const std::string& name) {
  fail_if_alien(line, token);
  const char* end = token_end(token);
  std::string word(token + (*token == '-' || *token == '+'), end);
  for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  const bool special = word == "nan" || word == "inf" || word == "infinity";
  fail(line, token,
       name + " " + quoted(token, end) + (special ? " is not finite" : " is not a decimal number"));
}

void fail_prefix(const Line& line, const char* token, std::size_t position, std::size_t n_prefix,
                 const std::string& name) {
  fail_if_alien(line, token);
  const char* end = token_end(token);
  if (token != end && std::find(token, end, ':') == end) fail_number(line, token, name);
  std::string reason = "missing " + name;
  if (n_prefix > 1) {
    reason += " " + std::to_string(position + 1) + " of " + std::to_string(n_prefix);
  }
  fail(line, token, token == end ? reason : reason + " before " + quoted(token, end));
}

void fail_index(const Line& line, const char* token, std::int64_t previous,
                std::int64_t first_index) {
  fail_if_alien(line, token);
  const char* end = token_end(token);
  const char* colon = std::find(token, end, ':');
  const std::string text = quoted(token, end);
  if (colon == end) fail(line, token, "no colon in " + text + ", expected index:value");
  if (colon == token) fail(line, token, "no index before the colon in " + text);
  const char* digits = token + (*token == '-' || *token == '+');
  if (previous < first_index && is_query(token)) {
    fail(line, token, text + " is the query of a ranking file; --lenient skips it");
  }
  if (digits == colon || !std::all_of(digits, colon, is_digit)) {
    fail(line, token, "the index in " + text + " is not a whole number");
  }
  digits = std::find_if(digits, colon, [](char c) { return c != '0'; });
  if (*token == '-') fail(line, token, "feature indices start at 0 or 1, found " + text);
  if (digits == colon && previous < first_index) {
    throw ZeroIndex(line.number, static_cast<std::size_t>(token - line.begin) + 1,
                    "feature indices start at 1, found " + text);
  }
  if (digits == colon) --digits;
  const std::string index(digits, digits + std::min<std::ptrdiff_t>(colon - digits, 11));
  const std::int64_t last_index = max_index + first_index - 1;
  if (index.size() > 10 || std::stoll(index) > last_index) {
    fail(line, token, "the index in " + text + " is above " + std::to_string(last_index));
  }
  fail(line, token, "indices must ascend: " + index + " follows " + std::to_string(previous));
}

void fail_missing(const Line& line, const char* token, std::int64_t index) {
  fail_if_alien(line, token);
  const char* end = token_end(token);
  const std::string name =
      index == 0 ? "0:serial_number" : "the kernel value " + std::to_string(index) + ":value";
  fail(line, token,
       name + " is missing " +
           (token == end ? "at the end of the line" : "before " + quoted(token, end)));
}

}  // namespace dcsvm
