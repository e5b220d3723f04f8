// The loops that threads share.
//
// Threads take the chunks of a loop in order, as they become free. Where chunks begin depends on
// the loop alone, never on the threads. Without OpenMP one thread does everything.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>

#include "threads/simulated_cores.h"

namespace dcsvm {

// Rows of a chunk where little is done with each.
constexpr std::size_t rows_at_once = 256;

struct Loop {
  int n_threads;            // at most
  std::size_t n_steps;      // independent of each other
  std::size_t at_once = 1;  // steps of a chunk: enough work to be worth handing out
};

// Calls step(state, i) for all i < n_steps. A thread makes its state by make_state() and gives it
// to finish(state) after its last step; one thread finishes at a time, in any order.
//
// Throws what the first chunk that fails has thrown; some of those after it may have been done.
template <class MakeState, class Step, class Finish>
void parallel_for(const Loop& loop, MakeState make_state, Step step, Finish finish) {
  const std::size_t n_chunks = (loop.n_steps + loop.at_once - 1) / loop.at_once;
  if (n_chunks == 0) return;
  std::atomic<std::size_t> next{0}, first_bad{n_chunks};
  std::exception_ptr error;
  std::mutex one_at_a_time;
  const auto work = [&](SimulatedLoop* simulated) {
    std::size_t chunk = 0;
    try {
      auto state = make_state();
      while ((chunk = next.fetch_add(1)) < first_bad.load()) {
        if (simulated) simulated->begin_chunk();
        const std::size_t begin = chunk * loop.at_once;
        const std::size_t end = std::min(begin + loop.at_once, loop.n_steps);
        for (std::size_t i = begin; i < end; ++i) step(state, i);
        if (simulated) simulated->end_chunk();
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
    work(nullptr);
  } else if (simulated_cores().are_on()) {
    SimulatedLoop simulated(loop.n_threads);
    work(&simulated);
  } else {
#pragma omp parallel num_threads(loop.n_threads)
    work(nullptr);
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

}  // namespace dcsvm
