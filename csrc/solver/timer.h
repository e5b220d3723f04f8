// Adds the seconds that a scope takes to a total. For reports only: nothing is decided by clocks.
#pragma once

#include <chrono>

namespace dcsvm {

class Timer {
 public:
  explicit Timer(double& total) : total_(total), start_(Clock::now()) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { total_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;

  double& total_;
  Clock::time_point start_;
};

}  // namespace dcsvm
