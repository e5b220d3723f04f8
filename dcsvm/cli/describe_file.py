"""Print what a model file holds: the work of dcsvm-predict --describe."""

from collections.abc import Iterator

import numpy as np

from dcsvm.cli.files import print_result
from dcsvm.data.scaling import Interval
from dcsvm.model.model import Model
from dcsvm.model.reader import load_model
from dcsvm.model.writer import plain


def describe_file(path: str) -> int:
    """Print the description of a model file; return the exit status."""
    for line in description(load_model(path)):
        print_result(line)
    return 0


def description(model: Model) -> Iterator[str]:
    """Yield lines: the problem, its parts, the scaling, and the features by weight."""
    yield f"type: {model.svm_type}"
    if model.is_classifier:
        yield f"labels: {', '.join(map(plain, model.labels))}"
    yield f"kernel: {model.kernel.describe()}"
    if model.exact is not None:
        yield f"exact: {model.exact.rows.n_samples} support vectors"
    if model.early is not None:
        n_clusters = model.early.partition.n_clusters
        yield f"early: {model.early.rows.n_samples} support vectors in {n_clusters} clusters"
    if model.probability is not None:
        yield "probabilities: yes"
    scaling = model.scaling
    if scaling is None:
        yield "scaling: none"
        return
    is_range, n_columns = isinstance(scaling.features, Interval), len(scaling.columns)
    yield f"scaling: {'ranges' if is_range else 'quantiles'} of {n_columns} features"
    if scaling.weights is None:
        return
    yield "feature weights, largest first:"
    for k in np.argsort(-scaling.weights, kind="stable"):
        yield f"{scaling.indices[k]} {scaling.weights[k]:.4g}"
