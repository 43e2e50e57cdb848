#!/bin/sh
# Fetches the official clients of OpenAI's interface, for the tests of tests/all/clients.rs.
#
#   tests/openai/fetch.sh OUTDIR
#
# Creates OUTDIR/python-VERSION (a virtual environment) and OUTDIR/javascript-VERSION/node_modules. Prints one line for each:
# "READY name DIR", or "SKIPPED name: reason" if a tool is missing or the package cannot be fetched.
set -eu

PYTHON=3.54.0     # openai from PyPI
JAVASCRIPT=6.49.0 # openai from npm

[ $# -eq 1 ] || { echo "usage: $0 OUTDIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)

has() { command -v "$1" >/dev/null 2>&1; }

python() {
  dir=$out/python-$PYTHON
  if [ ! -f "$dir/ready" ]; then
    has python3 || { echo "SKIPPED python: python3 is missing"; return; }
    rm -rf "$dir"
    { python3 -m venv "$dir" && "$dir/bin/pip" install --disable-pip-version-check "openai==$PYTHON"; } >"$dir.log" 2>&1 ||
      { echo "SKIPPED python: pip cannot install openai==$PYTHON, see $dir.log"; return; }
    touch "$dir/ready"
  fi
  echo "READY python $dir"
}

javascript() {
  dir=$out/javascript-$JAVASCRIPT
  if [ ! -f "$dir/ready" ]; then
    has node || { echo "SKIPPED javascript: node is missing"; return; }
    has npm || { echo "SKIPPED javascript: npm is missing"; return; }
    rm -rf "$dir"
    mkdir -p "$dir"
    (cd "$dir" && echo '{"private":true,"type":"module"}' >package.json &&
      npm install --no-audit --no-fund --ignore-scripts --save-exact "openai@$JAVASCRIPT") >"$dir.log" 2>&1 ||
      { echo "SKIPPED javascript: npm cannot install openai@$JAVASCRIPT, see $dir.log"; return; }
    touch "$dir/ready"
  fi
  echo "READY javascript $dir"
}

python
javascript
