// A box QP restricted to some variables, and a copy of their part of the iterate.
//
// Data are copied unless the variables stand side by side in the whole problem. One thread works on
// it without locks; read() and write() are the only contact with the whole iterate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/points.h"
#include "solver/box_qp.h"
#include "solver/iterate.h"

namespace dcsvm {

class SubProblem {
 public:
  // `members` must stay.
  SubProblem(const BoxQp& whole, const std::int32_t* members, std::size_t n);
  SubProblem(const SubProblem&) = delete;
  SubProblem& operator=(const SubProblem&) = delete;

  // What a variable takes where the data are copied.
  static constexpr std::size_t copied_bytes = 3 * sizeof(double) + sizeof(std::int32_t) + 1;

  const BoxQp& qp() const { return qp_; }
  RowList rows(const Points& points) const { return {&points, qp_.row, qp_.size}; }

  Iterate iterate() { return {alpha_.data(), gradient_.data(), base_.data(), known_.data()}; }
  void read(const Iterate& whole);
  void write(const Iterate& whole) const;

 private:
  bool is_contiguous() const;

  const std::int32_t* members_;
  BoxQp qp_;
  std::vector<std::int32_t> row_;
  std::vector<double> linear_, lower_, upper_;
  std::vector<std::int8_t> sum_of_;
  std::vector<double> alpha_, gradient_, base_;
  std::vector<Known> known_;
};

}  // namespace dcsvm
