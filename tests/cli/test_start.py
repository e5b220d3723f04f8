"""Test that commands import few modules, so that they start quickly."""

import subprocess
import sys

import pytest
from reference import labelled_rows, libsvm_text

# slow to import, and not needed by a plain call of a command
SLOW = ["scipy", "tqdm", "sklearn", "pandas", "dask", "matplotlib", "unittest", "email", "http",
        "importlib.metadata", "numpy.testing", "numpy.f2py", "numpy.fft", "numpy.polynomial",
        "multiprocessing", "concurrent.futures", "asyncio", "zipfile", "xml", "argparse",
        "click.shell_completion", "click.testing"]  # fmt: skip
CODE = """if True:
    import sys
    if {numpy}:
        import numpy
    before = set(sys.modules)
    from dcsvm.cli.{command} import main
    try:
        main()
    except SystemExit as stop:
        status = stop.code
    print("status:", status, "loaded:", *sorted(set(sys.modules) - before))
"""


def loaded(command, *arguments, numpy, folder=None):
    """Return the modules that a call of the command imports beyond NumPy's own."""
    code = CODE.format(command=command, numpy=numpy)
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    said, _, names = done.stdout.rpartition("status: 0 loaded: ")
    return said, set(names.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a file like heart_scale: 270 rows of 13 features."""
    folder = tmp_path_factory.mktemp("start")
    (folder / "data").write_text(libsvm_text(*labelled_rows(270, 13, seed=1)))
    return folder


@pytest.mark.parametrize(
    "call", [("train", "-q", "data", "model"), ("predict", "-q", "data", "model", "out")]
)
def test_nothing_slow_is_imported_to_train_and_to_predict(folder, call):
    _, names = loaded(*call, numpy=True, folder=folder)
    assert "dcsvm._core" in names
    assert names & {name for name in names if name in SLOW} == set()
    assert (folder / call[-1]).exists()


@pytest.mark.parametrize("command", ["train", "predict", "compress", "export"])
def test_help_needs_no_numpy(command):
    said, names = loaded(command, "--help", numpy=False)
    assert not names & {"numpy", "dcsvm._core", *SLOW}
    assert "Usage: " in said
