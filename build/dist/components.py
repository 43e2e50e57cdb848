"""Components of the program: packages of cargo for the host and for the bundled components, and libraries of the page.

From it come THIRD-PARTY.txt, with every licence's text, and the bill of materials in CycloneDX's form.
"""

import hashlib
import json
import subprocess
import tomllib
import uuid
from datetime import datetime, timezone
from pathlib import Path

TEXTS = ("license", "licence", "copying", "notice", "unlicense", "copyright")


def packages(root, manifest, member, platform, env):
    """The packages that a member is made of on a platform, without those that only tests or build scripts use."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", str(manifest)]
    command += ["--filter-platform", platform]
    metadata = json.loads(subprocess.run(command, cwd=root, env=env, check=True, stdout=subprocess.PIPE).stdout)
    by_id = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    names = {by_id[id]["name"]: id for id in metadata["workspace_members"]}
    found, todo = {}, [names[member]]
    while todo:
        id = todo.pop()
        if id in found:
            continue
        found[id] = by_id[id]
        for dependency in nodes[id]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    return [package for package in found.values() if package["source"]]


def collect(root, target, env):
    """Everything of others that is in the program for a target, sorted."""
    found = {}
    sources = [(root / "Cargo.toml", "kiso", target)]
    guests = sorted(path.parent.name for path in (root / "skills").glob("*/Cargo.toml"))
    sources += [(root / "skills/Cargo.toml", guest, "wasm32-wasip2") for guest in guests]
    checksums = {}
    for lock in (root / "Cargo.lock", root / "skills/Cargo.lock"):
        for package in tomllib.loads(lock.read_text())["package"]:
            checksums[package["name"], package["version"]] = package.get("checksum")
    for manifest, member, platform in sources:
        for package in packages(root, manifest, member, platform, env):
            key = (package["name"], package["version"])
            directory = Path(package["manifest_path"]).parent
            texts = [
                path.read_text(errors="replace")
                for path in sorted(directory.iterdir())
                if path.is_file() and path.name.lower().startswith(TEXTS)
            ]
            found[key] = {
                "name": package["name"],
                "version": package["version"],
                "licence": package["license"] or "see the text",
                "source": package["repository"] or "",
                "purl": f"pkg:cargo/{package['name']}@{package['version']}",
                "sha256": checksums.get(key),
                "texts": texts,
            }
    vendor = root / "host/gateway/src/page/web/vendor"
    for library in json.loads((vendor / "manifest.json").read_text()):
        npm = library["source"].removeprefix("npm:").split("/")
        package = "/".join(npm[:2]) if npm[0].startswith("@") else npm[0]
        package = package.replace("@" + library["version"], "")
        found["page", library["file"]] = {
            "name": library["name"],
            "version": library["version"],
            "licence": library["license"],
            "source": library["source"],
            "purl": f"pkg:npm/{package.replace('@', '%40')}@{library['version']}",
            "sha256": library["sha256"],
            "texts": [],
        }
    return [found[key] for key in sorted(found)]


def third_party(components):
    """Each licence's text once, with those that it holds for."""
    lines = ["What kiso contains of others, under which licences, and their texts.\n"]
    texts = {}
    for component in components:
        lines.append(f"{component['name']} {component['version']}: {component['licence']}  {component['source']}".rstrip())
        if not component["texts"]:
            lines.append("    (it comes without a text; that of its licence is below, or in the file itself)")
        for text in component["texts"]:
            key = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
            texts.setdefault(key, (text, []))[1].append(f"{component['name']} {component['version']}")
    for text, holders in texts.values():
        lines += ["", "=" * 100, "For " + ", ".join(dict.fromkeys(holders)) + ":", "", text.strip()]
    return "\n".join(lines) + "\n"


def bill_of_materials(components, version, commit, target, epoch):
    """CycloneDX 1.5. Its serial number is made of the commit, so that the same build has the same bill."""

    def entry(component):
        shown = {
            "type": "library",
            "bom-ref": component["purl"],
            "name": component["name"],
            "version": component["version"],
            "purl": component["purl"],
            "licenses": [licence(component["licence"])],
        }
        if component["sha256"]:
            shown["hashes"] = [{"alg": "SHA-256", "content": component["sha256"]}]
        return shown

    listed = {component["purl"]: entry(component) for component in components}
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'kiso/{commit}/{target}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": "kiso",
                "name": "kiso",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "properties": [{"name": "commit", "value": commit}, {"name": "target", "value": target}],
            },
        },
        "components": list(listed.values()),
        "dependencies": [{"ref": "kiso", "dependsOn": list(listed)}],
    }
    return json.dumps(bill, indent=1, ensure_ascii=False) + "\n"


def licence(text):
    """An expression of SPDX where it is one; an old way to write OR is a slash."""
    if "," in text or "see the" in text:
        return {"license": {"name": text}}
    return {"expression": " ".join(text.replace("/", " OR ").split())}
