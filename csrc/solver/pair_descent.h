// SMO on a working set whose variables have sums: one goes up and one of the same sum goes down.
//
// The first is the most violating variable of those that may go up, the second the one that lowers
// the objective most with it (second-order selection: Fan, Chen and Lin, JMLR 6, 2005).
#pragma once

#include <cstdint>

#include "solver/coordinate_descent.h"
#include "solver/working_set.h"

namespace dcsvm {

template <class Real>
DescentRound descend_pairs(WorkingSet<Real>& set, double tolerance, std::int64_t max_updates);

}  // namespace dcsvm
