"""Find negative indices in Cython sources: `python negative_indices.py FILE ..` prints each.

The extensions are compiled with `wraparound=False`: there a[-1] of an array, list or tuple is
undefined. It reads other memory, or raises an error with some versions of NumPy only.
Slices, such as a[:-1], keep Python's meaning for objects, and are left alone.
"""

import io
import keyword
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

CLOSING = {"(": ")", "[": "]", "{": "}"}


def negative_indices(source: str) -> Iterator[tuple[int, int]]:
    """Yield line and column, from 1, of each index that begins with a minus sign."""
    skipped = (tokenize.NL, tokenize.COMMENT)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    tokens = [token for token in tokens if token.type not in skipped]
    is_subscript: list[bool] = []  # of each bracket around the token
    for i, token in enumerate(tokens):
        before = tokens[i - 1]
        if token.string in CLOSING:
            is_value = _is_name(before) or before.string in (")", "]")
            is_subscript.append(token.string == "[" and is_value)
        elif token.string in CLOSING.values():
            is_subscript.pop()
        elif token.string == "-" and before.string in ("[", ",") and is_subscript[-1:] == [True]:
            if not _is_slice(token.string for token in tokens[i:]):
                yield token.start[0], token.start[1] + 1


def _is_name(token: tokenize.TokenInfo) -> bool:
    return token.type == tokenize.NAME and not keyword.iskeyword(token.string)


def _is_slice(words: Iterator[str]) -> bool:
    """Tell whether a colon comes before the end of the index that begins here."""
    depth = 0
    for word in words:
        if depth == 0 and word in (",", "]", ":"):
            return word == ":"
        depth += (word in CLOSING) - (word in CLOSING.values())
    return False


def main(names: list[str]) -> int:
    """Print the negative indices of the files; return 1 if there is one."""
    found = [(name, *at) for name in names for at in negative_indices(Path(name).read_text())]
    for name, line, column in found:
        print(f"{name}:{line}:{column}: a negative index is undefined under wraparound=False")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
