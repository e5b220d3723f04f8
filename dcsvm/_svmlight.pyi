"""Types of _svmlight.pyx, which documents the functions."""

import builtins
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

_Int32: TypeAlias = NDArray[np.int32]
_Int64: TypeAlias = NDArray[np.int64]
_Float32: TypeAlias = NDArray[np.float32]
_Float64: TypeAlias = NDArray[np.float64]

class _OpenFile(Protocol):
    @property
    def offset(self) -> int: ...
    def fileno(self) -> int: ...
    def __len__(self) -> int: ...

class ParseError(ValueError):
    line: int
    column: int
    reason: str
    def __init__(self, line: int, column: int, reason: str) -> None: ...

class ZeroIndex(ParseError): ...  # noqa: N818  # handled, never shown

class Text:
    def __init__(
        self,
        data: Buffer | _OpenFile,
        n_prefix: int = 1,
        first_line: int = 1,
        threads: int = 1,
        prefix_name: builtins.bytes = b"label",
        lenient: bool = False,
        serials: Literal["training", "any"] | None = None,
        first_index: int = 1,
        part: tuple[int, int] | None = None,
    ) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_lines(self) -> int: ...
    @property
    def n_pairs(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    def widen(self, n_features: int) -> None: ...
    def bytes(self, rows: NDArray[np.uint8]) -> tuple[_Float64, int] | None: ...
    def dense(self, rows: _Float32) -> tuple[_Float64, int]: ...
    def csr(
        self,
        *,
        float64: bool = False,
        make: Callable[[tuple[int], type[np.number[Any]]], np.ndarray] = ...,
    ) -> tuple[_Float64, _Int64, _Int32, np.ndarray, int]: ...

def densify(
    indptr: _Int64,
    indices: _Int32,
    values: _Float32,
    n_features: int,
    threads: int,
    make: Callable[[tuple[int, int], type], np.ndarray] = ...,
) -> _Float32: ...
def write_dense(
    prefix: _Float64,
    rows: _Float32,
    row_numbers: _Int64 | None = None,
    first_index: int = 1,
    *,
    float64: bool = False,
    threads: int = 1,
) -> bytes: ...
def write_csr(
    prefix: _Float64,
    indptr: _Int64,
    indices: _Int32,
    values: _Float32,
    row_numbers: _Int64 | None = None,
    first_index: int = 1,
    *,
    float64: bool = False,
    threads: int = 1,
) -> bytes: ...
