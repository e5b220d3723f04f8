"""Tables of measurements as CSV files; comments at the top name the machine."""

import csv
from collections.abc import Iterable
from pathlib import Path


def write(table: Path, about: dict, lines: Iterable[tuple]) -> None:
    """Write the table to a temporary file and rename it; the first line names the columns."""
    beside = table.with_name(f".{table.name}")
    with open(beside, "w", encoding="utf-8", newline="") as file:
        file.writelines(f"# {key}: {value}\n" for key, value in about.items())
        csv.writer(file, lineterminator="\n").writerows(lines)
    beside.replace(table)


def read(table: Path) -> list[dict[str, str]]:
    with open(table, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))
