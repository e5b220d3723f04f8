"""The methods that skl2onnx looks for in an estimator, so that pipelines with it become ONNX.

skl2onnx calls `onnx_parser` for the outputs, `onnx_shape_calculator` for their types, and
`onnx_converter` for the nodes. Only there skl2onnx and onnx are imported. Its converters of
ensembles also look for the class of each estimator in a table, to which `Registration` adds it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin, RegressorMixin, is_classifier, is_regressor

from dcsvm.model.model import Model

TABLE = "skl2onnx._supported_operators"  # the module of the table of classes


class Registration(MetaPathFinder):
    """Adds the estimators to the table of skl2onnx as soon as it is imported.

    skl2onnx has no other way: an estimator that was loaded before must be in the table, too, and
    to import skl2onnx with dcsvm.sklearn takes seconds.
    """

    def __init__(self) -> None:
        self.classes: list[type] = []

    def add(self, estimator: type) -> None:
        """Register the class of an estimator."""
        self.classes.append(estimator)
        if TABLE in sys.modules:
            self._fill(sys.modules[TABLE])
        elif self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        """Return the module of the table, which is filled after its execution."""
        if fullname != TABLE:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_fill(module: ModuleType) -> None:
                execute(module)
                self._fill(module)

            vars(spec.loader)["exec_module"] = execute_and_fill
        return spec

    def _fill(self, module: ModuleType) -> None:
        for estimator in self.classes:
            # the options of these names, such as zipmap, are allowed and have no effect
            name = "SklearnSVC"
            if issubclass(estimator, RegressorMixin):
                name = "SklearnSVR"
            elif issubclass(estimator, OutlierMixin):
                name = "SklearnOneClassSVM"
            module.sklearn_operator_name_map[estimator] = name


_registration = Registration()


class OnnxMethods:
    """Mixin of the estimators.

    A classifier has the outputs `label` (n,) and `probabilities` (n, k), if they were fitted, or
    else `scores`: those of decision_function (n, m), for two classes a column for each. One-class
    has columns `label` and `scores`; a regression has a column `variable`.
    """

    classes_: np.ndarray
    model_: Model | None
    _encoding_of_gaps: Any

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        _registration.add(cls)

    def _check_is_fitted(self) -> None:
        raise NotImplementedError

    def onnx_parser(self) -> Callable[..., list[Any]]:
        """Return the function that declares the outputs."""

        def declared(scope: Any = None, inputs: Any = None) -> list[Any]:
            from skl2onnx.common.data_types import Int64TensorType

            real = _real_type(inputs)
            if is_regressor(self):
                return [scope.declare_local_variable("variable", real())]
            has_probabilities = is_classifier(self) and self._onnx_model().probability is not None
            numbers = "probabilities" if has_probabilities else "scores"
            label = scope.declare_local_variable("label", Int64TensorType())
            return [label, scope.declare_local_variable(numbers, real())]

        return declared

    def onnx_shape_calculator(self) -> Callable[[Any], None]:
        """Return the function that sets the types of the outputs."""

        def set_types(operator: Any) -> None:
            from skl2onnx.common import data_types

            n, real = operator.inputs[0].get_first_dimension(), _real_type(operator.inputs)
            *labels, numbers = operator.outputs
            numbers.type = real([n, None if is_classifier(self) else 1])
            is_text = self._onnx_labels().dtype.kind == "U"
            kind = data_types.StringTensorType if is_text else data_types.Int64TensorType
            for label in labels:  # one or none
                label.type = kind([n] if is_classifier(self) else [n, 1])

        return set_types

    def onnx_converter(self) -> Callable[[Any, Any, Any], None]:
        """Return the function that adds the nodes."""

        def convert(scope: Any, operator: Any, container: Any) -> None:
            from skl2onnx.common.data_types import StringTensorType, guess_proto_type

            model = self._onnx_model()
            given = {
                one.raw_name: (one.full_name, isinstance(one.type, StringTensorType))
                for one in operator.inputs
            }
            nodes = model.onnx_nodes(
                scope.get_unique_variable_name, given, self._onnx_labels(), **self._onnx_choice()
            )
            container.nodes.extend(nodes.nodes)
            container.initializers.extend(nodes.constants)
            container.node_domain_version_pair_sets.update(nodes.opsets)

            *labels, numbers = operator.outputs
            ends = [("Cast", nodes.numbers, numbers, {"to": guess_proto_type(numbers.type)})]
            ends += [("Identity", nodes.label, label, {}) for label in labels]
            for op_type, tensor, output, attributes in ends:
                name = scope.get_unique_operator_name(op_type)
                container.add_node(op_type, [tensor], [output.full_name], name=name, **attributes)

        return convert

    def _onnx_model(self) -> Model:
        """Return the fitted model; frames with gaps are encoded as predict does."""
        self._check_is_fitted()
        model = self.model_
        if model is None:
            raise ValueError("the model does not fit float32, the precision of its vectors in ONNX")
        if model.table is None and self._encoding_of_gaps is not None:
            model = replace(model, table=self._encoding_of_gaps)
        return model

    def _onnx_choice(self) -> dict[str, Any]:
        """Return how the labels of several classes are chosen, and whether they have scores."""
        return {}

    def _onnx_labels(self) -> np.ndarray:
        """Return the labels as text, or as int64: scikit-learn's are whole numbers."""
        labels = getattr(self, "classes_", np.array([1, -1]))
        return labels.astype(np.int64 if labels.dtype.kind in "biuf" else str)


def _real_type(inputs: Any) -> Any:
    """Return the type of real outputs: double if an input is double, else float."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    has_double = any(isinstance(one.type, DoubleTensorType) for one in inputs)
    return DoubleTensorType if has_double else FloatTensorType
