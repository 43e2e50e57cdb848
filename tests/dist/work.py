"""Checks that every packaged kiso works: the README's first job, every bundled skill, command lines, a skill that is compiled on
this machine, `kiso doctor`, and a daemon with ten messages.

A kiso is a list of arguments that starts it, such as ["/usr/bin/kiso"]; the environment may select an emulator.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# Longer than any step takes under an emulator on a busy machine: a step that reaches it hangs.
GUARD_SECONDS = 900

# Command lines and their expected output. Together they use most of the compiled-in commands.
LINES = [
    ("echo one two | awk '{ print $2, $1 }'", "two one"),
    ("seq 1 100 | sort -rn | head -1", "100"),
    ("printf 'b\\na\\nb\\n' | sort | uniq -c | tr -s ' '", " 1 a\n 2 b"),
    ("echo hello | sed 's/l/L/g' | rev", "oLLeh"),
    ("printf 'x,1\\ny,2\\n' | cut -d, -f2 | paste -sd+", "1+2"),
    ("echo text > a && cp a b && cmp a b && wc -c < b", "5"),
    ("mkdir -p d/e && touch d/e/f && find d -type f", "d/e/f"),
    ("echo kiso | sha256sum | cut -c1-8", "ddd92bd0"),
    ("echo kiso | base64", "a2lzbwo="),
    ("echo '{\"a\":[1,2,3]}' | jq -c '.a | add'", "6"),
    ("printf 'one\\ntwo\\n' > x; printf 'one\\n2\\n' > y; diff x y | grep -c '^[<>]'", "2"),
    ("tar -cf t.tar x y && tar -tf t.tar | tac", "y\nx"),
    ("gzip -k x && gunzip -c x.gz | tail -1", "two"),
    ("for i in 1 2 3; do echo $((i * i)); done | xargs", "1 4 9"),
    ("date -u -d @0 +%Y", "1970"),
    ("js -e 'console.log(6 * 7)'", "42"),
]


class Wrong(Exception):
    """A failed check of a packaged kiso."""


def run(kiso, *args, home=None, env=None, code=0, stdin=None, cwd=None):
    """Runs kiso and returns its standard output."""
    full = dict(os.environ, TZ="UTC", **(env or {}))
    full.pop("KISO_LOG", None)
    if home:
        full["KISO_HOME"] = str(home)
    done = subprocess.run([*kiso, *args], env=full, capture_output=True, text=True, timeout=GUARD_SECONDS, input=stdin or "", cwd=cwd)
    if code is not None and done.returncode != code:
        raise Wrong(f"{' '.join([*kiso, *args])}\nended with {done.returncode} and not {code}\n{done.stdout}{done.stderr}")
    return done.stdout


def must(condition, what):
    if not condition:
        raise Wrong(what)


def readme_job():
    """The message of the README's first command, and its file."""
    block = re.search(r"```sh\n.*?run --file (\S+) '([^']+)'\n```", (ROOT / "README.md").read_text(), re.S)
    return ROOT / block[1], block[2]


def everything(kiso, env=None, compiling=None, say=print):
    """Runs all checks. `compiling` is the environment for the compiler process of kiso, if that must be different."""
    with tempfile.TemporaryDirectory(prefix="kiso-work-") as scratch:
        home = Path(scratch) / "home"
        first_job(kiso, home, env)
        say("  the README's first job")
        skills(kiso, home, env)
        say("  every bundled skill")
        lines(kiso, home, env)
        say(f"  {len(LINES)} command lines")
        compiled(kiso, Path(scratch) / "compiling", compiling or env, Path(scratch))
        say("  a skill, compiled and called")
        doctor = run(kiso, "doctor", "--offline", home=home, env=env)
        must("FAIL" not in doctor, doctor)
        say("  doctor")
        daemon(kiso, home, env)
        say("  a daemon with ten messages")


def first_job(kiso, home, env):
    file, message = readme_job()
    printed = run(kiso, "run", "--file", str(file), message, home=home, env=env)
    public = home / "sessions/default/work/pub"
    must(list(public.glob("*.svg")) and list(public.glob("*.png")), f"there is no chart in {public}\n{printed}")
    must("Lisbon" in printed or "Oslo" in printed, printed)


def skills(kiso, home, env):
    listed = [json.loads(line) for line in run(kiso, "skill", "list", "--json", home=home, env=env).splitlines()]
    bundled = {skill["skill"] for skill in listed if skill["origin"] == "bundled"}
    must(bundled == {"chart", "data", "document", "feed", "fetch", "search"}, f"bundled skills: {bundled}")
    described = run(kiso, "skill", "run", "data", "file=weather.csv", "describe=true", home=home, env=env)
    must("city" in described, described)
    drawn = run(kiso, "skill", "run", "chart", "file=weather.csv", "out=pub/again.svg", home=home, env=env)
    must((home / "sessions/default/work/pub/again.svg").exists(), drawn)
    # Without a network, these two run up to the request to a host that is not granted.
    for name in ("fetch", "feed"):
        refused = run(kiso, "--json", "skill", "run", name, "url=https://example.com/", home=home, env=env, code=None)
        must("example.com" in refused and "grant" in refused, f"{name}: {refused}")


def lines(kiso, home, env):
    for line, wanted in LINES:
        printed = run(kiso, "shell", "-c", line, home=home, env=env)
        must(printed.rstrip("\n") == wanted, f"{line}\nprinted {printed!r} and not {wanted!r}")


def compiled(kiso, home, env, scratch):
    """A WASI command as bytes of a component: it is compiled during the installation, and then runs from the cache."""
    wasm = Path(scratch) / "answer.wasm"
    wasm.write_bytes(module())
    run(kiso, "skill", "add", str(wasm), "--grant", "all", home=home, env=env)
    for _ in range(2):
        printed = run(kiso, "skill", "run", "answer", home=home, env=env)
        must("compiled here" in printed, printed)


def module():
    """A core module for WASI preview 1 that prints a line with `fd_write`."""

    def leb(n):
        out = b""
        while True:
            n, low = n >> 7, n & 127
            out += bytes([low | (128 if n else 0)])
            if not n:
                return out

    def section(number, body):
        return bytes([number]) + leb(len(body)) + body

    def name(text):
        return leb(len(text)) + text.encode()

    text = b"compiled here\n"
    types = b"\x02" + b"\x60\x04\x7f\x7f\x7f\x7f\x01\x7f" + b"\x60\x00\x00"
    imports = b"\x01" + name("wasi_snapshot_preview1") + name("fd_write") + b"\x00\x00"
    exports = b"\x02" + name("memory") + b"\x02\x00" + name("_start") + b"\x00\x01"
    # fd_write(1, 8, 1, 20); its result is dropped.
    code = b"\x00\x41\x01\x41\x08\x41\x01\x41\x14\x10\x00\x1a\x0b"
    iovec = (32).to_bytes(4, "little") + len(text).to_bytes(4, "little")
    data = b"\x02" + b"\x00\x41\x08\x0b" + leb(len(iovec)) + iovec + b"\x00\x41\x20\x0b" + leb(len(text)) + text
    return (
        b"\0asm\x01\0\0\0"
        + section(1, types)
        + section(2, imports)
        + section(3, b"\x01\x01")
        + section(5, b"\x01\x00\x01")
        + section(7, exports)
        + section(10, b"\x01" + leb(len(code)) + code)
        + section(11, data)
    )


def daemon(kiso, home, env, count=10):
    """Starts a daemon, sends messages to a session, waits until each is done, and stops the daemon cleanly."""
    full = dict(os.environ, KISO_HOME=str(home), **(env or {}))
    full.pop("KISO_LOG", None)
    command = [*kiso, "--json", "serve", "--port", "0"]
    served = subprocess.Popen(command, env=full, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        listening = served.stdout.readline()
        must(listening, "the daemon does not listen")
        url = json.loads(listening)["url"]
        for n in range(count):
            sent = ask(f"{url}/msg", {"session": "ten", "text": f"$ echo $(({n} * {n} + 1000))"})
            wait_done(url, sent["message"])
        replies = [m["text"] for m in ask(f"{url}/sessions/ten/messages?limit=100")["items"] if m["role"] == "assistant"]
        told = " ".join(replies)
        must(all(str(n * n + 1000) in told for n in range(count)), told)
    finally:
        served.send_signal(signal.SIGTERM)
        _, errors = served.communicate(timeout=GUARD_SECONDS)
    must(served.returncode == 0, f"the daemon ended with {served.returncode}\n{errors}")


def ask(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=GUARD_SECONDS) as answer:
        return json.load(answer)


def wait_done(url, message):
    deadline = time.monotonic() + GUARD_SECONDS
    while (state := ask(f"{url}/messages/{message}"))["status"] != "done":
        must(state["status"] in ("queued", "running"), f"message {message}: {state}")
        must(time.monotonic() < deadline, f"message {message} is not answered: {state}")
        time.sleep(0.05)
