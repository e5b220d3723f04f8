"""Download the published files, and check them.

    python -m paper.fetch --to data/raw ijcnn1 covtype

A file is checked against the known SHA-256, of its unpacked content or of the file as published. If
neither is known, the SHA-256 of the download is printed for comparison. A file that does not match
is removed. Files are written under a temporary name and renamed.
"""

from __future__ import annotations

import hashlib
import os
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import click
from bench.datasets import OPENERS
from tqdm import tqdm

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
CHUNK = 1 << 20


@dataclass(frozen=True)
class Source:
    """A published file; `sha256` is of its unpacked content or of the file; None: not known."""

    url: str
    sha256: str | None

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


SOURCES = {
    "ijcnn1": [
        Source(
            f"{LIBSVM}/binary/ijcnn1.bz2",
            "7fe291672c3fefe6a7e3c51529becd23f0e985ba05ffb8d53c9c648c1e91cc19",
        ),
        Source(
            f"{LIBSVM}/binary/ijcnn1.t.bz2",
            "e7b0bbd518641980dc322746c6bc59d019d3153934e6258e48f9d8cfae2c4bb8",
        ),
    ],
    "cifar": [
        Source(
            "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
            "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        )
    ],
    "census": [
        Source(
            f"{UCI}/census-income-mld/census-income.data.gz",
            "3676a81db7d3528f3f8b9f3c699d0f0aa28db45e6e994fa0b8ed38327539ee86",
        )
    ],
    "covtype": [
        Source(
            f"{LIBSVM}/binary/covtype.libsvm.binary.scale.bz2",
            "859809c092ca933e1a8cc1cfa15e33b56cb11651e4e0a5b52b702abc315a6c0f",
        )
    ],
    "webspam": [Source(f"{LIBSVM}/binary/webspam_wc_normalized_unigram.svm.xz", None)],
    "kddcup99": [
        Source(
            f"{UCI}/kddcup99-mld/kddcup.data.gz",
            "3b6c942aa0356c0ca35b7b595a26c89d343652c9db428893e7494f837b274292",
        ),
        Source(
            f"{UCI}/kddcup99-mld/corrected.gz",
            "547dfb9c0f0dc1d9944219ec79e851191faebaeb8acbfa1cd171c418397052a4",
        ),
    ],
    "kdd10": [
        Source(
            f"{UCI}/kddcup99-mld/kddcup.data_10_percent.gz",
            "f8c8267ebcd9c0ed1fd7d6277fe5bfff8732e9b7db8e61b873542b2a534b6f9a",
        ),
        Source(
            f"{UCI}/kddcup99-mld/corrected.gz",
            "547dfb9c0f0dc1d9944219ec79e851191faebaeb8acbfa1cd171c418397052a4",
        ),
    ],
    "mnist8m": [Source(f"{LIBSVM}/multiclass/mnist8m.xz", None)],
    "mnist": [
        Source(
            f"{MNIST}/train-images-idx3-ubyte.gz",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        Source(
            f"{MNIST}/train-labels-idx1-ubyte.gz",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        Source(
            f"{MNIST}/t10k-images-idx3-ubyte.gz",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        Source(
            f"{MNIST}/t10k-labels-idx1-ubyte.gz",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ],
}


class WrongChecksumError(Exception):
    """The download differs from the published file."""


def fetch(source: Source, folder: Path) -> str:
    """Download a file unless it is there; returns its SHA-256.

    Raises WrongChecksumError, and OSError for a failed transfer.
    """
    target = folder / source.name
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    if target.exists():
        return sha256(target, open)
    try:
        download(source.url, beside)
        packed = sha256(beside, open)
        content = sha256(beside, OPENERS.get(target.suffix, open))
        if source.sha256 not in (None, packed, content):
            raise WrongChecksumError(f"{source.url}: SHA-256 {packed}, unpacked {content}")
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
    return packed


def download(url: str, path: Path) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "dcsvm examples"})
    with urllib.request.urlopen(request, timeout=60) as response, open(path, "wb") as file:
        total = int(response.headers.get("Content-Length") or 0)
        with tqdm(
            total=total or None,
            unit="B",
            unit_scale=True,
            desc=url.rpartition("/")[2],
            disable=not sys.stderr.isatty(),
        ) as bar:
            while block := response.read(CHUNK):
                file.write(block)
                bar.update(len(block))


def sha256(path: Path, opener) -> str:
    digest = hashlib.sha256()
    with opener(path, "rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(SOURCES))
@click.option("--to", "folder", type=click.Path(path_type=Path), required=True)
def main(names, folder) -> None:
    """Download the files of the data sets NAMES (default: all).

    A server that cannot be reached is not tried again: each try may take a minute.
    """
    folder.mkdir(parents=True, exist_ok=True)
    failed, unreachable = False, set()
    for source in dict.fromkeys(s for name in names or SOURCES for s in SOURCES[name]):
        host = urllib.parse.urlsplit(source.url).netloc
        if host in unreachable and not (folder / source.name).exists():
            continue
        try:
            digest = fetch(source, folder)
        except (WrongChecksumError, OSError) as error:
            click.echo(f"{source.name}: {error}", err=True)
            failed = True
            if not isinstance(error, WrongChecksumError | urllib.error.HTTPError):
                unreachable.add(host)
            continue
        known = "checked" if source.sha256 else f"no checksum is known; SHA-256 {digest}"
        click.echo(f"{source.name}: {known}", err=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
