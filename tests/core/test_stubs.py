"""Test that the stubs have the names and signatures of the compiled modules."""

import ast
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import dcsvm
from dcsvm import _core, _svmlight

# Python does not import these
INTERNAL = re.compile(r"_|check_|Weights$|SERIALS$")
GIVEN = re.compile(r"(?:.*\s)?\**(?P<name>\w+)(?:=(?P<default>.*))?$")


def stub_of(module):
    path = Path(dcsvm.__file__).parent / f"{module.__name__.rpartition('.')[2]}.pyi"
    return ast.parse(path.read_text(encoding="utf-8"))


def public_names(owner):
    return {
        name
        for name, value in vars(owner).items()
        if not INTERNAL.match(name) and not isinstance(value, ModuleType)
    }


def declared(node):
    """Return the public names that a stub declares in its module or in a class."""
    names = {getattr(one, "name", None) for one in node.body} | {
        one.target.id for one in node.body if isinstance(one, ast.AnnAssign)
    }
    return {name for name in names if name and not INTERNAL.match(name)}


def parameters(function):
    """Return the parameters of a stub's function and defaults: None if absent, `...` if hidden."""
    spec = function.args
    assert not spec.vararg and not spec.kwarg
    positional = spec.posonlyargs + spec.args
    defaults = [None] * (len(positional) - len(spec.defaults)) + spec.defaults + spec.kw_defaults
    names = [one.arg for one in positional + spec.kwonlyargs]
    return {
        name: default and ast.unparse(default)
        for name, default in zip(names, defaults, strict=True)
        if name != "self"
    }


def parameters_of_compiled(value):
    """Return the parameters of a compiled function, or of a class by its docstring's signature."""
    if inspect.isclass(value):
        (text,) = re.match(r"\w+\((.*)\)", value.__doc__).groups()
        text = re.sub(r"\[[^]]*\]", "", text)
        given = [GIVEN.match(one.strip()).groups() for one in text.split(",") if one]
        return dict(given)
    given = inspect.signature(value).parameters.values()
    return {
        one.name: None if one.default is one.empty else repr(one.default)
        for one in given
        if one.name != "self"
    }


def check_signature(function, value):
    found, expected = parameters(function), parameters_of_compiled(value)
    assert list(found) == list(expected), function.name
    for name, default in found.items():
        assert (default is None) == (expected[name] is None), f"{function.name}: {name}"
        assert default in (None, "...", expected[name]), f"{function.name}: {name}"


@pytest.mark.parametrize("module", [_core, _svmlight], ids=lambda module: module.__name__)
def test_a_stub_has_the_names_and_signatures_of_its_module(module):
    stub = stub_of(module)
    assert declared(stub) == public_names(module)
    for node in stub.body:
        value = getattr(module, getattr(node, "name", ""), None)
        if isinstance(node, ast.FunctionDef):
            check_signature(node, value)
        elif isinstance(node, ast.ClassDef) and value is not None:
            check_class(node, value)


def check_class(node, value):
    if node.name == "Form":
        assert {one.name: int(one) for one in value} == {
            one.targets[0].id: one.value.value for one in node.body
        }
        return
    assert {base.id for base in node.bases} <= {base.__name__ for base in value.__mro__}
    for one in node.body:
        if not isinstance(one, ast.FunctionDef):
            continue
        if one.name != "__init__":
            found = vars(value)[one.name]
            is_property = any(ast.unparse(by) == "property" for by in one.decorator_list)
            assert is_property != callable(found), one.name
            if callable(found):
                check_signature(one, found)
        elif issubclass(value, Exception):
            check_signature(one, value.__init__)
        else:
            check_signature(one, value)
    if not issubclass(value, Exception):
        assert declared(node) == public_names(value), node.name
