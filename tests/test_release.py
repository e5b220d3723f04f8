"""Test that the files of a release agree: versions, versions of Python, lengths and promises."""

import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

import dcsvm
from dcsvm.model import writer

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 60  # of a version in the changelog: a page


def text_of(name):
    """Return a tracked file; skip the test where the files of a release are not."""
    path = ROOT / name
    if not path.exists():
        pytest.skip(f"no {name}")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("pyproject.toml", r'^version = "(.*)"$'),
        ("CITATION.cff", r"^version: (.*)$"),
        ("packaging/conda/recipe.yaml", r"^  version: (\d.*)$"),
    ],
)
def test_a_file_has_the_version_of_the_package(name, pattern):
    assert re.findall(pattern, text_of(name), re.M) == [dcsvm.__version__]


def test_the_changelog_begins_with_this_version_on_a_page():
    sections = re.split(r"^## ", text_of("CHANGELOG.md"), flags=re.M)[1:]
    assert sections[0].split()[0] == dcsvm.__version__
    assert max(len(section.splitlines()) for section in sections) <= MAX_LINES


def test_the_recipe_needs_what_the_package_needs():
    text, recipe = text_of("pyproject.toml"), text_of("packaging/conda/recipe.yaml")
    needed = re.search(r"^dependencies = \[(.*)\]", text, re.M)[1]
    run = recipe.split("\n  run:\n")[1].split("\n\n")[0]
    found = {line.strip("- ").replace(" ", "") for line in run.splitlines()}
    assert found == {"python", *re.findall(r'"(.*?)"', needed)}


def test_wheels_are_made_for_each_python_that_is_named():
    text = text_of("pyproject.toml")
    named = re.findall(r"Python :: (3\.\d+)", text)
    made = re.search(r'^build = "(.*)"$', text, re.M)[1].split()
    assert [f"cp{one.replace('.', '')}-*" for one in named] == made[: len(named)]
    oldest, newest = named[0], named[-1]
    assert f'requires-python = ">={oldest}"' in text
    assert f'python: ["{oldest}", "{newest}"]' in text_of(".github/workflows/tests.yml")


def test_the_sdist_has_all_folders_and_files():
    """Those of .github are the forge's; setuptools adds its own and the package's."""
    manifest = text_of("MANIFEST.in")
    folders = set(re.findall(r"^graft (.*)$", manifest, re.M)) | {"dcsvm", ".github"}
    patterns = re.search(r"^include (.*)$", manifest, re.M)[1].split()
    patterns += ["LICENSE", "setup.py", "pyproject.toml", "MANIFEST.in"]
    if shutil.which("git") is None:
        pytest.skip("no git")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    for name in listed.stdout.rstrip("\0").split("\0"):
        folder, slash, _ = name.partition("/")
        is_there = folder in folders if slash else any(fnmatch(name, one) for one in patterns)
        assert is_there, name


def test_the_notes_of_the_release_name_the_extra_that_they_use():
    notes = text_of(".github/release-notes.md")
    assert "pip install 'dcsvm[tables]'" in notes
    assert not re.search(r"\]\((?!https://)", notes), "links lead nowhere outside of the repository"


def test_the_manual_names_the_version_of_model_files():
    assert f"- `dcsvm_section {writer.VERSION}`: the version" in text_of("docs/model-file.md")


def test_workflows_have_few_rights_and_end():
    """Only the jobs that publish a release may write; each job has a limit of minutes."""
    folder = ROOT / ".github" / "workflows"
    if not folder.is_dir():
        pytest.skip("no workflows")
    for path in folder.glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        assert re.search(r"^permissions:\n  contents: read$", text, re.M), path
        jobs = re.split(r"^  [\w-]+:$", text.split("\njobs:\n")[1], flags=re.M)[1:]
        assert all("timeout-minutes: " in job for job in jobs), path
        writing = re.findall(r"^ +(contents|id-token): write$", text, re.M)
        assert sorted(writing) == (["contents", "id-token"] if path.stem == "wheels" else []), path


def test_security_names_what_the_code_has():
    text = text_of("SECURITY.md")
    assert "allow_pickle=False" in text
    assert re.search(r"version ([\d.]+) or later", text)[1] in text_of("pyproject.toml")
