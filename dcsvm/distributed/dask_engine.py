"""The work of a run on remote rows, as tasks: parts are solved where their rows are brought
together, sums are taken where the targets are.

How work is divided into tasks follows from the data and the options, never from the workers: the
results are the same bits for any number of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dcsvm import _core
from dcsvm.distributed.chunks import Kept
from dcsvm.distributed.connection import threads_of_hosts
from dcsvm.distributed.on_worker import solved_parts, spans_of_parts, sums_of_chunk
from dcsvm.distributed.remote_rows import RemoteKernelRows
from dcsvm.distributed.remote_tree import RemoteTree
from dcsvm.distributed.tasks import Tasks
from dcsvm.kernel.kernel_rows import Evaluation
from dcsvm.kernel.kernel_sums import Terms
from dcsvm.kernel.kernels import Kernel
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.engine import numbered
from dcsvm.solving.iterate import Iterate
from dcsvm.solving.parts import Effort, Parts
from dcsvm.solving.report import Traffic

# of parts that are solved in one task: about the most that they cost, in kernel values, unless that
# makes more tasks than so many, and than there are sections of rows, as each gets some from all
PARCEL_COST, MOST_PARCELS = 5e7, 32
PART_COST = 3e4  # of the least part, beside the square of its variables


class DaskEngine:
    """The Engine of remote rows; `phase` names the tasks."""

    targets_at_once = 2**62  # every part would have a task for each chunk
    is_out_of_core = True

    def __init__(self, data: RemoteKernelRows):
        self.data, self.n_rounds = data, 0
        self.tasks: Tasks = data.rows.tasks
        self.means = data.means
        self.phase = "dcsvm"

    @property
    def traffic(self) -> Traffic:
        """What has moved so far, and what each worker has done."""
        self.tasks.note_workers()
        self.tasks.traffic.rounds = self.n_rounds
        return self.tasks.traffic

    @property
    def most_parcels(self) -> int:
        return max(MOST_PARCELS, self.data.rows.n_sections)

    def sums(
        self, targets: Terms, sources: Terms, alpha: np.ndarray, how: Evaluation
    ) -> tuple[np.ndarray, int]:
        sums, n_values = np.zeros(len(targets.row)), 0
        if len(sources.row) == 0 or len(targets.row) == 0:
            return sums, n_values
        rows, place = np.unique(sources.row, return_inverse=True)
        others = replace(sources, row=place.reshape(-1).astype(np.int32))
        assembled = self.data.rows.assembled(rows, f"{self.phase}-sources")
        kept = self.tasks.submit(f"{self.phase}-terms", Kept.of, others, alpha)
        stop, how = how.stop, replace(how, stop=None)
        futures, places = {}, {}
        for chunk, own_places, own, local in self.data.rows.distinct_by_chunk(targets.row):
            terms = replace(targets.take(own_places), row=local.astype(np.int32))
            places[chunk] = own_places
            futures[chunk] = self.tasks.submit(
                f"{self.phase}-sums-chunk{chunk}", sums_of_chunk, self.data.rows.chunks[chunk],
                own, assembled, terms, kept, how, self.means,
            )  # fmt: skip
        for chunk, (found, n) in self.tasks.finished(futures, stop):
            sums[places[chunk]] = found
            n_values += n
        return sums, n_values

    def begin_phase(self, name: str) -> None:
        self.phase = name.replace(" ", "")

    def count_rounds(self, n_rounds: int) -> None:
        self.n_rounds += n_rounds

    def solve_together(
        self, parts: Parts, iterate: Iterate, effort: Effort, progress, stop: _core.Stop
    ) -> list[dict]:
        """Solve parts in parcels, each a task that has all of its rows."""
        parcels = list(parcels_of(parts, self.most_parcels))
        members = [parts.members[parts.start[own.start] : parts.start[own.stop]] for own in parcels]
        means = self.means
        if len(parcels) == 1:
            means = replace(means, threads_of_hosts=threads_of_hosts(self.tasks.client))
        futures = {
            number: self._solving(parts, own, some, iterate, effort, means)
            for number, (own, some) in enumerate(zip(parcels, members, strict=True))
        }
        reports: dict[int, list[dict]] = {}
        for number, solved in self.tasks.finished(futures, stop):
            some, reports[number] = members[number], solved.reports
            for name, values in vars(solved.iterate).items():
                getattr(iterate, name)[some] = values
            done = sum(len(members[k]) for k in reports)
            if progress is not None and progress(len(reports), done, None, 0, 0):
                progress(len(reports), done, None, 0, 0)
        return [one for number in sorted(reports) for one in reports[number]]

    def _solving(self, parts, own: slice, members, iterate, effort, means):
        """The task that solves some of the parts."""
        problem, rows = numbered(parts.problem, members)
        pieces, order = self.data.rows.pieces(rows, self.phase)
        start = parts.start[own.start : own.stop + 1] - parts.start[own.start]
        local = Parts(problem, start, np.zeros(0, np.int32))
        values = Iterate(*(one[members] for one in vars(iterate).values()))
        name = f"{self.phase}-part{own.start}" + f"to{own.stop - 1}" * (own.stop > own.start + 1)
        return self.tasks.submit(
            name, solved_parts, pieces, order, local, values, effort, means, priority=len(members)
        )

    def spans(
        self, parts: Parts, alpha: np.ndarray, wanted: np.ndarray, n_exact: int, threads: int
    ) -> np.ndarray:
        futures, members, spans = {}, {}, np.zeros(parts.problem.size)
        for number, own in enumerate(parcels_of(parts, self.most_parcels)):
            start = parts.start[own.start : own.stop + 1]
            some = members[number] = parts.members[start[0] : start[-1]]
            problem, rows = numbered(parts.problem, some)
            local = Parts(problem, start - start[0], np.arange(len(some), dtype=np.int32))
            futures[number] = self.tasks.submit(
                "dcsvm-spans", spans_of_parts, *self.data.rows.pieces(rows, "dcsvm-spans"), local,
                alpha[some], wanted[some], n_exact, self.means,
            )  # fmt: skip
        for number, found in self.tasks.finished(futures):
            spans[members[number]] = found
        return spans

    def tree(
        self, kernel: Kernel, options: TrainOptions, order: np.ndarray, group: np.ndarray | None
    ) -> RemoteTree:
        how = {"sample_size": options.sample, "seed": options.seed}
        return RemoteTree(self.data, kernel, **how, order=order, group=group)


def parcels_of(parts: Parts, most: int) -> Iterator[slice]:
    """Slices of consecutive parts that cost about as much to solve, none without variables; 1, 2, 4
    or more, so that an even number of workers has as much to do."""
    if len(parts.members) == 0:
        return
    costs = np.cumsum(parts.sizes.astype(np.float64) ** 2 + PART_COST)
    wanted = 2 ** max(math.ceil(math.log2(costs[-1] / PARCEL_COST)), 0)
    cost = costs[-1] / min(wanted, most)
    number = (costs - 0.5 * np.diff(costs, prepend=0.0)) // cost
    starts = [*np.flatnonzero(np.diff(number, prepend=-1)).tolist(), len(costs)]
    for begin, end in zip(starts[:-1], starts[1:], strict=True):
        if parts.start[begin] < parts.start[end]:
            yield slice(begin, end)
