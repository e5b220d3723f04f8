"""Time predictions of the test rows, ours and scikit-learn-intelex's in turn.

Both are trained once, in this process, and only predict() is timed. Our model is new in each round,
without cached data. The peer is fitted to our support vectors, which have the same solution as all
rows, or to a sample if there are many. Its time is scaled to our number of support vectors.
"""

import time
from dataclasses import dataclass, field, replace

import numpy as np
import tables
from cases import Case
from solvers import Job
from verification import verification_seconds

MAX_FITTED = 20_000  # support vectors; the peer takes minutes for more
PEERS = {"sklearnex float32": np.float32, "float64": np.float64}
KERNELS = ("linear", "poly", "rbf", "sigmoid")
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


def predict_case(job: Job, rounds: int, threads: int) -> Predicted:
    import dcsvm

    case, width = job.case, max(job.rows.n_features, job.test_rows.n_features)
    X, T = (
        rows.dense(np.arange(len(rows)), width).astype(np.float32)
        for rows in (job.rows, job.test_rows)
    )
    kernel = {"gamma": case.kernel.gamma, "coef0": case.kernel.coef0, "degree": case.kernel.degree}
    name = ("linear", "polynomial", "rbf", "sigmoid")[case.kernel.type]
    model = dcsvm.train(X, job.rows.labels, C=case.C, kernel=name, threads=threads, **kernel)
    support = model.exact.row_numbers
    result = Predicted(case, len(T), len(support), None)
    result.bound = verification_seconds(T, X[support], case.kernel, threads)
    some = support[:: -(-len(support) // MAX_FITTED)]
    peers = fitted_peers(case, X[some], job.rows.labels[some], kernel, threads)
    tests = {peer: T.astype(PEERS[peer]) for peer in peers}
    for _ in range(rounds):
        one = new(model)
        timed(result, "dcsvm", 1.0, lambda one=one: one.predict(T, threads=threads))
        for peer, svc in peers.items():
            part = len(support) / max(len(svc.support_), 1)
            timed(result, peer, part, lambda svc=svc, peer=peer: svc.predict(tests[peer]))
    return result


def fitted_peers(case: Case, X: np.ndarray, y: np.ndarray, kernel: dict, threads: int) -> dict:
    """Return the SVCs of scikit-learn-intelex; an empty result if it is not installed."""
    try:
        import daal4py
        from sklearnex.svm import SVC
    except ImportError:
        return {}
    daal4py.daalinit(threads)
    made = {peer: SVC(C=case.C, kernel=KERNELS[case.kernel.type], **kernel) for peer in PEERS}
    return {peer: svc.fit(X.astype(PEERS[peer]), y) for peer, svc in made.items()}


def new(model):
    """Return the model without the data that its first prediction prepares and caches."""
    return replace(model, exact=replace(model.exact, rows=replace(model.exact.rows)))


def timed(result: Predicted, name: str, factor: float, work) -> None:
    begin = time.perf_counter()
    work()
    result.seconds.setdefault(name, []).append(factor * (time.perf_counter() - begin))


def table(results: list[Predicted]) -> str:
    """Make a line per case: median seconds, and the peers' time over ours."""
    heading = ["seconds of predicting", "rows", "SVs", "dcsvm", "bound", "x bound"]
    for peer in PEERS:
        heading += [peer, "ratio"]
    return tables.aligned([heading, *map(line, results)])


def line(result: Predicted) -> list[str]:
    ours, bound = result.median("dcsvm"), result.bound
    texts = [result.case.name, str(result.n_rows), str(result.n_support), tables.number(ours)]
    texts += [tables.number(bound), tables.number(ours / bound if bound else None)]
    for peer in PEERS:
        seconds = result.median(peer)
        texts += [tables.number(seconds), tables.number(seconds / ours if seconds else None)]
    return texts
