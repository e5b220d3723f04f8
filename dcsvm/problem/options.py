"""What training can be told."""

from __future__ import annotations

from dataclasses import dataclass

from dcsvm.kernel.kernels import Kernel
from dcsvm.problem.svm_types import SVM_TYPES, WITH_LEVELS

CLUSTERINGS = ("kernel", "kmeans")


@dataclass(frozen=True)
class TrainOptions:
    """Everything `train` can be told, with the defaults of the command and of the Python API.

    `svm_type` is one of SVM_TYPES; `nu` is that of nu-SVC, one-class and nu-SVR, `epsilon` half the
    width of the tube of epsilon-SVR. `class_weight` maps labels to factors of C (C-SVC). `bias` is
    C-SVC's; the other types always have one. `probability` fits what probabilities need.
    gamma None is 1/n_features; levels and early_level None are chosen from the number of rows;
    cache_mb and threads None from the machine; max_iterations -1 is no limit. `gap` stops at a
    duality gap relative to the objective instead of at a violation of `tolerance`. `early` stops
    after the early level; `certify` checks every row in float64; `measure_levels` adds to the
    report of each level what it left out.
    """

    C: float = 1.0
    svm_type: str = "c_svc"
    nu: float = 0.5
    epsilon: float = 0.1
    class_weight: dict[float, float] | None = None
    bias: bool = False
    probability: bool = False
    kernel: str = "rbf"
    gamma: float | None = None
    coef0: float = 0.0
    degree: int = 3
    tolerance: float = 1e-3
    gap: float | None = None
    levels: int | None = None
    branching: int = 4
    sample: int = 1000
    early: bool = False
    early_level: int | None = None
    clustering: str = "kernel"
    seed: int = 0
    threads: int | None = None
    cache_mb: int | None = None
    max_iterations: int = -1
    certify: bool = False
    measure_levels: bool = False

    def __post_init__(self):
        if self.svm_type not in SVM_TYPES:
            raise ValueError(
                f"svm_type must be one of {', '.join(SVM_TYPES)}, not {self.svm_type!r}"
            )
        if self.svm_type == "one_class" and self.probability:
            raise ValueError("one-class has no probabilities")
        if not 0 < self.nu <= 1:
            raise ValueError(f"nu must be above 0 and at most 1, not {self.nu:g}")
        if not 0 <= self.epsilon < float("inf"):
            raise ValueError(f"epsilon must be at least 0 and finite, not {self.epsilon:g}")
        for label, weight in (self.class_weight or {}).items():
            if not 0 < weight < float("inf"):
                raise ValueError(
                    f"the weight of class {label:g} must be positive and finite, not {weight:g}"
                )
            if not 0 < self.C * weight < float("inf"):
                raise ValueError(
                    f"C of class {label:g} must be positive and finite, not {self.C * weight:g}"
                )
        if not 0 < self.C < float("inf"):
            raise ValueError(f"C must be positive and finite, not {self.C:g}")
        if not self.tolerance > 0:
            raise ValueError(f"tolerance must be positive, not {self.tolerance:g}")
        if self.gap is not None and not self.gap > 0:
            raise ValueError(f"gap must be positive, not {self.gap:g}")
        if self.sample < 1:
            raise ValueError(f"sample must be at least 1, not {self.sample}")
        if self.clustering not in CLUSTERINGS:
            raise ValueError(
                f"clustering must be one of {', '.join(CLUSTERINGS)}, not {self.clustering!r}"
            )
        gamma = 1.0 if self.gamma is None else self.gamma
        kernel = Kernel(self.kernel, gamma, self.coef0, self.degree)
        if self.gap is not None and not kernel.is_positive_semidefinite:
            raise ValueError(f"a duality gap cannot be stated for the kernel {self.kernel}")
        self._check_levels()
        if self.kernel == "precomputed" and self.clustering == "kmeans":
            raise ValueError("clustering kmeans needs features, a precomputed kernel has none")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads must be at least 1, not {self.threads}")
        if self.cache_mb is not None and self.cache_mb < 1:
            raise ValueError(f"cache must be at least 1 MB, not {self.cache_mb}")

    @staticmethod
    def of(**options) -> TrainOptions:
        return TrainOptions(**options)

    @property
    def has_levels(self) -> bool:
        return self.svm_type in WITH_LEVELS

    def _check_levels(self) -> None:
        """What is wrong whatever the rows are."""
        if not self.has_levels and (self.early or self.early_level is not None):
            raise ValueError(f"there are no early models of {self.svm_type}: it has no levels")
        if self.levels is None:
            return
        if self.early and self.levels == 0:
            raise ValueError("there is no early level: there are no levels")
        if self.early_level is not None and self.early_level > self.levels:
            known = f"levels are 1 to {self.levels}" if self.levels else "there are no levels"
            raise ValueError(f"early level {self.early_level} does not exist: {known}")
