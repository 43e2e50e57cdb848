#!/usr/bin/env bash
# Run by `tests/dist/run deb` inside a copy of the system: /mnt has kiso.deb and next.deb, the following version.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive HOME=/root
cd /
fail() { echo "deb: $*" >&2; exit 1; }
is() { [ "$1" = "$2" ] || fail "$3: '$1' and not '$2'"; }

echo "installed"
dpkg --install /mnt/kiso.deb
is "$(stat -c '%U:%G %a' /var/lib/kiso)" "kiso:kiso 700" "the directory for the data"
is "$(stat -c '%U %a' /etc/kiso/env)" "root 600" "the file for keys"
is "$(getent passwd kiso | cut -d: -f6,7)" "/var/lib/kiso:/usr/sbin/nologin" "the user"
dpkg-query --show --showformat '${Conffiles}' kiso | grep -q /etc/kiso/env || fail "/etc/kiso/env is no conffile"
zcat /usr/share/man/man1/kiso.1.gz | grep -q '^\.TH kiso 1' || fail "there is no manual page"
[ -s /usr/share/doc/kiso/copyright ] || fail "there is no licence"
kiso self check | tee /dev/stderr | grep -q "dpkg finds no changed file" || fail "kiso self check"
if kiso self update; then fail "kiso updated itself beside dpkg"; fi

echo "the unit"
unit=/usr/lib/systemd/system/kiso.service
systemd-analyze verify "$unit" 2>&1 | tee /tmp/verify
! grep -i kiso /tmp/verify || fail "systemd finds something wrong with the unit"
systemd-analyze security --offline=true --no-pager "$unit" | tail -n 1

echo "the service's command, as its user"
command=$(sed -n 's/^ExecStart=//p' "$unit")
is "$command" '"/usr/bin/kiso" --home "/var/lib/kiso" serve' "what the unit starts"
# Replaces the calling shell, so that a signal to its process reaches kiso.
become_kiso() { exec setpriv --reuid=kiso --regid=kiso --clear-groups --no-new-privs env -i PATH=/usr/bin:/bin HOME=/var/lib/kiso "$@"; }
as_kiso() { (become_kiso "$@"); }
as_kiso kiso --home /var/lib/kiso skill list >/dev/null
# A free port, because another daemon may use the default.
as_kiso sh -c 'printf "[gateway]\nport = 0\n" >/var/lib/kiso/config.toml'
serve() {
  eval "become_kiso $command" >/dev/null 2>/tmp/serve.log &
  for _ in $(seq 600); do
    url=$(sed -n 's|.* on \(http://127\.0\.0\.1:[0-9]*\).*|\1|p' /tmp/serve.log | head -n 1)
    [ -z "$url" ] || return 0
    sleep 0.1
  done
  cat /tmp/serve.log; fail "the daemon does not listen"
}
finish() { kill %%; wait %% || fail "the daemon ended badly"; }
message() {
  id=$(curl --silent --show-error --fail -H 'content-type: application/json' --data "{\"text\": \"$1\"}" "$url/msg" | sed -E 's/.*"message": *([0-9]+).*/\1/')
  for _ in $(seq 600); do
    if curl --silent --fail "$url/messages/$id" | grep -q '"status": *"done"'; then return 0; fi
    sleep 0.1
  done
  fail "message $id was not answered"
}
serve
message '$ echo before the upgrade'
finish

echo "upgraded, with data and a changed file of the configuration"
echo "KISO_SKILL_X=mine" >>/etc/kiso/env
dpkg --install /mnt/next.deb
grep -q "KISO_SKILL_X=mine" /etc/kiso/env || fail "the upgrade replaced what an administrator wrote"
serve
curl --silent --fail "$url/sessions/default/messages" | grep -q "before the upgrade" || fail "the upgrade lost a message"
finish

echo "not downgraded"
if dpkg --install /mnt/kiso.deb 2>/tmp/downgrade.log; then fail "the older version was installed over the newer one"; fi
grep -q "an older version cannot read what a newer one has stored" /tmp/downgrade.log || { cat /tmp/downgrade.log; fail "no words"; }
dpkg-query --show --showformat '${Version} ${Status}\n' kiso | tee /dev/stderr | grep -q '+next install ok installed' || fail "the newer version is gone"

echo "purged"
dpkg --purge kiso
[ -f /var/lib/kiso/store.db ] || fail "the purge removed data that nobody asked to remove"
[ ! -e /etc/kiso ] || fail "the purge left /etc/kiso"
[ ! -e /usr/bin/kiso ] || fail "the purge left the program"
dpkg --install /mnt/kiso.deb
KISO_PURGE_DATA=yes dpkg --purge kiso
[ ! -e /var/lib/kiso ] || fail "the purge left data that was to be removed"
echo "all good"
