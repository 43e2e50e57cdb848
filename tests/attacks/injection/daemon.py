"""The real program: a separate home, `kiso serve`, and its API."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

from .policy import POLICY

# Longer than any step takes on a busy machine: a run that reaches it hangs.
GUARD_SECONDS = 120

CONFIG = """\
model = "stand:nobody"
[models]
titler = "reflex"
[providers.stand]
kind = "openai"
base_url = "{base_url}"
[context]
budget_tokens = 400_000
{context}
[limits]
max_tool_call_rounds = 60
max_tokens_per_run = 100_000_000
max_tasks = 200
tool_output_limit_tokens = {longest}
[llm]
max_concurrent_llm = 32
max_attempts = 1
[daemon]
debounce_ms = 0
max_jobs = 32
[schedule]
min_interval_s = 1
[gateway]
port = 0
[policy]
effects = "{policy}"
"""

ENDED = ("done", "failed", "cancelled", "held")


class Kiso:
    """A daemon. `policy` is "enforce" or "off" (nothing needs an approval)."""

    def __init__(self, program, world, minds, policy, suites, context="", longest=100_000, more="", slots=8):
        self.dir = Path(tempfile.mkdtemp(prefix="kiso-attacks-"))
        self.home = self.dir / "home"
        self.home.mkdir(mode=0o700)
        self.program = program
        self.enforces = policy == "enforce"
        names = {name: suite for name, suite in world.names.items() if suite in suites and int(name[-1]) <= slots}
        config = CONFIG.format(base_url=minds.base_url, policy=policy, context=context, longest=longest)
        # Beside the home, because a task must not have access to the home.
        (self.dir / "shared").mkdir()
        config += more.replace("{shared}", str(self.dir / "shared"))
        for name, suite in names.items():
            config += f'\n[model_settings."stand:{name}"]\ncontext_budget = 400_000\n'
            config += _server(name, suite, world.url(name))
        (self.home / "config.toml").write_text(config)
        try:
            for name in names:
                self.run("mcp", "allow", name)
            self._serve()
        except BaseException:
            self.close()
            raise

    @property
    def env(self):
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        return {**kept, "HOME": str(self.dir), "KISO_HOME": str(self.home)}

    def run(self, *args):
        done = subprocess.run([self.program, *args], env=self.env, capture_output=True, text=True, timeout=GUARD_SECONDS)
        if done.returncode:
            raise RuntimeError(f"kiso {' '.join(args)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def _serve(self):
        self.log = open(self.dir / "log", "ab")
        self.process = subprocess.Popen([self.program, "--json", "serve", "--port", "0"], env=self.env,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the daemon does not start: " + (self.dir / "log").read_text())
        self.address = json.loads(line)["url"].removeprefix("http://")
        self.local = threading.local()

    def restart(self):
        """Kills the daemon, as a power failure would."""
        self.process.kill()
        self.process.wait()
        self._serve()

    def ask(self, method, path, body=None, ok=(200, 201, 202, 204), headers=None):
        text = json.dumps(body) if body is not None else None
        for attempt in (1, 2):
            connection = getattr(self.local, "connection", None) or http.client.HTTPConnection(self.address, timeout=GUARD_SECONDS)
            self.local.connection = connection
            try:
                connection.request(method, path, text, {"content-type": "application/json", **(headers or {})})
                answer = connection.getresponse()
                data = answer.read()
                break
            except (http.client.HTTPException, ConnectionError):
                connection.close()
                self.local.connection = None
                if attempt == 2:
                    raise
        if answer.status not in ok:
            raise RuntimeError(f"{method} {path}: {answer.status} {data[:500]!r}")
        return json.loads(data) if data else None

    def put(self, session, path, body):
        """Attaches a file of the user."""
        connection = http.client.HTTPConnection(self.address, timeout=GUARD_SECONDS)
        connection.request("PUT", f"/sessions/{session}/files/{urllib.parse.quote(path)}", body)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        if answer.status not in (200, 201):
            raise RuntimeError(f"PUT {path}: {answer.status} {said[:500]!r}")

    def command(self, session, text):
        return self.ask("POST", "/msg", {"session": session, "text": text})

    def say(self, session, text, person):
        """Sends a message, has `person` answer the cards, and waits for the end of its run. Returns status, run and reply."""
        message = self.ask("POST", "/msg", {"session": session, "text": text})["message"]
        return self.follow(session, message, person)

    def follow(self, session, message, person):
        person.sessions.add(session)
        began, pause = time.monotonic(), 0.004
        while True:
            state = self.ask("GET", f"/messages/{message}")
            if state["status"] in ENDED:
                return state
            if state["status"] == "waiting":
                self.answer_cards(session, person)
            if time.monotonic() - began > GUARD_SECONDS:
                raise TimeoutError(f"{session}: {state}")
            time.sleep(pause)
            pause = min(pause * 1.3, 0.05)

    def answer_cards(self, session, person):
        for card in self.ask("GET", f"/approvals?session={session}")["items"]:
            self.ask("POST", f"/approvals/{card['id']}", {"accept": person.accepts(card)}, ok=(200, 409))

    def sinks(self, sessions):
        """The sink log of the runs in these sessions: effects that were to leave the sandbox, and the decisions."""
        runs = [run["id"] for session in sessions for run in self.ask("GET", f"/runs?session={session}&limit=50")["items"]]
        return [line for run in runs for line in _sinks(self.ask("GET", f"/runs/{run}/trace?limit=500"))]

    def close(self):
        if hasattr(self, "process"):
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.log.close()
        if not os.environ.get("KISO_KEEP"):
            shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _server(name, suite, url):
    """The tables of a server in config.toml."""
    return f'\n[mcp.{name}]\nurl = "{url}"\nallow = {json.dumps(list(POLICY.suites[suite]))}\n' + POLICY.table(suite, name)


def _sinks(value):
    """Every line of a sink log in a run's description."""
    if isinstance(value, list):
        return [line for part in value for line in _sinks(part)]
    if not isinstance(value, dict):
        return []
    own = [line for line in value.get("sinks") or [] if isinstance(line, dict)]
    return own + [line for name, part in value.items() if name != "sinks" for line in _sinks(part)]
