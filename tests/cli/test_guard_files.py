"""Test files that commands cannot read or write.

The message is one sentence that names the file, the exit status is 1, and no partial file remains.
"""

import json
import os
import resource
import shutil
import subprocess
import threading

import pytest
from click.testing import CliRunner
from reference import command_of, labelled_rows, libsvm_text

from dcsvm.cli import predict, predict_file, train, train_file

# kind of output -> (command, arguments before and after the name of the output)
OUTPUTS = {
    "model": ("train", ["data"], []),
    "report": ("train", ["--report"], ["data", "/dev/null"]),
    "predictions": ("predict", ["data", "data.model"], []),
}
every_output = pytest.mark.parametrize("what", OUTPUTS)
FOR_FILES = {"data", "data.model", "out"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "data").write_text(libsvm_text(*labelled_rows(200, 2, seed=1)))
    (folder / "out").write_text("as before")
    assert run(folder, "train", "-q", "data").returncode == 0
    return folder


@pytest.fixture
def folder(files, tmp_path):
    return shutil.copytree(files, tmp_path / "work")


def run(folder, command, *arguments, shell="", before=(), **how):
    """Run a command under a shell that redirects its streams as `shell` says."""
    line = [*before, *command_of(command, *arguments)]
    line = ["sh", "-c", f'exec "$@" {shell}', "sh", *line] if shell else line
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, **how)


def write(folder, what, name, **how):
    command, before_name, after_name = OUTPUTS[what]
    return run(folder, command, *before_name, name, *after_name, **how)


def require_failed(done, sentence):
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"error: {sentence}"
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def require_as_before(folder):
    assert {path.name for path in folder.iterdir()} == FOR_FILES
    assert (folder / "out").read_text() == "as before"


@every_output
def test_a_full_disk_leaves_the_file_as_it_was(folder, what):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    require_failed(write(folder, what, "out", preexec_fn=limit), "out: file too large")
    require_as_before(folder)


@every_output
def test_a_device_that_is_full_is_named(folder, what):
    require_failed(write(folder, what, "/dev/full"), "/dev/full: no space left on device")


@every_output
def test_standard_output_that_is_full_is_named(folder, what):
    done = write(folder, what, "-", shell="> /dev/full")
    require_failed(done, "standard output: no space left on device")


@every_output
@pytest.mark.parametrize("name", ["-", "out"])
def test_a_closed_pipe_is_named(folder, what, name):
    reader, writer = os.pipe()
    os.close(reader)
    command, before_name, after_name = OUTPUTS[what]
    line = command_of(command, *before_name, name, *after_name)
    done = subprocess.run(line, cwd=folder, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    require_failed(done, "standard output: broken pipe")
    assert (folder / "out").read_text() == "as before" or name == "out"  # it is printed later


@every_output
def test_standard_output_that_is_closed_is_named(folder, what):
    require_failed(write(folder, what, "-", shell=">&-"), "standard output: bad file descriptor")


@every_output
def test_nothing_else_is_printed_among_the_output(folder, what):
    done = write(folder, what, "-")
    assert write(folder, what, "out").returncode == 0
    assert done.stdout == (folder / "out").read_text() or json.loads(done.stdout)
    assert {"Total nSV", "Accuracy"} & {line.split(" =")[0] for line in done.stderr.splitlines()}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_that_cannot_be_printed_is_no_traceback(folder, option):
    done = run(folder, "train", option, shell="> /dev/full")
    require_failed(done, "standard output: no space left on device")


@every_output
def test_a_folder_is_no_output(folder, what):
    os.mkdir(folder / "below")
    require_failed(write(folder, what, "below"), "below: is a directory")
    require_failed(
        write(folder, what, "none/out"), f"{os.path.realpath(folder)}/none: no such folder"
    )


def without_privileges():
    """Return a command prefix under which permissions also apply to root."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root may write everywhere")
    return ["setpriv", "--bounding-set=-dac_override"]


@every_output
def test_a_folder_or_file_that_is_read_only_is_named(folder, what):
    before = without_privileges()
    os.chmod(folder / "out", 0o444)
    require_failed(write(folder, what, "out", before=before), "out: is not writable")
    os.chmod(folder, 0o555)
    done = write(folder, what, "new", before=before)
    os.chmod(folder, 0o755)
    require_failed(done, f"{os.path.realpath(folder)}: folder is not writable")
    require_as_before(folder)


@every_output
def test_an_output_does_not_replace_what_the_command_reads(folder, what):
    text = (folder / "data").read_text()
    os.symlink("data", folder / "link")
    for name in ("data", "link", folder / "data"):
        done = write(folder, what, name)
        require_failed(done, f"{name}: the output would replace another file of the command")
    assert (folder / "data").read_text() == text


def test_the_report_does_not_replace_the_model(folder):
    done = run(folder, "train", "--report", "new", "data", "new")
    require_failed(done, "new: the output would replace another file of the command")


@every_output
def test_a_folder_that_vanishes_meanwhile_is_named(folder, what, monkeypatch):
    command, before_name, after_name = OUTPUTS[what]
    module, work, name = {
        "train": (train, train_file, "read_training_set"),
        "predict": (predict, predict_file, "load_model"),
    }[command]
    monkeypatch.chdir(folder)
    os.mkdir("below")

    read_before = getattr(work, name)

    def read(*arguments, **how):
        os.rmdir("below")
        return read_before(*arguments, **how)

    monkeypatch.setattr(work, name, read)
    done = CliRunner().invoke(module.main, ["-q", *before_name, "below/out", *after_name])
    assert done.exit_code == 1
    assert done.stderr == "error: below/out: no such file or directory\n"


@pytest.mark.parametrize("command", ["train", "predict"])
def test_an_input_that_is_not_there_or_cannot_be_read_is_named(folder, command):
    more = ["out"] if command == "train" else ["data.model", "out"]
    require_failed(run(folder, command, "none", *more), "none: no such file")
    require_failed(run(folder, command, ".", *more), ".: is a directory")
    require_failed(run(folder, command, "-", *more, shell="<&-"), "-: bad file descriptor")
    require_failed(run(folder, command, "-", *more, shell="< /dev/null"), "-: no rows")
    require_as_before(folder)


@every_output
def test_a_fifo_gets_all_of_the_output(folder, what):
    os.mkfifo(folder / "fifo")
    texts = []
    reader = threading.Thread(target=lambda: texts.append((folder / "fifo").read_text()))
    reader.start()
    assert write(folder, what, "fifo").returncode == 0
    reader.join()
    assert write(folder, what, "out").returncode == 0
    assert texts == [(folder / "out").read_text()] or what == "report"  # it contains seconds


def test_a_fifo_that_is_not_read_to_the_end_is_named(folder):
    os.mkfifo(folder / "fifo")
    (folder / "many").write_text("1 1:1\n" * 100_000)

    def read_little():
        with open(folder / "fifo", "rb") as file:
            file.read(1)

    reader = threading.Thread(target=read_little)
    reader.start()
    done = run(folder, "predict", "many", "data.model", "fifo")
    reader.join()
    require_failed(done, "fifo: broken pipe")


@every_output
@pytest.mark.parametrize("shell", ["2>&-", "2> /dev/full"])
def test_work_goes_on_where_nobody_listens_to_standard_error(folder, what, shell):
    done = write(folder, what, "out", shell=shell)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith(("Total nSV", "Accuracy"))
    assert (folder / "out").read_text() != "as before"


def test_closed_streams_are_not_taken_for_files(folder):
    done = run(folder, "train", "-q", "data", "out", shell="<&- >&- 2>&-")
    assert done.returncode == 0
    assert (folder / "out").read_text() == (folder / "data.model").read_text()


@every_output
def test_a_file_that_is_replaced_keeps_its_permissions(folder, what):
    os.chmod(folder / "out", 0o600)
    assert write(folder, what, "out").returncode == 0
    assert os.stat(folder / "out").st_mode & 0o777 == 0o600


def test_the_longest_names_can_be_written(folder):
    assert run(folder, "train", "data", "m" * 255).returncode == 0
    assert (folder / ("m" * 255)).exists()
