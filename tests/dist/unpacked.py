"""Packages that need no installation: unpacked and run in place."""

import hashlib
import json
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
from pathlib import Path

from elf import Elf
from work import ROOT, Wrong, everything, must, run

# The version of Debian 12 and Raspberry Pi OS 12.
NEWEST_LIBC = (2, 36)


class Missing(Exception):
    """A tool that a check needs is missing."""


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Missing(f"there is no {tool}")


def one(dist, pattern):
    found = sorted(dist.glob(pattern))
    if len(found) != 1:
        raise Wrong(f"{len(found)} files {pattern} in {dist}; `just dist` makes it")
    return found[0]


def extracted(dist, arch, scratch):
    """The directory inside an archive."""
    path = one(dist, f"kiso-*-{arch}-linux.tar.gz")
    with tarfile.open(path) as tar:
        for member in tar:
            must(member.uid == member.gid == 0 and member.mode in (0o755, 0o644), f"{path}: {member.name} has {member.mode:o}")
        tar.extractall(scratch)
    return Path(scratch) / path.name.removesuffix(".tar.gz")


def sums(dist, _native):
    """Checks that SHA256SUMS lists exactly the files, with their digests."""
    listed = dict(reversed(line.split("  ")) for line in (dist / "SHA256SUMS").read_text().splitlines())
    there = {path.name for path in dist.iterdir()} - {"SHA256SUMS", "SHA256SUMS.minisig"}
    must(set(listed) == there, f"listed are {sorted(listed)}, there are {sorted(there)}")
    for name, digest in listed.items():
        must(hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest, f"{name} has another digest")


def archive(dist, native):
    with tempfile.TemporaryDirectory(prefix="kiso-dist-") as scratch:
        tree = extracted(dist, native, scratch)
        kiso = [str(tree / "bin/kiso")]
        described = run(kiso, "--version", "--verbose")
        must(re.search(r"^kiso \S+\ncommit: [0-9a-f]{40}\ntarget: \S+\nwasmtime: \d", described), described)
        pages = sorted(path.name for path in (tree / "share/man/man1").iterdir())
        must("kiso.1" in pages and "kiso-skill-add.1" in pages, f"manual pages: {pages}")
        must(".TH kiso 1" in (tree / "share/man/man1/kiso.1").read_text(), "kiso.1 is not a manual page")
        subprocess.run(["bash", "-euc", f"source {tree}/share/bash-completion/completions/kiso; complete -p kiso"], check=True, stdout=subprocess.DEVNULL)
        third = (tree / "share/doc/kiso/THIRD-PARTY.txt").read_text()
        must("wasmtime 4" in third and "uucore" in third and "preact" in third and "Apache License" in third, "THIRD-PARTY.txt lacks something")
        bill = json.loads((tree / "share/doc/kiso/sbom.cdx.json").read_text())
        names = {component["name"] for component in bill["components"]}
        must({"wasmtime", "uucore", "marked", "libsqlite3-sys"} <= names, "the bill of materials lacks something")
        must("proptest" not in names, "the bill of materials lists what only tests use")
        checked = run(kiso, "self", "check")
        must("are as they were installed" in checked, checked)
        (tree / "share/doc/kiso/LICENSE").write_text("other")
        changed = run(kiso, "self", "check", code=1)
        must(f"FAIL {tree}/share/doc/kiso/LICENSE: changed" in changed, changed)
        everything(kiso)


def layers(path, scratch):
    """Reads an OCI layout, checks every digest, and unpacks its layers. Returns their configuration."""
    layout = Path(scratch) / "layout"
    with tarfile.open(path) as tar:
        tar.extractall(layout)
    must(json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}, "oci-layout")

    def blob(described):
        data = (layout / "blobs" / described["digest"].replace(":", "/")).read_bytes()
        must("sha256:" + hashlib.sha256(data).hexdigest() == described["digest"] and len(data) == described["size"], str(described))
        return data

    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(blob(index["manifests"][0]))
    root = Path(scratch) / "root"
    for layer in manifest["layers"]:
        packed = Path(scratch) / "layer.tar.gz"
        packed.write_bytes(blob(layer))
        root.mkdir(exist_ok=True)
        subprocess.run(["tar", "-xzf", packed, "-C", root], check=True)
    return json.loads(blob(manifest["config"])), root


def image(dist, native):
    """Reads the image as a container engine would, and runs it from its layer as its configured user."""
    with tempfile.TemporaryDirectory(prefix="kiso-dist-") as scratch:
        config, root = layers(one(dist, f"kiso-*-{native}-linux.oci.tar"), scratch)
        must(config["config"]["Entrypoint"] == ["/usr/bin/kiso"] and config["os"] == "linux", str(config))
        programs = [path.name for path in root.rglob("*") if path.is_file() and path.stat().st_mode & 0o111]
        must(all(name == "kiso" or ".so" in name for name in programs), f"programs in the image: {programs}")
        need("chroot", "unshare")
        user, chroot = config["config"]["User"], shutil.which("chroot")
        start = ["unshare", "-m", "sh", "-c", f'mkdir -p {root}/proc && mount -t proc proc {root}/proc && exec {chroot} --userspec={user} {root} "$@"', "sh"]
        env = dict(entry.split("=", 1) for entry in config["config"]["Env"])
        kiso = [*start, "/usr/bin/kiso"]
        printed = run(kiso, "shell", "-c", "seq 3 | paste -sd+ | bc", env=env)
        must(printed == "6\n", printed)
        must("FAIL" not in run(kiso, "doctor", "--offline", env=env), "doctor")


def segments(dist, native):
    """Checks that no segment is writable and executable, that code and data are separate, and that everything is aligned for the
    architecture's largest pages."""
    for path in sorted(dist.glob("kiso-*-linux.tar.gz")):
        with tempfile.TemporaryDirectory(prefix="kiso-dist-") as scratch:
            arch = re.search(r"-([a-z0-9_]+)-linux", path.name)[1]
            program = (extracted(dist, arch, scratch) / "bin/kiso").read_bytes()
            elf = Elf(program)
            must(elf.machine == arch, f"{path.name} holds a program for {elf.machine}")
            page = {"aarch64": 0x10000, "x86_64": 0x1000}[arch]
            for segment in elf.loads():
                must(segment["flags"] & 3 != 3, f"a segment is written and executed: {segment}")
                must(segment["align"] >= page and segment["align"] % page == 0, f"a segment is aligned to {segment['align']:#x}")
                must((segment["address"] - segment["offset"]) % page == 0, f"{segment}")
            libc = max(tuple(map(int, version)) for version in re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?=[\0.])", program))
            must(libc <= NEWEST_LIBC, f"it needs glibc {libc[0]}.{libc[1]}, and Debian 12 has {NEWEST_LIBC[0]}.{NEWEST_LIBC[1]}")
            code = [segment for segment in elf.loads() if segment["flags"] & 1]
            images = embedded(program)
            must(len(images) >= 2, f"{len(images)} compiled components found")
            for start in images:
                address = next(s["address"] + start - s["offset"] for s in elf.loads() if s["offset"] <= start < s["offset"] + s["file"])
                must(address % 0x10000 == 0, f"a compiled component lies at {address:#x}, which is no page of 64 KiB")
                must(not any(s["offset"] <= start < s["offset"] + s["file"] for s in code), "a compiled component lies in a segment that is executable from the start")
                text = sections(program, start)[".text"]
                must(text[0] % page == 0, f"the code of a compiled component lies at {text[0]:#x} of it, which is no page of {page >> 10} KiB")
            print(f"  {path.name}: {len(elf.loads())} segments, {len(images)} components in place")


def embedded(program):
    """The positions of compiled components: ELF files inside the ELF file, on pages of 64 KiB."""
    starts = []
    at = program.find(b"\x7fELF\x02\x01\x01\xc8", 1)
    while at >= 0:
        starts.append(at)
        at = program.find(b"\x7fELF\x02\x01\x01\xc8", at + 1)
    return [start for start in starts if ".wasmtime.info" in sections(program, start)]


def sections(data, start):
    """Offset within the file and size of each section of the ELF file at this position."""
    table = struct.unpack_from("<Q", data, start + 40)[0]
    size, count, names = struct.unpack_from("<HHH", data, start + 58)
    if not size or start + table + size * count > len(data):
        return {}
    headers = [struct.unpack_from("<IIQQQQ", data, start + table + n * size) for n in range(count)]
    strings = start + headers[names][4]
    found = {}
    for name, _, _, _, offset, length in headers:
        text = data[strings + name : data.find(b"\0", strings + name)]
        found[text.decode(errors="replace")] = (offset, length)
    return found
