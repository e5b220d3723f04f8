"""The extensions and their flags, and the manual pages; everything else is in pyproject.toml.

Objects stay in build/objects. A file is compiled again only if its command, the compiler, or its
contents or includes changed. Objects of csrc serve every version of Python.
DCSVM_SANITIZE=1 builds with gcc's address and undefined behaviour sanitizers, in build/asan.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from glob import glob
from hashlib import sha256
from itertools import takewhile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).parent))
with warnings.catch_warnings():  # the compiled modules may be older than the sources
    warnings.simplefilter("ignore")
    from dcsvm.cli.man import write_pages  # from the source tree, pure Python

SANITIZE = bool(os.environ.get("DCSVM_SANITIZE"))
FLAGS = ["-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"]
# A loop took up to 1.2 times as long at another address: alignment protects it from other changes.
FLAGS += ["-falign-functions=64", "-falign-loops=32"]
FLAGS += ["-g1"]  # line numbers for profilers; the rest of -g took a quarter of the time, and 15 MB
# Python's flags that vary by its version; in all versions signed integers wrap.
OF_PYTHON = re.compile(r"-W(?![alp],)|-fwrapv$|-fno-strict-overflow$")
WRAPPING = [] if SANITIZE else ["-fwrapv"]  # the sanitizers report an overflow
SANITIZE_FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
WARNINGS = ["-Wall", "-Wextra", "-Werror=switch"]
CYTHON_WARNINGS = ["-Wno-unused-function", "-Wno-sign-compare"]  # of generated code
CCACHE = ["ccache"] if shutil.which("ccache") else []
OPENMP_FLAGS = (  # for compiling, for linking: gcc and clang, then Apple's clang with libomp
    (["-fopenmp"], ["-fopenmp"]),
    (["-Xpreprocessor", "-fopenmp"], ["-lomp"]),
)


def openmp_flags(compiler: list[str]) -> tuple[list[str], list[str]]:
    """Return this compiler's OpenMP flags (compiling, linking); empty lists without OpenMP."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cc")
        source.write_text("#include <omp.h>\nint main() { return omp_get_max_threads() < 1; }\n")
        for compiling, linking in OPENMP_FLAGS:
            command = [*compiler, *compiling, str(source), "-o", f"{folder}/probe", *linking]
            if subprocess.run(command, capture_output=True).returncode == 0:
                return compiling, linking
    print("dcsvm: this compiler has no OpenMP; dcsvm will use one thread", file=sys.stderr)
    return [], []


@cache
def version_of(*compiler: str) -> str:
    told = (
        subprocess.run([*compiler, option], capture_output=True, text=True).stdout
        for option in ("--version", "-dumpmachine")
    )
    return "".join(told)


def fingerprint(command: list[str], listed: Path) -> str:
    """Return a digest of the inputs of an object; `listed` is the compiler's list of its files."""
    digest = sha256("\0".join(command).encode())
    digest.update(version_of(*takewhile(lambda word: not word.startswith("-"), command)).encode())
    for path in files_in(listed):
        digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def files_in(listed: Path) -> list[Path]:
    _, _, names = listed.read_text().replace("\\\n", " ").replace("$$", "$").partition(":")
    return [Path(re.sub(r"\\(.)", r"\1", name)) for name in re.findall(r"(?:\\.|\S)+", names)]


def compile_if_changed(spawn, command: list[str]) -> None:
    """Run a command of the compiler, unless its object was made from the same inputs.

    The record of the inputs is written after the object, never by an interrupted compilation.
    """
    made = command[command.index("-o") + 1]
    listed, record = Path(made + ".d"), Path(made + ".made")
    try:
        if os.path.exists(made) and record.read_text() == fingerprint(command, listed):
            return
    except FileNotFoundError:  # no record, or an included file is gone
        pass
    record.unlink(missing_ok=True)
    start = time.time()
    spawn([*command, "-MMD", "-MT", "object", "-MF", str(listed)])
    if all(path.stat().st_mtime < start for path in files_in(listed)):
        record.write_text(fingerprint(command, listed))


class BuildExtensions(build_ext):
    """Adds OpenMP if the compiler has it, and compiles changed files in parallel."""

    def finalize_options(self):
        super().finalize_options()
        # For an editable installation, pip would use a temporary folder.
        self.build_temp = os.path.join(self.get_finalized_command("build").build_base, "objects")

    def build_extensions(self):
        os.environ.setdefault("CCACHE_NOHASHDIR", "1")  # share objects between folders
        spawn = self.compiler.spawn
        launcher = [] if {"CC", "CXX"} & os.environ.keys() else CCACHE
        includes = {f"-I{path}" for path in self.compiler.include_dirs}  # of Python

        def spawn_if_changed(command, **options):
            if "-c" in command:
                if any(word.endswith(".cpp") for word in command):
                    command = [*command, *WARNINGS, *CYTHON_WARNINGS]
                else:
                    others = (word for word in command if not OF_PYTHON.match(word))
                    command = [word for word in others if word not in includes]
                    command += [*WRAPPING, *WARNINGS]
                compile_if_changed(spawn, [*launcher, *command])
            else:
                spawn(command, **options)

        self.compiler.spawn = spawn_if_changed
        self.force = self.compiler.force = True  # fingerprints decide, not the times of files
        compiling, linking = openmp_flags(self.compiler.compiler_cxx)
        for extension in self.extensions:
            extension.extra_compile_args += compiling
            extension.extra_link_args += linking
        compile_some = self.compiler.compile
        with ThreadPoolExecutor(os.cpu_count()) as pool:

            def compile_each(sources, *args, **kwargs):
                largest_first = sorted(sources, key=os.path.getsize, reverse=True)
                objects = pool.map(lambda one: compile_some([one], *args, **kwargs), largest_first)
                return sum(objects, [])

            self.compiler.compile = compile_each
            self.parallel = len(self.extensions)
            super().build_extensions()


def extension(name: str, sources: list[str]) -> Extension:
    return Extension(
        f"dcsvm.{name}",
        [f"dcsvm/{name}.pyx", *sources],
        include_dirs=["csrc"],
        depends=["setup.py", *glob("csrc/*/*.h"), *glob("dcsvm/*.p[xy][dxi]")],
        extra_compile_args=FLAGS + (SANITIZE_FLAGS + SANITIZERS if SANITIZE else []),
        extra_link_args=SANITIZERS if SANITIZE else [],
        language="c++",
    )


def main() -> None:
    text_sources = sorted(glob("csrc/text/*.cc"))
    core_sources = sorted(set(glob("csrc/*/*.cc")) - set(text_sources))

    setup(
        cmdclass={"build_ext": BuildExtensions},
        data_files=[("share/man/man1", write_pages("build/man"))],
        options={"build": {"build_base": "build/asan"}} if SANITIZE else {},
        ext_modules=cythonize(
            [extension("_core", core_sources), extension("_svmlight", text_sources)],
            compiler_directives={
                "language_level": 3,
                "boundscheck": False,
                "wraparound": False,
                "embedsignature": True,
                # what changes after an import is of an object, of a thread, or an atomic of C++
                "freethreading_compatible": True,
            },
        ),
    )


if __name__ == "__main__":
    main()
