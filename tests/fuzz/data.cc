// Read any bytes as a data file: the result is rows or an error. It is the same for all chunks, for
// dense and CSR rows, and for lenient and strict reading of valid text. This also holds for rows of
// a precomputed kernel, which have all columns.
#include "parsed.h"

static void check_kernel_rows(const char* begin, const char* end, std::size_t chunk_bytes) {
  const Parsed rows = parse(begin, end, kernel_format(dcsvm::Serials::training));
  require(same(rows, parse(begin, end, kernel_format(dcsvm::Serials::training), chunk_bytes)));
  const Parsed any = parse(begin, end, kernel_format(dcsvm::Serials::any), chunk_bytes);
  if (!any.failed) require_sound(any);
  if (rows.failed) return;
  require(same(rows, any));
  const dcsvm::Text text = dcsvm::scan_text(in_memory(begin, end), 1);
  require(text.n_pairs >= text.n_rows * (rows.n_features + 1));
  for (std::size_t row = 0; row < text.n_rows; ++row) {
    const double serial = rows.prefix[2 * row + 1];
    require(serial >= 1 && serial <= static_cast<double>(rows.n_features));
  }
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const char* begin = reinterpret_cast<const char*>(data);
  const char* end = begin + size;
  check_kernel_rows(begin, end, 1 + size % 61);
  const Parsed rows = parse(begin, end, format(1, false));
  require(same(rows, parse(begin, end, format(1, false), 1 + size % 61)));
  const Parsed lenient = parse(begin, end, format(1, true), 1 + size % 61);
  if (!lenient.failed) require_sound(lenient);
  if (rows.failed) {
    require(rows.line >= 1 && rows.column >= 1 && rows.column <= size + 1);
    return 0;
  }
  require(same(rows, lenient));
  require_sound(rows);
  const dcsvm::Text text = dcsvm::scan_text(in_memory(begin, end), 1);
  if (text.n_features > 1000) return 0;
  std::vector<double> prefix(text.n_rows);
  std::vector<float> dense(text.n_rows * rows.n_features), scattered(dense.size());
  const std::size_t n = dcsvm::parse_dense(text, format(1, false), prefix.data(), dense.data(), 1);
  dcsvm::densify(rows.csr(), rows.n_features, scattered.data(), 1);
  require(n == rows.values.size() && same_bytes(prefix, rows.prefix));
  require(same_bytes(dense, scattered));
  return 0;
}
