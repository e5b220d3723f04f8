#include "solver/sub_problem.h"

namespace dcsvm {

namespace {

template <class Value>
const Value* copy(const Value* whole, const std::int32_t* members, std::size_t n,
                  std::vector<Value>& own) {
  own.resize(n);
  for (std::size_t k = 0; k < n; ++k) own[k] = whole[members[k]];
  return own.data();
}

}  // namespace

SubProblem::SubProblem(const BoxQp& whole, const std::int32_t* members, std::size_t n)
    : members_(members), qp_(whole), alpha_(n), gradient_(n), base_(n), known_(n) {
  qp_.size = n;
  if (whole.row && is_contiguous()) {
    const auto first = static_cast<std::size_t>(members[0]);
    qp_.row += first;
    qp_.linear += first;
    qp_.lower += first;
    qp_.upper += first;
    if (qp_.sum_of) qp_.sum_of += first;
    return;
  }
  row_.resize(n);
  for (std::size_t k = 0; k < n; ++k)
    row_[k] = static_cast<std::int32_t>(whole.row_of(static_cast<std::size_t>(members[k])));
  qp_.row = row_.data();
  qp_.linear = copy(whole.linear, members, n, linear_);
  qp_.lower = copy(whole.lower, members, n, lower_);
  qp_.upper = copy(whole.upper, members, n, upper_);
  if (whole.sum_of) qp_.sum_of = copy(whole.sum_of, members, n, sum_of_);
}

bool SubProblem::is_contiguous() const {
  for (std::size_t k = 1; k < qp_.size; ++k) {
    if (members_[k] != members_[k - 1] + 1) return false;
  }
  return true;
}

void SubProblem::read(const Iterate& whole) {
  for (std::size_t k = 0; k < qp_.size; ++k) {
    alpha_[k] = whole.alpha[members_[k]];
    gradient_[k] = whole.gradient[members_[k]];
    base_[k] = whole.base[members_[k]];
    known_[k] = whole.known[members_[k]];
  }
}

void SubProblem::write(const Iterate& whole) const {
  for (std::size_t k = 0; k < qp_.size; ++k) {
    whole.alpha[members_[k]] = alpha_[k];
    whole.gradient[members_[k]] = gradient_[k];
    whole.base[members_[k]] = base_[k];
    whole.known[members_[k]] = known_[k];
  }
}

}  // namespace dcsvm
