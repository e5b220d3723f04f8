"""Test small files that declare, refer to or unpack to huge data: short errors, little memory."""

import gzip
import os
import threading
import tracemalloc

import numpy as np
import pytest
from fuzz.sound import require_sentence
from made_models import svm_train_text

from dcsvm.data import arrays as allocation
from dcsvm.data import files
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import DataError
from dcsvm.data.rows import Rows
from dcsvm.data.scaling import parse_scaling
from dcsvm.model.reader import ModelError, load_model
from dcsvm.model.writer import SECTION, VERSION

LITTLE = 30e6  # bytes
HUGE = "2147483646"


def model_text(support_vectors="1 1:1\n", section="", **changes):
    header = {"gamma": 1, "rho": 0, "nr_sv": "1 0"} | changes
    return (svm_train_text(support_vectors, **header) + section).encode()


def section(early_sv="0 0 1 1 1\n", **changes):
    header = dict(n_features="2", rows="sparse", row_numbers="1", early_level="1", n_clusters="1")
    header |= dict(blend="0", n_parts="1", center_kernel_type="rbf", center_gamma="1")
    header |= dict(total_center_rows="0", total_early_sv="1") | changes
    lines = "".join(f"{key} {value}\n" for key, value in header.items())
    return f"{SECTION} {VERSION}\n{lines}CENTERS\nEARLY_RHO\n0\nEARLY_SV\n{early_sv}"


MANY_LABELS = {
    "nr_class": "30000",
    "label": " ".join(map(str, range(30000))),
    "nr_sv": "1 " * 30000,
    "total_sv": "30000",
}
LONG_ROW = "1 " + " ".join(f"{k}:1" for k in range(1, 20001)) + "\n"
MODELS = {
    "expected 2147483646 lines": model_text(total_sv=HUGE, nr_sv=f"{HUGE} 0"),
    "must be from 0 to 2147483646": model_text(total_sv="9" * 4000),
    "label must have 2147483646 numbers, got 2": model_text(nr_class=HUGE),
    "rho must have 449985000 numbers, got 1": model_text(**MANY_LABELS),
    "must be integers from 0": model_text(nr_sv="1e300 1e300"),
    "is above 2147483646": model_text("1 2147483648:1\n"),
    "too short for dense rows of 2147483646 features": model_text(
        section=section(n_features=HUGE, rows="dense")
    ),
    "n_clusters must be 1, got 2147483646": model_text(section=section(n_clusters=HUGE)),
    "expected 2147483646 lines, got 4": model_text(section=section(total_center_rows=HUGE)),
    "expected 2147483646 lines, got 1": model_text(section=section(total_early_sv=HUGE)),
    # every line would refer to the long row
    "more than two clusters": model_text(
        LONG_ROW, section("0 0 1 1 1\n" * 20000, n_features="20000", total_early_sv="20000")
    ),
}


@pytest.fixture
def little_memory():
    tracemalloc.start()
    yield
    assert tracemalloc.get_traced_memory()[1] < LITTLE
    tracemalloc.stop()


@pytest.mark.parametrize("reason", MODELS)
def test_a_small_model_file_cannot_ask_for_much(tmp_path, little_memory, reason):
    path = tmp_path / "model"
    path.write_bytes(MODELS[reason])
    with pytest.raises(ModelError, match=reason) as error:
        load_model(path)
    require_sentence(error.value)


def test_the_small_model_file_itself_can_be_read(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(model_text(section=section()))
    assert load_model(path).early.rows.n_samples == 1


def test_a_wide_dense_model_predicts_sparse_rows_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("dcsvm.model.predict.BATCH_VALUES", 3 * 4004)
    path = tmp_path / "model"
    path.write_bytes(model_text("1 " + " ".join(f"{20 * k}:1" for k in range(1, 201)) + "\n"))
    model = load_model(path)
    assert model.exact.rows.is_dense
    sparse = np.zeros((10, 4000), np.float32)
    sparse[np.arange(10), 20 * np.arange(10) + 19] = 1
    values = model.pair_values(Rows.from_array(sparse), "exact", 1)
    assert np.allclose(values, np.exp(-199.0), rtol=1e-4)


@pytest.fixture
def small_machine(monkeypatch):
    for module in (files, allocation):
        monkeypatch.setattr(module, "available_memory", lambda: 4_000_000)


def refusal(read, *arguments):
    with pytest.raises(ValueError) as error:
        read(*arguments)
    require_sentence(error.value)
    return str(error.value)


def test_an_archive_may_not_unpack_to_more_than_half_of_the_memory(tmp_path, small_machine):
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(b"1 1:1\n" * 500_000))
    assert refusal(Dataset.read, path) == (
        f"{path}: more than 2 MB of text, half of the available memory"
    )


@pytest.mark.parametrize("read", [Dataset.read, load_model])
def test_what_has_no_end_is_refused(small_machine, read):
    assert "/dev/zero: more than 2 MB" in refusal(read, "/dev/zero")


def test_a_pipe_without_end_is_refused(tmp_path, small_machine):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write():
        try:
            with open(path, "wb") as file:
                file.write(b"1 1:1\n" * 1_000_000)
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=write)
    writer.start()
    assert "pipe: more than 2 MB" in refusal(Dataset.read, path)
    writer.join()


def test_sparse_rows_that_do_not_fit_the_memory_are_mapped(small_machine):
    rows = Dataset.of_text(b"1 99:0.5 100:1\n" * 200_000, "rows").rows
    assert rows.is_mapped and rows.nbytes_in_memory == rows.indptr.nbytes


def test_labels_that_do_not_fit_the_memory_are_refused(small_machine):
    text = b"1 99:0.5\n" * 300_000
    assert refusal(Dataset.of_text, text, "rows") == (
        "rows: the rows take 5 MB of memory, more than the 4 MB available"
    )


def test_scaling_may_not_fill_rows_beyond_the_memory(small_machine):
    ranges = "x\n-1 1\n" + "".join(f"{30 * k} 0 2\n" for k in range(1, 101))
    scaling = parse_scaling(ranges.encode(), "data.range")
    text = b"1 30:1\n" * 6000
    with pytest.raises(DataError, match="^rows scaled by data.range: the rows take 5 MB"):
        Dataset.of_text(text, "rows", scale=scaling)
