"""A tree of clusters of remote rows: sampled rows are divided at the client, all rows are routed
where they are."""

from __future__ import annotations

import numpy as np

from dcsvm import _core
from dcsvm.distributed.on_worker import Means, placed_chunk
from dcsvm.distributed.packed import packed_places, unpacked_places
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.partition import Fork, Placed


class RemoteTree(Tree):
    """The tree that the rows would have in one memory."""

    def those(self, rows: np.ndarray) -> tuple[KernelRows, np.ndarray]:
        data = KernelRows(self.rows.take(rows), self.data.kernel, 1, coded=True)
        return data, np.arange(len(rows), dtype=np.int32)

    def stepped(
        self,
        placed: Placed,
        fork: Fork,
        rows: np.ndarray,
        stop: _core.Stop | None,
        *,
        second: bool,
    ) -> Placed:
        tasks, level = self.rows.tasks, len(self.forks)
        means = Means(self.data.kernel, 0)
        sample = self.rows.assembled(rows, f"level{level}-centers") if len(rows) else None
        found = Placed.at_root(self.rows.n_samples, second=second)
        futures, places = {}, {}
        for chunk, own_places, own in self.rows.in_chunks:
            places[chunk] = own_places
            futures[chunk] = tasks.submit(
                f"level{level}-route-chunk{chunk}", placed_chunk, self.rows.chunks[chunk],
                own, packed_places(placed.take(own_places)), sample, fork, means, second,
            )  # fmt: skip
        for chunk, part in tasks.finished(futures, stop):
            found.put(places[chunk], unpacked_places(part))
        return found
