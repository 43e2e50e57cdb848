"""The container image, as an OCI layout in a tar archive: the program, and the libraries of C that it is linked with.

There is no shell, no package manager and no other program in it. Certificates and time zones are inside the program.
"""

import hashlib
import json
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from archive import Tree, gz

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# No user of the machine has this number.
USER = 65532


def library(name, compiler):
    """A library of the system that the compiler links with."""
    command = [compiler, f"-print-file-name={name}"]
    path = Path(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
    if not path.is_absolute():
        raise SystemExit(f"{compiler} knows no {name}, which the program is linked with")
    return path.resolve().read_bytes()


def image(files, elf, compiler, version, commit, epoch):
    """The layout's bytes."""
    root = Tree()
    root.add("usr/bin/kiso", files.read("bin/kiso"), 0o755)
    for name in ("LICENSE", "THIRD-PARTY.txt", "sbom.cdx.json"):
        root.add(f"usr/share/doc/kiso/{name}", files.read(f"share/doc/kiso/{name}"))
    loader = elf.interpreter()
    root.add(loader.lstrip("/"), library(Path(loader).name, compiler), 0o755)
    for needed in elf.needed():
        if needed != Path(loader).name:
            root.add(f"lib/{needed}", library(needed, compiler), 0o755)
    root.add("etc/passwd", f"kiso:x:{USER}:{USER}:kiso:/data:/usr/bin/kiso\n")
    root.add("data/.keep", "", 0o600)
    owners = {"data": USER, "data/.keep": USER}
    layer = root.tar(epoch, owners=owners)
    packed = gz(layer)

    created = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "kiso",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": commit,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.source": "https://github.com/kiso-agent/kiso",
    }
    config = {
        "created": created,
        "architecture": ARCHITECTURES[elf.machine],
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": ["KISO_HOME=/data/kiso", "PATH=/usr/bin"],
            "Entrypoint": ["/usr/bin/kiso"],
            "Cmd": ["serve"],
            "Volumes": {"/data": {}},
            "WorkingDir": "/data",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created": created, "created_by": "build/dist"}],
    }
    layout = Tree()

    def blob(data, kind):
        digest = hashlib.sha256(data).hexdigest()
        layout.add(f"blobs/sha256/{digest}", data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    def text(value):
        return json.dumps(value, separators=(",", ":")).encode()

    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(text(config), "config.v1+json"),
        "layers": [blob(packed, "layer.v1.tar+gzip")],
    }
    described = blob(text(manifest), "manifest.v1+json")
    described["platform"] = {"architecture": ARCHITECTURES[elf.machine], "os": "linux"}
    described["annotations"] = {"org.opencontainers.image.ref.name": version}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [described]}
    layout.add("index.json", text(index))
    layout.add("oci-layout", text({"imageLayoutVersion": "1.0.0"}))
    return layout.tar(epoch)
