"""The extensions and their flags; everything else is in pyproject.toml."""

import os
import subprocess
import sys
import tempfile
from glob import glob
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

BASE_FLAGS = ["-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"]


def flag_works(compiler: list[str], flag: str) -> bool:
    """Whether the compiler accepts a flag; OpenMP is the one that may be missing."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cc")
        source.write_text("int main() { return 0; }\n")
        command = [*compiler, flag, str(source), "-o", str(Path(folder, "probe"))]
        return subprocess.run(command, capture_output=True).returncode == 0


class BuildExtensions(build_ext):
    """Adds OpenMP where the compiler has it, and sanitizers when DCSVM_SANITIZE=1."""

    def build_extensions(self):
        compiler = list(getattr(self.compiler, "compiler_cxx", None) or self.compiler.compiler)
        extra = ["-fopenmp"] if flag_works(compiler[:1], "-fopenmp") else []
        if not extra:
            print("dcsvm: this compiler has no OpenMP; training will use one thread", file=sys.stderr)
        if os.environ.get("DCSVM_SANITIZE"):
            extra += ["-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-O1", "-g"]
        for extension in self.extensions:
            extension.extra_compile_args += extra
            extension.extra_link_args += extra
        super().build_extensions()


def extension(name: str, sources: list[str]) -> Extension:
    return Extension(
        f"dcsvm.{name}",
        [f"dcsvm/{name}.pyx", *sources],
        include_dirs=["csrc"],
        depends=glob("csrc/*.h") + glob("dcsvm/*.pxd"),
        extra_compile_args=[*BASE_FLAGS, *os.environ.get("DCSVM_WARNINGS", "").split()],
        language="c++",
    )


core_sources = sorted(path for path in glob("csrc/*.cc") if not path.endswith("svmlight.cc"))

setup(
    cmdclass={"build_ext": BuildExtensions},
    ext_modules=cythonize(
        [extension("_core", core_sources), extension("_svmlight", ["csrc/svmlight.cc"])],
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "embedsignature": True,
        },
    ),
)
