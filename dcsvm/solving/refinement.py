"""What is asked for of the next solve of a problem, by what the checks of those before it found.

The check leaves float64 values in the gradient, from which the solver goes on. Where that gains
too little its kernel values are float64, too. Of nu-SVC the margin that a violation is told in may
be so small that float32 does not tell it from none: then it is not sought for ever.
"""

from __future__ import annotations

from dcsvm.problem.formulation import BoxProblem
from dcsvm.solving.certificate import Certificate
from dcsvm.solving.state import RunState

LARGEST_REFINEMENTS = 10
# A refinement that leaves more than this part of a violation of FAR times the tolerance: float32
# kernel values are not enough. So they are where half of the refinements were not.
LEAST_REFINED, FAR = 0.5, 10
NEAR = 1e-3  # a violation that needs no float64 where a smaller one cannot be stated
ROUNDING = 2.0**-46  # of the sum of |alpha|: a violation that float64 gradients can state
# Of the sum of |alpha|: float32 kernel values hide a smaller margin; as much violation is looked at
# first. Half of that takes twice the time on covtype with nu 0.1 and is as good.
SMALLEST_MARGIN, FIRST_MARGIN = 2.0**-24, 2.0**-23
HIDDEN_MARGIN = 1.0  # a violation over the margin above which that may as well be none
FEW_VARIABLES = 2000  # of which a hidden margin is sought all the same: it takes a second


class Refinement:
    """A problem that is solved to a tolerance and checked again and again. The `state` knows what
    was found, and whether kernel values of the next solve are float64."""

    def __init__(self, problem: BoxProblem, state: RunState):
        self.divides_by_margin = problem.divides_by_margin
        self.is_large = problem.size > FEW_VARIABLES
        self.state, self.n_checks = state, min(state.checks, LARGEST_REFINEMENTS - 1)

    def attainable(self, tolerance: float, weight: float) -> float:
        """The least violation, in no unit, that is worth asking for, where `weight` is the sum of
        |alpha| before the solve: what float64 gradients can state, and what tells a margin."""
        if not self.divides_by_margin:
            return ROUNDING * weight
        return max(ROUNDING, self._margin(tolerance)) * weight

    def goes_on(self, found: Certificate, tolerance: float, weight: float) -> bool:
        """Whether what a check has found is worth another solve."""
        is_beyond = tolerance * found.unit < self.attainable(tolerance, weight)
        if is_beyond and self._is_far_enough(found):
            return False
        self.n_checks += 1
        is_far = found.violation > FAR * tolerance or 2 * self.n_checks > LARGEST_REFINEMENTS
        state = self.state
        state.float64 |= is_far and found.violation > LEAST_REFINED * state.last_violation
        state.last_violation = found.violation
        return self.n_checks < LARGEST_REFINEMENTS

    @property
    def _looks_first(self) -> bool:
        return self.is_large and self.n_checks == 0

    def _margin(self, tolerance: float) -> float:
        return FIRST_MARGIN if self._looks_first else tolerance * SMALLEST_MARGIN

    def _is_far_enough(self, found: Certificate) -> bool:
        """Whether nothing beyond the least violation that was asked for is worth asking for."""
        if self.divides_by_margin:
            return not self._looks_first or found.violation > HIDDEN_MARGIN
        return self.state.float64 or found.violation <= NEAR
