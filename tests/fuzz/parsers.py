"""libFuzzer on the parsers in Python, by atheris: `parsers.py model|range [its options]`."""

import sys

import atheris

with atheris.instrument_imports(include=["dcsvm.model_reader", "dcsvm.scaling"]):
    from sound import check_model, check_range

CHECKS = {"model": check_model, "range": check_range}


def check_one(text):
    CHECKS[sys.argv[1]](text)


if __name__ == "__main__":
    atheris.Setup([sys.argv[0], *sys.argv[2:]], check_one)
    atheris.Fuzz()
