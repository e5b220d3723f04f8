"""The paper's competitors behind one interface.

    fit(X, y, C, kernel, *, threads, seed=0, evaluate=None, **options) -> Fitted

X is float32 (n, d), or uint8 where the method takes_bytes(), y (n,) of +1.0 and -1.0, kernel a
`dcsvm.kernel.kernels.Kernel`. `evaluate`, if given, turns a decision function into an accuracy for
the history. Only LIBSVM has a bias term, which svm-train cannot omit; this project's solver, run
directly, is the comparison without one.
"""

from __future__ import annotations

from importlib import import_module

METHODS = {  # name: (title, module, function)
    "early": ("DC-SVM (early)", "dc_svm", "fit_early"),
    "dcsvm": ("DC-SVM", "dc_svm", "fit"),
    "libsvm": ("LIBSVM, with bias", "libsvm", "fit"),
    "direct": ("direct, no bias", "dc_svm", "fit_direct"),
    "lasvm": ("LaSVM", "lasvm", "fit"),
    "cascade": ("CascadeSVM", "cascade", "fit"),
    "llsvm": ("LLSVM", "linearised", "fit_llsvm"),
    "fastfood": ("FastFood", "linearised", "fit_fastfood"),
    "spsvm": ("SpSVM", "spsvm", "fit"),
    "ltpu": ("LTPU", "linearised", "fit_ltpu"),
}
TITLES = {name: title for name, (title, _, _) in METHODS.items()}


def fitter(name: str):
    """The fit function of a method; only its own module is imported."""
    _, module, function = METHODS[name]
    return getattr(import_module(f"paper.baselines.{module}"), function)


def takes_bytes(name: str) -> bool:
    return METHODS[name][1] == "dc_svm"
