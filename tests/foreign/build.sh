#!/bin/sh
# Builds the guests of this folder with third-party toolchains, for the tests of `kiso skill add`.
#
#   tests/foreign/build.sh OUTDIR
#
# Writes OUTDIR/NAME.wasm and OUTDIR/NAME.toml (the manifest, if the shape needs one). Prints one line for each guest: "BUILT
# name", "CACHED name", "SKIPPED name: reason" if a tool is missing or cannot be fetched, "FAILED name: log" if the tool exists
# and the build failed. Exits with 1 only after a failure.
#
# A guest is rebuilt when its sources, the interface, its commands in this script or the version of its tool change. Tools from
# npm and PyPI are pinned here and installed once, below OUTDIR/tools or KISO_FOREIGN_TOOLS. On Debian, the other tools come from:
#   apt-get install nodejs npm python3-venv clang lld wasi-libc libclang-rt-14-dev-wasm32
# CLANG and WASI_SYSROOT name another clang and its libc (default: clang, /usr).
set -eu

QJS=0.4.5    # componentize-qjs: JavaScript, and what `kiso skill build` needs besides
ESBUILD=0.28.2
CORE_JS=3.51.0
PY=0.25.1    # componentize-py: Python

[ $# -eq 1 ] || { echo "usage: $0 OUTDIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
wit=$(cd "$here/../../wit/since_v0_1" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
tools=${KISO_FOREIGN_TOOLS:-$out/tools}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

has() { command -v "$1" >/dev/null 2>&1; }

# The digest of a guest's sources, of the interface, of the description $2 of its tool and of the commands that build it: the
# function $3 of this script and those it may call.
key() {
  { echo "$2"; grep -E "^($3|qjs)\(\)" "$here/build.sh"; cd "$here/$1" && find . -type f | LC_ALL=C sort | xargs sha256sum
    cd "$wit" && find . -type f | LC_ALL=C sort | xargs sha256sum; } | sha256sum | cut -d' ' -f1
}

# guest NAME TOOL-VERSION PREPARE BUILD: PREPARE installs the tool or prints why it cannot; BUILD runs in a copy of the sources
# and writes out.wasm.
guest() {
  name=$1 digest=$(key "$1" "$2" "$4")
  if [ -f "$here/$name/kiso.toml" ]; then cp "$here/$name/kiso.toml" "$out/$name.toml"; fi
  if [ -f "$out/$name.wasm" ] && [ "$(cat "$out/$name.key" 2>/dev/null)" = "$digest" ]; then
    echo "CACHED $name"
    return
  fi
  rm -f "$out/$name.wasm" "$out/$name.key"
  if ! reason=$("$3"); then
    echo "SKIPPED $name: $reason"
    return
  fi
  cp -R "$here/$name" "$work/$name"
  if (cd "$work/$name" && "$4") >"$out/$name.log" 2>&1 && [ -s "$work/$name/out.wasm" ]; then
    mv "$work/$name/out.wasm" "$out/$name.wasm"
    echo "$digest" >"$out/$name.key"
    echo "BUILT $name ($(wc -c <"$out/$name.wasm") bytes)"
  else
    tail -n 20 "$out/$name.log" >&2
    echo "FAILED $name: see $out/$name.log"
    failed=1
  fi
}

prepare_qjs() {
  [ -x "$tools/qjs-$QJS/node_modules/.bin/componentize-qjs" ] && [ -x "$tools/qjs-$QJS/node_modules/.bin/esbuild" ] && return
  has node || { echo "node is missing"; return 1; }
  has npm || { echo "npm is missing"; return 1; }
  mkdir -p "$tools/qjs-$QJS"
  (cd "$tools/qjs-$QJS" && echo '{"private":true}' >package.json &&
    npm install --no-audit --no-fund --ignore-scripts --save-exact "componentize-qjs@$QJS" "esbuild@$ESBUILD" "core-js-pure@$CORE_JS") >"$tools/qjs.log" 2>&1 ||
    { rm -rf "$tools/qjs-$QJS"; echo "npm cannot install componentize-qjs@$QJS, see $tools/qjs.log"; return 1; }
}

prepare_py() {
  [ -x "$tools/py-$PY/bin/componentize-py" ] && return
  has python3 || { echo "python3 is missing"; return 1; }
  mkdir -p "$tools"
  { python3 -m venv "$tools/py-$PY" && "$tools/py-$PY/bin/pip" install --disable-pip-version-check "componentize-py==$PY"; } \
    >"$tools/py.log" 2>&1 ||
    { rm -rf "$tools/py-$PY"; echo "pip cannot install componentize-py==$PY, see $tools/py.log"; return 1; }
}

prepare_clang() {
  has "$clang" || { echo "$clang is missing (Debian: clang)"; return 1; }
  [ -d "$sysroot/lib/wasm32-wasi" ] || { echo "$sysroot/lib/wasm32-wasi is missing (Debian: wasi-libc)"; return 1; }
  echo 'int main(void) { return 0; }' | $clang --target=wasm32-wasi --sysroot="$sysroot" -x c - -o "$work/probe.wasm" 2>"$work/probe.log" ||
    { echo "clang cannot link for wasm32-wasi (Debian: lld, libclang-rt-VERSION-dev-wasm32): $(head -n 1 "$work/probe.log")"; return 1; }
}

prepare_rustc() {
  has rustc || { echo "rustc is missing"; return 1; }
  [ -d "$(rustc --print sysroot)/lib/rustlib/wasm32-wasip2" ] ||
    { echo "its target is missing: rustup target add wasm32-wasip2"; return 1; }
}

qjs() { "$tools/qjs-$QJS/node_modules/.bin/componentize-qjs" --sync --js "$1" --wit "$2" --world "$3" --output out.wasm; }
js_skill() { qjs skill.js "$wit" kiso:skill/sandbox; }
js_functions() { qjs tools.js wit acme:tools/tools; }
js_command() { cp -R "$wit/deps" wit/deps && qjs command.js wit acme:command/command; }
py_skill() { "$tools/py-$PY/bin/componentize-py" -q -d "$wit" -w kiso:skill/sandbox componentize skill -o out.wasm; }
c_preview1() { $clang --target=wasm32-wasi --sysroot="$sysroot" -Os -Wall -Werror -Wl,--strip-all command.c -o out.wasm; }
rustc_command() { rustc --edition 2024 --target wasm32-wasip2 -C opt-level=s -C strip=symbols command.rs -o out.wasm; }

clang=${CLANG:-clang} sysroot=${WASI_SYSROOT:-/usr}

guest js-skill "componentize-qjs $QJS" prepare_qjs js_skill
guest js-functions "componentize-qjs $QJS" prepare_qjs js_functions
guest js-command "componentize-qjs $QJS" prepare_qjs js_command
guest py-skill "componentize-py $PY" prepare_py py_skill
guest c-preview1 "$($clang --version 2>/dev/null | head -n 1)" prepare_clang c_preview1
guest rustc-command "$(rustc --version 2>/dev/null)" prepare_rustc rustc_command
exit $failed
