// Which variables make up the next working set.
//
// Two rules, which take turns in working_step.cc: the most violating variables (SVMlight's choice;
// Joachims, 1999) with free ones of the last set carried over, and the neighbourhood of the most
// violating one. Knows nothing of kernels but the values it is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dcsvm {

struct SelectionView {
  const std::vector<std::int32_t>& violators;  // positions with a violation, ascending
  std::size_t size = 0;
  const double* violation = nullptr;
  const std::uint8_t* goes_up = nullptr;  // whether a violator's alpha should go up
  const double* alpha = nullptr;
  const double* lower = nullptr;
  const double* upper = nullptr;
  const std::int32_t* id = nullptr;  // breaks ties, the same for a variable wherever it stands
};

// Replaces a working set (positions, ascending) by one of at most `target` members. Up to three
// quarters are its own free variables, most violating first: without them the method stalls on
// ill-conditioned problems. The rest are the most violating others, half of them to go up and half
// to go down: where kernel values are nearly constant only both together make progress.
void select_working_set(const SelectionView& view, std::size_t target,
                        std::vector<std::int32_t>& working);

// Position of the most violating variable.
std::int32_t most_violating(const SelectionView& view);

// Replaces a working set by at most `target` variables with the largest kernel values with the most
// violating one, which has these `kernel_values`, among the violators that are free or violate by
// more than `negligible`. They depend most on each other and reach their optimum together, while
// the most violating variables of the whole problem only start their neighbours moving.
void select_neighbourhood(const SelectionView& view, const std::vector<float>& kernel_values,
                          double negligible, std::size_t target,
                          std::vector<std::int32_t>& working);

}  // namespace dcsvm
