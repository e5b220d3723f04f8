// Coordinate descent on a working set without sums, two variables at a time.
//
// The first is the one with the largest violation relative to its curvature; the second lowers the
// objective most together with the first. Both move to the minimum inside their bounds (Steinwart,
// Hush and Scovel, "Training SVMs without offset", JMLR 12, 2011). No variables of a sum.
#pragma once

#include <cstdint>

#include "solver/working_set.h"

namespace dcsvm {

struct DescentRound {
  double decrease = 0;  // of the objective
  std::int64_t updates = 0;
};

// Descends to `tolerance`, or for max_updates updates, or until steps are below the resolution of
// alpha.
template <class Real>
DescentRound descend_coordinates(WorkingSet<Real>& set, double tolerance, std::int64_t max_updates);

}  // namespace dcsvm
