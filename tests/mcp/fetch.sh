#!/bin/sh
# Fetches the official clients of the Model Context Protocol and two coding agents, for tests/all/mcp/clients.rs and agents.rs.
#
#   tests/mcp/fetch.sh OUTDIR
#
# Creates OUTDIR/python-VERSION (a virtual environment) and OUTDIR/NAME-VERSION/node_modules for the others. Prints one line for
# each: "READY name DIR", or "SKIPPED name: reason" if a tool is missing or the package cannot be fetched.
set -eu

PYTHON=2.3.0               # mcp from PyPI, both eras
JAVASCRIPT=1.32.2          # @modelcontextprotocol/sdk from npm, the older era
CLIENT=2.3.1               # @modelcontextprotocol/client from npm, both eras
INSPECTOR=2.12.0           # @modelcontextprotocol/inspector from npm
CONFORMANCE=0.2.0-alpha.12 # @modelcontextprotocol/conformance from npm
CLAUDE_CODE=2.1.197        # @anthropic-ai/claude-code from npm
CODEX=0.169.0              # @openai/codex from npm

[ $# -eq 1 ] || { echo "usage: $0 OUTDIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)

has() { command -v "$1" >/dev/null 2>&1; }

python() {
  dir=$out/python-$PYTHON
  if [ ! -f "$dir/ready" ]; then
    has python3 || { echo "SKIPPED python: python3 is missing"; return; }
    rm -rf "$dir"
    { python3 -m venv "$dir" && "$dir/bin/pip" install --disable-pip-version-check "mcp==$PYTHON"; } >"$dir.log" 2>&1 ||
      { echo "SKIPPED python: pip cannot install mcp==$PYTHON, see $dir.log"; return; }
    touch "$dir/ready"
  fi
  echo "READY python $dir"
}

# A name, and npm packages.
node_packages() {
  name=$1 version=$2
  shift 2
  dir=$out/$name-$version
  if [ ! -f "$dir/ready" ]; then
    has node || { echo "SKIPPED $name: node is missing"; return; }
    has npm || { echo "SKIPPED $name: npm is missing"; return; }
    rm -rf "$dir"
    mkdir -p "$dir"
    (cd "$dir" && echo '{"private":true,"type":"module"}' >package.json &&
      npm install --no-audit --no-fund --ignore-scripts --save-exact "$@") >"$dir.log" 2>&1 ||
      { echo "SKIPPED $name: npm cannot install $*, see $dir.log"; return; }
    touch "$dir/ready"
  fi
  echo "READY $name $dir"
}

python
node_packages javascript "$JAVASCRIPT" "@modelcontextprotocol/sdk@$JAVASCRIPT"
node_packages client "$CLIENT" "@modelcontextprotocol/client@$CLIENT"
node_packages inspector "$INSPECTOR" "@modelcontextprotocol/inspector@$INSPECTOR"
node_packages conformance "$CONFORMANCE" "@modelcontextprotocol/conformance@$CONFORMANCE"
# Node 20 has no fs.globSync, which nothing in these tests needs.
conformance=$out/conformance-$CONFORMANCE
if [ -f "$conformance/ready" ] && [ ! -f "$conformance/node_modules/@modelcontextprotocol/conformance/dist/kiso.mjs" ]; then
  dist=$conformance/node_modules/@modelcontextprotocol/conformance/dist
  sed 's/globSync as [a-z]*,//' "$dist/index.js" >"$dist/kiso.mjs"
fi
node_packages claude-code "$CLAUDE_CODE" "@anthropic-ai/claude-code@$CLAUDE_CODE"
node_packages codex "$CODEX" "@openai/codex@$CODEX"
