// What a run would take on more cores than there are, for the benchmark.
//
// While they are on, one thread does all chunks of a loop, and each is timed. List scheduling, the
// chunks in order on as many cores as the loop may have threads, tells when the last would end; the
// rest of the time is saved. Everything outside such loops counts as it is. What is left out: cores
// that share caches, memory and their clock. Nothing is decided by this.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace dcsvm {

inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class SimulatedCores {
 public:
  bool are_on() const { return is_on_ && !is_in_loop_; }
  double seconds_saved() const { return saved_; }
  void turn(bool on) { is_on_ = on; }

 private:
  friend class SimulatedLoop;
  bool is_on_ = false;
  bool is_in_loop_ = false;  // loops inside others are part of their chunk
  double saved_ = 0;
};

inline SimulatedCores& simulated_cores() {
  static SimulatedCores cores;
  return cores;
}

// Seconds on the simulated cores, from some beginning; of the wall where there are none.
inline double seconds_now() { return wall_seconds() - simulated_cores().seconds_saved(); }

// One loop: its chunks, begun and ended in order. The destructor adds what it saves.
class SimulatedLoop {
 public:
  explicit SimulatedLoop(int n_cores) : busy_(static_cast<std::size_t>(n_cores), 0.0) {
    simulated_cores().is_in_loop_ = true;
  }
  SimulatedLoop(const SimulatedLoop&) = delete;
  SimulatedLoop& operator=(const SimulatedLoop&) = delete;
  ~SimulatedLoop() {
    SimulatedCores& cores = simulated_cores();
    cores.is_in_loop_ = false;
    cores.saved_ += work_ - *std::max_element(busy_.begin(), busy_.end()) - together_seconds;
  }

  void begin_chunk() { begin_ = wall_seconds(); }
  void end_chunk() {
    const double seconds = wall_seconds() - begin_;
    *std::min_element(busy_.begin(), busy_.end()) += seconds;
    work_ += seconds;
  }

 private:
  // What it takes to wake many threads and to wait for the last of them.
  static constexpr double together_seconds = 5e-6;

  std::vector<double> busy_;  // until when each core is
  double work_ = 0, begin_ = 0;
};

}  // namespace dcsvm
