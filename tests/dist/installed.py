"""Packages that are installed: by pip, by install.sh, and by dpkg."""

import functools
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from archive import Tree, gz
from unpacked import extracted, need, one
from work import ROOT, first_job, must, run

# Debian's user nobody, which owns no files.
NOBODY = 65534


def wheel(dist, native):
    """Installs the wheel offline into a new environment, checks, runs and removes it."""
    path = one(dist, f"kiso-*-manylinux_*_{native}.whl")
    with tempfile.TemporaryDirectory(prefix="kiso-dist-") as scratch:
        venv = Path(scratch) / "venv"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        pip = [venv / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--no-index", "--no-deps", path], check=True)
        kiso = [str(venv / "bin/kiso")]
        must(run(kiso, "--version").startswith("kiso "), "--version")
        checked = run(kiso, "self", "check")
        must("as a Python wheel" in checked and "are as they were installed" in checked, checked)
        run(kiso, "self", "uninstall", "--yes", code=1)
        must((venv / "bin/kiso").exists() and (venv / "share/man/man1/kiso.1").exists(), "its files are gone")
        with tempfile.TemporaryDirectory(prefix="kiso-home-") as home:
            first_job(kiso, Path(home) / "home", None)
        subprocess.run([*pip, "uninstall", "--yes", "kiso"], check=True)
        left = [path for path in venv.rglob("*kiso*") if path.is_file()]
        must(not left, f"pip left {left}")


class Release:
    """A directory with an archive, its digests and their signature by a temporary key, and a server for it."""

    def __init__(self, scratch, key, tree, version, arch):
        self.dir = Path(scratch) / f"release-{version}"
        self.dir.mkdir()
        files = Tree()
        for path in sorted(tree.rglob("*")):
            if path.is_file():
                files.add(str(path.relative_to(tree)), path.read_bytes(), path.stat().st_mode & 0o777)
        script = files.read("share/kiso/install.sh").decode()
        script = re.sub(r'^PUBLIC_KEY=""$', f'PUBLIC_KEY="{key.public}"', script, flags=re.M)
        files.add("share/kiso/install.sh", script, 0o755)
        del files.files["share/kiso/SHA256SUMS"]
        files.add("share/kiso/SHA256SUMS", files.sums())
        self.script = Path(scratch) / "install.sh"
        self.script.write_text(script)
        name = f"kiso-{version}-{arch}-linux"
        self.archive = self.dir / f"{name}.tar.gz"
        self.archive.write_bytes(gz(files.below(name).tar(0)))
        digest = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        self.sums = self.dir / "SHA256SUMS"
        self.sums.write_text(f"{digest}  {self.archive.name}\n{'0' * 64}  kiso_{version}_other.deb\n")
        key.sign(self.sums)
        handler = functools.partial(Quiet, directory=self.dir)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Key:
    def __init__(self, scratch, name="key"):
        self.secret, public = Path(scratch) / f"{name}.sec", Path(scratch) / f"{name}.pub"
        subprocess.run(["minisign", "-G", "-W", "-s", self.secret, "-p", public], check=True, stdout=subprocess.DEVNULL)
        self.public = public.read_text().splitlines()[1]

    def sign(self, path):
        subprocess.run(["minisign", "-S", "-s", self.secret, "-m", path], check=True, stdout=subprocess.DEVNULL)


def script(dist, native):
    """As an ordinary user: refuses a wrong signature or digest, then installs, updates and removes."""
    need("minisign", "curl", "setpriv")
    with tempfile.TemporaryDirectory(prefix="kiso-dist-") as scratch:
        os.chmod(scratch, 0o755)
        tree = extracted(dist, native, scratch)
        key, other = Key(scratch), Key(scratch, "other")
        release = Release(scratch, key, tree, "0.1.0", native)
        home = Path(scratch) / "user"
        home.mkdir()
        prefix = home / ".local"
        start = []
        if os.getuid() == 0:
            os.chown(home, NOBODY, NOBODY)
            start = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]

        def install(*args, script=release.script, code=0):
            env = {"HOME": str(home), "PATH": os.environ["PATH"]}
            done = subprocess.run([*start, "sh", script, *args], env=env, capture_output=True, text=True, cwd="/", stdin=subprocess.DEVNULL)
            must((done.returncode == 0) == (code == 0), f"install.sh {args}: {done.returncode}\n{done.stdout}{done.stderr}")
            return done.stdout + done.stderr

        unset = tree / "share/kiso/install.sh"
        refused = install("--from", release.url, script=unset, code=1)
        must("no public key" in refused and not prefix.exists(), refused)

        refused = install("--from", release.url + "/nowhere", code=1)
        must("/nowhere/SHA256SUMS cannot be downloaded" in refused, refused)

        other.sign(release.sums)
        refused = install("--from", release.url, code=1)
        must("signature" in refused and "nothing was installed" in refused, refused)
        key.sign(release.sums)

        whole = release.archive.read_bytes()
        release.archive.write_bytes(whole[:-100] + bytes(100))
        refused = install("--from", release.url, code=1)
        must("is damaged" in refused and not (prefix / "bin").exists(), refused)
        release.archive.write_bytes(whole)
        must(not list(prefix.iterdir()), f"it left {list(prefix.iterdir())}")

        said = install("--from", release.url)
        must("the signature is right" in said and f"in {prefix}/bin/kiso" in said and "add it to your path" in said, said)
        kiso = [*start, str(prefix / "bin/kiso")]
        env = {"HOME": str(home)}
        checked = run(kiso, "self", "check", env=env)
        must("installed from an archive" in checked and "are as they were installed" in checked, checked)

        older = Release(scratch, key, tree, "0.0.9", native)
        refused = install("--from", older.url, code=1)
        must("is older" in refused, refused)
        # A file that the next version lacks is removed by the update.
        gone = tree / "share/kiso/gone"
        gone.write_text("")
        newer = Release(scratch, key, tree, "0.2.0", native)
        (prefix / "share/kiso/from").write_text(newer.url + "\n")
        updated = run(kiso, "self", "update", env=env, cwd="/")
        must("kiso 0.2.0 is in" in updated and (prefix / "share/kiso/gone").exists(), updated)
        gone.unlink()
        again = Release(scratch, key, tree, "0.3.0", native)
        install("--from", again.url)
        must(not (prefix / "share/kiso/gone").exists(), "a file of the version before is still there")

        listed = run(kiso, "self", "uninstall", env=env, code=2)
        must(f"would remove {prefix}/bin/kiso" in listed and (prefix / "bin/kiso").exists(), listed)
        (home / ".kiso").mkdir()
        os.chown(home / ".kiso", NOBODY, NOBODY)
        (prefix / "bin/mine").write_text("")
        run(kiso, "self", "uninstall", "--yes", env=env)
        left = sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())
        must(left == [".local/bin/mine"] and (home / ".kiso").is_dir(), f"left: {left}")


def deb(dist, native):
    """Installs, runs as a service, upgrades and purges in a temporary copy of this system."""
    need("dpkg-deb", "dpkg", "unshare", "chroot", "systemd-analyze", "setpriv")
    path = one(dist, f"kiso_*_{ {'x86_64': 'amd64', 'aarch64': 'arm64'}[native] }.deb")
    with tempfile.TemporaryDirectory(prefix="kiso-dist-") as scratch:
        shutil.copy(path, Path(scratch) / "kiso.deb")
        # The following version: the same except for its number.
        tree = Path(scratch) / "next"
        subprocess.run(["dpkg-deb", "-R", path, tree], check=True)
        version = re.search(r"^Version: (.*)$", (tree / "DEBIAN/control").read_text(), re.M)[1]
        for name in ("control", "preinst"):
            file = tree / "DEBIAN" / name
            file.write_text(file.read_text().replace(version, version + "+next"))
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, Path(scratch) / "next.deb"], check=True, stdout=subprocess.DEVNULL)
        shutil.copy(ROOT / "tests/dist/deb.sh", Path(scratch) / "deb.sh")
        copied = (
            "mount -t tmpfs tmpfs /mnt && mkdir /mnt/upper /mnt/work /mnt/root"
            " && mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root"
            " && mount --rbind /proc /mnt/root/proc && mount --rbind /dev /mnt/root/dev"
            f" && mount --bind {scratch} /mnt/root/mnt && exec chroot /mnt/root bash /mnt/deb.sh"
        )
        done = subprocess.run(["unshare", "-m", "sh", "-c", copied], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        must(done.returncode == 0 and done.stdout.endswith("all good\n"), f"{done.stdout}{done.stderr}")
