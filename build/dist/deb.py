"""The Debian package: the program with a unit, a user and a directory for its data, and one file for an administrator."""

import hashlib

from archive import Tree, ar, gz, xz

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

ENVIRONMENT = """\
# Keys of providers and KISO_SKILL_... secrets for the service kiso, one NAME=value a line. Only root can read this file.
# OPENAI_API_KEY=
"""

DROP_IN = """\
# Lines that the package adds to the unit of `kiso service install --system --user kiso`.
[Service]
EnvironmentFile=-/etc/kiso/env
"""

SYSUSERS = 'u kiso - "kiso agent daemon" /var/lib/kiso /usr/sbin/nologin\n'
TMPFILES = "d /var/lib/kiso 0700 kiso kiso -\n"

PREINST = """\
#!/bin/sh
set -e
# A store that a newer version has changed cannot be read by an older one.
if [ "$1" = upgrade ] && dpkg --compare-versions "$2" gt "VERSION"; then
  echo "kiso $2 is installed, and kiso VERSION is older: an older version cannot read what a newer one has stored." >&2
  echo "To go back, keep a backup ('kiso backup'), purge the package, and restore a backup of the older version." >&2
  exit 1
fi
"""

POSTINST = """\
#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers kiso.conf
elif ! getent passwd kiso >/dev/null; then
  useradd --system --user-group --home-dir /var/lib/kiso --no-create-home --shell /usr/sbin/nologin kiso
fi
install -d -m 0700 -o kiso -g kiso /var/lib/kiso
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  if [ -n "$2" ]; then systemctl try-restart kiso.service; fi
fi
if [ -z "$2" ]; then
  echo "kiso is installed. Start it now and at each boot: systemctl enable --now kiso"
fi
"""

PRERM = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl disable --now kiso.service; fi
"""

POSTRM = """\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
[ "$1" = purge ] || exit 0
rmdir --ignore-fail-on-non-empty /etc/kiso 2>/dev/null || true
# Stored data belongs to its owner: it is removed only on request.
if [ "$KISO_PURGE_DATA" = yes ]; then
  rm -rf /var/lib/kiso
elif [ -d /var/lib/kiso ]; then
  echo "what kiso has stored is kept in /var/lib/kiso; KISO_PURGE_DATA=yes removes it, too"
fi
"""


def package(files, unit, elf, version, epoch):
    """The package's bytes. `files` are those of the archive, with the program's own list of them left out."""
    data = Tree()
    for path, (content, mode) in files.files.items():
        if path in ("share/kiso/SHA256SUMS", "share/kiso/install.sh"):
            continue
        if path == "share/doc/kiso/LICENSE":
            path = "share/doc/kiso/copyright"
        path = path.replace("share/zsh/site-functions", "share/zsh/vendor-completions")
        if path.startswith("share/man/"):
            path, content = path + ".gz", gz(content)
        data.add("usr/" + path, content, mode)
    data.add("usr/lib/systemd/system/kiso.service", unit)
    data.add("usr/lib/systemd/system/kiso.service.d/10-environment.conf", DROP_IN)
    data.add("usr/lib/sysusers.d/kiso.conf", SYSUSERS)
    data.add("usr/lib/tmpfiles.d/kiso.conf", TMPFILES)
    data.add("etc/kiso/env", ENVIRONMENT, 0o600)

    size = sum(len(content) for content, _ in data.files.values()) // 1024
    glibc = ".".join(str(part) for part in elf.glibc())
    depends = [f"libc6 (>= {glibc})"]
    if "libgcc_s.so.1" in elf.needed():
        depends.append("libgcc-s1")
    depends += ["systemd | systemd-standalone-sysusers | passwd"]
    control = Tree()
    control.add(
        "control",
        f"Package: kiso\nVersion: {version}\nArchitecture: {ARCHITECTURES[elf.machine]}\nMaintainer: kiso <kiso@localhost>\n"
        f"Installed-Size: {size}\nDepends: {', '.join(depends)}\nSection: utils\nPriority: optional\n"
        "Homepage: https://github.com/kiso-agent/kiso\n"
        "Description: agent daemon whose skills and commands run as WASI components\n"
        " Skills, and the shell with its commands, run in a WebAssembly sandbox: with one\n"
        " directory, a deadline, a memory cap, and only the hosts and secrets that you grant.\n",
    )
    control.add("conffiles", "/etc/kiso/env\n")
    # Without those for the configuration: dpkg keeps digests of these itself.
    md5 = (f"{hashlib.md5(data.read(path)).hexdigest()}  {path}\n" for path in sorted(data.files) if not path.startswith("etc/"))
    control.add("md5sums", "".join(md5))
    for name, script in {"preinst": PREINST, "postinst": POSTINST, "prerm": PRERM, "postrm": POSTRM}.items():
        control.add(name, script.replace("VERSION", version), 0o755)
    return ar(
        [
            ("debian-binary", b"2.0\n"),
            ("control.tar.xz", xz(control.tar(epoch, "./"))),
            ("data.tar.xz", xz(data.tar(epoch, "./"))),
        ],
        epoch,
    )
