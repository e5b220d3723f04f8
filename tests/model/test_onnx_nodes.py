"""Test how graphs in ONNX store matrices."""

import numpy as np
import pytest
from onnx_runs import onnx, run, session_of

from dcsvm.model.onnx_graph import _names
from dcsvm.model.onnx_nodes import IR_VERSION, OPSETS, Graph

DENSE, SPARSE = np.random.default_rng(0).normal(size=(2, 500, 4))
SPARSE = np.where(np.random.default_rng(1).random(SPARSE.shape) < 0.1, SPARSE, 0)
MATRICES = {  # and the largest share of the bytes of all numbers
    "dense": (DENSE, 1.0),
    "zeros": (0 * DENSE, 0.1),
    "few numbers": (SPARSE, 0.25),
    "one number": (np.where(SPARSE, [1.0, 2.0, -3.0, 4.0], 0), 0.2),
    "usual numbers": (SPARSE + [0.5, 0.0, -2.0, 1.0], 0.25),
    "all kinds": (np.c_[SPARSE, DENSE, SPARSE != 0, SPARSE[:, ::-1] + 1.0], 0.45),
    "rare numbers": (np.where(np.arange(2000).reshape(500, 4) % 700 == 699, 1.5, 0), 0.1),
    "one row": (DENSE[:1], 1.0),
    "one column": (SPARSE[:, :1] != 0, 0.25),
}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_is_stored_in_few_bytes(name, kind):
    values, share = MATRICES[name]
    values = values.astype(kind)
    graph = Graph(_names(set()))
    tensor = graph.matrix(values)
    n_bytes = sum(len(one.raw_data) for one in graph.constants)
    assert n_bytes <= share * values.nbytes + 200
    graph.nodes.append(onnx.helper.make_node("Identity", [tensor], ["all"]))
    info = onnx.helper.make_tensor_value_info
    type_ = onnx.helper.np_dtype_to_tensor_dtype(values.dtype)
    made = onnx.helper.make_graph(
        graph.nodes, "matrix", [], [info("all", type_, ["n", "m"])], graph.constants
    )
    opsets = [onnx.helper.make_opsetid("", OPSETS[""])]
    file = onnx.helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION)
    assert np.array_equal(run(session_of(file.SerializeToString()), {})["all"], values)
