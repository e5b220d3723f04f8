// Scan any bytes as a number: the value equals strtod's.
#include "text/decimal.h"

#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  text = text.substr(0, text.find_first_of(" \t\r\n"));
  const std::string padded = text + "\n" + std::string(dcsvm::read_ahead, '\0');
  const char *const begin = padded.c_str(), *const end = begin + text.size();
  double found, brief;
  if (!dcsvm::scan_decimal(begin, end, found)) return 0;
  char* stop;
  if (std::strtod(begin, &stop) != found || stop != end) std::abort();
  if (dcsvm::scan_short_decimal(begin, brief) == end && brief != found) std::abort();
  return 0;
}
