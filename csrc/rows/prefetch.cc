#include "rows/prefetch.h"

#include <algorithm>
#include <cstdint>

#include "rows/codes.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace dcsvm {

#if defined(__linux__)

namespace {

// Of more rows the first would be gone before the last are read.
constexpr std::size_t most_bytes = std::size_t{1} << 26;

}  // namespace

void prefetch(const RowList& rows) {
  const Points& points = *rows.points;
  if (!points.is_mapped) return;
  const std::size_t row_bytes = points.dense         ? sizeof(float) * points.dense_stride
                                : points.dense_bytes ? points.byte_row_size()
                                                     : points.coding->row_size();
  const auto memory = points.dense         ? reinterpret_cast<std::uintptr_t>(points.dense)
                      : points.dense_bytes ? reinterpret_cast<std::uintptr_t>(points.dense_bytes)
                                           : reinterpret_cast<std::uintptr_t>(points.coded_rows);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::size_t n = std::min(rows.size, most_bytes / std::max(row_bytes, std::size_t{1}));
  std::uintptr_t from = 0, to = 0;  // of the pages that are read together
  const auto read = [&] {
    if (to > from) madvise(reinterpret_cast<void*>(from), to - from, MADV_WILLNEED);
  };
  for (std::size_t k = 0; k < n; ++k) {
    const std::uintptr_t begin = memory + rows[k] * row_bytes, end = begin + row_bytes;
    if (begin < from || begin > to + page) {
      read();
      from = begin / page * page;
      to = end;
    }
    to = std::max(to, end);
  }
  read();
}

#else

void prefetch(const RowList&) {}

#endif

}  // namespace dcsvm
