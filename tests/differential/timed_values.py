"""Time kernel values of the imported dcsvm, in one process for many cases.

It reads requests from standard input and answers on standard output, one line of JSON each. The
first line has the instruction set and the names of the kernels. {"case": ...} encodes the rows of a
case (see values.py) and returns how they are evaluated; {"calls": n} evaluates them n times and
returns the nanoseconds per kernel value of one thread, without its waiting for a core. The answer
{"error": ...} is the last; its usual cause is a different internal interface in this state.

No other file of the harness uses the internal interface, including the one of older commits.
"""

import json
import sys
import time
from inspect import signature

import numpy as np
from scipy.sparse import csr_array

N_TARGETS = 256  # rows of a case that meet all others
OPTIONS_OF_A_PRODUCT = ("KernelEvalOptions", "Evaluation")  # names of the class, newest first


class Product:
    """The kernel product of a case, in one thread."""

    def __init__(self, kernel, encoding, file, gamma, is_matrix):
        from dcsvm.data.rows import Rows
        from dcsvm.kernel import kernel_rows, kernels

        X = np.load(file)
        n = len(X)
        if is_matrix:
            rows = Rows(n, n, dense=X, columns=np.arange(n, dtype=np.int32))
        else:
            rows = Rows.from_array(csr_array(X) if encoding == "sparse" else X)
        known = kernels.Kernel(kernel, gamma, coef0=0.5)
        self.data = kernel_rows.KernelRows(rows, known, 1, coded=True)
        self.targets, self.sources = np.split(np.arange(n, dtype=np.int32), [N_TARGETS])
        self.weights = np.linspace(-1.0, 1.0, len(self.sources))
        name = next(one for one in OPTIONS_OF_A_PRODUCT if hasattr(kernel_rows, one))
        options = getattr(kernel_rows, name)(float64=encoding == "float64")
        # the last argument has them; older states give it another name
        *_, keyword = signature(kernel_rows.KernelRows.product).parameters
        self.keywords = {"target_rows": self.targets, keyword: options}
        self.evaluate(1)

    def evaluate(self, calls):
        """Return the nanoseconds per kernel value."""
        begin = time.thread_time_ns()
        for _ in range(calls):
            self.data.product(self.weights, self.sources, **self.keywords)
        spent = time.thread_time_ns() - begin
        return spent / (calls * len(self.targets) * len(self.sources))


def answers(requests):
    """Yield the first line, then an answer to each request."""
    from dcsvm._core import instruction_set
    from dcsvm.kernel.kernels import NAMES

    yield {"instruction_set": instruction_set(), "kernels": NAMES}
    product = None
    for request in map(json.loads, requests):
        if "case" in request:
            product = Product(**request["case"])
            yield product.data.setup.form
        else:
            yield product.evaluate(request["calls"])


if __name__ == "__main__":
    try:
        for answer in answers(sys.stdin):
            print(json.dumps(answer), flush=True)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
