// Parallel loops, and the request to stop early.
//
// Threads take the chunks of a loop in order, as they become free. Chunk boundaries depend on the
// loop only, not on the threads. Threads that have run out of chunks in the outer loop help in
// nested loops. Without OpenMP all loops are serial.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace dcsvm {

// Returns how many threads the OpenMP runtime would use here, as limited by OMP_NUM_THREADS or
// threadpoolctl.
#ifdef _OPENMP
constexpr bool has_openmp = true;
inline bool is_inside_loop() { return omp_in_parallel() != 0; }
inline int allowed_threads() { return omp_get_max_threads(); }
#else
constexpr bool has_openmp = false;
inline bool is_inside_loop() { return false; }
inline int allowed_threads() { return 1; }
#endif

// Rows per chunk in loops with little work per row.
constexpr std::size_t batch_rows = 256;

struct Loop {
  int n_threads;             // upper limit
  std::size_t n_steps;       // independent of each other
  std::size_t at_once = 1;   // steps per chunk: enough work to outweigh the scheduling
  int n_takers = n_threads;  // threads that take chunks; the others only help in nested loops
};

// Threads that can help in a nested loop.
inline std::atomic<int>& idle_threads() {
  static std::atomic<int> n{0};
  return n;
}

// Starts the threads of a loop and calls work() on at most n_takers of them.
template <class Work>
void on_all_threads(const Loop& loop, Work work) {
  std::atomic<int> n_begun{0}, n_done{0};
#pragma omp parallel num_threads(loop.n_threads)
  {
    if (n_begun.fetch_add(1) < loop.n_takers) work();
    ++n_done;
    ++idle_threads();
  }
  idle_threads() -= n_done.load();
}

// Calls work() on this thread and on idle ones, on at most n_most threads in total.
template <class Work>
void with_help(std::size_t n_most, Work work) {
  const auto n_idle = static_cast<std::size_t>(std::max(idle_threads().load(), 0));
  for (std::size_t k = 0; k < std::min(n_idle, n_most - 1); ++k) {
#pragma omp task default(shared)
    work();
  }
  work();
#pragma omp taskwait
}

// Calls step(state, i) for all i < n_steps. Each thread creates its state by make_state() and
// passes it to finish(state) after its last step. Calls of finish() do not overlap; their order is
// arbitrary.
//
// Rethrows the exception of the first failing chunk; later chunks may or may not have run.
template <class MakeState, class Step, class Finish>
void parallel_for(const Loop& loop, MakeState make_state, Step step, Finish finish) {
  const std::size_t n_chunks = (loop.n_steps + loop.at_once - 1) / loop.at_once;
  std::atomic<std::size_t> next{0}, first_bad{n_chunks};
  std::exception_ptr error;
  std::mutex one_at_a_time;
  const auto work = [&] {
    std::size_t chunk = next.fetch_add(1);
    if (chunk >= first_bad.load()) return;
    try {
      auto state = make_state();
      for (; chunk < first_bad.load(); chunk = next.fetch_add(1)) {
        const std::size_t begin = chunk * loop.at_once;
        const std::size_t end = std::min(begin + loop.at_once, loop.n_steps);
        for (std::size_t i = begin; i < end; ++i) step(state, i);
      }
      const std::lock_guard<std::mutex> lock(one_at_a_time);
      finish(state);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(one_at_a_time);
      if (!error || chunk < first_bad.load()) error = std::current_exception();
      first_bad = std::min(chunk, first_bad.load());
    }
  };
  if (loop.n_threads <= 1 || n_chunks <= 1) {
    work();
  } else if (is_inside_loop()) {
    with_help(std::min(n_chunks, static_cast<std::size_t>(loop.n_threads)), work);
  } else {
    on_all_threads(loop, work);
  }
  if (error) std::rethrow_exception(error);
}

// Calls step(state, i); the state is discarded.
template <class MakeState, class Step>
void parallel_for(const Loop& loop, MakeState make_state, Step step) {
  parallel_for(loop, make_state, step, [](auto&) {});
}

// Calls step(i).
template <class Step>
void parallel_for(const Loop& loop, Step step) {
  parallel_for(loop, [] { return nullptr; }, [&step](std::nullptr_t, std::size_t i) { step(i); });
}

// A request to stop early, by another thread or a deadline. It is polled wherever work can stop in
// a consistent state.
class Stop {
 public:
  void request() { requested_ = true; }
  // Sets the deadline in seconds from now; call before the work starts.
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

// Returns whether a stop is requested; `stop` may be null.
inline bool is_requested(const Stop* stop) { return stop && stop->is_requested(); }

}  // namespace dcsvm
