"""The packages for aarch64, run by qemu as a Raspberry Pi 4's processor, with each page size that Linux uses there."""

import os
import subprocess
import tempfile
from pathlib import Path

from unpacked import Missing, extracted, need, one
from work import everything, first_job, lines, must, run

QEMU = "qemu-aarch64-static"
LIBRARIES = Path("/usr/aarch64-linux-gnu")
DEFAULT_PREFIX = Path("/etc/qemu-binfmt/aarch64")

# Makes the kernel start programs of this kind in the emulator, also when another emulated program starts them.
MAGIC = r":qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:F"


def aarch64(dist, native):
    if native == "aarch64":
        return print("  this machine is one; the other checks have run it")
    if not list(dist.glob("kiso-*-aarch64-linux.tar.gz")):
        raise Missing("there is no package for aarch64 in it (Debian: gcc-aarch64-linux-gnu, then `just dist`)")
    need(QEMU, "dpkg-deb")
    if not LIBRARIES.is_dir():
        raise Missing(f"there is no {LIBRARIES} (Debian: libc6-dev-arm64-cross)")
    register()
    with tempfile.TemporaryDirectory(prefix="kiso-dist-") as scratch:
        tree = extracted(dist, "aarch64", scratch)
        kiso = [str(tree / "bin/kiso")]
        env = {"QEMU_LD_PREFIX": str(LIBRARIES), "QEMU_CPU": "cortex-a72"}
        described = run(kiso, "--version", "--verbose", env=env)
        must("target: aarch64-unknown-linux-gnu" in described, described)
        # The compiler process has an empty environment, so it runs on the emulator's default processor, which has more features.
        everything(kiso, env, compiling={"QEMU_LD_PREFIX": str(LIBRARIES)})
        for page in (16384, 65536):
            home = Path(scratch) / f"home-{page}"
            paged = dict(env, QEMU_PAGESIZE=str(page))
            printed = run(kiso, "shell", "-c", "seq 4 | paste -sd+ | bc", home=home, env=paged)
            must(printed == "10\n", printed)
            (home / "sessions/default/work").mkdir(parents=True, exist_ok=True)
            (home / "sessions/default/work/t.csv").write_text("a,b\n1,2\n3,4\n")
            described = run(kiso, "skill", "run", "data", "file=t.csv", "describe=true", home=home, env=paged)
            must("a" in described, described)
            print(f"  pages of {page >> 10} KiB")
        program = (tree / "bin/kiso").read_bytes()
        package = Path(scratch) / "deb"
        subprocess.run(["dpkg-deb", "-x", one(dist, "kiso_*_arm64.deb"), package], check=True)
        must((package / "usr/bin/kiso").read_bytes() == program, "the Debian package holds another program")


def x86_64(dist, native):
    """Runs the program and its compiled code on the oldest processor of x86-64-v2."""
    if native != "x86_64":
        raise Missing("this machine is none of x86-64")
    need("qemu-x86_64-static")
    with tempfile.TemporaryDirectory(prefix="kiso-dist-") as scratch:
        tree = extracted(dist, native, scratch)
        kiso = ["qemu-x86_64-static", "-cpu", "Nehalem", str(tree / "bin/kiso")]
        home = Path(scratch) / "home"
        first_job(kiso, home, None)
        lines(kiso, home, None)


def register():
    """Registers the emulator in the kernel, and the libraries for the emulator, if necessary."""
    # kiso starts its compiler with an empty environment, so without QEMU_LD_PREFIX. Debian's emulator looks here, too.
    if not DEFAULT_PREFIX.exists() and os.getuid() == 0:
        DEFAULT_PREFIX.parent.mkdir(exist_ok=True)
        DEFAULT_PREFIX.symlink_to(LIBRARIES)
    binfmt = Path("/proc/sys/fs/binfmt_misc")
    if not (binfmt / "register").exists() and os.getuid() == 0:
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", binfmt], check=False)
    if (binfmt / "qemu-aarch64").exists():
        return
    try:
        (binfmt / "register").write_text(MAGIC)
    except OSError as error:
        raise Missing(f"the kernel cannot be told of {QEMU}: {error}") from error
