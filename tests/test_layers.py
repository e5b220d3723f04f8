"""Test the layers: a file uses only its own folder and the folders below it.

`FLOORS` and `ROOMS` are the order, from the ground up. Inside a folder no two files use each other
in a circle.
"""

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, CSRC = ROOT / "dcsvm", ROOT / "csrc"
FLOORS = ("_core", "_svmlight", "system", "machine", "data", "kernel", "problem", "model",
          "training", "selection", "sklearn", "distributed", "cli")  # fmt: skip
ROOMS = ("system", "threads", "text", "simd", "rows", "kernel", "solver")  # folders of csrc
ONLY_IN_CLI = {"click", "tqdm"}
ONLY_IN_DISTRIBUTED = {"dask", "distributed", "fsspec"}
BAR = "report.py"  # of dcsvm.training: the progress bar of dcsvm.train
ONLY_IN_SCRIPTS = {"sys", *ONLY_IN_CLI}  # and in dcsvm.sklearn, which runs scripts, and system
MAX_LINES = 700  # of a module or core file
MAX_BYTES = 1_000_000  # of a tracked file

MAX_NAMES = 20  # of the packages below that a wing may use; those of `system` are as Python's own
WINGS = ("selection", "sklearn", "distributed", "cli")

# What only some systems have, in Python: modules, names of modules, and the beginnings of paths.
MODULES_OF_SYSTEM = {
    "fcntl",
    "grp",
    "msvcrt",
    "pty",
    "pwd",
    "resource",
    "syslog",
    "termios",
    "winreg",
}
NAMES_OF_SYSTEM = re.compile(
    r"os\.(fch\w+|fork\w*|get(e?[ug]id|loadavg|pgid)|killpg|l?chown|mkfifo|nice|posix_\w+|pread\w*|"
    r"pwrite\w*|register_at_fork|sched_\w+|set(sid|pgid|_blocking)|statvfs|sysconf\w*|umask|uname)|"
    r"mmap\.(MADV|MAP|PROT)_\w+|signal\.SIG(ALRM|CHLD|HUP|KILL|PIPE|QUIT|USR\d)|sys\.platform|os\.name"
)
PATHS_OF_SYSTEM = ("/proc", "/sys/", "/etc/", "/tmp", "/var/")
# The same for the core.
SYSTEM_OF_CORE = re.compile(
    r"\b(unistd|malloc|x?locale|dlfcn|pthread|windows)\.h|<sys/|__(linux|APPLE|GLIBC|unix)__|_WIN32|"
    r"\b(aligned_alloc|madvise|mmap|newlocale|pread|sysconf|syscall)\b"
)

# What a module may neither import nor call, so that SECURITY.md is true.
NEVER_IMPORTED = {
    "pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "yaml", "urllib", "http",
    "socket", "ssl", "ftplib", "smtplib", "requests", "httpx", "aiohttp", "webbrowser",
    "subprocess", "multiprocessing", "ctypes",
}  # fmt: skip
NEVER_CALLED = re.compile(r"eval|exec|compile|os\.(system|popen|exec\w+|spawn\w+)|\w+\.read_pickle")

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
CORE = sorted([*CSRC.rglob("*.h"), *CSRC.rglob("*.cc")])


def imports(path):
    """Yield the imported modules, and names imported from modules as MODULE.NAME."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def includes(path):
    return re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(encoding="utf-8"), re.M)


def check_no_circle(uses):
    while uses:
        free = {name for name, used in uses.items() if not used & (set(uses) - {name})}
        assert free, f"a circle among {sorted(uses)}"
        uses = {name: used for name, used in uses.items() if name not in free}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_uses_its_floor_and_those_below(path):
    floor = FLOORS.index(path.relative_to(PACKAGE).parts[0].removesuffix(".py"))
    names = list(imports(path))
    used = {name.split(".")[1] for name in names if name.startswith("dcsvm.")}
    above = {name for name in used & set(FLOORS) if FLOORS.index(name) > floor}
    assert not above
    wings = {"cli": set(), "sklearn": ONLY_IN_CLI, "system": ONLY_IN_CLI}
    forbidden = wings.get(FLOORS[floor], ONLY_IN_SCRIPTS)
    if path.name == BAR:
        forbidden = ONLY_IN_CLI - {"tqdm"}
    if FLOORS[floor] != "distributed":
        forbidden = forbidden | ONLY_IN_DISTRIBUTED
    assert not {name.split(".")[0] for name in names} & forbidden


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(CSRC)))
def test_a_file_of_the_core_uses_its_room_and_those_below(path):
    room = ROOMS.index(path.relative_to(CSRC).parts[0])
    assert all(ROOMS.index(name.split("/")[0]) <= room for name in includes(path))
    assert not re.search(r"Python\.h|\bprintf|std::c(out|err)", path.read_text(encoding="utf-8"))


def names_from_below(wing):
    """The names that a wing uses of other packages, and the files that use each.

    These are the names that it imports from modules, and the attributes of modules that it imports.
    """
    found = {}
    for path in sorted((PACKAGE / wing).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules |= {one.asname or one.name.split(".")[0]: one.asname and one.name or "dcsvm"
                            for one in node.names if one.name.split(".")[0] == "dcsvm"}  # fmt: skip
            elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "dcsvm":
                for one in node.names:
                    name = f"{node.module}.{one.name}"
                    if is_module(name):
                        modules[one.asname or one.name] = name
                    else:
                        found.setdefault(name, set()).add(path.name)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = modules.get(node.value.id)
                if module is not None:
                    found.setdefault(f"{module}.{node.attr}", set()).add(path.name)
    return {
        name: files for name, files in found.items() if name.split(".")[1] not in (wing, "system")
    }


def is_module(name):
    place = PACKAGE.joinpath(*name.split(".")[1:])
    is_compiled = name in ("dcsvm._core", "dcsvm._svmlight")
    return is_compiled or place.with_suffix(".py").exists() or place.is_dir()


@pytest.mark.parametrize("wing", WINGS)
def test_a_wing_uses_few_names_of_the_packages_below(wing):
    names = names_from_below(wing)
    shown = "\n".join(f"{name}: {', '.join(sorted(files))}" for name, files in names.items())
    assert len(names) <= MAX_NAMES, f"{wing} uses {len(names)} names:\n{shown}"


def names_of_systems(tree):
    """Yield what a module names that only some systems have."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [f"{node.module}.{one.name}" if names else one.name for one in node.names]
            yield from MODULES_OF_SYSTEM.intersection(names)
            yield from filter(NAMES_OF_SYSTEM.fullmatch, names)
        elif isinstance(node, ast.Attribute) and NAMES_OF_SYSTEM.fullmatch(ast.unparse(node)):
            yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.startswith(PATHS_OF_SYSTEM) or re.fullmatch("SIG[A-Z]+", node.value):
                yield node.value


def test_only_one_module_names_what_some_systems_lack():
    """Two paths are names for the standard streams in all systems: /dev/stdin and /dev/stdout."""
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in PACKAGE.rglob("*.py")
        if path.name != "system.py"
        for name in names_of_systems(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not found


def test_what_some_systems_lack_is_found():
    for line in ("import fcntl", "from os import sched_getaffinity", "os.umask(0)", "'/proc/stat'",
                 "mmap.MADV_RANDOM", "getattr(signal, 'SIGHUP')", "signal.SIGHUP"):  # fmt: skip
        assert list(names_of_systems(ast.parse(line))), line
    for line in ("import os", "os.path.join('a')", "signal.SIGINT", "mmap.mmap", "'/dev/stdin'"):
        assert not list(names_of_systems(ast.parse(line))), line


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(CSRC)))
def test_only_one_folder_of_the_core_names_what_some_systems_lack(path):
    text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    assert path.parent.name == "system" or not SYSTEM_OF_CORE.search(text)


def names_of_promises(tree):
    """Yield what a module would break the promises of SECURITY.md with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from NEVER_IMPORTED.intersection(one.name.split(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from NEVER_IMPORTED.intersection([node.module.split(".")[0]])
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            is_unsafe = called == "np.load" and "allow_pickle=False" not in ast.unparse(node)
            if is_unsafe or NEVER_CALLED.fullmatch(called):
                yield called


def test_no_module_unpickles_files_opens_connections_or_starts_programs():
    """Dask does all three, for dcsvm.distributed alone; see SECURITY.md."""
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in PACKAGE.rglob("*.py")
        for name in names_of_promises(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not found
    for path in PACKAGE.glob("*.p[yx][dix]"):
        words = set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
        assert not words & (NEVER_IMPORTED | {"eval", "exec"}), path


def test_a_broken_promise_is_found():
    for line in ("import pickle", "from urllib.request import urlopen", "np.load(file)", "eval(x)",
                 "os.system(x)", "pandas.read_pickle(x)"):  # fmt: skip
        assert list(names_of_promises(ast.parse(line))), line
    for line in ("np.load(file, allow_pickle=False)", "re.compile(x)", "json.loads(x)"):
        assert not list(names_of_promises(ast.parse(line))), line


def test_no_circles():
    own = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in MODULES}
    modules = {
        name: {one.rsplit(".", 1)[0] for one in imports(path)} & set(own)
        for name, path in own.items()
    }
    check_no_circle(modules)
    headers = {str(path.relative_to(CSRC)): set(includes(path)) for path in CSRC.rglob("*.h")}
    check_no_circle(headers)


def test_no_file_is_longer_than_700_lines():
    for path in [*MODULES, *CORE]:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES, path


def test_every_folder_of_the_package_is_a_package():
    """Otherwise it would not be installed."""
    assert all((path.parent / "__init__.py").exists() for path in MODULES)


def test_test_files_are_named_after_modules():
    """tests/PACKAGE/test_MODULE*.py: a module and its tests are found from each other."""
    for folder in (path for path in PACKAGE.iterdir() if (path / "__init__.py").exists()):
        stems = tuple(f"test_{path.stem}" for path in folder.glob("*.py"))
        names = [path.name for path in (ROOT / "tests" / folder.name).glob("test_*.py")]
        assert not [name for name in names if not name.startswith(stems)]


def test_no_tracked_file_is_large():
    if shutil.which("git") is None:
        pytest.skip("no git")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert not [path for path in paths if path.exists() and path.stat().st_size > MAX_BYTES]
