"""Run a script or a module with scikit-learn's SVM estimators replaced by dcsvm's."""

import os
import runpy
import sys

from dcsvm.sklearn.loading import patch

USAGE = "usage: python -m dcsvm.sklearn [-m module | script.py] [arguments]"


def main(arguments: list[str]) -> int:
    """Run the script or module named by the arguments; return the exit status."""
    is_module = arguments[:1] == ["-m"]
    if is_module:
        arguments = arguments[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    name = arguments[0]
    if not is_module and not os.path.isfile(name):
        print(f"dcsvm.sklearn: {name}: no such file", file=sys.stderr)
        return 1
    sys.argv = arguments
    patch()
    if is_module:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(name))
        runpy.run_path(name, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
