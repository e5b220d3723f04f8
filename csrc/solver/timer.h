// Adds the seconds that a scope takes to a total. For reports only: nothing is decided by clocks.
#pragma once

#include "threads/simulated_cores.h"

namespace dcsvm {

class Timer {
 public:
  explicit Timer(double& total) : total_(total), start_(seconds_now()) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { total_ += seconds_now() - start_; }

 private:
  double& total_;
  double start_;
};

}  // namespace dcsvm
