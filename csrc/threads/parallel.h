// Parallel loops, and the request to stop early.
//
// Threads take the chunks of a loop in order, as they become free. Chunk boundaries depend on the
// loop only, not on the threads. Threads that have run out of chunks in the outer loop help in
// nested loops. Without OpenMP all loops are serial.
//
// Loops measure how well they use their threads, for reports only; clocks decide nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
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

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Use of threads by loops that a thread began, in seconds.
struct LoopSeconds {
  double elapsed = 0;   // from the beginning to the end of each loop
  double reserved = 0;  // elapsed seconds times the threads of the loop
  double working = 0;   // seconds in which these threads did work; in the others they waited
};

// The loops that this thread has begun; nested loops are part of the outer one.
inline LoopSeconds& loop_seconds() {
  static thread_local LoopSeconds seconds;
  return seconds;
}

// Returns the seconds since this thread's last call, and those of its loops.
struct Lap {
  double seconds = 0;
  LoopSeconds loops;
};
inline Lap next_lap() {
  static thread_local Clock::time_point start = Clock::now();
  static thread_local LoopSeconds before;
  const LoopSeconds& now = loop_seconds();
  const Lap lap{
      seconds_since(start),
      {now.elapsed - before.elapsed, now.reserved - before.reserved, now.working - before.working}};
  start = Clock::now();
  before = now;
  return lap;
}

// Nanoseconds of work of the loop that this thread takes part in.
using WorkCounter = std::atomic<std::int64_t>;
inline WorkCounter*& work_counter() {
  static thread_local WorkCounter* counter = nullptr;
  return counter;
}

// Nanoseconds of a steady clock.
inline std::int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

// Adds the time of a scope to a work counter.
class WorkTimer {
 public:
  explicit WorkTimer(WorkCounter* counter) : counter_(counter) { *counter_ -= nanoseconds_now(); }
  WorkTimer(const WorkTimer&) = delete;
  WorkTimer& operator=(const WorkTimer&) = delete;
  ~WorkTimer() { *counter_ += nanoseconds_now(); }

 private:
  WorkCounter* counter_;
};

// Starts the threads of a loop and calls work() on at most n_takers of them.
template <class Work>
void on_all_threads(const Loop& loop, Work work) {
  const Clock::time_point start = Clock::now();
  std::atomic<int> n_begun{0}, n_done{0};
  WorkCounter nanoseconds{0};
#pragma omp parallel num_threads(loop.n_threads)
  {
    work_counter() = &nanoseconds;
    if (n_begun.fetch_add(1) < loop.n_takers) {
      const WorkTimer timer(&nanoseconds);
      work();
    }
    ++n_done;
    ++idle_threads();
  }
  idle_threads() -= n_done.load();
  LoopSeconds& total = loop_seconds();
  const double elapsed = seconds_since(start);
  total.elapsed += elapsed;
  total.reserved += elapsed * loop.n_threads;
  total.working += 1e-9 * static_cast<double>(nanoseconds.load());
}

// Returns whether another thread would help this one in a loop that begins now.
inline bool has_helpers(int n_threads) {
  return n_threads > 1 && (!is_inside_loop() || idle_threads().load() > 0);
}

// Calls work() on a thread as soon as one is idle, and so on with n_most threads, while the loop
// is_open().
template <class Work, class IsOpen>
void call_when_idle(std::size_t n_most, const Work* work, const IsOpen* is_open) {
#pragma omp task firstprivate(n_most, work, is_open)
  if ((*is_open)()) {
    if (n_most > 1) call_when_idle(n_most - 1, work, is_open);
    const WorkTimer timer(work_counter());
    (*work)();
  }
}

// Calls work() on this thread and on threads that are or become idle, on at most n_most threads in
// total.
template <class Work, class IsOpen>
void with_help(std::size_t n_most, const Work& work, const IsOpen& is_open) {
#pragma omp taskgroup
  {
    call_when_idle(n_most - 1, &work, &is_open);
    work();
    // this thread now waits, or runs tasks, which count themselves
    *work_counter() -= nanoseconds_now();
  }
  *work_counter() += nanoseconds_now();
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
    with_help(std::min(n_chunks, static_cast<std::size_t>(loop.n_threads)), work,
              [&] { return next.load() < n_chunks; });
  } else {
    on_all_threads(loop, work);
  }
  if (error) std::rethrow_exception(error);
}

// Work of one thread that begins together with a loop; the other threads begin with its steps.
using Task = std::function<void()>;

// Calls step(state, i) for all i < n_steps, and the task, unless it is empty.
template <class MakeState, class Step, class Finish>
void parallel_for(const Loop& loop, const Task& task, MakeState make_state, Step step,
                  Finish finish) {
  const std::size_t n_tasks = task ? 1 : 0;
  parallel_for(
      {loop.n_threads, n_tasks + loop.n_steps}, make_state,
      [&](auto& state, std::size_t i) {
        if (i < n_tasks) {
          task();
        } else {
          step(state, i - n_tasks);
        }
      },
      finish);
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
  std::atomic<bool> requested_{false};
  bool has_deadline_ = false;
  Clock::time_point deadline_;
};

// Returns whether a stop is requested; `stop` may be null.
inline bool is_requested(const Stop* stop) { return stop && stop->is_requested(); }

}  // namespace dcsvm
