"""Click types of file names, and the check of all files of a command before it begins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from dcsvm.cli.files import is_stream

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from dcsvm.cli.jobs import DataJob


class FileName(click.ParamType):
    """Click type of the name of a file or folder; names are not converted.

    The attributes are those of the FileKind of the option's rule.
    """

    name = "file"

    def __init__(self, kind: Any):
        self.words, self.is_output, self.is_folder = kind.words, kind.is_output, kind.is_folder
        self.is_awaited, self.continued_by = kind.is_awaited, kind.continued_by

    def convert(
        self, value: str, _param: click.Parameter | None, _ctx: click.Context | None
    ) -> str:
        return value

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="dir" if self.is_folder else "file")]


def check_files(parameters: Sequence[click.Parameter], job: DataJob) -> None:
    """Raise OSError or DataError for a file of a job that cannot be read or written.

    An output must not replace another file.
    """
    named = list(_named_files(parameters, job))
    outputs = [(name, kind, path) for name, kind, path in named if kind.is_output]
    written = {(name, os.path.realpath(path)) for name, _, path in outputs}
    others = []
    for _, kind, path in named:
        if kind.is_output:
            continue
        is_continued = (kind.continued_by, os.path.realpath(path)) in written
        if not is_continued:
            others.append(path)
        may_lack = kind.is_awaited or (kind.is_folder and is_continued)
        if path != job.remote_file and not (may_lack and not os.path.exists(path)):
            _check_input(kind, path)
    written_files = [(path, kind.is_folder) for _, kind, path in outputs]
    if job.range_file is not None:
        written_files.append((job.range_file, False))
    for path, is_folder in written_files:
        if is_folder or not is_stream(path):
            check_output(path, others, is_folder=is_folder)
            others.append(path)


def _named_files(
    parameters: Sequence[click.Parameter], job: DataJob
) -> Iterator[tuple[str, FileName, str]]:
    """Yield parameter, type and name of each file that the job has."""
    for parameter in parameters:
        value: Any = getattr(job, parameter.name or "", None)
        if not value:
            continue
        kinds: Sequence[click.ParamType] = [parameter.type]
        if isinstance(parameter.type, click.Tuple):
            kinds = parameter.type.types
        for kind, path in zip(kinds, value if len(kinds) > 1 else [value], strict=True):
            if isinstance(kind, FileName) and path not in kind.words:
                yield parameter.name or "", kind, path


def _check_input(kind: FileName, path: str) -> None:
    if kind.is_folder:
        if not os.path.isdir(path):
            raise FileNotFoundError(2, "no such folder", path)
    elif not is_stream(path):
        if not os.path.exists(path):
            raise FileNotFoundError(2, "no such file", path)
        with open(path, "rb"):
            pass


def check_output(path: str, others: Sequence[str], *, is_folder: bool = False) -> None:
    """Raise OSError if an output cannot be written, or is one of `others`."""
    if os.path.realpath(path) in map(os.path.realpath, others):
        raise FileExistsError(17, "the output would replace another file of the command", path)
    if os.path.isdir(path) and not is_folder:
        raise IsADirectoryError(21, "is a directory", path)
    if os.path.exists(path) and not os.path.isdir(path) and is_folder:
        raise NotADirectoryError(20, "is not a folder", path)
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise PermissionError(13, "is not writable", path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "no such folder", folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "folder is not writable", folder)
