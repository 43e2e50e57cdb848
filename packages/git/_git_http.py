# Requests of git to a server: the host makes them (`_kiso_host.py`). Passwords, redirects, and what goes wrong in git's words.
import base64
import os
import re
import subprocess
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

from _git_core import Failure
from _git_receive import say_remote

# Bytes that the host gives at once.
PIECE = 256 << 10
REDIRECTS = 5
AGENT = "git/2.47.3"


def without_password(url):
    """An address as it is shown."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if "@" in parts.netloc else url


class Response:
    """An answer whose body is read piece by piece."""

    def __init__(self, answer):
        self.status = answer["status"]
        self.headers = dict(answer["headers"])
        self._number, self._data = answer.get("body"), bytearray()

    def read(self, count):
        """So many bytes, or as many as there are."""
        while len(self._data) < count and self._number is not None:
            self._more()
        data = bytes(self._data[:count])
        del self._data[:count]
        return data

    def _more(self):
        from _kiso_host import ask

        try:
            data = ask({"op": "http-read", "body": self._number, "max": PIECE})[1]
        except OSError as why:
            self._number = None
            raise Failure(f"the server's answer is cut off: {why.strerror}")
        if not data:
            self._number = None
        self._data += data

    def rest(self, most=1 << 20):
        return self.read(most)

    def close(self):
        if self._number is not None:
            from _kiso_host import tell

            tell({"op": "http-close", "body": self._number})
            self._number = None


def _upload(asked, body):
    """Sends a body, a long one while it is made; the head of the answer."""
    from _kiso_host import PIECE, Upload, ask

    upload, data = None, bytearray()

    def write(more):
        nonlocal upload
        for at in range(0, len(more), PIECE):
            data.extend(more[at : at + PIECE])
            while len(data) > PIECE:
                upload = upload or Upload(asked)
                upload.write(bytes(data[:PIECE]))
                del data[:PIECE]

    body(write)
    if upload is None:
        return ask(asked, data)[0]
    upload.write(bytes(data), last=True)
    return upload.answer()


class Server:
    """A repository at an address. The address changes where the server says so for its first answer."""

    def __init__(self, url, settings):
        parts = urlsplit(url)
        self.given = url
        self.shown = without_password(url)
        self.settings = settings
        self.user = unquote(parts.username) if parts.username else None
        self.password = unquote(parts.password) if parts.password is not None else None
        self.url = self.shown.rstrip("/") + "/"
        self._authorized = False

    def get(self, tail, headers):
        url = urljoin(self.url, tail)
        for _ in range(REDIRECTS + 1):
            response = self._ask("GET", url, headers)
            if response.status not in (301, 302, 303, 307, 308):
                return response
            response.close()
            target = urljoin(url, response.headers.get("location", ""))
            before, after = urlsplit(url), urlsplit(target)
            if after.scheme not in ("http", "https") or before.scheme == "https" and after.scheme == "http":
                raise self.failure(f"the server redirects to {without_password(target)}, which is not followed")
            if not target.endswith(tail):
                raise Failure(f"unable to update url base from redirection:\n  asked for: {url}\n   redirect: {target}")
            if before.netloc != after.netloc:
                # Credentials for one host are not sent to another.
                self.user = self.password = None
                self._authorized = False
            url, self.url = target, target[: -len(tail)]
        raise self.failure("Maximum (20) redirects followed")

    def post(self, tail, headers, body):
        """`body` is bytes, or a function that writes them with the function that it is given."""
        return self._ask("POST", urljoin(self.url, tail), headers, body)

    def _ask(self, method, url, headers, body=b""):
        tries = 0
        while True:
            response = self._send(method, url, {**headers, **self._authorization()}, body)
            if response.status == 401 and tries < 2 and self._find_password(tries):
                response.close()
                tries += 1
                continue
            if response.status == 200 or response.status in (301, 302, 303, 307, 308):
                self._authorized = True
                return response
            raise self._refused(response)

    def _send(self, method, url, headers, body):
        from _kiso_host import ask

        asked = {"op": "http", "method": method, "url": url, "headers": [["user-agent", AGENT], *map(list, headers.items())]}
        try:
            return Response(_upload(asked, body) if callable(body) else ask(asked, body)[0])
        except OSError as why:
            raise self._unreached(urlsplit(url), why) from None

    def failure(self, words):
        return Failure(f"unable to access '{self.shown.rstrip('/')}/': {words}")

    def _unreached(self, parts, why):
        port = parts.port or (443 if parts.scheme == "https" else 80)
        kind = getattr(why, "kind", "")
        words = {
            "EAI_NONAME": f"Could not resolve host: {parts.hostname}",
            "ECONNREFUSED": f"Failed to connect to {parts.hostname} port {port} after 0 ms: Couldn't connect to server",
            "ETIMEDOUT": f"Failed to connect to {parts.hostname} port {port}: Connection timed out",
            "ECERT": f"SSL certificate problem: {why.strerror}",
        }
        return self.failure(words.get(kind, why.strerror))

    def _refused(self, response):
        text = response.rest(4096) if response.headers.get("content-type", "").startswith("text/plain") else b""
        response.close()
        if text.strip():
            say_remote(text.decode(errors="replace").strip())
        if response.status == 401:
            if self.password is not None:
                return Failure(f"Authentication failed for '{self.shown.rstrip('/')}/'")
            site = self._site()
            disabled = os.environ.get("GIT_TERMINAL_PROMPT") in ("", "0", "false")
            why = "terminal prompts disabled" if disabled else "No such device or address"
            return Failure(f"could not read Username for '{site}': {why}")
        if response.status in (404, 410):
            return Failure(f"repository '{self.shown.rstrip('/')}/' not found")
        return self.failure(f"The requested URL returned error: {response.status}")

    # Who asks.

    def _authorization(self):
        found = {}
        for key in ("http.extraheader", f"http.{self._site()}/.extraheader"):
            name, colon, value = (self.settings.get(key) or "").partition(":")
            if colon:
                found[name.strip().lower()] = value.strip()
        if self.password is not None:
            pair = f"{self.user or ''}:{self.password}"
            found["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        return found

    def _site(self):
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def _find_password(self, tries):
        """Whether there is another password to try than the one that was refused."""
        if tries == 0 and self._stored():
            return True
        program = os.environ.get("GIT_ASKPASS") or self.settings.get("core.askpass")
        if not program or tries > 0 and self.password is not None:
            return False
        named = f"{quote(self.user, safe='')}@" if self.user else ""
        site = self._site()
        if self.user is None:
            self.user = self._answer(program, f"Username for '{site}': ")
            named = f"{quote(self.user, safe='')}@"
        self.password = self._answer(program, f"Password for '{site.replace('://', '://' + named)}': ")
        return True

    def _answer(self, program, question):
        done = subprocess.run(["sh", "-c", f'{program} "$1"', program, question], stdout=subprocess.PIPE)
        if done.returncode:
            raise Failure(f"unable to read askpass response from '{program}'")
        return done.stdout.decode(errors="replace").split("\n")[0]

    def _stored(self):
        """Takes the password for this site out of the file that `credential.helper store` keeps, if it is told to."""
        helper = re.fullmatch(r"store(?:\s+--file[ =](\S+))?", self.settings.get("credential.helper") or "")
        if helper is None:
            return False
        path = os.path.expanduser(helper[1] or os.path.join(os.environ.get("HOME") or "/", ".git-credentials"))
        own = urlsplit(self.url)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                for line in file:
                    found = urlsplit(line.strip())
                    same = (found.scheme, found.hostname, found.port) == (own.scheme, own.hostname, own.port)
                    if same and found.password and self.user in (None, unquote(found.username or "")):
                        self.user, self.password = unquote(found.username or ""), unquote(found.password)
                        return True
        except (OSError, ValueError):
            pass
        return False
