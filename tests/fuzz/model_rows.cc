// Read any bytes as the rows of a model file, with four numbers before the features: the result is
// rows or an error, and written rows read back bit for bit.
#include "parsed.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const char* begin = reinterpret_cast<const char*>(data);
  Parsed rows = parse(begin, begin + size, format(4, false), 1 + size % 61);
  if (rows.failed) return 0;
  require_sound(rows);
  std::string text;
  const std::size_t n_rows = rows.indptr.size() - 1;
  dcsvm::write_rows(text, {rows.prefix.data(), 4, nullptr, n_rows}, rows.csr());
  Parsed back = parse(text.data(), text.data() + text.size(), format(4, false));
  require(back.n_features <= rows.n_features);  // zeros are not written
  back.n_features = rows.n_features;
  require(same(rows, back));
  return 0;
}
