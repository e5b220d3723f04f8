// Which variables make up the next working set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dcsvm {

struct SelectionView {
  const std::vector<std::int32_t>& violators;  // positions with a violation, ascending
  std::size_t size = 0;
  const double* violation = nullptr;
  const std::uint8_t* grows = nullptr;  // whether a violating variable should grow
  const double* alpha = nullptr;
  const double* lower = nullptr;
  const double* upper = nullptr;
  const std::int32_t* id = nullptr;  // breaks ties, the same for a variable wherever it stands
};

// Replaces a working set (positions, ascending) by one of at most `target` members: its own free
// variables, most violating first, up to three quarters (carry-over, without which the method
// stalls on ill-conditioned problems), then the most violating others, half of
// them such as should grow and half such as should shrink: where kernel values are nearly
// constant only both together get anywhere.
void select_working_set(const SelectionView& view, std::size_t target,
                        std::vector<std::int32_t>& working);

// Position of the most violating variable.
std::int32_t most_violating(const SelectionView& view);

// Replaces a working set by the at most `target` variables that are coupled most to the most
// violating one, whose kernel `values` these are, among those that are free or violate by more than
// `negligible`. Together they reach their optimum in one step, while the most violating ones of
// everywhere only start their neighbours moving.
void select_neighbourhood(const SelectionView& view, const std::vector<float>& values,
                          double negligible, std::size_t target,
                          std::vector<std::int32_t>& working);

}  // namespace dcsvm
