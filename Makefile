# make demo and make test need only Python 3.10+ (venv and headers), gcc 11+ or clang 14+ and make.
# Variables: PYTHON, VENV, TESTS (arguments for pytest), JOBS (tests at a time); for fuzz CLANG,
# FUZZ (seconds a target); for tsan TSAN_CLANG; for soak SOAK (seconds); for same-as and faster-than
# BASE (a commit), CASES (groups of cases); for faster-than VALUES (1: kernel values only); for
# mutants MUTANTS (words that select them); for bench DATA, RAW, SUITE, BENCH.

PYTHON = python3
VENV = .venv
CXX = g++
CLANG = $(firstword $(foreach name,clang++ clang++-14,$(if $(call fuzzer_of,$(name)),$(name))))
TSAN_CLANG = $(firstword $(foreach name,clang++ clang++-14,$(if $(call archer_of,$(name)),$(name))))
FUZZ = 4
SOAK = 600
BASE = HEAD
CASES =
VALUES =
MUTANTS =
TESTS =
JOBS = 2
DATA = bench-data
RAW = $(DATA)/raw
SUITE = small
BENCH =

# Paths of targets and prerequisites are relative, because make ends a name at a space.
BIN = $(VENV)/bin
HERE = "$(CURDIR)"
space = $() $()
# The tested versions of packages, installed or only needed for builds: a URL, because pip ends a
# path at a space.
export PIP_CONSTRAINT = file://$(subst $(space),%20,$(CURDIR))/.ci/constraints.txt
export PIP_BUILD_CONSTRAINT = $(PIP_CONSTRAINT)
# removing a file changes the time of its folder
NATIVE = setup.py $(wildcard csrc/*/ csrc/*/*.cc csrc/*/*.h dcsvm/*.pyx dcsvm/*.px[di])
STRICT = -std=c++17 -O2 -fopenmp -Wall -Wextra -Wconversion -Werror
NATIVE_TESTS = $(wildcard tests/*/*.cc tests/*/*.h)
READER = $(wildcard csrc/text/*.cc)
FUZZ_TARGETS = data model_rows decimal
FUZZ_PYTHON = model range checkpoint
SANITIZED = build/asan/site
preload = $(foreach name,libasan libubsan libstdc++,$(shell $(CXX) -print-file-name=$(name).so))

fuzzer_of = $(wildcard $(shell $(1) -print-runtime-dir 2>/dev/null)/libclang_rt.fuzzer*)
archer_of = $(wildcard $(shell $(1) -print-runtime-dir 2>/dev/null)/../../../../libarcher.so)

.PHONY: demo build test lint format asan tsan fuzz fuzz-python fuzz-checkpoints soak same-as \
	faster-than mutants bench docs check warnings dist wheels clean

demo: $(VENV)/ready  ## set up, install, train and predict, draw a picture
	@PATH=$(HERE)/$(BIN):"$$PATH" examples/demo.sh

build: $(VENV)/ready  ## set up, or compile changed files

test: $(VENV)/ready  ## set up, install, run the tests
	$(BIN)/pytest -q -n $(JOBS) --dist worksteal $(TESTS)

# The package is installed in place: changes to Python take effect at once, changes to C++ or Cython
# need a build, which compiles the changed files.
$(VENV)/ready: $(VENV)/installed $(NATIVE)
	$(BIN)/python setup.py -q build_ext --inplace
	touch $@

$(VENV)/installed: pyproject.toml .ci/constraints.txt
	@echo "installing into $(VENV): two minutes or so"
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q setuptools cython click
	$(BIN)/pip install -q --no-build-isolation -e '.[test,test-sklearn,test-dask,lint]'
	touch $@

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/python docs/docstrings.py
	$(BIN)/python tests/core/negative_indices.py dcsvm/*.pyx dcsvm/*.px[di]
	$(BIN)/clang-format --dry-run -Werror csrc/*/*.cc csrc/*/*.h $(NATIVE_TESTS)
	$(call schema,github-workflows) .github/workflows/*.yml
	$(call schema,github-issue-forms) $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(call schema,github-issue-config) .github/ISSUE_TEMPLATE/config.yml
	$(call schema,dependabot) .github/dependabot.yml
	$(call schema,readthedocs) .readthedocs.yaml
	$(call schema,citation-file-format) CITATION.cff

# The schemas are in the program, without network; it needs Python 3.11.
schema = test ! -x $(BIN)/check-jsonschema || $(BIN)/check-jsonschema -q --default-filetype yaml \
	--builtin-schema vendor.$(1)

format: $(VENV)/ready
	$(BIN)/ruff check -q --fix-only .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i csrc/*/*.cc csrc/*/*.h $(NATIVE_TESTS)

# The tests once more, with the extensions built under gcc's sanitizers (in build/asan).
asan: $(VENV)/ready
	DCSVM_SANITIZE=1 $(BIN)/pip install -q --no-deps --no-build-isolation --upgrade \
		--target $(SANITIZED) .
	cd $(SANITIZED) && PYTHONPATH=$(HERE)/$(SANITIZED) LD_PRELOAD="$(preload)" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		$(HERE)/$(BIN)/pytest -q -p no:cacheprovider $(TESTS) $(HERE)/tests

# The OpenMP parts under the thread sanitizer; Archer (of LLVM's libomp) makes OpenMP known to it.
tsan: $(if $(TSAN_CLANG),build/tsan/threads)
	$(if $(TSAN_CLANG),TSAN_OPTIONS=ignore_noninstrumented_modules=1 $<,\
		@echo "tsan: no clang++ with libomp and its libarcher.so, threads are not checked")

build/tsan/threads: tests/sanitize/threads.cc $(wildcard csrc/*/*.cc csrc/*/*.h) Makefile
	@mkdir -p $(@D)
	$(TSAN_CLANG) -std=c++17 -O1 -g -fsanitize=thread -fopenmp -Icsrc $< csrc/*/*.cc -o $@

# Damaged input: the reader under libFuzzer (its findings are in build/fuzz), then the parsers in
# Python. CLANG is a clang++ that has libFuzzer; for Python atheris has it.
fuzz: $(VENV)/ready $(if $(CLANG),$(patsubst %,fuzz-%,$(FUZZ_TARGETS))) fuzz-python
	$(if $(CLANG),,@echo "fuzz: no clang++ with libFuzzer, the reader is not fuzzed")
	FUZZ_EXAMPLES=300 $(BIN)/pytest -q tests/fuzz

# Makes the seed checkpoints for fuzzing, after a change of the contents of checkpoints.
fuzz-checkpoints: $(VENV)/ready
	$(BIN)/python tests/fuzz/checkpoints.py

fuzz-%: build/fuzz/%
	@mkdir -p build/fuzz/corpus/$*
	cd build/fuzz && ./$* -max_total_time=$(FUZZ) -max_len=256 -dict=$(HERE)/tests/fuzz/tokens.dict \
		-verbosity=0 corpus/$* $(HERE)/tests/fuzz/corpus/$*

fuzz-python: $(VENV)/ready
	@if $(BIN)/python -c "import atheris" 2> /dev/null; then \
		for target in $(FUZZ_PYTHON); do \
			mkdir -p build/fuzz/corpus/$$target; \
			$(BIN)/python tests/fuzz/parsers.py $$target -max_total_time=$(FUZZ) -max_len=2000 \
				-dict=tests/fuzz/model.dict -artifact_prefix=build/fuzz/ -verbosity=0 \
				build/fuzz/corpus/$$target tests/fuzz/corpus/$$target || exit 1; \
		done; \
	else echo "fuzz: no atheris (pip install atheris), the parsers in Python meet Hypothesis only"; fi

build/fuzz/%: tests/fuzz/%.cc tests/fuzz/parsed.h $(READER) $(wildcard csrc/*/*.h) Makefile
	@mkdir -p $(@D)
	$(CLANG) -std=c++17 -O1 -g -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -Icsrc $< $(READER) -o $@

soak: $(VENV)/ready  ## random settings against what must always be true
	cd tests && $(HERE)/$(BIN)/python soak.py $(SOAK)

# Lists the models, predictions and counters that differ from the commit BASE.
same-as: $(VENV)/ready
	$(BIN)/python tests/differential/same_as.py $(BASE) $(CASES)

# Fails if kernel values or commands are slower than at the commit BASE.
faster-than: $(VENV)/ready
	$(BIN)/python tests/differential/faster_than.py $(BASE) $(if $(VALUES),values,$(CASES))

# Small changes of the code, one at a time: a test has to notice each change. The tests that must
# fail pass before.
mutants: $(VENV)/ready
	$(BIN)/python tests/mutation/mutate.py $(MUTANTS)

# Against peers: the cases of SUITE; SUITE=rows and SUITE=early make the pictures docs/seconds.png and
# docs/early.png, SUITE=compressed makes docs/compressed.png, SUITE=scaling docs/scaling.png.
# SUITE=estimators compares with scikit-learn's estimators, SUITE=selection runs whole grids,
# SUITE=tables compares kernels and scalings with LightGBM (docs/accuracy.png), SUITE=easy dcsvm-easy
# with boosted trees, xRFM and AutoGluon, SUITE=talent with published errors. For workers of a Dask
# cluster SUITE=workers measures seconds, SUITE=rounds the cost of each step; SUITE=kills kills workers.
of_workers = workers rounds kills
plain = estimators selection $(of_workers)
with_table = rows early scaling compressed tables easy talent
with_raw = tables easy talent
script_rows = seconds
script_tables = accuracy
script = $(or $(script_$*),$*)
.PHONY: bench-cases $(addprefix bench-,$(plain) $(with_table))
bench: bench-$(or $(filter $(plain) $(with_table),$(SUITE)),cases)

bench-cases: $(VENV)/bench
	$(BIN)/python examples/bench/datasets.py --raw $(RAW) --out $(DATA)
	$(BIN)/python examples/bench/bench.py --data $(DATA) --suite $(SUITE) $(BENCH)

$(addprefix bench-,$(plain) $(with_table)): bench-%: $(VENV)/bench
	$(BIN)/python examples/bench/datasets.py --raw $(RAW) --out $(DATA) \
		$(if $(filter rows $(of_workers),$*),covtype) $(if $(filter $(of_workers),$*),ijcnn1)
	@mkdir -p docs
	$(BIN)/python examples/bench/$(script).py --data $(DATA) \
		$(if $(filter $(with_raw),$*),--raw $(RAW)) \
		$(if $(filter $(with_table),$*),--out docs/$(script)) $(BENCH)

$(VENV)/bench: $(VENV)/ready
	$(BIN)/pip install -q --no-build-isolation -e '.[bench,plot]'
	touch $@

docs: $(VENV)/docs  ## the manual, into build/docs; a warning is an error
	$(BIN)/sphinx-build -q -W --keep-going docs build/docs

$(VENV)/docs: $(VENV)/ready
	$(BIN)/pip install -q --no-build-isolation -e '.[docs]'
	touch $@

check: lint warnings fuzz tsan dist mutants
	.ci/ends suite
	$(BIN)/pytest -q -m "slow or not slow" $(TESTS)

warnings: $(patsubst csrc/%.cc,build/warnings/%.o,$(wildcard csrc/*/*.cc))

build/warnings/%.o: csrc/%.cc $(wildcard csrc/*/*.h) Makefile
	@mkdir -p $(@D)
	$(CXX) $(STRICT) -Icsrc -c $< -o $@

# The sdist, the wheel built from it, the commands of the wheel in an environment of its own, and
# the checks of a package index on both.
dist: $(VENV)/ready
	rm -rf build/dist
	mkdir -p build
	$(BIN)/python -m build --outdir build/dist . > build/dist.log 2>&1 || { cat build/dist.log; exit 1; }
	$(PYTHON) -m venv build/dist/venv
	build/dist/venv/bin/pip install -q "$$(echo build/dist/*.whl)[plot,sklearn,tables]"
	cd build/dist && PATH="$$PWD/venv/bin:$$PATH" $(HERE)/examples/demo.sh
	build/dist/venv/bin/pip install -q --force-reinstall --no-deps build/dist/*.tar.gz
	build/dist/venv/bin/python tests/smoke.py
	build/dist/venv/bin/pip install -q twine
	build/dist/venv/bin/twine check --strict build/dist/*.whl build/dist/*.tar.gz

# The sdist and, on Linux, wheels for each Python of this machine, each tested without a compiler.
wheels:
	packaging/wheels.sh $(TESTS)

clean:
	rm -rf .venv .venv-* build dist demo *.egg-info dcsvm/*.so dcsvm/*.cpp .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find dcsvm tests examples -name __pycache__ -exec rm -rf {} +
