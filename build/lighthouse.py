#!/usr/bin/env python3
"""Lighthouse's figures for every screen of the page, as a phone on a slow line would load it.

A kiso with a month of use is started in a directory of its own and asked on 127.0.0.1; nothing else is reached. Needs Chromium
and `lighthouse` (npm install --global lighthouse), or LIGHTHOUSE=/path/to/lighthouse. Screens may be named: `#/usage`.
Fails where a screen has less than 95 points for performance, or shifts by 0.05 or more.

The program is built as packages have it. KISO_PROGRAM=/path/to/kiso names another, such as one that is there already; REPORTS=/path/to/folder
keeps what Lighthouse says of each screen.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("KISO_PROGRAM") or str(ROOT / "target/packaged/kiso")
LEAST, MOST_SHIFTED = 95, 0.05
# A machine that does other work beside it adds to what it measures, never takes from it: the best of so many loads counts.
TRIES = int(os.environ.get("TRIES", "3"))
FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage"
SCREENS = ["/s/weather", "/s/first", "/run", "/run/RUN", "/skills", "/skills/data", "/pills", "/schedule", "/memory", "/usage", "/health"]
AUDITS = {"FCP": "first-contentful-paint", "LCP": "largest-contentful-paint", "TBT": "total-blocking-time", "SI": "speed-index"}
MESSAGES = ["plot temperature over date from weather.csv", "show the first 12 rows of weather.csv", "$ ls -l; head -5 weather.csv"]


class Daemon:
    def __init__(self, home: Path):
        self.kiso = [PROGRAM, "--home", str(home), "--json"]
        (home / "config.toml").write_text('model = "reflex"\n[daemon]\ndebounce_ms = 1\n')
        self.token = json.loads(self.run("token", "add", "lighthouse", "--scope", "admin"))["token"]
        self.process = subprocess.Popen([*self.kiso, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.base = json.loads(self.process.stdout.readline())["url"]

    def run(self, *args: str) -> str:
        return subprocess.run([*self.kiso, *args], check=True, capture_output=True, text=True).stdout

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str):
        headers = {"authorization": f"Bearer {self.token}", **headers}
        return urllib.request.urlopen(urllib.request.Request(self.base + path, body, headers, method=method))

    def fill(self) -> str:
        """A conversation with a chart, tables and commands, and a schedule; gives the id of a run."""
        self.ask("PUT", "/sessions/weather/files/weather.csv", (ROOT / "examples/weather.csv").read_bytes())
        for text in MESSAGES:
            self.run("run", "--session", "weather", text)
        tea = {"name": "tea", "when": "0 16 * * *", "message": "$ echo tea", "session": "weather"}
        self.ask("POST", "/schedules", json.dumps(tea).encode(), **{"content-type": "application/json"})
        return json.load(self.ask("GET", "/runs?limit=1"))["items"][0]["id"]

    def cookie(self) -> str:
        body = json.dumps({"token": self.token}).encode()
        return self.ask("POST", "/login", body, **{"content-type": "application/json"}).headers["set-cookie"].split(";")[0]


def load(lighthouse: str, url: str, cookie: str, to: Path) -> dict:
    headers = json.dumps({"Cookie": cookie})
    command = [lighthouse, url, "--quiet", "--only-categories=performance", "--output=json", f"--output-path={to}"]
    command += [f"--chrome-flags={FLAGS}", f"--extra-headers={headers}"]
    # Chromium now and then records no beginning of a load (NO_NAVSTART), which Lighthouse asks to try again.
    if subprocess.run(command).returncode != 0:
        subprocess.run(command, check=True)
    report = json.loads(to.read_text())
    audits = report["audits"]
    return {
        "score": round(100 * (report["categories"]["performance"]["score"] or 0)),
        "shifted": audits["cumulative-layout-shift"].get("numericValue", 1),
        **{name: round(audits[key].get("numericValue", 0)) for name, key in AUDITS.items()},
    }


def main(wanted: list[str]) -> int:
    lighthouse = os.environ.get("LIGHTHOUSE") or shutil.which("lighthouse")
    if not lighthouse:
        print("there is no lighthouse here: npm install --global lighthouse, or LIGHTHOUSE=/path/to/lighthouse", file=sys.stderr)
        return 2
    browsers = [found for name in ("chromium", "google-chrome", "chromium-headless-shell") if (found := shutil.which(name))]
    if not browsers and "CHROME_PATH" not in os.environ:
        print("there is no Chromium here: apt install chromium, or CHROME_PATH=/path/to/chromium", file=sys.stderr)
        return 2
    os.environ.setdefault("CHROME_PATH", (browsers or [""])[0])
    if "KISO_PROGRAM" not in os.environ:
        subprocess.run(["cargo", "build", "--profile", "packaged", "--package", "kiso"], cwd=ROOT, check=True)
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        daemon = Daemon(Path(directory))
        try:
            run, cookie = daemon.fill(), daemon.cookie()
            for screen in wanted or SCREENS:
                url = f"{daemon.base}/#{screen.removeprefix('#').replace('RUN', run)}"
                report = Path(os.environ.get("REPORTS") or directory) / f"{screen.strip('#/').replace('/', '-')}.json"
                loads = [load(lighthouse, url, cookie, report) for _ in range(TRIES)]
                best = max(loads, key=lambda one: one["score"])
                shifted = max(one["shifted"] for one in loads)
                short = best["score"] < LEAST or shifted >= MOST_SHIFTED
                failed += short
                figures = "  ".join(f"{name} {best[name]:5} ms" for name in AUDITS)
                print(f"{screen:14} {best['score']:3}  {figures}  CLS {shifted:.3f}{'  <-- too little' if short else ''}", flush=True)
        finally:
            daemon.process.terminate()
            daemon.process.wait()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
