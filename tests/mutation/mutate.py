"""Change the code in small ways, one at a time; some test has to notice each change:
`make mutants`, or `python tests/mutation/mutate.py [WORD...]` for mutants that contain all words.

mutants.txt has a paragraph for each mutant: the file, the old code (`-`), the new code (`+`), and
the tests that have to fail (`>`) or the reason why no test can (`=`). The changes are made in two
copies of the tree in build/mutants; one of them is compiled. The exit status is 1 if the tests pass
with a change, or if a change no longer fits the code.
"""

import os
import shutil
import subprocess
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "build" / "mutants"
TOOLS = PLACE / "tools"  # packages that build the core
TABLE = Path(__file__).with_name("mutants.txt")
LONGEST = 900  # time limit for the tests of a mutant, seconds


@dataclass(frozen=True, eq=False)
class Mutant:
    path: str
    before: str
    after: str
    tests: list[str]
    reason: str

    @staticmethod
    def of(paragraph):
        path, *lines = paragraph.splitlines()
        before, after, tests, reason = (
            "\n".join(line[2:] for line in lines if line.startswith(sign)) for sign in "-+>="
        )
        return Mutant(path, before, after, tests.split(), reason)

    @property
    def is_native(self):
        return not self.path.endswith(".py")

    def __str__(self):
        return f"{self.path}: {self.before!r} becomes {self.after!r}"


def every_mutant():
    paragraphs = TABLE.read_text().strip().split("\n\n")
    return [Mutant.of(one) for one in paragraphs if not one.startswith("#")]


def places_of(mutant, tree):
    """Return the text of a mutant's file, and how often the old code is in it."""
    path = tree / mutant.path
    text = path.read_text() if path.exists() else ""
    return text, text.count(mutant.before)


def copied(name):
    """Copy the tree with its compiled modules."""
    tree = PLACE / name
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    tracked = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout.decode()
    paths = [ROOT / path for path in tracked.split("\0") if path]
    compiled = [*ROOT.glob("dcsvm/*.so"), *ROOT.glob("dcsvm/*.cpp")]
    shutil.rmtree(tree, ignore_errors=True)
    for path in [*paths, *compiled]:
        if path.exists():
            to = tree / path.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, to)
    return tree


def run(tree, *command):
    """Run Python in a copy of the tree; return its exit status."""
    own = {"PYTHONPATH": f"{tree}{os.pathsep}{TOOLS}", "PYTHONDONTWRITEBYTECODE": "1"}
    with (tree / "log").open("a") as log:
        return subprocess.run(
            [sys.executable, *command], cwd=tree, env=os.environ | own, stdout=log, stderr=log,
            timeout=LONGEST,
        ).returncode  # fmt: skip


def build(tree):
    if not TOOLS.exists():
        run(tree, "-m", "pip", "install", "-q", "--target", TOOLS, "cython", "setuptools")
    return run(tree, "setup.py", "-q", "build_ext", "--inplace")


def tested(tree, tests, *how):
    return run(tree, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *how, *tests)


def outcome(mutant, tree):
    """Run the tests of a mutant and return the verdict."""
    path = tree / mutant.path
    text, n_places = places_of(mutant, tree)
    if n_places != 1:
        return f"in the file {n_places} times"
    path.write_text(text.replace(mutant.before, mutant.after))
    try:
        if mutant.is_native and build(tree) != 0:
            return "not compiled"
        status = tested(tree, mutant.tests)
    except subprocess.TimeoutExpired:
        return "killed"
    finally:
        path.write_text(text)
    if status in (0, 1) or status < 0:  # a crash also kills the mutant
        return "SURVIVED" if status == 0 else "killed"
    return f"status {status} of pytest"


def judge(mutants, tree, found):
    """Judge mutants until the queue is empty."""
    while mutants:
        mutant, start = mutants.popleft(), time.monotonic()
        found[mutant] = outcome(mutant, tree)
        print(f"{found[mutant]}, {time.monotonic() - start:.0f} s: {mutant}", flush=True)


def judge_native(native, others, tree, found):
    """Judge the compiled mutants, then others with the unchanged core."""
    judge(native, tree, found)
    if others:
        build(tree)
        judge(others, tree, found)


def main(*words):
    chosen = [one for one in every_mutant() if all(word in str(one) for word in words)]
    if not chosen:
        sys.exit(f"no mutant has {' and '.join(words)} in its text")
    judged = [one for one in chosen if not one.reason]
    native = deque(one for one in judged if one.is_native)
    others = deque(one for one in judged if not one.is_native)
    trees = [copied(name) for name in ("python", "native")]
    if tested(trees[0], sorted({test for one in judged for test in one.tests}), "-n", "2") != 0:
        sys.exit(f"the tests fail without a change: see {trees[0]}/log")
    found = {}
    with ThreadPoolExecutor() as pool:
        jobs = [
            pool.submit(judge_native, native, others, trees[1], found),
            pool.submit(judge, others, trees[0], found),
        ]
    for job in jobs:
        job.result()
    wrong = [one for one in judged if found[one] != "killed"]
    for mutant in wrong:
        print(f"{found[mutant]}: {mutant}")
    n_equivalent = len(chosen) - len(judged)
    print(f"{len(judged)} mutants, {len(wrong)} not killed; {n_equivalent} are equivalent")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
