"""The paper's competitors behind one interface.

    fit(X, y, C, kernel, *, threads, seed=0, evaluate=None, **options) -> Fitted

X is float32 (n, d), or uint8 where the method takes_bytes(), y (n,) of +1.0 and -1.0, kernel a
`dcsvm.kernel.kernels.Kernel`. `evaluate`, if given, turns a decision function into an accuracy for
the history. Only LIBSVM has a bias term, which svm-train cannot omit. Without one, there are this
project's solver, run directly, and on small problems an independent one that is as plain as
possible.
"""

from __future__ import annotations

from importlib import import_module

METHODS = {  # name: (title, module, function)
    "early": ("DC-SVM (early)", "dc_svm", "fit_early"),
    "dcsvm": ("DC-SVM", "dc_svm", "fit"),
    "single": ("DC-SVM, one thread", "dc_svm", "fit"),
    "libsvm": ("LIBSVM, with bias", "libsvm", "fit"),
    "direct": ("direct, no bias", "dc_svm", "fit_direct"),
    "lasvm": ("LaSVM", "lasvm", "fit"),
    "cascade": ("CascadeSVM", "cascade", "fit"),
    "llsvm": ("LLSVM", "linearised", "fit_llsvm"),
    "fastfood": ("FastFood", "linearised", "fit_fastfood"),
    "spsvm": ("SpSVM", "spsvm", "fit"),
    "ltpu": ("LTPU", "linearised", "fit_ltpu"),
}
CHECKS = {  # on small problems: how the bias of LIBSVM matters
    "plain": ("no bias, plain descent", "plain", "fit"),
    "biased": ("direct, with bias", "dc_svm", "fit_biased"),
}
OURS = ("early", "dcsvm", "single", "direct")
COMPETITORS = tuple(name for name in METHODS if name not in OURS)
ONE_THREAD = ("single", "libsvm")  # svm-train has no more
ALL = METHODS | CHECKS
TITLES = {name: title for name, (title, _, _) in ALL.items()}
TITLES["found"] = "early, clusters found"  # of a search


def fitter(name: str):
    """The fit function of a method; only its own module is imported."""
    _, module, function = ALL[name]
    return getattr(import_module(f"paper.baselines.{module}"), function)


def takes_bytes(name: str) -> bool:
    return ALL[name][1] == "dc_svm"


def threads_of(name: str, threads: int) -> int:
    """Return the threads of a method where it is compared with `threads` of them."""
    return 1 if name in ONE_THREAD else threads


def ours_beside(name: str) -> str:
    """Return the method of DC-SVM that has as many threads as a method."""
    return "single" if name in ONE_THREAD else "dcsvm"
