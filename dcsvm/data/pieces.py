"""The text of a file in pieces of whole lines, so that memory does not grow with the file.

A file is mapped, and let go piece by piece. What comes from a pipe is taken as it comes: a thread
reads ahead, and a piece is all lines that are there, so that a line which comes alone is a piece at
once, and what comes fast makes large ones.
"""

from __future__ import annotations

import importlib
import io
import math
import mmap
import os
import stat
import tempfile
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dcsvm.machine import available_memory

STANDARD_INPUT = ("-", "/dev/stdin")
PIECE = 2**20  # bytes read at a time
# the first bytes of a compressed file -> the module of the standard library that reads it
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "lzma"}
LONGEST_MAGIC = max(map(len, COMPRESSED))
HELD = 2**25  # bytes; more than that go through a temporary file


class DataError(ValueError):
    """A data file that cannot be used: `file:line:column: reason`, or `file: reason`."""


def read_text(name: str):
    """All bytes of a file, decompressed, in a buffer that may be the file mapped into memory; "-"
    and /dev/stdin are the standard input, which may be a pipe.

    Raises DataError for what cannot be opened, read, decompressed or held.
    """
    with opened(name) as file:
        data = mapped(file) or _read(file, name)
    module = module_for(bytes(data[:LONGEST_MAGIC]))
    if module is None:
        return data
    is_mapped = isinstance(data, mmap.mmap)
    source = io.BufferedReader(Released(data)) if is_mapped else io.BytesIO(data)
    with decompressing(source, name, module) as file:
        return _read(file, name)


def check_room(name: str, n_bytes: int) -> None:
    """Raise DataError where what a file makes takes more memory than is free."""
    there_are = available_memory()
    if n_bytes > there_are:
        raise DataError(
            f"{name}: the rows take {math.ceil(n_bytes / 1e6)} MB of memory, "
            f"more than the {there_are // 1_000_000} MB available"
        )


def read_bytes(name: str) -> bytearray | mmap.mmap:
    """All bytes of a file as they are. Raises DataError as `read_text`."""
    with opened(name, is_path=True) as file:
        return mapped(file) or _read(file, name)


@contextmanager
def opened(name: str, *, is_path: bool = False):
    """A file, or the standard input, which stays open; what goes wrong is a DataError."""
    source = 0 if name in STANDARD_INPUT and not is_path else name
    try:
        with open(source, "rb", closefd=source != 0) as file:
            yield file
    except DataError:
        raise
    except IsADirectoryError:
        raise DataError(f"{name}: is a directory") from None
    except FileNotFoundError:
        raise DataError(f"{name}: no such file") from None
    except OSError as error:
        raise DataError(f"{name}: {(error.strerror or str(error)).lower()}") from error
    except ValueError as error:  # a NUL in the name
        raise DataError(f"{name!r}: {error}") from None


def mapped(file) -> mmap.mmap | None:
    """The whole of a regular file; None for what has to be read instead."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0 or file.tell() != 0:
        return None
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _read(file, name: str) -> bytearray | mmap.mmap:
    """All that is left to read of a file."""
    data, pieces = bytearray(), _pieces(file, name)
    for piece in pieces:
        data += piece
        if len(data) > HELD:
            return _stored(data, pieces)
    return data


def _pieces(file, name: str):
    n_bytes, most = 0, available_memory() // 2
    while piece := file.read(PIECE):
        n_bytes += len(piece)
        if n_bytes > most:
            most_mb = most // 1_000_000
            raise DataError(f"{name}: more than {most_mb} MB of text, half of the memory available")
        yield piece


def _stored(data: bytearray, pieces) -> mmap.mmap:
    """The data and the pieces after it in a temporary file, mapped."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        data.clear()
        file.writelines(pieces)
        file.flush()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class Released(io.RawIOBase):
    """A mapped file to be read once: pages are let go after they were read."""

    def __init__(self, data: mmap.mmap):
        self.data = data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        begin = self.data.tell()
        text = self.data.read(len(buffer))
        buffer[: len(text)] = text
        let_go(self.data, begin, begin + len(text))
        return len(text)


def let_go(data: mmap.mmap, begin: int, end: int) -> None:
    """Keep these bytes in memory no longer."""
    first = begin // mmap.PAGESIZE * mmap.PAGESIZE
    if end > begin and hasattr(mmap, "MADV_DONTNEED"):
        data.madvise(mmap.MADV_DONTNEED, first, end - first)


@contextmanager
def decompressing(source, name: str, module: str):
    """The text of compressed bytes, as a file; what is wrong with them is a DataError."""
    try:
        library = importlib.import_module(module)
    except ImportError:
        raise DataError(f"{name}: this Python has no module {module} to decompress it") from None
    damaged = (OSError, EOFError, zlib.error, getattr(library, "LZMAError", OSError))
    try:
        with library.open(source) as file:
            yield file
    except damaged as error:
        if getattr(error, "errno", None):  # of another file
            raise
        reason = str(error).rstrip(".") or "invalid data"
        reason = reason[:1].lower() + reason[1:]
        raise DataError(f"{name}: the {module} data is damaged: {reason}") from None


def module_for(start: bytes) -> str | None:
    """What decompresses a file that begins with these bytes, if it is compressed."""
    return next((one for magic, one in COMPRESSED.items() if start.startswith(magic)), None)


PIECE_BYTES = 2**25
READ_AT_ONCE = 2**18


def text_pieces(name: str) -> Iterator[bytes]:
    """The text of a file, decompressed, in pieces that end with a line; "-" and /dev/stdin are the
    standard input.

    Raises DataError for what cannot be opened, read or decompressed.
    """
    with opened(name) as file:
        data = mapped(file)
        source = io.BufferedReader(file.raw if data is None else Released(data), READ_AT_ONCE)
        start = source.peek()
        module = module_for(start)
        if module is not None:
            with decompressing(source, name, module) as text:
                yield from _whole_lines(iter(lambda: text.read(PIECE_BYTES), b""))
        elif data is None:
            yield from _whole_lines(_Ahead(start, file.raw))
        else:
            yield from _lines_of(data)


def _lines_of(data: mmap.mmap) -> Iterator[bytes]:
    begin = 0
    while begin < len(data):
        newline = data.find(b"\n", begin + PIECE_BYTES)
        end = newline + 1 if newline >= 0 else len(data)
        yield data[begin:end]
        let_go(data, begin, end)
        begin = end


def _whole_lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    begun: list[bytes] = []
    for part in parts:
        end = part.rfind(b"\n") + 1
        if end == 0:
            begun.append(part)
            continue
        yield b"".join([*begun, part[:end]])
        begun = [part[end:]] if end < len(part) else []
    if begun:
        yield b"".join(begun)


class _Ahead:
    """What a thread reads of a raw file, at most about PIECE_BYTES ahead: all that is there, again
    and again. The file is not buffered: to close it while the thread waits needs no lock."""

    def __init__(self, start: bytes, file):
        self.file, self.parts = file, [start] if start else []
        self.error: OSError | None = None
        self.is_at_end = not start
        self.changed = threading.Condition()

    def __iter__(self) -> Iterator[bytes]:
        if self.is_at_end:
            return
        threading.Thread(target=self._read, daemon=True).start()
        while taken := self._take():
            yield taken
        if self.error is not None:
            raise self.error

    def _take(self) -> bytes:
        with self.changed:
            self.changed.wait_for(lambda: self.parts or self.is_at_end)
            taken = b"".join(self.parts)
            self.parts.clear()
            self.changed.notify()
        return taken

    def _read(self) -> None:
        try:
            while part := self.file.read(READ_AT_ONCE):
                with self.changed:
                    self.parts.append(part)
                    self.changed.notify()
                    self.changed.wait_for(lambda: sum(map(len, self.parts)) < PIECE_BYTES)
        except (OSError, ValueError) as error:  # ValueError: nobody reads on, and it is closed
            self.error = error
        with self.changed:
            self.is_at_end = True
            self.changed.notify()
