"""The Python wheel: the program as a script, and nothing of Python, so that `pipx install` and `uvx` bring it."""

import base64
import hashlib

from archive import zip_


def name(version, elf):
    return f"kiso-{version}-{tag(elf)}.whl"


def tag(elf):
    """For every Python, on every system with this glibc or a newer one."""
    major, minor = elf.glibc()
    return f"py3-none-manylinux_{major}_{minor}_{elf.machine}"


def wheel(files, version, elf, epoch, readme):
    info, scheme = f"kiso-{version}.dist-info", f"kiso-{version}.data"
    entries = []
    for path in sorted(files.files):
        content, mode = files.files[path]
        if path in ("share/kiso/SHA256SUMS", "share/kiso/install.sh"):
            continue
        place = f"{scheme}/scripts/kiso" if path == "bin/kiso" else f"{scheme}/data/{path}"
        entries.append((place, content, mode))
    for licence in ("LICENSE", "THIRD-PARTY.txt"):
        entries.append((f"{info}/licenses/{licence}", files.read(f"share/doc/kiso/{licence}"), 0o644))
    metadata = (
        f"Metadata-Version: 2.4\nName: kiso\nVersion: {version}\n"
        "Summary: An agent daemon whose skills and commands all run as WASI components\n"
        "License-Expression: Apache-2.0\nLicense-File: LICENSE\nLicense-File: THIRD-PARTY.txt\n"
        "Project-URL: Source, https://github.com/kiso-agent/kiso\nRequires-Python: >=3.7\n"
        "Description-Content-Type: text/markdown\n\n"
    )
    entries.append((f"{info}/METADATA", (metadata + readme).encode(), 0o644))
    described = f"Wheel-Version: 1.0\nGenerator: kiso build/dist\nRoot-Is-Purelib: false\nTag: {tag(elf)}\n"
    entries.append((f"{info}/WHEEL", described.encode(), 0o644))
    record = "".join(f"{path},sha256={digest(content)},{len(content)}\n" for path, content, _ in entries)
    entries.append((f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode(), 0o644))
    return zip_(entries, epoch)


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
