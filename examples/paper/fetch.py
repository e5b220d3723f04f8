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

from paper.published import read

CHUNK = 1 << 20


@dataclass(frozen=True)
class Source:
    """A published file; `sha256` is of its unpacked content or of the file; None: not known."""

    url: str
    sha256: str | None

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


def sources() -> dict[str, list[Source]]:
    """Read the files of each data set."""
    found: dict[str, list[Source]] = {}
    for row in read("files.csv"):
        found.setdefault(row["set"], []).append(Source(row["url"], row["sha256"] or None))
    return found


SOURCES = sources()


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
