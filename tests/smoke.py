"""Try every command and part of the installed package once, in seconds: `python tests/smoke.py`.

For environments where the whole suite takes too long: other versions of Python and of packages, a
wheel, another compiler. Each part checks accuracies on synthetic rows. Deprecation warnings that
dcsvm causes are errors. Parts whose packages are not installed are skipped and listed.
"""

import builtins
import importlib.util
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy
from scipy import sparse

import dcsvm

BIN = Path(sys.executable).parent
DEPRECATED = ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning")


def made_rows(n: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return points of a square, and whether each is inside a circle: "in" or "out"."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return X, np.where(np.hypot(*X.T) < 0.7, "in", "out")


def check(accuracy: float, of: str) -> None:
    if not accuracy > 0.95:
        raise AssertionError(f"{of}: accuracy {accuracy}")


def run(command: str, *words: str) -> str:
    """Run a command of the package; return its standard output."""
    done = subprocess.run([BIN / f"dcsvm-{command}", *words], capture_output=True, text=True)
    if done.returncode or "Warning" in done.stderr:
        raise AssertionError(f"dcsvm-{command} {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def commands() -> None:
    """Run all six commands on LIBSVM text, with an exact and an early model."""
    for name, seed in (("train", 0), ("test", 1)):
        X, y = made_rows(seed=seed)
        lines = [f"{int(b == 'in')} 1:{u:.6f} 2:{v:.6f}" for (u, v), b in zip(X, y, strict=True)]
        Path(name).write_text("\n".join(lines) + "\n")
    run("train", "-c", "10", "-g", "4", "-l", "1", "-b", "1", "train", "both.model")
    run("train", "-q", "-c", "10", "-g", "4", "--early", "train", "early.model")
    for options in (["both.model"], ["--early", "both.model"], ["-b", "1", "both.model"],
                    ["early.model"]):  # fmt: skip
        check(accuracy_of(run("predict", *options[:-1], "test", options[-1], "out")), str(options))
    assert "Cross Validation Accuracy" in run("train", "-q", "-v", "3", "-c", "10", "train")
    run("grid", "-q", "-log2c", "0,4,2", "-log2g", "0,2,2", "-v", "3", "-png", "null", "train")
    run("compress", "-q", "--rows", "train", "both.model", "small.model", "--vectors", "40")
    check(accuracy_of(run("predict", "test", "small.model", "out")), "compressed")
    run("export", "-q", "small.model", "small.c")
    run("easy", "-q", "--time-limit", "5", "train", "test")
    assert run("train", "--help").startswith("Usage: dcsvm-train")


def accuracy_of(output: str) -> float:
    return float(output.split("Accuracy = ")[1].split("%")[0]) / 100


def python() -> None:
    """Train on arrays and sparse matrices of every kind, with each type of model; save and load."""
    X, y = made_rows()
    for rows in (X, X.astype(np.float32), np.asfortranarray(X), sparse.csr_matrix(X),
                 sparse.csc_matrix(X), sparse.csr_array(X)):  # fmt: skip
        model = dcsvm.train(rows, y, C=10, gamma=4, levels=1)
        check(np.mean(model.predict(rows) == y), "train")
        check(np.mean(model.predict(rows, method="early") == y), "early")
    model.save("python.model")
    assert np.array_equal(dcsvm.load_model("python.model").predict(X), model.predict(X))
    target = np.hypot(*X.T)
    for svm_type in ("epsilon_svr", "nu_svr", "one_class"):
        dcsvm.train(X, None if svm_type == "one_class" else target, svm_type=svm_type, gamma=1)
    assert dcsvm.grid_search(X, y, Cs=[1, 10], gammas=[1, 4]).best_loss < 0.05
    check(np.mean(dcsvm.easy(X, y, time_limit=5).predict(X) == y), "easy")
    assert dcsvm.train.__doc__ is None or "levels" in dcsvm.train.__doc__  # None with -OO


def estimators() -> None:
    """Fit every class of dcsvm.sklearn, alone or in a pipeline, and a search of scikit-learn."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import dcsvm.sklearn as wing

    X, y = made_rows(600)
    for model in (wing.SVC(), wing.NuSVC(nu=0.2), wing.SVCCV(), wing.AutoSVC(time_limit=5)):
        check(make_pipeline(StandardScaler(), model).fit(X, y).score(X, y), type(model).__name__)
    for model in (wing.SVR(), wing.NuSVR(), wing.SVRCV(), wing.AutoSVR(time_limit=5)):
        check(model.fit(X, X[:, 0]).score(X, X[:, 0]), type(model).__name__)
    assert set(wing.OneClassSVM(nu=0.1).fit_predict(X)) == {-1, 1}
    check(GridSearchCV(wing.SVC(), {"C": [1, 10]}, cv=3).fit(X, y).best_score_, "GridSearchCV")
    check(wing.SVC(probability=True, random_state=0).fit(X, y).predict_proba(X).max(), "shares")


def tables() -> None:
    """Train on a table of numbers, words and missing values: CSV, Parquet and data frames."""
    import pandas as pd
    import polars as pl

    X, y = made_rows()
    frame = pd.DataFrame({"u": X[:, 0], "side": np.where(X[:, 1] > 0, "up", "down"), "v": X[:, 1]})
    frame.loc[frame.index % 50 == 0, "side"] = None
    frame["label"] = y
    frame.to_csv("table.csv", index=False)
    frame.to_parquet("table.parquet", index=False)
    for name in ("table.csv", "table.parquet"):
        run("train", "-q", "-c", "10", "-g", "4", name, "table.model")
        check(accuracy_of(run("predict", name, "table.model", "out")), name)
    features = frame.drop(columns="label")
    for rows in (features, pl.from_pandas(features)):
        model = dcsvm.train(rows, y, C=10, gamma=4)
        check(np.mean(model.predict(rows) == y), type(rows).__module__)


def workers() -> None:
    """Train on the workers of a Dask cluster, in this process."""
    import dask.array as da
    from distributed import Client

    from dcsvm.distributed import DaskSVC, train

    X, y = made_rows()
    chunks = da.from_array(X, chunks=(500, 2)), da.from_array(y, chunks=500)
    with Client(
        processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as client:
        check(np.mean(train(client, *chunks, C=10, gamma=4).predict(X) == y), "distributed.train")
        fitted = DaskSVC(C=10, gamma=4, client=client).fit(*chunks)
        check(np.mean(np.asarray(fitted.predict(chunks[0])) == y), "DaskSVC")


PARTS: tuple[tuple[Callable[[], None], tuple[str, ...]], ...] = (  # and the packages of each
    (commands, ()),
    (python, ()),
    (estimators, ("sklearn",)),
    (tables, ("pandas", "polars", "pyarrow")),
    (workers, ("dask.array", "distributed", "sklearn")),
)


def main() -> None:
    print(f"dcsvm {dcsvm.__version__} of {Path(dcsvm.__file__).parent}")
    print(f"Python {sys.version.split()[0]}, numpy {np.__version__}, scipy {scipy.__version__}")
    for name in DEPRECATED:
        warnings.filterwarnings("error", category=getattr(builtins, name), module="dcsvm")
    os.environ["PYTHONWARNINGS"] = ",".join(f"default::{name}:dcsvm" for name in DEPRECATED)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for part, packages in PARTS:
            missing = [name for name in packages if importlib.util.find_spec(name) is None]
            if missing:
                print(f"{part.__name__}: not tried without {', '.join(missing)}")
                continue
            part()
            print(f"{part.__name__}: right")
        os.chdir("/")


if __name__ == "__main__":
    main()
