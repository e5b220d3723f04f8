// Descent on a working set, two variables at a time.
//
// Without sums the first variable is the one with the largest violation relative to its curvature;
// the second lowers the objective most together with the first. Both move to the minimum inside
// their bounds (Steinwart, Hush and Scovel, "Training SVMs without offset", JMLR 12, 2011).
//
// With sums it is SMO: one variable goes up and one of the same sum goes down. The first is the
// most violating one of those that may go up, the second the one that lowers the objective most
// with it (second-order selection: Fan, Chen and Lin, JMLR 6, 2005).
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
template <class Real>
DescentRound descend_pairs(WorkingSet<Real>& set, double tolerance, std::int64_t max_updates);

}  // namespace dcsvm
