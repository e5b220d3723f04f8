"""Cases of the differential harness: lines for the driver, and the data they name.

A line is a command, or a verb of the driver with a data set and keywords. `cases` gives
(group, lines); a group runs in one process of each state.
"""

import numpy as np

TRAIN, PREDICT = "dcsvm-train --report report", "dcsvm-predict"
TYPES = {"c_svc": "two", "nu_svc": "two", "one_class": "two", "epsilon_svr": "curve",
         "nu_svr": "curve"}  # fmt: skip
KERNELS = "-t 2 -g 1; -t 0 -c 0.1; -t 1 -g 0.3 -r 1 -d 2; -t 3 -g 0.05"
STORED = ("bytes", "sparse", "codes", "equal", "three", "spots")
ON_STORED = """-c 10 -g 0.5; -c 1 -t 0; -c 10 -g 0.5 --bias -l 2 -k 2; -c 1 -g 0.5 -s 3;
    --early -g 0.5 -l 2 -k 2 --early-level 1; -c 100 -g 0.01 --certify --scale auto"""
CLUSTERINGS = ("tree", "kmeans", "adaptive")
ON_CLUSTERS = """-l 1; -l 3 -k 2; -l 2 -k 3 --sample 50 --seed 7; -l 2 --bias;
    -l 2 -k 2 --early-level 2 --overlap 1.3; -l 2 -k 2 --early --early-level 2"""
OPTIONS = """-e 1e-6 -c 300; --gap 1e-4; --max-iter 200; --threads 1; --threads 3; -w1 3 -w-1 0.5;
    --bias; -m 25; -c 1e5 -g 1e-3 -e 1e-2; -l 3 -m 25; --time-limit 3600; --time-limit 1e-9;
    --model-format libsvm; -l 2; -h 0 -c 1e4 -g 0.1; --lenient -d 5"""
EARLY = "--early -g 2 -c 8"
EARLY_OPTIONS = "; --overlap 1; -l 3 -k 3; --test large.t; -b 1; --bias; -p 0.2 -s 3"
METHODS = "--early; --threads 3; --decision-values"
WARM = "-g 2 -c 16; -g 2 -c 8 -e 1e-5 -l 0; -g 1 -c 8 --bias"
FAR = """C=8 gamma=2 levels=0; C=8 gamma=2 levels=2; C=2 gamma=2 early=True;
    C=100 gamma=2 levels=1 bias=True"""
GRID = "dcsvm-grid -v 3 -log2c -1,5,2 -log2g 1,-3,-2"
GRIDS = """two; --early large; --refine two; --every two; three; --test two.t two; --bias spots;
    -log2g null -t 0 two; -s 3 -log2p -4,-2,1 curve; -s 1 -log2c null -n 0.4 two;
    -s 4 -n 0.2 curve; two model"""
SMALLER = """--vectors 40 --rows two; --times 8; --loss 3 --rows two --test two.t;
    --vectors 30 --rows two --steps 50 --seed 3"""
FITS = "two SVC; three SVC; sparse SVC; bytes SVC; two NuSVC nu=0.4; two OneClassSVM; curve SVR"
MORE_FITS = "curve NuSVR; two SVCCV random_state=0; curve SVRCV random_state=0"
ON_WORKERS = """large C=4 gamma=0.5 levels=1; large C=4 gamma=2 bias=True; sparse C=4 gamma=0.5;
    large C=4 gamma=2 early=True; large svm_type=nu_svc nu=0.4; large C=4 gamma=50;
    large C=4 gamma=2 probability=True"""
PHASES = ("level 3", "level 2", "level 1", "refine", "conquer")
STOPPED = "two C=20 gamma=2 tolerance=1e-4 branching=2"
STOPS = {"levels=3": PHASES, "levels=3 early_level=2 bias=True": PHASES, "levels=0": PHASES[-1:],
         "levels=3 probability=True": PHASES[-1:],
         "levels=3 early_level=2 overlap=1.3": PHASES}  # fmt: skip
OTHER_STOPS = """three C=20 gamma=1 branching=2 levels=2;
    curve svm_type=epsilon_svr C=20 gamma=1 branching=2 levels=2"""


def each(table):
    return [" ".join(entry.split()) for entry in table.split(";")]


def trained(options, data="two", *more):
    """Return the lines that train, predict the test rows, and more."""
    return [f"{TRAIN} {options} {data} model", f"{PREDICT} {data}.t model labels", *more]


def cases():
    for number, (svm_type, data) in enumerate(TYPES.items()):
        common = f"-s {number} -n 0.4"
        for kernel in each(KERNELS):
            yield "kernels", trained(f"{common} {kernel}", data)
        yield "kernels", trained(f"{common} -g 40", "spots")
        yield "folds", [f"dcsvm-train {common} -g 1 -v 3 {data}"]
        if svm_type != "one_class":
            told = f"{PREDICT} -b 1 {data}.t model probabilities"
            yield "folds", trained(f"{common} -g 1 -b 1", data, told)
        yield "weights", [f"train {data} svm_type={svm_type} nu=0.3 gamma=1 weighted=True"]
    for data in STORED:
        for options in each(ON_STORED):
            values = f"{PREDICT} --decision-values {data}.t model values"
            yield "storage", trained(options, data, *[values] * ("-t" in options))
        yield "folds", [f"dcsvm-train -c 4 -g 0.5 -v 4 {data}"]
        yield "weights", [f"train {data} C=4 gamma=0.5 weighted=True levels=1"]
    yield "storage", trained("-t 4 -c 2", "gram")
    yield "folds", ["dcsvm-train -t 4 -c 2 -v 3 gram"]
    for how in CLUSTERINGS:
        for options in each(ON_CLUSTERS):
            yield "levels", trained(f"-c 20 -g 2 --clustering {how} {options}")
        early = f"-c 20 -g 2 --clustering {how} --early -l 4 -k 2"
        yield "levels", trained(f"{early} --early-level 2", "large")
        if how != "adaptive":
            yield "levels", trained(early, "large")
        yield "levels", trained(f"-s 3 -c 5 -g 2 --clustering {how} -l 2", "curve")
    for options in each(OPTIONS):
        yield "options", trained(f"-g 2 -c 8 {options}")
    for options in each(EARLY_OPTIONS):
        yield "early", trained(f"{EARLY} {options}", "large")
    for options in ("-s 3 -g 2 -c 2 curve", "-g 0.5 -c 2 -l 2 -k 2 three"):
        yield "early", trained(f"--early {options[:-5]}", options[-5:])
    yield "early", [f"dcsvm-train {EARLY} -v 3 large"]
    for method in each(METHODS):
        last = f"{PREDICT} {method} two.t model values"
        yield "methods", trained("-g 2 -c 8 -l 1", "two", last)
        yield "methods", trained("--early -g 2 -c 8 -l 1 --overlap 1", "two", last)
        yield "methods", trained("-g 0.5 -c 8 -l 1", "three", last.replace("two", "three"))
    yield from stopped()
    for options in each(WARM):
        first = f"{TRAIN} -g 2 -c 8 two first"
        yield "warm", [first, f"{TRAIN} {options} --init-model first two model"]
    for options in each(FAR):
        for data in ("large", "codes", "bytes"):
            yield "far", [f"train {data} {options} mapped=True threads=2"]
    for options in each(GRIDS):
        yield "grid", [f"{GRID} {options}"]
    yield "grid", ["grid two Cs=[1,8] gammas=[0.5,2] folds=3 weighted=True"]
    for first, options in (
        *(("-g 1 -c 4 two", smaller) for smaller in each(SMALLER)),
        ("-g 1 -c 4 --early -l 1 two", "--times 5 --rows two"),
        ("-g 1 -c 4 --early -l 1 two", "--vectors 60"),
        ("-g 0.5 -c 4 three", "--vectors 50"),
        ("-s 3 -g 1 -c 4 curve", "--vectors 50"),
    ):
        small = f"dcsvm-compress {options} model small"
        yield "compress", [f"{TRAIN} {first} model", small, f"{PREDICT} two.t small labels"]
    for fit in each(f"{FITS}; {MORE_FITS}"):
        yield "sklearn", [f"fit {fit}"]
    for options in each(ON_WORKERS):
        yield "workers", [f"train_on_workers {options}"]
    yield "workers", [f"{TRAIN} --workers 2 -g 2 -c 4 large model"]


def stopped():
    """Return runs that stop after each phase and resume with other threads and memory."""
    for options, phases in STOPS.items():
        for phase in phases:
            run = f"{STOPPED} {options}"
            first, then = f"{run} threads=2 cache_mb=50", f"{run} threads=1 cache_mb=30"
            yield "stopped", [f"stop '{phase}' {first}", f"resume {then}"]
    for run in each(OTHER_STOPS):
        for phase in PHASES[1:]:
            yield "stopped", [f"stop '{phase}' {run}", f"resume {run}"]
    kept = f"{TRAIN} -g 2 -c 8 --checkpoint kept"
    yield "stopped", [f"{kept} --time-limit 1e-9 two model", f"{kept} --resume kept two model"]


def made(size, kind, seed):
    """Return (X float32, y): rows of a kind, two classes on a wavy surface, some labels wrong."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (size, 5))
    surface = np.sin(3 * X[:, 0]) + X[:, 1:].sum(axis=1) ** 2 - 0.8 + rng.normal(0, 0.2, size)
    y = np.where(surface > 0, 1.0, -1.0)
    if kind == "curve":
        y = surface
    elif kind == "three":
        y = 1.0 + (surface > -0.3) + (surface > 0.4)
    elif kind == "bytes":
        X = np.round(40 * (X + 1))
    elif kind == "codes":
        X = np.eye(6)[np.digitize(X, (-0.6, -0.3, 0, 0.3, 0.6))].reshape(size, -1)
    elif kind == "equal":
        X = np.round(2 * X)
    elif kind == "spots":
        X += 8 * rng.integers(0, 3, (size, 1))
    elif kind == "sparse":
        wide = np.zeros((size, 400))
        np.put_along_axis(wide, 40 * np.arange(5) + rng.integers(0, 3, (size, 5)), X, axis=1)
        wide[np.arange(size), rng.integers(200, 400, size)] = 0.5
        X = wide
    return X.astype(np.float32), y


def write_data(folder):
    """Write every data set as LIBSVM text, to train (NAME) and to test (NAME.t)."""
    for kind in ("two", "curve", "large", "gram", *STORED):
        size = {"large": 5000, "gram": 300}.get(kind, 900)
        to_train = made(size, kind, 1)
        for (X, y), end in ((to_train, ""), (made(size // 2, kind, 2), ".t")):
            values = X @ to_train[0].T if kind == "gram" else X
            write_text(folder / f"{kind}{end}", values, y, serials=kind == "gram")


def write_text(path, X, y, *, serials=False):
    """Write rows as LIBSVM text; `serials` marks rows of a kernel matrix, with serial numbers."""
    lines = []
    for number, (label, row) in enumerate(zip(y, X.tolist(), strict=True), 1):
        serial = f" 0:{number}" if serials else ""
        pairs = (f" {k}:{v:.9g}" for k, v in enumerate(row, 1) if v or serial)
        lines.append(f"{label:.6g}{serial}{''.join(pairs)}\n")
    path.write_text("".join(lines))
