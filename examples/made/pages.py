"""Generated pages that replace webspam: 350,000 rows with the frequencies of 254 bytes in a page.

Pages are drawn from a mixture of topics; some topics are more frequent in spam. A page contains
about half of the bytes. Features are scaled by their largest value, as in the paper.
"""

import numpy as np

N_ROWS, N_FEATURES = 350_000, 254
SPAM = 0.6  # share of the pages
N_TOPICS, TOPICS_OF_PAGE = 60, 3  # a page has about 3 topics
WRONG = 0.005  # share of the labels
ODD = 0.02  # share of pages that mostly repeat one byte, so that other frequencies look small
BYTES_OF_TOPIC = 36
BATCH_SIZE = 10_000


def pages(n_rows: int = N_ROWS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in [0, 1] float32 (n, N_FEATURES) and labels +1 (spam) and -1 (n,)."""
    rng = np.random.default_rng(seed)
    topics = np.stack([_bytes_of_topic(rng) for _ in range(N_TOPICS)])
    common = _bytes_of_topic(rng)
    liking = rng.dirichlet(np.full(N_TOPICS, TOPICS_OF_PAGE / N_TOPICS), 40)  # kinds of pages
    is_spam_kind = np.arange(len(liking)) < SPAM * len(liking)
    X, y = np.empty((n_rows, N_FEATURES), np.float32), np.empty(n_rows)
    for begin in range(0, n_rows, BATCH_SIZE):
        own = slice(begin, min(begin + BATCH_SIZE, n_rows))
        n = own.stop - begin
        kind = rng.integers(len(liking), size=n)
        mixture = rng.standard_gamma(0.01 + 20 * liking[kind])
        mixture /= mixture.sum(axis=1, keepdims=True)
        shares = 0.6 * mixture @ topics + 0.4 * common
        odd = np.flatnonzero(rng.random(n) < ODD)
        shares[odd] *= 0.1
        shares[odd, rng.integers(N_FEATURES, size=len(odd))] += 0.9
        length = np.exp(rng.normal(7.0, 1.0, (n, 1)))
        counts = rng.poisson(shares * length)
        X[own] = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        is_spam = is_spam_kind[kind] ^ (rng.random(n) < WRONG)
        y[own] = np.where(is_spam, 1.0, -1.0)
    return X / np.maximum(X.max(axis=0), np.finfo(np.float32).tiny), y


def _bytes_of_topic(rng: np.random.Generator) -> np.ndarray:
    """Draw the share of each byte in a topic."""
    shares = np.zeros(N_FEATURES)
    some = rng.choice(N_FEATURES, BYTES_OF_TOPIC, replace=False)
    shares[some] = rng.dirichlet(np.ones(BYTES_OF_TOPIC))
    return shares
