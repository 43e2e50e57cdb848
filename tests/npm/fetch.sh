#!/bin/sh
# Fetches an archive of npm for the tests of tests/all/languages.rs.
#
#   tests/npm/fetch.sh OUTDIR PACKAGE@VERSION
#
# Prints "READY FILE", or "SKIPPED reason" if it cannot be fetched.
set -eu

[ $# -eq 2 ] || { echo "usage: $0 OUTDIR PACKAGE@VERSION" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
# npm's file name: @a/b@1 is a-b-1.tgz.
file=$out/$(echo "$2" | sed 's/^@//; s/@/-/; s|/|-|').tgz

if [ ! -f "$file" ]; then
  command -v npm >/dev/null 2>&1 || { echo "SKIPPED there is no npm"; exit 0; }
  part=$out/part.$$
  mkdir "$part"
  (cd "$part" && npm pack --silent "$2") >"$out/npm.log" 2>&1 ||
    { echo "SKIPPED npm cannot fetch $2, see $out/npm.log"; rm -rf "$part"; exit 0; }
  mv "$part/$(basename "$file")" "$file"
  rm -rf "$part"
fi
echo "READY $file"
