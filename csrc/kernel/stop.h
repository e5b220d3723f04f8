// A request to end early, made by another thread or by a deadline that has passed.
//
// It is polled where work can end without leaving anything half done.
#pragma once

#include <atomic>
#include <chrono>

namespace dcsvm {

class Stop {
 public:
  void request() { requested_ = true; }
  // Seconds from now; set before the work starts.
  void set_deadline(double seconds) {
    const std::chrono::duration<double> left(seconds);
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(left);
    has_deadline_ = true;
  }
  bool is_requested() const { return requested_ || (has_deadline_ && Clock::now() >= deadline_); }

 private:
  using Clock = std::chrono::steady_clock;
  std::atomic<bool> requested_{false};
  bool has_deadline_ = false;
  Clock::time_point deadline_;
};

}  // namespace dcsvm
