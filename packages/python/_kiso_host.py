# WASI has no processes. The host starts commands for a program that asks in a file: what is written there is a request, `fsync` returns
# when it is answered, and the answer can be read then. `_kiso_subprocess.py` makes `subprocess` of it.
#
#     request, answer:  u32 length of JSON | u32 length of bytes | JSON | bytes      (little endian)
import errno
import json
import os

_CONTROL = os.path.join(os.path.dirname(__file__), "kiso-commands")
_BIN = ("/usr/local/bin/", "/usr/bin/", "/bin/")

NO_COMMANDS = "Python may not start commands here, because it may not write to the workspace: see `kiso skill info python3`"

_open = None

# Requests of destroyed objects while an answer is on its way: objects may be destroyed at any time.
_asking, _later = False, []


def ask(request, data=b""):
    """The answer of the host, and the bytes that come with it."""
    global _asking
    _asking = True
    try:
        return _ask(request, data)
    finally:
        _asking = False
        while _later and not _asking:
            tell(_later.pop())


def tell(request):
    """Asks for what has no answer, now or as soon as it can be."""
    if _asking:
        _later.append(request)
        return
    try:
        ask(request)
    except OSError:
        pass


def _ask(request, data):
    global _open
    if _open is None:
        # It is written to all the same: nothing of that is kept in the file.
        _open = os.open(_CONTROL, os.O_RDONLY)
    head = json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass")
    left = memoryview(len(head).to_bytes(4, "little") + len(data).to_bytes(4, "little") + head + bytes(data))
    try:
        while left:
            left = left[os.write(_open, left) :]
    except OSError as error:
        if error.errno == errno.EIO:
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG)) from None
        # An interpreter may be kept after this, whose programs have another file.
        os.close(_open)
        _open = None
        raise OSError(errno.ENOTSUP, NO_COMMANDS) from None
    os.fsync(_open)
    sizes = _read(8)
    answer = json.loads(_read(int.from_bytes(sizes[:4], "little")))
    data = _read(int.from_bytes(sizes[4:], "little"))
    if "errno" in answer:
        error = OSError(getattr(errno, answer["errno"], errno.EIO), answer["said"])
        # Some kinds have no number here; and which request it was that failed.
        error.kind, error.request = answer["errno"], answer.get("request")
        raise error
    return answer, data


def _read(size):
    data = bytearray()
    while len(data) < size:
        part = os.read(_open, size - len(data))
        if not part:
            raise OSError(errno.EIO, "the host's answer is cut off")
        data += part
    return bytes(data)


# The most of a request's body that the host takes at once.
PIECE = 256 << 10


class Upload:
    """An HTTP request whose body goes to the host piece by piece."""

    def __init__(self, head, size=None):
        self.number = ask({**head, "op": "http-open", "size": size})[0]["request"]
        self._answer = None

    def write(self, data, last=False, millis=None):
        """Sends a piece of at most PIECE bytes. Where the server takes no more, it has answered, or this raises the error."""
        if self._answer is None:
            answer = ask({"op": "http-write", "request": self.number, "last": last, "millis": millis}, data)[0]
            if answer.get("full"):
                raise TimeoutError(errno.ETIMEDOUT, "timed out")
            if answer.get("over"):
                self._answer = self.answer()

    def answer(self, millis=None):
        """The head of the answer."""
        if self._answer is None:
            answer = ask({"op": "http-wait", "requests": [self.number], "millis": millis})[0]
            if "request" not in answer:
                raise TimeoutError(errno.ETIMEDOUT, "timed out")
            self._answer = answer
        return self._answer

    def is_answered(self):
        return self._answer is not None

    def close(self):
        tell({"op": "http-close", "body": self.number})


def exists(name):
    return ask({"op": "exists", "name": name})[0]["exists"]


def resolve(argv, env, cwd):
    """The words that the host starts a program by. What is a file is a script, which the shell knows how to start."""
    name = argv[0]
    script = ["sh", "-c", '"$0" "$@"']
    if "/" not in name:
        found = _in_path(name, env.get("PATH", ""), cwd)
        return argv if found is None else [*script, found, *argv[1:]]
    if any(name.startswith(place) and "/" not in name[len(place) :] for place in _BIN):
        return argv
    path = os.path.join(cwd, name)
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    return [*script, *argv]


def _in_path(name, path, cwd):
    """The first script of that name; none where a command comes before it."""
    places = [place for place in path.split(":") if place]
    if all(f"{place}/" in _BIN for place in places):
        return None
    for place in places:
        if f"{place}/" in _BIN:
            if exists(name):
                return None
            continue
        found = os.path.join(cwd, place, name)
        if os.path.isfile(found):
            return found
    return None


def start(argv, env, cwd, streams):
    name = argv[0]
    try:
        return ask({"op": "start", "argv": argv, "env": env, "cwd": cwd, "streams": streams})[0]
    except FileNotFoundError as error:
        # The host says what helps instead.
        hint = f" ({error.strerror})" if error.strerror else ""
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT) + hint, name) from None


def kill(number, signal):
    """Ends a command by its number, whatever the signal is; 0 asks whether it is there."""
    try:
        answer, _ = ask({"op": "kill" if signal else "alive", "child": number})
    except OSError:
        answer = {"alive": False}
    if answer.get("alive") is False:
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
