// Derivatives of sums of absolute distances, by which landmarks move (dcsvm/model/landmarks.py).
#pragma once

#include <cstddef>

namespace dcsvm {

// Computes out[j][k] = sum over i of weights[i][j] times the sign of rows[i][k] - others[j][k]. The
// sign of 0 is 0. All matrices are row-major: rows n_rows x n_features, others n_others x
// n_features, weights n_rows x n_others, out n_others x n_features.
void sign_sums(const float* rows, std::size_t n_rows, const float* others, std::size_t n_others,
               std::size_t n_features, const float* weights, float* out);

}  // namespace dcsvm
