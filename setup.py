"""The extensions and their flags, and the manual pages; everything else is in pyproject.toml.

DCSVM_SANITIZE=1 builds with gcc's address and undefined behaviour sanitizers, in build/asan.
"""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).parent))
from dcsvm.cli.man import write_pages  # noqa: E402 (from the source tree, pure Python)

SANITIZE = bool(os.environ.get("DCSVM_SANITIZE"))
FLAGS = ["-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"]
SANITIZE_FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
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


class BuildExtensions(build_ext):
    """Adds OpenMP where the compiler has it, and compiles the files side by side."""

    def build_extensions(self):
        compiling, linking = openmp_flags(self.compiler.compiler_cxx)
        for extension in self.extensions:
            extension.extra_compile_args += compiling
            extension.extra_link_args += linking
        compile_some = self.compiler.compile
        with ThreadPoolExecutor(os.cpu_count()) as pool:

            def compile_each(sources, *args, **kwargs):
                objects = pool.map(lambda one: compile_some([one], *args, **kwargs), sources)
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
        },
    ),
)
