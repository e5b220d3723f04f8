// How far support vectors are from the span of the others (Vapnik and Chapelle, "Bounds on error
// expectation for support vector machines", Neural Computation 12, 2000).
//
// Without support vector i its own decision value would be lower by |alpha_i| S_i^2, where S_i is
// the distance of its image to the affine span (with a sum) or the linear one (without) of the
// other free support vectors, if the set of support vectors stayed as it is.
#pragma once

#include <cstddef>

#include "solver/cluster_solver.h"

namespace dcsvm {

// span[i] = S_i^2 for those support vectors among the members of the clusters that are wanted;
// other entries are not written. In a cluster with more than n_exact free ones the span is that of
// some of them, which can only make S_i larger. A thread needs about 12 n_exact^2 bytes.
void squared_spans(const KernelSetup& setup, const Points& points, const BoxQp& qp,
                   const Clusters& clusters, const double* alpha, const std::uint8_t* wanted,
                   std::size_t n_exact, int n_threads, double* span);

}  // namespace dcsvm
