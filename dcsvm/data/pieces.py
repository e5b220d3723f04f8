"""The text of a file in pieces of whole lines, so that memory does not grow with the file.

A file is mapped, and let go piece by piece. What comes from a pipe is taken as it comes: a thread
reads ahead, and a piece is all lines that are there, so that a line which comes alone is a piece at
once, and what comes fast makes large ones.
"""

from __future__ import annotations

import io
import mmap
import threading
from collections.abc import Iterable, Iterator

from dcsvm.data.input_file import Released, decompressing, let_go, mapped, module_for, opened

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
