"""Time predictions of the test rows, ours and scikit-learn-intelex's in turn.

Both are trained once, in this process, and only predict() is timed. Our model is new in each round,
without cached data. The peer is fitted to our support vectors, which have the same solution as all
rows, or to a sample if there are many. Its time is scaled to our number of support vectors.
"""

from dataclasses import replace
from statistics import median

import numpy as np
from cases import Case
from measure import number, seconds_of
from programs import Job
from verification import verification_seconds

import dcsvm

MAX_FITTED = 20_000  # support vectors; the peer takes minutes for more
PEERS = {"sklearnex float32": np.float32, "float64": np.float64}
HEADING = ["seconds of predicting", "rows", "SVs", "dcsvm", "bound", "x bound"]
HEADING += [text for peer in PEERS for text in (peer, "ratio")]
LEGEND = """ratio: the peer's time over ours. bound: test rows x support vectors kernel evaluations
at the measured speed of our kernel product; what is provably negligible can be left out of it."""


def predicted(job: Job) -> list:
    """Return a line of the table: median seconds of the rounds, and the peers' time over ours."""
    case, threads = job.case, job.options.threads
    X, T = (
        rows.dense(np.arange(len(rows)), job.width).astype(np.float32)
        for rows in (job.rows, job.test_rows)
    )
    model = dcsvm.train(X, job.rows.labels, C=case.C, gamma=case.gamma, threads=threads)
    support = model.exact.row_numbers
    some = support[:: -(-len(support) // MAX_FITTED)]
    peers = fitted_peers(case, X[some], job.rows.labels[some], threads)
    tests = {peer: T.astype(PEERS[peer]) for peer in peers}
    seconds: dict[str, list[float]] = {name: [] for name in ("dcsvm", *peers)}
    for _ in range(job.options.rounds):
        one = new(model)
        seconds["dcsvm"].append(seconds_of(lambda one=one: one.predict(T, threads=threads)))
        for peer, svc in peers.items():
            taken = seconds_of(lambda svc=svc, peer=peer: svc.predict(tests[peer]))
            seconds[peer].append(taken * len(support) / max(len(svc.support_), 1))
    medians = {name: median(times) for name, times in seconds.items()}
    bound, mine = verification_seconds(T, X[support], case.gamma, threads), medians["dcsvm"]
    line = [case.name, len(T), len(support), number(mine), number(bound)]
    line.append(number(mine / bound if bound else None))
    for peer in map(medians.get, PEERS):
        line += [number(peer), number(peer / mine if peer else None)]
    return line


def fitted_peers(case: Case, X: np.ndarray, y: np.ndarray, threads: int) -> dict:
    """Return the SVCs of scikit-learn-intelex; an empty result if it is not installed."""
    try:
        import daal4py
        from sklearnex.svm import SVC
    except ImportError:
        return {}
    daal4py.daalinit(threads)
    svc = {peer: SVC(C=case.C, gamma=case.gamma) for peer in PEERS}
    return {peer: svc[peer].fit(X.astype(dtype), y) for peer, dtype in PEERS.items()}


def new(model):
    """Return the model without the data that its first prediction prepares and caches."""
    return replace(model, exact=replace(model.exact, rows=replace(model.exact.rows)))
