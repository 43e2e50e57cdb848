"""The environment of the programs: their installation, a daemon of kiso, its page, and a network without other machines."""

import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
INTO = ROOT / "target" / "clients"

# Longer than any step takes on a busy machine: a step that reaches it hangs.
GUARD_SECONDS = 900

# Set in the process whose network contains only this machine.
ALONE = "KISO_CLIENTS_ALONE"

CONFIG = """\
model = "reflex"
[daemon]
debounce_ms = 20
{more}
"""

# Without such a network, the address of a proxy that does not exist keeps the programs from other machines.
QUIET = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost", "DO_NOT_TRACK": "1"}


class Missing(Exception):
    """The reason why a program is not available."""


def do(*command, **more):
    try:
        ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    except FileNotFoundError as error:
        raise Missing(f"{error.filename} is not there") from error
    if ran.returncode != 0:
        raise Missing(f"{' '.join(map(str, command))}:\n{(ran.stdout + ran.stderr).strip()[-2000:]}")
    return ran.stdout


def installed(name, program):
    """The directory of a program, which is installed on first use."""
    place = INTO / f"{name}-{program.VERSION}"
    if not (place / "ready").exists():
        if ALONE in os.environ:
            raise Missing("it is not there")
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        program.install(place)
        (place / "ready").touch()
    return place


def python(*versions):
    """A Python of one of these versions, on the path or from pyenv."""
    pyenv = os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")
    for version in versions:
        for program in [sys.executable, f"python{version}", *sorted(glob.glob(f"{pyenv}/versions/{version}.*/bin/python"))]:
            try:
                if do(program, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip() == version:
                    return program
            except Missing:
                continue
    raise Missing(f"there is no Python {' or '.join(versions)}")


def pip(place, *words):
    return do(place / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *words)


def section(page, heading):
    text = (ROOT / "docs" / page).read_text()
    return text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def blocks(text, fence):
    return [part.split("```", 1)[0] for part in text.split(f"```{fence}\n")[1:]]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def until(what, so, process=None, log=None):
    """Polls until the result is true, and returns it."""
    began = time.monotonic()
    while True:
        try:
            if found := so():
                return found
        except OSError:
            pass
        ended = process is not None and process.poll() is not None
        if ended or time.monotonic() - began > GUARD_SECONDS:
            raise AssertionError(f"{what} did not come{': ' + Path(log).read_text()[-3000:] if log else ''}")
        time.sleep(0.05)


class Refused(Exception):
    """An unexpected response."""

    def __init__(self, status, said):
        super().__init__(said)
        self.status = status


def ask(method, url, body=None, token=None, form=False):
    """The JSON of a response."""
    headers = {"Content-Type": "application/x-www-form-urlencoded" if form else "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else (urllib.parse.urlencode(body) if form else json.dumps(body)).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=GUARD_SECONDS) as answer:
            text = answer.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        raise Refused(error.code, f"{method} {url}: {error.code} {error.read().decode(errors='replace')[:2000]}") from error


class Daemon:
    """`kiso serve` in a separate home, and a token of scope `chat`."""

    def __init__(self, kiso, scratch, more=""):
        place = Path(tempfile.mkdtemp(dir=scratch))
        self.kiso, self.home, self.log = kiso, place / "home", place / "log"
        self.home.mkdir()
        (self.home / "config.toml").write_text(CONFIG.format(more=more))
        self.env = {**os.environ, "KISO_HOME": str(self.home)}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([kiso, "--json", "serve", "--port", "0"], env=self.env, stdout=subprocess.PIPE,
                                            stderr=log, text=True)
        first = self.process.stdout.readline()
        assert first, f"kiso does not start: {self.log.read_text()}"
        self.url = json.loads(first)["url"]
        self.token = self.run("token", "add", "program").strip()

    def run(self, *args):
        return subprocess.run([self.kiso, *args], env=self.env, check=True, capture_output=True, text=True).stdout

    def here(self, text):
        """Text of the page with this daemon's address and token."""
        return re.sub(r"(127\.0\.0\.1|192\.168\.1\.20):8333", self.url.removeprefix("http://"), text)

    def sessions(self):
        return {session["name"] for session in ask("GET", f"{self.url}/sessions", token=self.token)["items"]}

    def messages(self, session):
        """The messages of a session, or none if it does not exist yet."""
        try:
            found = ask("GET", f"{self.url}/sessions/{session}/messages", token=self.token)["items"]
        except Refused as error:
            if error.status == 404:
                return []
            raise
        return [(message["role"], message["text"]) for message in found]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(GUARD_SECONDS) == 0


class Program:
    """A program that runs in the background, with its output in a file."""

    def __init__(self, command, env, scratch, files=()):
        self.dir = Path(tempfile.mkdtemp(dir=scratch))
        for name, text in dict(files).items():
            (self.dir / name).write_text(text)
        self.log = self.dir / "log"
        env = {**os.environ, **QUIET, "HOME": str(self.dir), **env}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([str(word) for word in command], cwd=self.dir, env=env, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True)

    def until(self, what, so):
        return until(what, so, self.process, self.log)

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def alone():
    """Continues in a process whose network contains only this machine, if the kernel supports that. Home Assistant needs
    multicasts in any network."""
    if ALONE in os.environ:
        return
    up = "ip link set lo up && ip route add 224.0.0.0/4 dev lo"
    command = ["unshare", "--map-root-user", "--net", "sh", "-c", f'{up} && exec "$@"', "sh"]
    try:
        do(*command, "true")
    except Missing as error:
        print(f"only a proxy that nobody runs keeps the programs from the internet: {error}", file=sys.stderr)
        return
    os.environ[ALONE] = "true"
    os.execvp(command[0], [*command, sys.executable, *sys.argv])
