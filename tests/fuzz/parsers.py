"""Fuzz the parsers in Python with atheris (libFuzzer): `parsers.py model|range|checkpoint [its
options]`."""

import sys

import atheris

PARSERS = [
    "dcsvm.model.reader",
    "dcsvm.model.reader",
    "dcsvm.data.scaling",
    "dcsvm.training.state",
    "dcsvm.training.state",
]

with atheris.instrument_imports(include=PARSERS):
    from sound import check_checkpoint, check_model, check_range

CHECKS = {"model": check_model, "range": check_range, "checkpoint": check_checkpoint}


def check_one(text):
    CHECKS[sys.argv[1]](text)


if __name__ == "__main__":
    atheris.Setup([sys.argv[0], *sys.argv[2:]], check_one)
    atheris.Fuzz()
