"""The Engine of remote rows: solver, kernel sums and clusters as tasks on workers.

A subproblem is solved on a worker that collects its rows. Kernel sums are computed on the workers
that hold the target rows. The division into tasks depends only on the data and the options, so that
results are the same bits for any number of workers.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from distributed import Future

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.distributed.connection import threads_of_hosts
from dcsvm.distributed.remote_rows import RemoteKernelRows, RemoteRows
from dcsvm.distributed.tasks import Tasks
from dcsvm.distributed.worker_tasks import (
    TaskResources,
    divide,
    route,
    run_on_rows,
    solve,
    spans,
    sums,
    without_rows,
)
from dcsvm.kernel.cluster_tree import Starts, Tree
from dcsvm.kernel.kernel_rows import KernelEvalOptions
from dcsvm.kernel.kernel_sums import TermIndex
from dcsvm.kernel.partition import Assignment, NodeSplit
from dcsvm.solving.checkpoint import SolveControl
from dcsvm.solving.engine import numbered
from dcsvm.solving.iterate import Iterate, SolverSettings, Subproblems
from dcsvm.solving.report import Traffic

# A task collects rows from all chunks, so that small subproblems share a task, or parcel, of about
# this cost in kernel values. There are at most MAX_PARCELS, or the number of sections, if larger.
PARCEL_COST, MAX_PARCELS = 5e7, 32
PART_COST = 3e4  # added to n^2, the cost of a subproblem of n variables


class RemoteTree(Tree):
    """The tree of remote rows, equal to the tree of the same rows in one process.

    One worker splits the sample of a level. Each chunk is assigned to clusters where its rows are;
    its assignment stays there for the next level. `split` is the task of the last split. `assigned`
    maps each chunk to the task of its last assignment.
    """

    rows: RemoteRows  # type: ignore[assignment]  # Tree uses only n_samples and take
    split: Future | None = None
    assigned: dict[int, Future] | None = None

    def split_nodes(
        self,
        rows: np.ndarray,
        of_node: np.ndarray,
        n_parts: np.ndarray,
        seed: int,
        starts: Starts | None = None,
    ) -> tuple[np.ndarray, NodeSplit]:
        tasks, level = self.rows.tasks, f"level{len(self.splits) + 1}"
        pieces: Sequence[Future | Rows] = [self.rows.form.no_rows]
        order = None
        if len(rows):
            pieces, order = self.rows.pieces(rows, f"{level}-sample")
        means = TaskResources(self.data.kernel, 0, threads_of_hosts(tasks.client))
        self.split = tasks.submit(
            f"{level}-divide", run_on_rows, divide, means, pieces, None, order, None, of_node,
            n_parts, seed, starts,
        )  # fmt: skip
        return tasks.results([tasks.submit(f"{level}-split", without_rows, self.split)])[0]

    def stepped(
        self, _placed: Assignment, _split: NodeSplit, _rows: np.ndarray, stop: _core.Stop | None, *,
        second: bool,
    ) -> Assignment:  # fmt: skip
        tasks, means = self.rows.tasks, TaskResources(self.data.kernel, 0)
        result = Assignment.at_root(self.rows.n_samples, second=second)
        positions, before = {}, self.assigned or {}
        self.assigned = {}
        for chunk, chunk_positions, selected in self.rows.in_chunks:
            positions[chunk] = chunk_positions
            self.assigned[chunk] = tasks.submit(
                f"level{len(self.splits)}-route-chunk{chunk}", run_on_rows, route, means,
                [self.rows.chunks[chunk]], selected, None, None, before.get(chunk), self.split,
                second,
            )  # fmt: skip
        for chunk, placed in tasks.finished(self.assigned, stop):
            result.put(positions[chunk], placed)
        return result


class DaskEngine:
    """The Engine of remote rows; the `phase` of a run names its tasks."""

    targets_at_once = 2**62  # one batch: several would only add tasks
    is_out_of_core = True
    tree_of = RemoteTree

    def __init__(self, data: RemoteKernelRows):
        self.data, self.n_rounds, self.phase = data, 0, "dcsvm"
        self.tasks: Tasks = data.rows.tasks

    @property
    def traffic(self) -> Traffic:
        """Return the traffic so far, with the work of each worker."""
        self.tasks.note_workers()
        self.tasks.traffic.rounds = self.n_rounds
        return self.tasks.traffic

    def sums(
        self, targets: TermIndex, sources: TermIndex, alpha: np.ndarray, how: KernelEvalOptions
    ) -> tuple[np.ndarray, int]:
        result, n_evaluations = np.zeros(len(targets.row)), 0
        if len(sources.row) == 0 or len(targets.row) == 0:
            return result, n_evaluations
        rows, index = np.unique(sources.row, return_inverse=True)
        source_terms = replace(sources, row=index.reshape(-1).astype(np.int32))

        def target_terms(positions: np.ndarray, index: np.ndarray) -> tuple[TermIndex]:
            return (replace(targets.take(positions), row=index.astype(np.int32)),)

        for positions, _, (chunk_sums, n) in self.data.on_chunks(
            f"{self.phase}-sums", sums, targets.row, rows, (source_terms, alpha), how,
            cutoff=how.cutoff, arguments_of=target_terms,
        ):  # fmt: skip
            result[positions] = chunk_sums
            n_evaluations += n
        return result, n_evaluations

    def solve_together(
        self, parts: Subproblems, iterate: Iterate, settings: SolverSettings, control: SolveControl
    ) -> np.ndarray:
        """Solve subproblems in parcels, each a task with all rows of its subproblems.

        A resumed run solves the parcels again that were unfinished at the stop.
        """
        parcels, means = self._parcels(parts), self.data.means
        state, progress = control.state, control.progress
        if len(parcels) == 1:
            means = replace(means, threads_of_hosts=threads_of_hosts(self.tasks.client))
        futures: dict[int, Future] = {}
        for k, parcel in enumerate(parcels):
            which = parcel.which
            if state.is_finished(which.start):
                continue
            name = f"{self.phase}-part{which.start}"
            name += f"to{which.stop - 1}" * (which.stop > which.start + 1)
            pieces, order = self.data.rows.pieces(parcel.rows, self.phase)
            futures[k] = self.tasks.submit(
                name, run_on_rows, solve, means, pieces, None, order, settings.cutoff, parcel.parts,
                iterate.take(parcel.members), settings, priority=len(parcel.members),
            )  # fmt: skip
        n_parcels = n_done = 0
        for k, (solved, reports) in self.tasks.finished(futures, control.stop):
            parcel = parcels[k]
            iterate.put(parcel.members, solved)
            for part, report in enumerate(reports, parcel.which.start):
                state.finish(part, report)
            n_parcels, n_done = n_parcels + 1, n_done + len(parcel.members)
            if progress is not None and progress(n_parcels, n_done, None, 0, 0):
                progress(n_parcels, n_done, None, 0, 0)
        return state.reports

    def spans(
        self, parts: Subproblems, alpha: np.ndarray, mask: np.ndarray, n_exact: int, _threads: int
    ) -> np.ndarray:
        parcels, result = self._parcels(parts), np.zeros(parts.problem.size)
        futures: dict[int, Future] = {}
        for k, parcel in enumerate(parcels):
            members = np.arange(len(parcel.members), dtype=np.int32)
            pieces, order = self.data.rows.pieces(parcel.rows, "dcsvm-spans")
            futures[k] = self.tasks.submit(
                "dcsvm-spans", run_on_rows, spans, self.data.means, pieces, None, order, None,
                replace(parcel.parts, members=members), alpha[parcel.members],
                mask[parcel.members], n_exact,
            )  # fmt: skip
        for k, squared_spans in self.tasks.finished(futures):
            result[parcels[k].members] = squared_spans
        return result

    def _parcels(self, parts: Subproblems) -> list["Parcel"]:
        parcels = []
        for which in parcels_of(parts, max(MAX_PARCELS, self.data.rows.n_sections)):
            start = parts.start[which.start : which.stop + 1]
            members = parts.members[start[0] : start[-1]]
            problem, rows = numbered(parts.problem, members)
            local = Subproblems(problem, start - start[0], np.zeros(0, np.int32))
            parcels.append(Parcel(which, members, local, rows))
        return parcels


class Parcel(NamedTuple):
    """The subproblems of one task.

    `which` is their slice of all subproblems. `members` are their variables, `rows` the run indices
    of their rows. `parts` numbers both from 0; its members are implicit: all variables, in order.
    """

    which: slice
    members: np.ndarray
    parts: Subproblems
    rows: np.ndarray


def parcels_of(parts: Subproblems, max_parcels: int) -> Iterator[slice]:
    """Divide subproblems into slices of about equal cost, and skip empty slices.

    The number of slices is a power of 2, to balance an even number of workers, up to `max_parcels`.
    """
    if len(parts.members) == 0:
        return
    costs = np.cumsum(parts.sizes.astype(np.float64) ** 2 + PART_COST)
    n_parcels = min(2 ** max(math.ceil(math.log2(costs[-1] / PARCEL_COST)), 0), max_parcels)
    cost = costs[-1] / n_parcels
    parcel = (costs - 0.5 * np.diff(costs, prepend=0.0)) // cost
    starts = [*np.flatnonzero(np.diff(parcel, prepend=-1)).tolist(), len(costs)]
    for begin, end in pairwise(starts):
        if parts.start[begin] < parts.start[end]:
            yield slice(begin, end)
