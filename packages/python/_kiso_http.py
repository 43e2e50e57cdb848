# A connection over which a program speaks HTTP. WASI has no connections here: the host makes requests for a program, so what is sent is
# read as requests, the host makes each of them, and what comes back is written as a server would write it. `_kiso_socket.py` makes
# `socket` of it, and so everything that stands on that: http.client, urllib, requests, httpx, asyncio.
import errno
import re

from _kiso_host import PIECE, Upload, ask, tell

# The limits of the host. A body that is longer than a piece goes there piece by piece.
MOST_BODY = 1 << 30
MOST_HEAD = 1 << 20
MOST_LINE = 4096

ONLY_HTTP = "hosts are reached with HTTP and HTTPS only, and this is another protocol"
NO_WEBSOCKET = "WebSocket connections are not available here; requests are"
NO_PROXY = "requests cannot go through a proxy here; unset HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
TOO_LARGE = "the body of a request has at most 1 GiB"

# How a stream begins that `ssl` has wrapped, up to the end of the line: the name in the certificate. No request begins so.
TLS_MARK = b"\x16kiso-tls "

_START = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([^ \r\n]+) HTTP/1\.([01])\Z")
_MAYBE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}( [^\r\n]*)?\r?\Z")

# Headers of a response's framing, which is made again here.
_FRAMING = frozenset(("connection", "keep-alive", "transfer-encoding", "proxy-connection", "upgrade"))


def other_protocol(words=ONLY_HTTP):
    return OSError(errno.ENOTSUP, words)


_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;.*)?\Z", re.DOTALL)


class _Chunks:
    """A body that comes in chunks."""

    size = None

    def __init__(self):
        self.body = bytearray()
        self._taken = self._left = 0
        # Whether the line break behind a chunk is still to come.
        self._breaks = False

    def take(self, data):
        """Moves what has come from `data` to `body`; whether that was all."""
        while True:
            if self._left:
                part = data[: self._left]
                del data[: len(part)]
                self.body += part
                self._left -= len(part)
                if self._left:
                    return False
                self._breaks = True
            if self._breaks:
                if len(data) < 2:
                    return False
                del data[:2]
                self._breaks = False
            end = data.find(b"\r\n")
            if end < 0:
                if len(data) > MOST_LINE:
                    raise other_protocol()
                return False
            size = _SIZE.match(data[:end])
            if size is None:
                raise other_protocol()
            self._left = int(size[1], 16)
            if self._left == 0:
                return self._trailers(data, end)
            self._taken += self._left
            if self._taken > MOST_BODY:
                raise OSError(errno.EMSGSIZE, TOO_LARGE)
            del data[: end + 2]

    def _trailers(self, data, end):
        while True:
            next_end = data.find(b"\r\n", end + 2)
            if next_end < 0:
                if len(data) > MOST_HEAD:
                    raise other_protocol()
                return False
            if next_end == end + 2:
                del data[: next_end + 2]
                return True
            end = next_end


class _Sized:
    """A body of so many bytes."""

    def __init__(self, size):
        if size > MOST_BODY:
            raise OSError(errno.EMSGSIZE, TOO_LARGE)
        self.body, self.size, self._left = bytearray(), size, size

    def take(self, data):
        part = data[: self._left]
        del data[: len(part)]
        self.body += part
        self._left -= len(part)
        return not self._left


class _Request:
    def __init__(self, head):
        lines = head.split(b"\r\n")
        found = _START.match(lines[0])
        if found is None:
            raise other_protocol()
        self.method, self.target = found[1].decode(), found[2].decode("latin-1")
        self.closes = found[3] == b"0"
        self.headers, self.expects, size, chunked = [], False, 0, False
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            name, value = name.decode("latin-1").lower(), value.strip().decode("latin-1")
            if not colon or not name.strip():
                raise other_protocol()
            if name == "content-length":
                if not value.isdigit():
                    raise other_protocol()
                size = int(value)
            elif name == "transfer-encoding":
                chunked = value.lower() == "chunked"
            elif name == "connection":
                words = [word.strip() for word in value.lower().split(",")]
                self.closes = "close" in words or self.closes and "keep-alive" not in words
            elif name == "expect":
                self.expects = value.lower() == "100-continue"
            elif name == "upgrade" and value.lower() == "websocket":
                raise other_protocol(NO_WEBSOCKET)
            elif name != "host":
                self.headers.append([name, value])
        self.content = _Chunks() if chunked else _Sized(size)

    def url(self, scheme, authority):
        target = self.target
        if self.method == "CONNECT":
            raise other_protocol(NO_PROXY)
        if not target.startswith("/"):
            if target == "*":
                raise other_protocol("the host makes no request for *")
            own, _, rest = target.partition("://")[2].partition("/")
            if own.lower() != authority.lower():
                raise other_protocol(NO_PROXY)
            target = "/" + rest
        return f"{scheme}://{authority}{target}"


class Connection:
    """A connection to a port of a host, by the name that the program has for it."""

    def __init__(self, host, port):
        self.host, self.port = host, port
        # The name that `ssl` was given, "" where it was given none; None where it was not asked.
        self.tls = None
        self.closed_by_us = self.closed = False
        self._sent, self._received = bytearray(), bytearray()
        # The request that is being sent, and what takes its body where that is long.
        self._request = self._upload = None
        # A request that is not answered yet, and its number, where the program does not wait.
        self._asked = self.pending_request = None
        # The body of a response that is still to be read, its number and whether it is written in chunks; and what ends it all.
        self._body = self._chunked = None
        self._closes = False
        self._error = None
        self._started = False

    # The program sends.

    def send(self, data, within=None):
        if self._error is not None:
            raise self._again()
        if self.closed:
            raise BrokenPipeError(errno.EPIPE, "the connection is closed")
        for at in range(0, len(data), PIECE):
            self._sent += data[at : at + PIECE]
            self._advance(within)
        return len(data)

    def _advance(self, within):
        try:
            while self._body is self.pending_request is None and not self.closed and self._next(within):
                self._perform(within)
        except TimeoutError:
            # A program that sends has not begun to wait.
            self._error = TimeoutError("timed out")
        except Exception as error:
            self._error = error
            raise

    def _next(self, within):
        """Reads a request, as far as it has been sent; whether it is whole. A long body goes on to the host."""
        if self._request is None:
            if self.tls is None and self._sent[:1] == TLS_MARK[:1] and not self._started:
                if not self._take_mark():
                    return False
            while self._sent[:2] == b"\r\n":
                del self._sent[:2]
            end = self._sent.find(b"\r\n\r\n")
            if end < 0:
                self._check_start()
                return False
            head = bytes(self._sent[:end])
            del self._sent[: end + 4]
            self._started = True
            self._request = _Request(head)
            if self._request.expects:
                self._received += b"HTTP/1.1 100 Continue\r\n\r\n"
        content = self._request.content
        whole = content.take(self._sent)
        if self._upload is not None or len(content.body) > PIECE:
            self._pass_on(content.body, whole, within)
        return whole

    def _pass_on(self, body, whole, within):
        """Sends what there is of a long body, in pieces of the same size."""
        # A program that does not wait has nothing to do before there is room.
        millis = max(1, int(within * 1000)) if within else None
        try:
            if self._upload is None:
                self._upload = Upload(self._head(), self._request.content.size)
            while len(body) >= PIECE or whole:
                part = bytes(body[:PIECE])
                del body[: len(part)]
                last = whole and not body
                self._upload.write(part, last, millis)
                if last:
                    return
        except TimeoutError:
            raise
        except OSError as error:
            raise as_error(error) from None

    def _head(self):
        request = self._request
        url = request.url("http" if self.tls is None else "https", self.authority())
        return {"op": "http", "method": request.method, "url": url, "headers": request.headers}

    def _take_mark(self):
        end = self._sent.find(b"\n")
        if end < 0:
            return False
        if not self._sent.startswith(TLS_MARK):
            raise other_protocol()
        self.tls = self._sent[len(TLS_MARK) : end].decode()
        del self._sent[: end + 1]
        return True

    def _check_start(self):
        if not self._sent:
            return
        line, found, _ = bytes(self._sent[:8192]).partition(b"\n")
        is_start = _START.match(line.rstrip(b"\r")) if found else _MAYBE.match(line)
        if not is_start or len(self._sent) > MOST_HEAD:
            raise other_protocol()

    def authority(self):
        if self.tls and self.tls.lower().rstrip(".") != self.host.lower().rstrip("."):
            raise _certificate_error(f"hostname mismatch: the connection is to {self.host}, and not to {self.tls}")
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 80 if self.tls is None else 443
        return host if self.port == usual else f"{host}:{self.port}"

    def _perform(self, within):
        asked = self._head()
        request, self._request = self._request, None
        upload, self._upload = self._upload, None
        millis = max(1, int(within * 1000)) if within else None
        if upload is not None and within == 0 and not upload.is_answered():
            self._asked, self.pending_request = request, upload.number
            return
        try:
            if upload is not None:
                answer = upload.answer(millis)
            else:
                asked.update({"later": True} if within == 0 else {"millis": millis})
                answer = ask(asked, bytes(request.content.body))[0]
        except OSError as error:
            if upload is not None:
                upload.close()
            raise as_error(error) from None
        if within == 0 and upload is None:
            self._asked, self.pending_request = request, answer["request"]
        else:
            self._answer(request, answer)

    def answered(self, answer):
        """The host has the answer to the request that is pending, or the error."""
        request, self._asked, self.pending_request = self._asked, None, None
        if isinstance(answer, OSError):
            self._error = as_error(answer)
        else:
            self._answer(request, answer)

    def _answer(self, request, answer):
        from http.client import responses

        status, number = answer["status"], answer.get("body")
        empty = request.method == "HEAD" or status in (204, 304) or status < 200
        head = [f"HTTP/1.1 {status} {responses.get(status, '')}"]
        sized = False
        for name, value in answer["headers"]:
            if name in _FRAMING:
                continue
            sized = sized or name == "content-length"
            head.append("-".join(part.capitalize() for part in name.split("-")) + f": {value}")
        self._closes = request.closes
        self._chunked = not (empty or sized or request.closes)
        if self._chunked:
            head.append("Transfer-Encoding: chunked")
        if request.closes:
            head.append("Connection: close")
        self._received += "\r\n".join([*head, "", ""]).encode("latin-1", "replace")
        if empty and number is not None:
            tell({"op": "http-close", "body": number})
            number = None
        self._body = number
        if number is None:
            if self._chunked:
                self._received += b"0\r\n\r\n"
            self.closed = self._closes

    # The program receives.

    def pending(self):
        return len(self._received)

    def readable(self):
        """Whether there is something to receive, which may be that there is no more."""
        if not self._received and self._body is None and self._sent and not self.closed and self._error is None:
            # Requests that were sent before the last one was answered.
            try:
                self._advance(0)
            except OSError:
                pass
        return bool(self._received) or self._body is not None or self.closed or self.closed_by_us or self._error is not None

    def receive(self, count, keep=False, within=None):
        if self.pending_request is not None and not wait_for([self], within):
            raise TimeoutError("timed out")
        if not self._received and self._body is not None:
            self._read(within or None)
        if not self._received and self._error is None and self._sent:
            self._advance(within or None)
        if not self._received and self._error is not None:
            raise self._again()
        data = bytes(self._received[:count])
        if not keep:
            del self._received[:count]
        return data

    def _read(self, within):
        asked = {"op": "http-read", "body": self._body, "max": PIECE}
        if within is not None:
            asked["millis"] = max(1, int(within * 1000))
        try:
            data = ask(asked)[1]
        except TimeoutError:
            raise TimeoutError("timed out") from None
        except OSError as error:
            self._body, self.closed = None, True
            if getattr(error, "kind", None) == "EIO":
                # It ended before its end, which is what a program sees elsewhere, too.
                return
            self._error = ConnectionResetError(errno.ECONNRESET, error.strerror)
            raise self._again() from None
        if data:
            self._received += b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data
            return
        if self._chunked:
            self._received += b"0\r\n\r\n"
        self._body, self.closed = None, self._closes

    def _again(self):
        error = self._error
        try:
            return type(error)(*error.args)
        except TypeError:
            return error

    def close(self):
        number = self._body if self.pending_request is None else self.pending_request
        if number is not None:
            tell({"op": "http-close", "body": number})
        if self._upload is not None:
            self._upload.close()
        self._body = self.pending_request = self._upload = None
        self.closed = True
        self._sent.clear()
        self._received.clear()


def wait_for(connections, within):
    """Waits for the answer to one of the requests that are pending; whether there was one."""
    asked = {"op": "http-wait", "requests": [connection.pending_request for connection in connections]}
    if within is not None:
        asked["millis"] = max(0, int(within * 1000))
    try:
        answer = ask(asked)[0]
        number = answer.get("request")
    except OSError as error:
        answer, number = error, getattr(error, "request", None)
    for connection in connections:
        if number is not None and connection.pending_request == number:
            connection.answered(answer)
            return True
    return False


def as_error(error):
    """The error that a program expects where the host says that a request failed."""
    kind, words = getattr(error, "kind", None), error.strerror or ""
    if kind == "EAI_NONAME":
        import socket

        return socket.gaierror(socket.EAI_NONAME, words or "Name or service not known")
    if kind == "ETLS":
        import ssl

        return ssl.SSLError(1, f"[SSL] {words}")
    return _certificate_error(words) if kind == "ECERT" else error


def _certificate_error(words):
    import ssl

    error = ssl.SSLCertVerificationError(1, f"[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {words}")
    error.reason, error.verify_message, error.verify_code = "CERTIFICATE_VERIFY_FAILED", words, 20
    return error
