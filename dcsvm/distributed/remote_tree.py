"""A tree of clusters of remote rows: sampled rows are brought together and divided on a worker, all
rows are routed where they are, and where they are in a level stays there for the next.
"""

from __future__ import annotations

import numpy as np
from distributed import Future

from dcsvm import _core
from dcsvm.distributed.connection import threads_of_hosts
from dcsvm.distributed.on_worker import Means, divided_sample, placed_chunk, without_rows
from dcsvm.kernel.cluster_tree import Starts, Tree
from dcsvm.kernel.partition import Fork, Placed


class RemoteTree(Tree):
    """The tree that the rows would have in one memory. `divided` is the task that has divided the
    sample of the finest level, `at` has those that tell where the rows of each chunk are in it."""

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
            f"{level}-divide", divided_sample, pieces, order, of_node, wanted, seed, means, starts
        )
        return tasks.results([tasks.submit(f"{level}-fork", without_rows, self.divided)])[0]

    def stepped(
        self,
        placed: Placed,
        fork: Fork,
        rows: np.ndarray,
        stop: _core.Stop | None,
        *,
        second: bool,
    ) -> Placed:
        tasks, means = self.rows.tasks, Means(self.data.kernel, 0)
        found = Placed.at_root(self.rows.n_samples, second=second)
        places, before = {}, self.at or {}
        self.at = {}
        for chunk, own_places, own in self.rows.in_chunks:
            places[chunk] = own_places
            self.at[chunk] = tasks.submit(
                f"level{len(self.forks)}-route-chunk{chunk}", placed_chunk, self.rows.chunks[chunk],
                own, before.get(chunk), self.divided, means, second,
            )  # fmt: skip
        for chunk, part in tasks.finished(self.at, stop):
            found.put(places[chunk], part)
        return found
