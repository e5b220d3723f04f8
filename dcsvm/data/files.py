"""Formats of files, by name; text files read whole or in pieces of whole lines; files written.

Reading in pieces needs memory for one piece only. A regular file stays open as a `FileText`, which
reads bytes on demand. A thread reads ahead from a pipe; a piece consists of all
complete lines received so far. Files are written atomically: a crash or a full disk leaves the old
file unchanged.

Text leaves this module as UTF-8 without a byte order mark, in lines that end in a newline. Its
first bytes tell whether it has another form in the file.
"""

from __future__ import annotations

import codecs
import errno
import importlib
import io
import math
import os
import stat
import tempfile
import threading
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from itertools import chain
from typing import IO, TYPE_CHECKING, NamedTuple

from dcsvm import system
from dcsvm.machine import available_memory

if TYPE_CHECKING:
    from typing_extensions import Buffer


FORMATS = ("csv", "tsv", "parquet", "arrow", "libsvm")
ENDINGS = {
    "csv": "csv", "tsv": "tsv", "tab": "tsv", "parquet": "parquet", "pq": "parquet",
    "arrow": "arrow", "feather": "arrow", "ipc": "arrow",
}  # fmt: skip
PACKED = (".gz", ".bz2", ".xz")


def table_format(path: str, given: str | None = None) -> str | None:
    """Return the format of a table by `given` or its name; None for LIBSVM text."""
    if given is not None:
        return None if given == "libsvm" else given
    name = path.lower()
    for ending in PACKED:
        name = name.removesuffix(ending)
    return ENDINGS.get(name.rpartition(".")[2]) if "." in name else None


STANDARD_INPUT = ("-", "/dev/stdin")
PIECE = 2**20  # bytes per read
# maps the first bytes of a compressed file to the standard library module that reads it
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "lzma"}
MAX_MAGIC = max(map(len, COMPRESSED))
# maps the first bytes of other files to what they are, and what helps
FOREIGN = {
    b"PK\x03\x04": "a zip archive or an Excel file: unpack it, or save the table as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel file: save the table as CSV",
    b"\x28\xb5\x2f\xfd": "compressed by zstd, which is not read: unpack it",
    b"7z\xbc\xaf": "a 7z archive: unpack it",
}
BINARY_TABLES = {b"PAR1": "parquet", b"ARROW1": "arrow", b"FEA1": "arrow"}
# byte order marks; that of UTF-32 begins with that of UTF-16
MARKS = {
    codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be",
}  # fmt: skip
LOOKED_AT = 64  # bytes that tell UTF-16 without a mark
HELD = 2**25  # longer input, in bytes, is moved from memory to a temporary file


class DataError(ValueError):
    """Invalid data file; the message is `file:line:column: reason` or `file: reason`."""


class FileText:
    """The bytes of a regular file, from its position to its end when it was opened.

    The file is not mapped: if another process truncated a mapped file, this process would end.
    `name` is for errors. Raises DataError if the file cannot be read or has become shorter.
    """

    whole: FileText | None = None  # keeps the file open for a part

    def __init__(self, file: IO[bytes], name: str):
        self.descriptor, self.name, self.offset = os.dup(file.fileno()), name, file.tell()
        self.size = os.fstat(self.descriptor).st_size - self.offset
        weakref.finalize(self, os.close, self.descriptor)

    def fileno(self) -> int:
        return self.descriptor

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> bytes:
        begin, end, _ = part.indices(self.size)
        parts = []
        while begin < end:
            try:
                parts.append(system.read_at(self.descriptor, end - begin, self.offset + begin))
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise DataError(f"{self.name}: {reason}") from error
            if not parts[-1]:
                raise DataError(f"{self.name}: the file became shorter while it was read")
            begin += len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def __bytes__(self) -> bytes:
        return self[:]

    def skip(self, n_bytes: int) -> None:
        """Begin `n_bytes` later."""
        self.offset, self.size = self.offset + n_bytes, self.size - n_bytes

    def part(self, piece: slice) -> FileText:
        """Return some of the bytes as a text, without reading them."""
        begin, end, _ = piece.indices(self.size)
        part = copy(self)
        part.offset, part.size, part.whole = self.offset + begin, end - begin, self
        return part

    def count(self, byte: bytes) -> int:
        """Count the bytes that are `byte`."""
        return sum(
            self[batch : batch + BATCH_READ].count(byte)
            for batch in range(0, self.size, BATCH_READ)
        )

    def find(self, byte: bytes, begin: int) -> int:
        """Return the index of the first such byte from `begin` on, or -1."""
        for batch in range(begin, self.size, BATCH_READ):
            place = self[batch : batch + BATCH_READ].find(byte)
            if place >= 0:
                return batch + place
        return -1


def read_text(name: str) -> bytearray | FileText:
    """Read a whole file, decompress it, and convert text to UTF-8.

    "-" and /dev/stdin are the standard input, which may be a pipe. Raises DataError for a file that
    cannot be opened, read, decompressed, decoded or stored.
    """
    data = read_bytes(name, is_path=False)
    module = module_for(bytes(data[:MAX_MAGIC]))
    if module is not None:
        with decompressing(as_file(data), name, module) as file:
            data = _kept(_pieces(file, name), name)
    return as_utf8(data, name)


def as_utf8(data: bytearray | FileText, name: str) -> bytearray | FileText:
    """Convert text to UTF-8, without a copy where it is; binary tables stay as they are."""
    form = TextForm.of(bytes(data[:HEAD]), name)
    if form.is_foreign:
        return _kept(form.converted(_pieces(as_file(data), name), name), name)
    if form.mark:
        if isinstance(data, FileText):
            data.skip(len(form.mark))
        else:
            del data[: len(form.mark)]
    return data


class TextForm(NamedTuple):
    """The form of a text in its file: byte order mark, encoding, lines that end in returns alone.

    The encoding "latin-1" stands for any in which a character ending a line is one byte.
    """

    mark: bytes = b""
    encoding: str = "latin-1"
    has_returns: bool = False

    @staticmethod
    def of(start: bytes, name: str) -> TextForm:
        """Look at the first bytes of a file. Raises DataError for archives."""
        reason = next((what for magic, what in FOREIGN.items() if start.startswith(magic)), None)
        if reason is not None:
            raise DataError(f"{name}: the file is {reason}")
        if start.startswith(tuple(BINARY_TABLES)):
            return TextForm()
        mark = next((mark for mark in MARKS if start.startswith(mark)), b"")
        # UTF-16 without a mark: every other byte of Latin letters and digits is 0
        lead = start[: min(LOOKED_AT, len(start) // 2 * 2)]
        even, odd = lead[::2], lead[1::2]
        encoding = MARKS.get(mark, "utf-8")
        if not mark and len(lead) >= 4:
            encoding = "utf-16-le" if all(even) and not any(odd) else encoding
            encoding = "utf-16-be" if all(odd) and not any(even) else encoding
        text = start
        if encoding == "utf-8":
            encoding = "latin-1"
        else:
            text = start.decode(encoding, "ignore").encode("utf-8", "ignore")
        has_returns = b"\r" in text and b"\n" not in text and b"\0" not in text
        return TextForm(mark, encoding, has_returns)

    @property
    def is_foreign(self) -> bool:
        """Whether the text must be converted, not only its mark skipped."""
        return self.has_returns or self.encoding != "latin-1"

    @property
    def description(self) -> str:
        if self.encoding == "latin-1":
            return "lines that end in carriage returns"
        return f"{self.encoding[:6].upper()} text"

    def converted(self, parts: Iterable[bytes], name: str) -> Iterator[bytes]:
        """Yield a text as UTF-8 with newlines, part by part. Raises DataError."""
        decoder = io.IncrementalNewlineDecoder(
            codecs.getincrementaldecoder(self.encoding)(), translate=self.has_returns
        )
        encoding = "latin-1" if self.encoding == "latin-1" else "utf-8"
        rest, n_skipped = chain(parts, [b""]), len(self.mark)
        try:
            for part in rest:
                text = decoder.decode(part[n_skipped:], final=not part)
                n_skipped = max(n_skipped - len(part), 0)
                if text:
                    yield text.encode(encoding)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{name}: the {self.description} is damaged or cut: {error.reason}"
            ) from None


def as_file(data: bytes | bytearray | FileText) -> IO[bytes]:
    """Return a file of the data, from the beginning."""
    if isinstance(data, FileText):
        return io.BufferedReader(_FileTextReader(data))
    return io.BytesIO(data)


def check_room(name: str, n_bytes: int) -> None:
    """Raise DataError if the rows of a file require more memory than is available."""
    available = available_memory()
    if n_bytes > available:
        raise DataError(
            f"{name}: the rows take {math.ceil(n_bytes / 1e6)} MB of memory, "
            f"more than the {available // 1_000_000} MB available"
        )


def read_bytes(name: str, *, is_path: bool = True) -> bytearray | FileText:
    """Read a whole file without decompression. Raises DataError as `read_text`."""
    with opened(name, is_path=is_path) as file:
        return file_text(file, name) or _kept(_pieces(file, name), name)


@contextmanager
def opened(name: str, *, is_path: bool = False) -> Iterator[io.BufferedReader]:
    """Open a file or the standard input; errors become DataError.

    The standard input is not closed afterwards. With `is_path`, "-" is an ordinary file name.
    """
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


def file_text(file: io.BufferedReader, name: str) -> FileText | None:
    """Return the text of a regular file; None for a pipe, device or empty file."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size <= file.tell():
        return None
    return FileText(file, name)


def _kept(pieces: Iterator[bytes], name: str) -> bytearray | FileText:
    """Join the pieces of a text in memory, or in a temporary file if they are long."""
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > HELD:
            return _stored(data, pieces, name)
    return data


def _pieces(file: IO[bytes], name: str) -> Iterator[bytes]:
    n_bytes, limit = 0, available_memory() // 2
    while piece := file.read(PIECE):
        n_bytes += len(piece)
        if n_bytes > limit:
            raise DataError(
                f"{name}: more than {limit // 1_000_000} MB of text, half of the available memory"
            )
        yield piece


def _stored(data: bytearray, pieces: Iterable[bytes], name: str) -> FileText:
    """Write `data` and the pieces that follow to a temporary file."""
    try:
        with tempfile.TemporaryFile() as file:
            file.write(data)
            data.clear()
            file.writelines(pieces)
            file.seek(0)
            return FileText(file, name)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        folder = tempfile.gettempdir()
        raise DataError(f"{name}: its text does not fit into {folder} (TMPDIR)") from error


class _FileTextReader(io.RawIOBase):
    """A file object over a FileText, with its own position."""

    def __init__(self, text: FileText):
        self.text, self.position = text, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = (0, self.position, len(self.text))[whence]
        self.position = max(start + offset, 0)
        return self.position

    def readinto(self, buffer: Buffer) -> int:
        out = memoryview(buffer)
        part = self.text[self.position : self.position + len(out)]
        out[: len(part)] = part
        self.position += len(part)
        return len(part)


@contextmanager
def decompressing(source: IO[bytes], name: str, module: str) -> Iterator[IO[bytes]]:
    """Open a compressed file for reading; damaged data becomes DataError."""
    try:
        library = importlib.import_module(module)
    except ImportError:
        raise DataError(f"{name}: this Python has no module {module} to decompress it") from None
    damaged = (OSError, EOFError, zlib.error, getattr(library, "LZMAError", OSError))
    try:
        with library.open(source) as file:
            yield file
    except damaged as error:
        if getattr(error, "errno", None):  # an error of the system, not of the data
            raise
        reason = str(error).rstrip(".") or "invalid data"
        if not reason[1:2].isupper():  # not an abbreviation such as CRC
            reason = reason[:1].lower() + reason[1:]
        raise DataError(f"{name}: the {module} data is damaged: {reason}") from None


def module_for(start: bytes) -> str | None:
    """Return the module that decompresses a file with these first bytes, or None."""
    return next((name for magic, name in COMPRESSED.items() if start.startswith(magic)), None)


PIECE_BYTES = 2**24  # 1024 clusters of covtype then have 130 rows each, four panels of the core
BATCH_READ = 2**18
HEAD = 2**18


def text_pieces(name: str, n_bytes: int | None = None) -> Iterator[bytes | FileText]:
    """Yield the text of a file, decompressed, in pieces of whole lines, about `n_bytes` each.

    "-" and /dev/stdin are the standard input. The pieces are UTF-8; those of a regular file are not
    in memory. Raises DataError for a file that cannot be opened, read, decompressed or decoded.
    """
    n_bytes = n_bytes or PIECE_BYTES
    with opened(name) as file:
        data = file_text(file, name)
        raw = file.raw if data is None else _FileTextReader(data)
        source = io.BufferedReader(raw, BATCH_READ)
        start = source.peek()
        module = module_for(start)
        if module is not None:
            with decompressing(source, name, module) as text:
                yield from _utf8_lines(iter(lambda: text.read(n_bytes), b""), name)
        elif data is None:
            yield from _utf8_lines(_read_ahead(start, file.raw.read), name)
        else:
            form = TextForm.of(data[:HEAD], name)
            if form.is_foreign:
                yield from _utf8_lines(iter(lambda: source.read(n_bytes), b""), name)
                return
            data.skip(len(form.mark))
            yield from map(data.part, slices_of_lines(data, n_bytes))


def _utf8_lines(parts: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield a text as UTF-8 in pieces of whole lines, of which the first tells its form."""
    lines = _whole_lines(parts)
    first = next(lines, b"")
    form = TextForm.of(first[:HEAD], name)
    if form.is_foreign:
        yield from _whole_lines(form.converted(chain([first], lines), name))
        return
    if first[len(form.mark) :]:
        yield first[len(form.mark) :]
    yield from lines


def first_lines(name: str) -> bytes:
    """Return the first lines of a file, decompressed: HEAD bytes or somewhat more.

    Raises DataError as `text_pieces`.
    """
    return bytes(next(text_pieces(name, HEAD), b""))


def slices_of_lines(text: bytes | bytearray | FileText, n_bytes: int) -> Iterator[slice]:
    """Divide a text into pieces of whole lines, about `n_bytes` each."""
    begin = 0
    while begin < len(text):
        newline = text.find(b"\n", begin + n_bytes)
        end = newline + 1 if newline >= 0 else len(text)
        yield slice(begin, end)
        begin = end


def _whole_lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []  # parts of an incomplete line
    for part in parts:
        end = part.rfind(b"\n") + 1
        if end == 0:
            rest.append(part)
            continue
        yield b"".join([*rest, part[:end]])
        rest = [part[end:]] if end < len(part) else []
    if rest:
        yield b"".join(rest)


def _read_ahead(start: bytes, read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield `start`, and then each time all text that a thread has read meanwhile.

    The thread is at most about PIECE_BYTES ahead. It reads a raw file because closing a buffered
    one would need a lock that the thread holds while it waits for input.
    """
    from queue import Queue

    if not start:  # the file is at its end
        return
    received: Queue[bytes] = Queue(max(PIECE_BYTES // BATCH_READ, 1))  # b"" is the end
    errors: list[Exception] = []

    def receive() -> None:
        try:
            while part := read(BATCH_READ):
                received.put(part)
        except (OSError, ValueError) as error:  # ValueError: the consumer has closed it
            errors.append(error)
        received.put(b"")

    threading.Thread(target=receive, daemon=True).start()
    parts = [start]
    while parts[-1]:
        yield b"".join(parts)
        parts = [received.get()]
        while parts[-1] and not received.empty():
            parts.append(received.get())
    if len(parts) > 1:
        yield b"".join(parts)
    if errors:
        raise errors[0]


UNFINISHED = ".dcsvm-"  # prefix of the names of temporary files

# content of a file: its chunks, or a function that writes them
Content = Iterable[bytes] | Callable[[IO[bytes]], object]

unfinished: set[str] = set()


def write_beside(path: str | os.PathLike[str], parts: Content) -> None:
    """Write a temporary file in the same folder and rename it to `path`.

    Standard output ("-"), pipes and devices are written directly. An existing file keeps its mode;
    a new file gets the default mode. Raises OSError with `path` in its message.
    """
    path = os.fspath(path)
    with naming("standard output" if path == "-" else path):
        if path in ("-", "/dev/stdout") or (os.path.exists(path) and not os.path.isfile(path)):
            with open(1 if path == "-" else path, "wb", closefd=path != "-") as file:
                if callable(parts):
                    parts(file)
                    return
                for part in parts:  # a reader may wait for each chunk
                    file.write(part)
                    file.flush()
        else:
            _write_and_rename(path, parts)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Add the name of the file that is written to errors of the system."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


def _write_and_rename(path: str, parts: Content) -> None:
    path = os.path.realpath(path)
    is_new = not os.path.exists(path)
    # the system takes the umask off; only a change, in all threads, would tell the umask
    mode = 0o666 if is_new else os.stat(path).st_mode & 0o777
    name = os.path.join(os.path.dirname(path), UNFINISHED + os.urandom(8).hex())
    unfinished.add(name)
    try:
        with open(name, "xb", opener=partial(os.open, mode=mode)) as file:
            parts(file) if callable(parts) else file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        if not is_new:
            os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    finally:
        unfinished.discard(name)


def remove_unfinished() -> None:
    """Remove the temporary files of this process; call it before an exit without cleanup."""
    for name in unfinished.copy():  # other threads may add files
        try:
            os.unlink(name)
        except OSError:
            continue
