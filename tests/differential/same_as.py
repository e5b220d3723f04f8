"""Run the cases with the state of a commit and with this one, and list the differences:
`make same-as BASE=COMMIT`, or `python tests/differential/same_as.py COMMIT [GROUP...]`.

Both states use the libraries and the processor of this machine, because bits depend on them.
Models, predictions, output and reports must be equal, counters too; times and bytes sent between
workers are ignored. An option, a verb or a report field that only one state knows is listed, but is
no difference. The exit status is 1 if there is a difference; each is printed with the two commands
that repeat it.
"""

import json
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from builds import ROOT, base_of, python
from cases import cases, write_data

PLACE = ROOT / "build" / "same-as"
DRIVER = Path(__file__).with_name("driver.py")
LONGEST = 600  # time limit of a group, seconds
SIDES = ("base", "head")
UNKNOWN = 2  # as in the driver
NOT_COMPARED = ("seconds", "seconds_by_phase", "threads_by_phase", "phases", "peak_rss_mb",
                "traffic")  # fmt: skip


def command(site, *arguments):
    return python(site, DRIVER, *arguments)


def run_group(site, list_file):
    """Run a group of cases in one process; it may crash."""
    line = command(site, list_file)
    log = list_file.with_suffix(".log")
    with log.open("w") as file, TemporaryDirectory() as folder:
        try:
            done = subprocess.run(line, cwd=folder, stdout=file, stderr=file, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            file.write(f"no end after {LONGEST} s")
            return
    if done.returncode != 0:
        print(f"status {done.returncode} of {shlex.join(line)}: see {log}")


def run_side(name, site, chosen):
    """Run all cases with one state; return their folders."""
    folders = [PLACE / name / f"{number}" for number in range(len(chosen))]
    for group, members in groupby(range(len(chosen)), key=lambda k: chosen[k][0]):
        list_file = PLACE / name / f"{group}.json"
        list_file.write_text(json.dumps([(str(folders[k]), chosen[k][1]) for k in members]))
        run_group(site, list_file)
    return folders


def differences(base, head, where, missing):
    """Describe where two plain values differ; add keys that only one has to `missing`."""
    if isinstance(base, dict) and isinstance(head, dict):
        for name, lost in zip(
            SIDES, (head.keys() - base.keys(), base.keys() - head.keys()), strict=True
        ):
            missing.update((name, key) for key in lost)
        for key in sorted(base.keys() & head.keys()):
            if not any(word in key for word in NOT_COMPARED):
                yield from differences(base[key], head[key], f"{where}.{key}", missing)
    elif isinstance(base, list) and isinstance(head, list) and len(base) == len(head):
        for number, pair in enumerate(zip(base, head, strict=True)):
            yield from differences(*pair, f"{where}[{number}]", missing)
    elif base != head and (base == base or head == head):
        yield f"{where}: {base!r:.60} is now {head!r:.60}"


def files_of(folder):
    """Return the paths of a case's files, by name."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path for path in paths if not path.is_symlink()}


def differences_of_files(base, head, missing):
    """Describe the differences between the files of a case in both states."""
    for name in sorted(base.keys() ^ head.keys()):
        yield f"{name}: in {'base' if name in base else 'head'} only"
    for name in sorted(base.keys() & head.keys()):
        texts = [one[name].read_bytes() for one in (base, head)]
        if texts[0] == texts[1]:
            continue
        if name.startswith("report"):
            yield from differences(*map(json.loads, texts), name, missing)
        else:
            pairs = zip(*(text.split(b"\n") for text in texts), strict=False)
            first = next((k for k, pair in enumerate(pairs, 1) if pair[0] != pair[1]), "the end")
            yield f"{name}: other bytes from line {first}"


def compare(base, head, missing):
    """Return (kind, sentences) for the folders of a case.

    The kind is "same", "DIFFERENT", "failed in both" or "in one only".
    """
    files = [files_of(folder) for folder in (base, head)]
    lost = [name for name, one in zip(SIDES, files, strict=True) if "outcome" not in one]
    if lost:
        return "DIFFERENT", [f"not finished in {' and '.join(lost)}"]
    outcomes = [json.loads(one.pop("outcome").read_text()) for one in files]
    unknown = [one[-1]["status"] == UNKNOWN for one in outcomes]
    if unknown[0] != unknown[1]:
        return "in one only", [f"not in {SIDES[unknown[1]]}: {outcomes[unknown[1]][-1]['said']}"]
    found = [*differences(*outcomes, "line", missing), *differences_of_files(*files, missing)]
    if found:
        return "DIFFERENT", found
    failed = [line["said"] for line in outcomes[0] if line["status"] in (1, UNKNOWN)]
    return ("failed in both", failed[:1]) if failed else ("same", [])


def main(commit, *groups):
    start, site = time.monotonic(), base_of(commit)
    begun = time.monotonic()
    chosen = [case for case in cases() if not groups or case[0] in groups]
    sites = dict(zip(SIDES, (site, ROOT), strict=True))
    for name in ("data", *SIDES):
        (PLACE / name).mkdir(parents=True, exist_ok=True)
    write_data(PLACE / "data")
    with ThreadPoolExecutor() as pool:
        folders = list(pool.map(lambda name: run_side(name, sites[name], chosen), SIDES))
    missing, counts = set(), Counter()
    for (group, lines), *pair in zip(chosen, *folders, strict=True):
        kind, sentences = compare(*pair, missing)
        counts[kind] += 1
        if kind == "same":
            continue
        print(f"\n{kind} ({group}): {' && '.join(lines)}")
        for sentence in sentences[:8]:
            print(f"  {sentence}")
        for one in sites.values() if kind == "DIFFERENT" else ():
            print(f"  {shlex.join(command(one, PLACE / 'again' / 'case', *lines))}")
    for name, key in sorted(missing):
        print(f"not in the reports of {name}: {key}")
    seconds = time.monotonic() - begun
    print(
        f"\n{len(chosen)} cases: {', '.join(f'{n} {kind}' for kind, n in sorted(counts.items()))}"
    )
    print(f"{seconds:.0f} s, and {begun - start:.0f} s to build {commit}")
    return counts["DIFFERENT"] > 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.exit(main(*sys.argv[1:]))
