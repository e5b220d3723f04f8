"""The states that the differential harness compares: a commit, and this working tree.

A commit is installed from `git archive` into build/commits/COMMIT, once for all runs.
"""

import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "build" / "commits"


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def base_of(commit):
    """Return the folder with the package of a commit; build it if missing."""
    short = git("rev-parse", "--short=12", f"{commit}^{{commit}}").decode().strip()
    site = PLACE / short
    if site.exists():
        return site
    print(f"building {short}", flush=True)
    PLACE.mkdir(parents=True, exist_ok=True)
    contents = BytesIO(git("archive", short))
    with TemporaryDirectory(dir=PLACE) as folder, tarfile.open(fileobj=contents) as archive:
        source, made = Path(folder, "source"), Path(folder, "site")
        archive.extractall(source, filter="data")
        install = ["-m", "pip", "install", "-q", "--no-deps", "--target", made, source]
        subprocess.run([sys.executable, *install], check=True)
        made.rename(site)  # only a complete build has this name
    return site


def python(site, *arguments, **variables):
    """Return the command line of Python with the package of a state."""
    given = (f"{name}={value}" for name, value in variables.items())
    return ["env", f"PYTHONPATH={site}", *given, sys.executable, *map(str, arguments)]
