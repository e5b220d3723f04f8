"""Who may import whom, read from the source: design.md's rules as tables.

A new module or file has to be added to its table, with what it may use.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, CSRC = ROOT / "dcsvm", ROOT / "csrc"
LONGEST = 600

# module -> the dcsvm modules it may import
MODULES = {
    "__init__": {"checkpoint", "dataset", "model", "model_file", "training", "_core"},
    "_core": set(),
    "_svmlight": set(),
    "input_file": {"plan"},
    "dataset": {"input_file", "_core", "_svmlight"},
    "scaling": {"dataset", "input_file"},
    "advice": {"dataset"},
    "formulation": set(),
    "plan": set(),
    "memory": {"plan", "dataset", "_core"},
    "kernels": {"dataset", "_core"},
    "precomputed": {"kernels", "dataset"},
    "partition": {"kernels", "dataset", "_core"},
    "duplicates": {"formulation", "dataset"},
    "locality": {"formulation", "kernels", "dataset", "_core"},
    "kernel_sums": {"kernels", "locality", "_core"},
    "certificate": {"formulation", "kernels", "locality", "_core"},
    "model": {"partition", "kernels", "dataset"},
    "model_writer": {"model", "kernels", "dataset", "_svmlight"},
    "model_reader": {"model", "model_writer", "partition", "kernels", "dataset", "_svmlight"},
    "model_file": {"input_file", "model", "model_reader", "model_writer"},
    "coupling": set(),
    "pair_weights": {"model", "kernels", "_core"},
    "bcm": {"pair_weights", "model", "kernels", "dataset", "_core"},
    "predict": {"bcm", "pair_weights", "model", "coupling", "kernels", "dataset"},
    "report": set(),
    "level_measure": {"kernels", "locality", "_core"},
    "task": {"formulation", "dataset"},
    "sample_weights": set(),
    "extraction": {"formulation", "model", "partition", "report"},
    "options": {"kernels", "model", "partition"},
    "preparation": {"options", "task", "formulation", "duplicates", "locality", "plan", "memory",
                    "folds", "precomputed", "kernels", "dataset", "_core"},
    "held_out": {"extraction", "folds", "formulation", "kernel_sums", "model", "preparation",
                 "probability"},
    "iterate": set(),
    "run_state": {"certificate", "formulation", "iterate", "level_measure", "model", "report"},
    "checkpoint": {"dataset", "model", "model_file", "options"},
    "stopped": {"certificate", "_core"},
    "warm_start": {"dataset", "formulation", "model", "options"},
    "solving": {"preparation", "certificate", "kernel_sums", "locality", "formulation", "model",
                "iterate", "run_state", "checkpoint", "report", "_core"},
    "training": {"solving", "preparation", "partition", "extraction", "held_out", "options",
                 "model", "report", "level_measure", "sample_weights", "checkpoint", "stopped",
                 "warm_start", "kernels", "dataset", "_core"},
    "folds": set(),
    "probability": set(),
    "cross_validation": {"training", "preparation", "held_out", "predict", "extraction",
                         "partition", "model", "options", "folds", "report", "dataset"},
}  # fmt: skip
# inside a function only: what would be a circle at the top of the file
LAZY = {"model": {"plan", "predict", "model_file"}}
ONLY_IN_CLI = {"click", "tqdm", "sys"}

# file of csrc/ without its ending -> the headers it may include besides its own
INCLUDES = {
    "kernel": set(),
    "points": set(),
    "isa": {"kernel", "isa_impl"},
    "isa_impl": {"descent_impl"},
    "descent_impl": set(),
    "byte_dots": {"isa", "byte_dots_impl"},
    "byte_dots_impl": set(),
    "kernel_tile": {"isa", "byte_dots", "codes", "kernel", "points"},
    "reach": {"codes", "isa", "points"},
    "stop": set(),
    "kernel_product": {"kernel_tile", "reach", "stop"},
    "active_kernel": {"isa", "kernel_product", "kernel_tile", "reach", "row_cache", "stop"},
    "active_set": {"box_qp", "selection"},
    "box_qp": set(),
    "row_cache": set(),
    "row_order": set(),
    "newton": {"isa"},
    "working_set": {"newton", "box_qp", "isa"},
    "working_kernel": {"kernel_product", "kernel_tile"},
    "selection": set(),
    "codes": {"byte_dots", "points"},
    "locality": {"points"},
    "timer": set(),
    "iterate": set(),
    "solve_options": {"reach", "stop"},
    "whole_gradient": {
        "active_set",
        "box_qp",
        "iterate",
        "kernel_product",
        "kernel_tile",
        "solve_options",
        "timer",
    },
    "smo": {
        "active_kernel",
        "active_set",
        "box_qp",
        "iterate",
        "kernel_tile",
        "selection",
        "solve_options",
        "timer",
        "whole_gradient",
        "working_kernel",
        "working_set",
    },
    "varying_rows": {"kernel", "kernel_tile", "points"},
    "cluster_solver": {"smo", "varying_rows"},
    "decimal": set(),
    "svmlight_errors": {"decimal"},
    "svmlight_reader": {"decimal", "svmlight_errors"},
    "svmlight_writer": set(),
}


def python_files(folder=PACKAGE):
    return sorted(folder.rglob("*.py"))


def name_of(path):
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def in_cli(path):
    return path.is_relative_to(PACKAGE / "cli")


def imports(path):
    """(module, whether at the top of the file) of every import, type-checking ones included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nested = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        top = id(node) not in nested
        if isinstance(node, ast.Import):
            yield from ((alias.name, top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            for alias in node.names:
                yield f"{node.module}.{alias.name}", top


def own_imports(path):
    """(dcsvm module, whether at the top) for imports of the package itself."""
    for name, top in imports(path):
        parts = name.split(".")
        if parts[0] == "dcsvm" and len(parts) > 1:
            if parts[1] in {"cli", *MODULES} or (PACKAGE / f"{parts[1]}.py").exists():
                yield parts[1], top
            else:
                yield "__init__", top


def test_every_module_is_in_the_table():
    found = {name_of(path) for path in python_files() if not in_cli(path)}
    found |= {path.stem for path in PACKAGE.glob("*.pyx")}
    assert found == set(MODULES)


@pytest.mark.parametrize("module", sorted(set(MODULES) - {"_core", "_svmlight"}))
def test_a_module_imports_only_what_the_table_allows(module):
    for name, top in own_imports(PACKAGE / f"{module}.py"):
        allowed = MODULES[module] if top else MODULES[module] | LAZY.get(module, set())
        assert name in allowed, f"{module} may not import {name}"


@pytest.mark.parametrize("path", python_files(), ids=name_of)
def test_nothing_but_cli_imports_cli_click_tqdm_or_sys(path):
    if in_cli(path):
        return
    names = {name.split(".")[0] for name, _ in imports(path)}
    assert not names & ONLY_IN_CLI
    assert "cli" not in {name for name, _ in own_imports(path)}


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.pyx")), ids=lambda path: path.stem)
def test_the_core_imports_no_module_of_the_package(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"^\s*(from\s+(dcsvm|\.)|c?import\s+dcsvm)", text, re.MULTILINE)
    assert not re.search(r"\bdcsvm\.\w+\s+c?import", text)


def test_the_package_and_the_commands_start_without_the_numerical_libraries():
    for path in (PACKAGE / "__init__.py", *(PACKAGE / "cli").glob("*.py")):
        if path.stem in ("report", "cross_validation"):  # imported by the commands' bodies only
            continue
        top = {name.split(".")[0] for name, at_top in imports(path) if at_top}
        assert not top & {"numpy", "scipy", "tqdm"}, path
        assert not {n for n, at_top in own_imports(path) if at_top} - {
            "__init__",
            "cli",
            "model",
            "plan",
        }


def test_the_table_of_modules_has_no_circle():
    check_one_way(MODULES)


def check_one_way(table):
    left = {name: set(used) - {name} for name, used in table.items()}
    while left:
        ready = {name for name, used in left.items() if not used & set(left)}
        assert ready, f"a circle among {sorted(left)}"
        left = {name: used for name, used in left.items() if name not in ready}


def csrc_files():
    return sorted([*CSRC.glob("*.h"), *CSRC.glob("*.cc")])


def test_every_file_of_csrc_is_in_the_table():
    assert {path.stem for path in csrc_files()} == set(INCLUDES)
    assert not [path for path in CSRC.iterdir() if path.suffix not in (".h", ".cc")]


@pytest.mark.parametrize("path", csrc_files(), ids=lambda path: path.name)
def test_a_file_of_csrc_includes_only_what_the_table_allows(path):
    text = path.read_text(encoding="utf-8")
    included = {Path(name).stem for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.M)}
    assert included <= INCLUDES[path.stem] | {path.stem}
    if path.suffix == ".cc":
        assert path.stem in included
    assert "Python.h" not in text
    assert not re.search(r"\b(printf|std::cout|std::cerr|iostream)\b", text)


def test_the_table_of_includes_has_no_circle():
    check_one_way(INCLUDES)


def test_no_room_is_called_after_nothing():
    sources = [*python_files(), *csrc_files(), *Path(__file__).parent.glob("*.py")]
    assert not [path for path in sources if path.stem in ("utils", "helpers", "common", "util")]


def test_no_source_file_is_too_long():
    sources = [*python_files(), *PACKAGE.glob("*.pyx"), *PACKAGE.glob("*.pxd"), *csrc_files()]
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in sources}
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}
