"""Makes the packages of one commit, for this machine's architecture and, where its linker is there, for the other one.

    python3 build/dist [--arch x86_64] [--arch aarch64] [--output target/dist]

In --output: for each architecture an archive, a Debian package, a Python wheel and a container image; SHA256SUMS of all, and
SHA256SUMS.minisig if KISO_SIGN_KEY names a secret key of minisign. The same commit gives the same bytes, but for signatures,
wherever it is checked out: it is built in one place (/var/tmp/kiso-dist, or KISO_DIST_BUILD), because cargo makes names of
symbols from where a package lies, and without the paths of this machine. Remove that directory to build from nothing.
"""

import sys

sys.dont_write_bytecode = True

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
import tomllib
from pathlib import Path

import components
import deb
import image
import wheel
from archive import Tree, gz
from elf import Elf

ROOT = Path(__file__).resolve().parent.parent.parent
COMPILERS = {"x86_64": "x86_64-linux-gnu-gcc", "aarch64": "aarch64-linux-gnu-gcc"}
NATIVE = {"arm64": "aarch64"}.get(platform.machine(), platform.machine())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append", choices=sorted(COMPILERS))
    parser.add_argument("--output", type=Path, default=ROOT / "target/dist")
    options = parser.parse_args()
    if git("status", "--porcelain", "--untracked-files=no"):
        sys.exit("build/dist: there are changes that are not committed; packages are made of a commit")
    commit, epoch = git("rev-parse", "HEAD"), int(git("show", "-s", "--format=%ct", "HEAD"))
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    archs = options.arch or [NATIVE] + [arch for arch in sorted(COMPILERS) if arch != NATIVE and shutil.which(COMPILERS[arch])]
    if NATIVE not in archs:
        archs.insert(0, NATIVE)  # It writes the manual pages and the completions, which all have.

    build = Path(os.environ.get("KISO_DIST_BUILD", "/var/tmp/kiso-dist"))
    source = checked_out(build, commit)
    env = environment(source, commit, epoch)
    output = options.output
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    programs = {arch: compiled(source, arch, env) for arch in archs}
    shared = described(programs[NATIVE], source)
    for arch in archs if options.arch is None else options.arch:
        say(f"packing for {arch}")
        for name, data in packages(source, arch, programs[arch], shared, version, commit, epoch, env).items():
            (output / name).write_bytes(data)
    shutil.copy(source / "build/dist/install.sh", output / "install.sh")
    sums(output, f"kiso {version} {commit}")
    for path in sorted(output.iterdir()):
        say(f"{path.stat().st_size / 1e6:7.1f} MB  {path}")


def git(*args, at=ROOT):
    return subprocess.run(["git", *args], cwd=at, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def say(text):
    print(f"dist: {text}", flush=True)


def checked_out(build, commit):
    """The commit, in the place where it is built. Only what differs is written, so cargo builds only that."""
    build.mkdir(mode=0o700, parents=True, exist_ok=True)
    if build.stat().st_uid != os.getuid():
        sys.exit(f"build/dist: {build} belongs to somebody else; name another directory in KISO_DIST_BUILD")
    source = build / "source"
    if not (source / ".git").exists():
        git("clone", "--quiet", "--no-checkout", str(ROOT), str(source))
    git("fetch", "--quiet", "--no-tags", "--force", str(ROOT), commit, at=source)
    git("checkout", "--quiet", "--force", "--detach", commit, at=source)
    git("clean", "--quiet", "-fd", at=source)
    return source


def environment(source, commit, epoch):
    """The environment of cargo, without anything that differs between builders."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO_", "RUST", "KISO_", "CFLAGS", "CXXFLAGS"))}
    for name in ("CARGO_HOME", "RUSTUP_HOME", "RUSTUP_AUTO_INSTALL", "RUSTUP_TOOLCHAIN"):
        if name in os.environ:
            env[name] = os.environ[name]
    home = os.environ.get("CARGO_HOME", str(Path.home() / ".cargo"))
    env["RUSTC_WRAPPER"] = str(source / "build/remap")
    env["KISO_REMAP_ROOT"], env["KISO_REMAP_CARGO"] = str(source), home
    env["KISO_COMMIT"], env["SOURCE_DATE_EPOCH"], env["LC_ALL"] = commit, str(epoch), "C"
    for arch, compiler in COMPILERS.items():
        if arch != NATIVE:
            env[f"CARGO_TARGET_{arch.upper()}_UNKNOWN_LINUX_GNU_LINKER"] = compiler
    return env


def target(arch):
    return f"{arch}-unknown-linux-gnu"


def compiled(source, arch, env):
    """The program for an architecture."""
    say(f"building for {arch} in {source}")
    command = ["cargo", "build", "--profile", "packaged", "--locked", "--package", "kiso"]
    path = source / "target/packaged/kiso"
    if arch != NATIVE:
        subprocess.run(["rustup", "target", "add", target(arch)], check=True, stderr=subprocess.DEVNULL)
        command += ["--target", target(arch), "--features", "cross"]
        path = source / "target" / target(arch) / "packaged/kiso"
    subprocess.run(command, cwd=source, env=env, check=True)
    for machine in (str(source), env["KISO_REMAP_CARGO"]):
        if machine.encode() in path.read_bytes():
            sys.exit(f"build/dist: the program for {arch} contains the path {machine}, so it cannot be reproduced elsewhere")
    return path


def described(kiso, source):
    """Files that the program prints: manual pages, completions, and the unit of the service."""
    tree = Tree()
    with tempfile.TemporaryDirectory() as home:
        # Without systemctl in the path, so that the unit is for every version of systemd.
        env = {"HOME": home, "KISO_HOME": home + "/home", "PATH": "/nonexistent"}
        pages = Path(home) / "man"
        subprocess.run([kiso, "man", pages], env=env, check=True)
        for page in sorted(pages.iterdir()):
            tree.add(f"share/man/man1/{page.name}", page.read_bytes())
        for shell, path in {
            "bash": "share/bash-completion/completions/kiso",
            "zsh": "share/zsh/site-functions/_kiso",
            "fish": "share/fish/vendor_completions.d/kiso.fish",
            "elvish": "share/kiso/completions/kiso.elv",
            "powershell": "share/kiso/completions/kiso.ps1",
        }.items():
            tree.add(path, subprocess.run([kiso, "completions", shell], env=env, check=True, stdout=subprocess.PIPE).stdout)
        install = ["service", "install", "--system", "--user", "kiso", "--print"]
        command = [kiso, "--home", "/var/lib/kiso", *install]
        unit = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
        tree.unit = unit.replace(f'"{kiso}"', '"/usr/bin/kiso"').replace("Written by", "From")
        if "/usr/bin/kiso" not in tree.unit:
            sys.exit("build/dist: the unit does not start the program where it was expected")
    tree.add("share/doc/kiso/LICENSE", (source / "LICENSE").read_bytes())
    tree.add("share/doc/kiso/README.md", (source / "README.md").read_bytes())
    tree.add("share/kiso/install.sh", (source / "build/dist/install.sh").read_bytes(), 0o755)
    return tree


def packages(source, arch, program, shared, version, commit, epoch, env):
    """Name and bytes of each package for an architecture."""
    files = Tree()
    files.update(shared)
    files.add("bin/kiso", program.read_bytes(), 0o755)
    others = components.collect(source, target(arch), env)
    files.add("share/doc/kiso/THIRD-PARTY.txt", components.third_party(others))
    files.add("share/doc/kiso/sbom.cdx.json", components.bill_of_materials(others, version, commit, target(arch), epoch))
    files.add("share/kiso/SHA256SUMS", files.sums())
    elf = Elf(files.read("bin/kiso"))
    name = f"kiso-{version}-{arch}-linux"
    compiler = "gcc" if arch == NATIVE else COMPILERS[arch]
    readme = (source / "README.md").read_text()
    return {
        f"{name}.tar.gz": gz(files.below(name).tar(epoch)),
        f"kiso_{version}_{deb.ARCHITECTURES[arch]}.deb": deb.package(files, shared.unit, elf, version, epoch),
        wheel.name(version, elf): wheel.wheel(files, version, elf, epoch, readme),
        f"{name}.oci.tar": image.image(files, elf, compiler, version, commit, epoch),
    }


def sums(output, comment):
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(output.iterdir())]
    (output / "SHA256SUMS").write_text("".join(lines))
    key = os.environ.get("KISO_SIGN_KEY")
    if not key:
        return say("not signed: KISO_SIGN_KEY names no key")
    if not shutil.which("minisign"):
        sys.exit("build/dist: KISO_SIGN_KEY names a key, and minisign is missing (Debian: apt install minisign)")
    subprocess.run(["minisign", "-S", "-s", key, "-m", output / "SHA256SUMS", "-t", comment], check=True)


if __name__ == "__main__":
    began = time.monotonic()
    main()
    say(f"done in {time.monotonic() - began:.0f} s")
