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
from distributed import Future

from dcsvm import _core
from dcsvm.distributed.connection import threads_of_hosts
from dcsvm.distributed.on_worker import (
    Means,
    divide,
    route,
    run_on_rows,
    solve,
    spans,
    sums,
    without_rows,
)
from dcsvm.distributed.remote_rows import RemoteKernelRows
from dcsvm.distributed.tasks import Tasks
from dcsvm.kernel.cluster_tree import Starts, Tree
from dcsvm.kernel.kernel_rows import Evaluation
from dcsvm.kernel.kernel_sums import Terms
from dcsvm.kernel.partition import Fork, Placed
from dcsvm.solving.engine import numbered
from dcsvm.solving.iterate import Effort, Iterate, Parts
from dcsvm.solving.report import Traffic

# of parts that are solved in one task: about the most that they cost, in kernel values, unless that
# makes more tasks than so many, and than there are sections of rows, as each gets some from all
PARCEL_COST, MOST_PARCELS = 5e7, 32
PART_COST = 3e4  # of the least part, beside the square of its variables


class RemoteTree(Tree):
    """The tree that the rows would have in one memory: sampled rows are divided on one worker, all
    rows are routed where they are, and where they are in a level stays there for the next.
    `divided` is the task that has divided the sample of the finest level, `at` has those that tell
    where the rows of each chunk are in it."""

    divided: Future | None = None
    at: dict[int, Future] | None = None

    def forked(
        self,
        rows: np.ndarray,
        of_node: np.ndarray,
        wanted: np.ndarray,
        seed: int,
        starts: Starts | None = None,
    ) -> tuple[np.ndarray, Fork]:
        tasks, level = self.rows.tasks, f"level{len(self.forks) + 1}"
        pieces, order = [self.rows.form.no_rows], None
        if len(rows):
            pieces, order = self.rows.pieces(rows, f"{level}-sample")
        means = Means(self.data.kernel, 0, threads_of_hosts(tasks.client))
        self.divided = tasks.submit(
            f"{level}-divide", run_on_rows, divide, means, pieces, None, order, None, of_node,
            wanted, seed, starts,
        )  # fmt: skip
        return tasks.results([tasks.submit(f"{level}-fork", without_rows, self.divided)])[0]

    def stepped(
        self, placed: Placed, fork: Fork, rows: np.ndarray, stop: _core.Stop | None, *, second: bool
    ) -> Placed:
        tasks, means = self.rows.tasks, Means(self.data.kernel, 0)
        found = Placed.at_root(self.rows.n_samples, second=second)
        places, before = {}, self.at or {}
        self.at = {}
        for chunk, own_places, own in self.rows.in_chunks:
            places[chunk] = own_places
            self.at[chunk] = tasks.submit(
                f"level{len(self.forks)}-route-chunk{chunk}", run_on_rows, route, means,
                [self.rows.chunks[chunk]], own, None, None, before.get(chunk), self.divided,
                second,
            )  # fmt: skip
        for chunk, part in tasks.finished(self.at, stop):
            found.put(places[chunk], part)
        return found


class DaskEngine:
    """The Engine of remote rows; the `phase` of a run names its tasks."""

    targets_at_once = 2**62  # every part would have a task for each chunk
    is_out_of_core = True
    tree_of = RemoteTree

    def __init__(self, data: RemoteKernelRows):
        self.data, self.n_rounds, self.phase = data, 0, "dcsvm"
        self.tasks: Tasks = data.rows.tasks

    @property
    def traffic(self) -> Traffic:
        """What has moved so far, and what each worker has done."""
        self.tasks.note_workers()
        self.tasks.traffic.rounds = self.n_rounds
        return self.tasks.traffic

    def sums(
        self, targets: Terms, sources: Terms, alpha: np.ndarray, how: Evaluation
    ) -> tuple[np.ndarray, int]:
        result, n_values = np.zeros(len(targets.row)), 0
        if len(sources.row) == 0 or len(targets.row) == 0:
            return result, n_values
        rows, place = np.unique(sources.row, return_inverse=True)
        others = replace(sources, row=place.reshape(-1).astype(np.int32))

        def own_terms(places, local):
            return (replace(targets.take(places), row=local.astype(np.int32)),)

        for places, _, (found, n) in self.data.on_chunks(
            f"{self.phase}-sums", sums, targets.row, rows, (others, alpha), how,
            reach=how.reach, more=own_terms,
        ):  # fmt: skip
            result[places] = found
            n_values += n
        return result, n_values

    def solve_together(
        self, parts: Parts, iterate: Iterate, effort: Effort, progress, stop: _core.Stop,
        state: _core.SolveState,
    ) -> list[dict]:  # fmt: skip
        """Solve parts in parcels, each a task that has all of its rows. One that was not done when
        a run was stopped is solved from its begin."""
        parcels, means = self._parcels(parts), self.data.means
        if len(parcels) == 1:
            means = replace(means, threads_of_hosts=threads_of_hosts(self.tasks.client))
        futures, n_parcels, n_done = {}, 0, 0
        for number, (own, members, local, rows) in enumerate(parcels):
            if state.is_finished(own.start):
                continue
            name = f"{self.phase}-part{own.start}"
            name += f"to{own.stop - 1}" * (own.stop > own.start + 1)
            pieces, order = self.data.rows.pieces(rows, self.phase)
            futures[number] = self.tasks.submit(
                name, run_on_rows, solve, means, pieces, None, order, effort.reach, local,
                iterate.take(members), effort, priority=len(members),
            )  # fmt: skip
        for number, (solved, reports) in self.tasks.finished(futures, stop):
            own, members = parcels[number][:2]
            iterate.put(members, solved)
            for part, report in enumerate(reports, own.start):
                state.finish(part, report)
            n_parcels, n_done = n_parcels + 1, n_done + len(members)
            if progress is not None and progress(n_parcels, n_done, None, 0, 0):
                progress(n_parcels, n_done, None, 0, 0)
        return state.reports

    def spans(
        self, parts: Parts, alpha: np.ndarray, wanted: np.ndarray, n_exact: int, threads: int
    ) -> np.ndarray:
        parcels, result, futures = self._parcels(parts), np.zeros(parts.problem.size), {}
        for number, (_, members, local, rows) in enumerate(parcels):
            local = replace(local, members=np.arange(len(members), dtype=np.int32))
            pieces, order = self.data.rows.pieces(rows, "dcsvm-spans")
            futures[number] = self.tasks.submit(
                "dcsvm-spans", run_on_rows, spans, self.data.means, pieces, None, order, None,
                local, alpha[members], wanted[members], n_exact,
            )  # fmt: skip
        for number, found in self.tasks.finished(futures):
            result[parcels[number][1]] = found
        return result

    def _parcels(self, parts: Parts) -> list[tuple[slice, np.ndarray, Parts, np.ndarray]]:
        """(which parts, their members, these parts alone, the rows that these have); members of
        parts alone are all variables, in their order."""
        found = []
        for own in parcels_of(parts, max(MOST_PARCELS, self.data.rows.n_sections)):
            start = parts.start[own.start : own.stop + 1]
            members = parts.members[start[0] : start[-1]]
            problem, rows = numbered(parts.problem, members)
            local = Parts(problem, start - start[0], np.zeros(0, np.int32))
            found.append((own, members, local, rows))
        return found


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
