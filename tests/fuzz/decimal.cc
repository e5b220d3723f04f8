// Any bytes as a number: what is scanned has the value that strtod finds, as double and as float.
#include "text/decimal.h"

#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string padded = text + "\n" + std::string(dcsvm::read_ahead, '\0');
  dcsvm::Decimal number;
  if (!dcsvm::scan_decimal(padded.data(), number)) return 0;
  const std::string scanned(number.begin, number.end);
  char* stop;
  const double expected = std::strtod(scanned.c_str(), &stop);
  double found;
  float single;
  dcsvm::convert(number, found);
  dcsvm::convert(number, single);
  const bool whole = stop == scanned.c_str() + scanned.size();
  const float rounded =
      expected < 0 ? -dcsvm::round_to_float(-expected) : dcsvm::round_to_float(expected);
  if (!whole || found != expected || single != rounded) std::abort();
  return 0;
}
