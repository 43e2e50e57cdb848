#!/bin/sh
# Installs kiso for the user who runs it, without root: downloads the archive of a release, checks its signature and digest,
# and puts its files below a prefix. Nothing else is changed; `kiso self uninstall` removes them again.
#
#   sh install.sh [--prefix DIR] [--from URL] [--downgrade]
#
# DIR is ~/.local without --prefix. URL is a directory with SHA256SUMS, SHA256SUMS.minisig and the archives.
set -eu

# The key that releases are signed with (the second line of minisign's .pub file). Without one nothing is installed.
PUBLIC_KEY=""

prefix=${HOME:?}/.local
from=https://github.com/kiso-agent/kiso/releases/latest/download
downgrade=no

say() { printf '%s\n' "$*"; }
fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=${2:?--prefix needs a directory}; shift 2 ;;
    --from) from=${2:?--from needs a URL}; shift 2 ;;
    --downgrade) downgrade=yes; shift ;;
    *) fail "unknown argument $1; known are --prefix DIR, --from URL and --downgrade" ;;
  esac
done
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac

[ -n "$PUBLIC_KEY" ] || fail "there is no public key in this script, so no release can be checked; get install.sh from a release"
[ "$(uname -s)" = Linux ] || fail "releases are for Linux; elsewhere, build kiso from its sources"
case $(uname -m) in
  x86_64) arch=x86_64 ;;
  aarch64 | arm64) arch=aarch64 ;;
  *) fail "there is no release for $(uname -m), only for x86_64 and aarch64" ;;
esac
for tool in minisign sha256sum tar; do
  command -v $tool >/dev/null || fail "$tool is needed and missing (Debian: apt install minisign coreutils tar)"
done
if command -v curl >/dev/null; then
  get() { curl --fail --silent --show-error --location --output "$2" "$1"; }
elif command -v wget >/dev/null; then
  get() { wget --quiet --output-document="$2" "$1"; }
else
  fail "curl or wget is needed"
fi

mkdir -p "$prefix"
# On the disk of the prefix, so that files get to their places whole.
dir=$(mktemp -d "$prefix/.kiso-install.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

say "downloading the list of files from $from"
get "$from/SHA256SUMS" "$dir/SHA256SUMS" || fail "$from/SHA256SUMS cannot be downloaded"
get "$from/SHA256SUMS.minisig" "$dir/SHA256SUMS.minisig" || fail "$from/SHA256SUMS.minisig cannot be downloaded"
minisign -V -q -P "$PUBLIC_KEY" -m "$dir/SHA256SUMS" || fail "the signature of SHA256SUMS is not by the key of this script; nothing was installed"
say "the signature is right"

archive=$(sed -n "s/^[0-9a-f]\{64\}  \(kiso-[0-9][0-9A-Za-z.+-]*-$arch-linux\.tar\.gz\)\$/\1/p" "$dir/SHA256SUMS")
[ "$(printf '%s\n' "$archive" | grep -c .)" = 1 ] || fail "the release has no archive for $arch"
version=${archive#kiso-} version=${version%-"$arch"-linux.tar.gz}
there=
if [ -x "$prefix/bin/kiso" ]; then there=$("$prefix/bin/kiso" --version 2>/dev/null | sed -n '1s/^kiso //p'); fi
if [ -n "$there" ] && [ "$there" != "$version" ] && [ $downgrade = no ]; then
  newest=$(printf '%s\n' "$there" "$version" | sort -V | tail -n 1)
  [ "$newest" = "$version" ] || fail "kiso $there is installed, and $version is older: it may not read what the newer one stored (--downgrade installs it)"
fi

say "downloading $archive"
get "$from/$archive" "$dir/$archive" || fail "$from/$archive cannot be downloaded"
(cd "$dir" && grep "  $archive\$" SHA256SUMS | sha256sum --check --quiet --strict -) || fail "$archive is damaged: its digest is not that of SHA256SUMS; nothing was installed"
say "the digest is right"
tar -xzf "$dir/$archive" -C "$dir"
new=$dir/${archive%.tar.gz}
"$new/bin/kiso" --version >/dev/null || fail "the program does not run on this system (glibc older than Debian 12's?); nothing was installed"

# Files of the version before that this one does not have.
if [ -f "$prefix/share/kiso/SHA256SUMS" ]; then
  sed 's/^[0-9a-f]*  //' "$prefix/share/kiso/SHA256SUMS" | while IFS= read -r file; do
    case /$file/ in */../*) continue ;; esac
    if [ ! -e "$new/$file" ]; then rm -f "$prefix/$file"; fi
  done
fi
(cd "$new" && find . -type f) | while IFS= read -r file; do
  mkdir -p "$(dirname "$prefix/$file")"
  mv -f "$new/$file" "$prefix/$file"
done
printf '%s\n' "$from" >"$prefix/share/kiso/from"

say "kiso $version is in $prefix/bin/kiso${there:+ (it was $there)}"
case :$PATH: in
  *:"$prefix/bin":*) ;;
  *) say "add it to your path: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
say "kiso self check compares its files, kiso self update replaces it, kiso self uninstall --yes removes it"
