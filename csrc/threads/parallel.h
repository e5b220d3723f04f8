// The loops that threads share, and the request to end early.
//
// Threads take the chunks of a loop in order, as they become free. Where chunks begin depends on
// the loop alone, never on the threads. Loops inside a chunk of another are shared with threads
// that have nothing more to do in that one. Without OpenMP one thread does everything.
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

// allowed_threads() are those that the OpenMP runtime would use here: what OMP_NUM_THREADS or
// threadpoolctl allows.
#ifdef _OPENMP
constexpr bool has_openmp = true;
inline bool is_inside_loop() { return omp_in_parallel() != 0; }
inline int allowed_threads() { return omp_get_max_threads(); }
#else
constexpr bool has_openmp = false;
inline bool is_inside_loop() { return false; }
inline int allowed_threads() { return 1; }
#endif

// Rows of a chunk where little is done with each.
constexpr std::size_t rows_at_once = 256;

struct Loop {
  int n_threads;             // at most
  std::size_t n_steps;       // independent of each other
  std::size_t at_once = 1;   // steps of a chunk: enough work to be worth handing out
  int n_takers = n_threads;  // threads that take chunks; the others only help inside of them
};

// Threads that could help in a loop inside a chunk.
inline std::atomic<int>& idle_threads() {
  static std::atomic<int> n{0};
  return n;
}

// Calls work() on all threads of a loop, the first n_takers of them.
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

// Calls work() on this thread and on idle ones, at most on n_most.
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

// Calls step(state, i) for all i < n_steps. A thread makes its state by make_state() and gives it
// to finish(state) after its last step; one thread finishes at a time, in any order.
//
// Throws what the first chunk that fails has thrown; some of those after it may have been done.
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

// Calls step(state, i), with a state that is of no use afterwards.
template <class MakeState, class Step>
void parallel_for(const Loop& loop, MakeState make_state, Step step) {
  parallel_for(loop, make_state, step, [](auto&) {});
}

// Calls step(i).
template <class Step>
void parallel_for(const Loop& loop, Step step) {
  parallel_for(loop, [] { return nullptr; }, [&step](std::nullptr_t, std::size_t i) { step(i); });
}

// A request to end early, made by another thread or by a deadline that has passed. It is polled
// where work can end without leaving anything half done.
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

// Whether there is a request, of a Stop that may be null.
inline bool is_requested(const Stop* stop) { return stop && stop->is_requested(); }

}  // namespace dcsvm
