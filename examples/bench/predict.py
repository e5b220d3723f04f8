"""Time predictions of the test rows, ours and scikit-learn-intelex's in turn.

Both are trained once, in this process, and only predict() is timed. Our model is new in each round,
without cached data. The peer is fitted to our support vectors, which have the same solution as all
rows, or to a sample if there are many. Its time is scaled to our number of support vectors.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from cases import Case
from measure import aligned, number, seconds_of
from programs import Job
from verification import verification_seconds

import dcsvm

MAX_FITTED = 20_000  # support vectors; the peer takes minutes for more
PEERS = {"sklearnex float32": np.float32, "float64": np.float64}
LEGEND = """ratio: the peer's time over ours. bound: test rows x support vectors kernel evaluations
at the measured speed of our kernel product; what is provably negligible can be left out of it."""


@dataclass
class Predicted:
    """Seconds of every round of a case; peers' seconds are scaled to our support vectors."""

    case: Case
    n_rows: int
    n_support: int
    bound: float | None
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def median(self, name: str) -> float | None:
        return float(np.median(self.seconds[name])) if name in self.seconds else None

    def time(self, name: str, factor: float, work) -> None:
        self.seconds.setdefault(name, []).append(factor * seconds_of(work))


def predict_case(job: Job) -> Predicted:
    case, threads = job.case, job.options.threads
    X, T = (
        rows.dense(np.arange(len(rows)), job.width).astype(np.float32)
        for rows in (job.rows, job.test_rows)
    )
    kernel = case.kernel.params()
    ours = kernel | {"kernel": kernel["kernel"].replace("poly", "polynomial")}
    model = dcsvm.train(X, job.rows.labels, C=case.C, threads=threads, **ours)
    support = model.exact.row_numbers
    bound = verification_seconds(T, X[support], case.kernel, threads)
    result = Predicted(case, len(T), len(support), bound)
    some = support[:: -(-len(support) // MAX_FITTED)]
    peers = fitted_peers(case, X[some], job.rows.labels[some], kernel, threads)
    tests = {peer: T.astype(PEERS[peer]) for peer in peers}
    for _ in range(job.options.rounds):
        one = new(model)
        result.time("dcsvm", 1.0, lambda one=one: one.predict(T, threads=threads))
        for peer, svc in peers.items():
            part = len(support) / max(len(svc.support_), 1)
            result.time(peer, part, lambda svc=svc, peer=peer: svc.predict(tests[peer]))
    return result


def fitted_peers(case: Case, X: np.ndarray, y: np.ndarray, kernel: dict, threads: int) -> dict:
    """Return the SVCs of scikit-learn-intelex; an empty result if it is not installed."""
    try:
        import daal4py
        from sklearnex.svm import SVC
    except ImportError:
        return {}
    daal4py.daalinit(threads)
    return {peer: SVC(C=case.C, **kernel).fit(X.astype(dtype), y) for peer, dtype in PEERS.items()}


def new(model):
    """Return the model without the data that its first prediction prepares and caches."""
    return replace(model, exact=replace(model.exact, rows=replace(model.exact.rows)))


def table(results: list[Predicted]) -> str:
    """Make a line per case: median seconds, and the peers' time over ours."""
    table = [["seconds of predicting", "rows", "SVs", "dcsvm", "bound", "x bound"]]
    table[0] += [text for peer in PEERS for text in (peer, "ratio")]
    for result in results:
        ours, bound = result.median("dcsvm"), result.bound
        line = [result.case.name, str(result.n_rows), str(result.n_support), number(ours)]
        line += [number(bound), number(ours / bound if bound else None)]
        for seconds in map(result.median, PEERS):
            line += [number(seconds), number(seconds / ours if seconds else None)]
        table.append(line)
    return aligned(table)
