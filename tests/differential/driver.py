"""Run cases of the differential harness with the imported dcsvm, all in this process:
`python driver.py CASES.json`, or `python driver.py FOLDER LINE...` for one case.

CASES.json is a list of [folder, lines]. A case writes the files of its folder and `outcome`, with
the status and output of each line. The driver uses only the commands and the public names of the
package.
"""

import contextlib
import io
import json
import os
import shlex
import shutil
import sys
import traceback
import warnings
from ast import literal_eval
from dataclasses import asdict
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

import dcsvm
import dcsvm._core

UNKNOWN = 2  # the exit status of a command for an unknown option or value


def read(name):
    X, y = load_svmlight_file(name, dtype=np.float32)
    return (X if name == "sparse" else X.toarray()), y


def keep(model):
    """Write the files of a model from Python as the commands do."""
    model.save("model")
    report = asdict(model.report)
    report["problems"] = [asdict(one) for one in model.report.problems]
    plain = json.dumps(report, default=lambda one: np.asarray(one).tolist())
    Path("report").write_text(plain)


def given(name, weighted=False, mapped=False, **options):
    """Return the arguments of dcsvm.train."""
    X, y = read(name)
    if weighted:
        options["sample_weight"] = np.random.default_rng(0).choice([0.5, 1, 2, 3], len(y))
    if mapped:
        whole = np.all((np.rint(X) == X) & (X >= 0) & (X < 256))
        np.save("X.npy", X.astype(np.uint8) if whole else X)
        X = np.load("X.npy", mmap_mode="r")
    return (X, y), options


def train(name, **how):
    rows, options = given(name, **how)
    keep(dcsvm.train(*rows, **options))


class StopAtEnd(dcsvm.Progress):
    """Progress that requests a stop at the end of a phase: refine, conquer or a level."""

    def __init__(self, phase):
        self.phase, self.stop = phase, dcsvm.Stop()

    def end(self, name, *_):
        if name == self.phase:
            self.stop.request()

    def end_level(self, report):
        self.end(f"level {report.level}")


def stop(phase, name, **how):
    progress, (rows, options) = StopAtEnd(phase), given(name, **how)
    kept = dcsvm.Checkpoint("kept")
    keep(dcsvm.train(*rows, progress=progress, stop=progress.stop, checkpoint=kept, **options))
    assert progress.stop.is_requested, f"there was no {phase}"
    for file in ("model", "report"):
        os.rename(file, f"{file} of {phase}")


def resume(name, **how):
    rows, options = given(name, **how)
    there = dcsvm.Checkpoint.exists("kept")
    keep(dcsvm.train(*rows, checkpoint=dcsvm.Checkpoint("kept", resume=there), **options))
    shutil.rmtree("kept")


def grid(name, **how):
    rows, options = given(name, **how)
    table = dcsvm.grid_search(*rows, **options).table
    plain = {key: value.tolist() for key, value in table.items()}
    Path("report").write_text(json.dumps(plain))


def fit(name, estimator, **options):
    import dcsvm.sklearn

    X, y = read(name)
    model = getattr(dcsvm.sklearn, estimator)(**options).fit(X, y)
    told = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    np.save("values.npy", told)
    np.save("support.npy", getattr(model, "support_", np.empty(0)))


@cache
def client():
    from distributed import Client, LocalCluster

    return Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))


def train_on_workers(name, **options):
    from dask import delayed

    import dcsvm.distributed

    X, y = read(name)
    cuts = [slice(k, k + 700) for k in range(0, len(y), 700)]
    rows, labels = ([delayed(one[cut]) for cut in cuts] for one in (X, y))
    keep(dcsvm.distributed.train(client(), rows, labels, **options))


VERBS = (train, stop, resume, grid, fit, train_on_workers)


def keyword(word):
    name, value = word.split("=", 1)
    with contextlib.suppress(ValueError, SyntaxError):
        value = literal_eval(value)
    return name, value


def run(line):
    """Run one line; return its exit status, its output, and the reason for a failure."""
    name, *words = shlex.split(line)
    printed, said = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in "12")
    status = reason = None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        try:
            verb = {one.__name__: one for one in VERBS}.get(name)
            if verb is None:
                sys.argv = [name, *words]
                commands = distribution("dcsvm").entry_points.select(name=name)
                next(iter(commands)).load()()
            plain = [word for word in words if "=" not in word]
            verb(*plain, **dict(keyword(word) for word in words if "=" in word))
        except SystemExit as end:
            status = end.code
        except Exception as error:
            is_unknown = str(error).startswith("unknown option")
            is_unknown |= type(error).__name__.removesuffix("Error") in ("UnknownOption", "Option")
            status = UNKNOWN if is_unknown else 1
            traceback.print_exc()
            reason = f"{type(error).__name__}: {error}"
    texts = [stream.buffer.getvalue().decode() for stream in (printed, said)]
    lines = texts[1].strip().splitlines() or [""]
    return {"status": status or 0, "printed": texts[0], "said": reason or lines[-1] * bool(status)}


def run_case(folder, lines):
    """Run the lines of a case in a separate folder with links to the data."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    for path in (folder.parent.parent / "data").iterdir():
        (folder / path.name).symlink_to(path)
    outcome = []
    for line in lines:
        outcome.append(run(line))
        if outcome[-1]["status"] == UNKNOWN:
            break
    (folder / "outcome").write_text(json.dumps(outcome, indent=1))
    return outcome


def main(first, *lines):
    warnings.simplefilter("ignore")
    packages = {Path(one.__file__).parent for one in (dcsvm, dcsvm._core)}
    assert packages == {Path(os.environ["PYTHONPATH"], "dcsvm")}, packages
    if lines:
        print(f"{dcsvm.__file__}\n{json.dumps(run_case(Path(first).resolve(), lines), indent=1)}")
        return
    for folder, own in json.loads(Path(first).read_text()):
        run_case(Path(folder), own)


if __name__ == "__main__":
    main(*sys.argv[1:])
