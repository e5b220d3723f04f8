// Rows of a mapped file that are wanted soon.
#pragma once

#include "rows/points.h"

namespace dcsvm {

// Lets the system read the pages of some rows, where points are in a mapped file: all at once,
// while others are worked on. Nothing else changes.
void prefetch(const RowList& rows);

}  // namespace dcsvm
