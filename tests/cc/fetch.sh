#!/bin/sh
# Fetches C sources for the long test of tests/all/cc.rs, each in a directory of its name: zlib, cJSON and Lua as
# Debian 12 has them, and SQLite as the crate that kiso is built with.
#
#   tests/cc/fetch.sh OUTDIR
#
# Prints "READY DIR", or "SKIPPED reason" if they cannot be fetched.
set -eu

[ $# -eq 1 ] || { echo "usage: $0 OUTDIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)

if [ ! -f "$out/done" ]; then
  command -v apt-get >/dev/null 2>&1 || { echo "SKIPPED there is no apt-get"; exit 0; }
  mkdir -p "$out/apt/lists/partial" "$out/apt/cache/archives/partial" "$out/fetched"
  echo "deb-src http://deb.debian.org/debian bookworm main" >"$out/apt/sources.list"
  apt="-o Dir::Etc::sourcelist=$out/apt/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$out/apt/lists
    -o Dir::Cache=$out/apt/cache -o APT::Sandbox::User=$(id -un)"
  # shellcheck disable=SC2086
  { apt-get $apt update && cd "$out/fetched" && apt-get $apt source --download-only cjson lua5.4 zlib; } >"$out/apt.log" 2>&1 ||
    { echo "SKIPPED apt-get cannot fetch them, see $out/apt.log"; exit 0; }
  for name in cjson lua5.4 zlib; do
    mkdir -p "$out/$name"
    tar -xf "$out/fetched/$name"_*.orig.tar.* -C "$out/$name" --strip-components=1
  done
  amalgamation=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/src" -path "*/libsqlite3-sys-*/sqlite3/sqlite3.c" | sort | tail -n 1)
  [ -n "$amalgamation" ] || { echo "SKIPPED there are no sources of libsqlite3-sys"; exit 0; }
  mkdir -p "$out/sqlite"
  cp "$amalgamation" "$(dirname "$amalgamation")/sqlite3.h" "$out/sqlite"
  touch "$out/done"
fi
echo "READY $out"
