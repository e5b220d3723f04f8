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
  bool are_on() const { return is_on_; }
  double seconds_saved() const { return saved_; }
  void turn(bool on) { is_on_ = on; }

 private:
  friend class SimulatedLoop;
  bool is_on_ = false;
  double saved_ = 0;
};

inline SimulatedCores& simulated_cores() {
  static SimulatedCores cores;
  return cores;
}

// Seconds on the simulated cores, from some beginning; of the wall where there are none.
inline double seconds_now() { return wall_seconds() - simulated_cores().seconds_saved(); }

// One loop on so many cores, of which `n_takers` may take chunks: begun and ended in order. The
// others, and those without a chunk, help in loops inside the chunks of others. The destructor adds
// what the loop saves.
class SimulatedLoop {
 public:
  SimulatedLoop(int n_cores, int n_takers) : n_cores_(n_cores), n_takers_(n_takers) {}
  SimulatedLoop(const SimulatedLoop&) = delete;
  SimulatedLoop& operator=(const SimulatedLoop&) = delete;
  ~SimulatedLoop() {
    double work = -together_seconds;
    for (const Chunk& chunk : chunks_) work += chunk.serial + chunk.shared;
    const double begin = wall_seconds();
    const double end = end_of_last();
    simulated_cores().saved_ += work - end + (wall_seconds() - begin);
  }

  void begin_chunk() {
    saved_before_ = simulated_cores().saved_;
    begin_ = wall_seconds();
  }

  // A chunk is as long as what no core can help with, and the rest divided by the cores it has.
  void end_chunk() {
    const double cores = n_cores_, alone = wall_seconds() - begin_;
    const double saved = simulated_cores().saved_ - saved_before_;
    simulated_cores().saved_ = saved_before_;
    const double shared = std::clamp(saved * cores / (cores - 1), 0.0, alone);
    chunks_.push_back({alone - shared, shared});
  }

 private:
  // What it takes to wake many threads and to wait for the last of them.
  static constexpr double together_seconds = 5e-6;

  struct Chunk {
    double serial, shared;
    double left = 1;  // part of it
    double seconds(double n_cores) const { return left * (serial + shared / n_cores); }
  };

  // When the last chunk would end, where cores share what they have to do evenly.
  double end_of_last() const {
    std::vector<Chunk> running;
    double time = 0;
    for (std::size_t next = 0; next < chunks_.size() || !running.empty();) {
      while (next < chunks_.size() && running.size() < static_cast<std::size_t>(n_takers_))
        running.push_back(chunks_[next++]);
      const double cores = static_cast<double>(n_cores_) / static_cast<double>(running.size());
      double shortest = running[0].seconds(cores);
      for (const Chunk& one : running) shortest = std::min(shortest, one.seconds(cores));
      time += shortest;
      std::size_t n_left = 0;
      for (Chunk one : running) {
        const double seconds = one.seconds(cores);
        if (seconds <= shortest) continue;
        one.left *= 1 - shortest / seconds;
        running[n_left++] = one;
      }
      running.resize(n_left);
    }
    return time;
  }

  int n_cores_, n_takers_;
  std::vector<Chunk> chunks_;
  double saved_before_ = 0, begin_ = 0;
};

}  // namespace dcsvm
