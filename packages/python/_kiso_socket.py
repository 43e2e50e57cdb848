# `socket` where the host makes requests (`_kiso_http.py`): stream sockets that connect, and names that are looked up by the host alone.
import errno
import os
import select as _select_module
import time

import _kiso_http

# Numbers of sockets, which no file has.
_FIRST = 1 << 24

NO_LISTENING = "programs cannot be servers here; they can make requests"
NO_DATAGRAMS = "programs have neither UDP nor raw sockets here; they can make requests with HTTP and HTTPS"
NEVER = "nothing can be received: no request was sent, and hosts are reached with HTTP and HTTPS only"
NO_SOCKET_FILES = "no program listens at a file here"
NO_SUCH_SOCKET = "it is not a socket"

# Open sockets by their numbers.
_open = {}
_next = _FIRST

# Addresses that stand for names, so that a program that looks a name up connects to the name: nothing asks a name server.
_by_name, _by_address = {}, {}


def _placeholder(name):
    address = _by_name.get(name)
    if address is None:
        at = len(_by_name) + 1
        # 198.18.0.0/15 is for tests of networks, so no host has an address there.
        local = name == "localhost" or name.endswith(".localhost")
        begin = "127.83" if local else f"198.{18 + (at >> 16 & 1)}"
        address = f"{begin}.{at >> 8 & 255}.{at & 255}"
        _by_name[name], _by_address[address] = address, name
    return address


class _State:
    """The state of a socket, shared by all of its objects."""

    def __init__(self, family, kind, proto):
        self.family, self.kind, self.proto = family, kind, proto
        self.connection = self.peer = None
        self.options = {}


def _member(enum, value):
    """The member of an enumeration, or the number where it has none."""
    try:
        return enum(value)
    except ValueError:
        return value


def patch(module):
    """Puts the socket of this module, and its ways to look names up, into `socket`."""
    own = module.socket
    for name, value in (
        ("SO_REUSEADDR", 2), ("SO_ERROR", 4), ("SO_BROADCAST", 6), ("SO_SNDBUF", 7), ("SO_RCVBUF", 8), ("SO_KEEPALIVE", 9),
        ("SO_LINGER", 13), ("SO_REUSEPORT", 15), ("SO_RCVTIMEO", 20), ("SO_SNDTIMEO", 21), ("SOCK_RAW", 3), ("AF_UNIX", 3),
    ):  # fmt: skip
        if not hasattr(module, name):
            setattr(module, name, value)

    def numeric(host):
        for family in (module.AF_INET, module.AF_INET6):
            try:
                module.inet_pton(family, host)
                return family
            except (OSError, ValueError):
                pass
        return None

    def port_number(port):
        if port is None or port == "":
            return 0
        if isinstance(port, (bytes, str)):
            text = port.decode() if isinstance(port, bytes) else port
            return int(text) if text.isdigit() else getservbyname(text)
        if not 0 <= port <= 65535:
            raise OverflowError("getaddrinfo(): port must be 0-65535.")
        return port

    def getservbyname(name, protocol=None):
        port = {"http": 80, "https": 443}.get(name)
        if port is None:
            raise module.gaierror(module.EAI_SERVICE, "Servname not supported for ai_socktype")
        return port

    def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
        port = port_number(port)
        if isinstance(host, bytes):
            host = host.decode()
        if host is None or host == "":
            host = "127.0.0.1"
        found = numeric(host)
        if found is None:
            # As in a name server's answer; a name with other letters is sent as it would be there.
            try:
                host = host.rstrip(".").encode("idna").decode().lower()
            except UnicodeError:
                raise module.gaierror(module.EAI_NONAME, "Name or service not known") from None
            if not host or flags & module.AI_NUMERICHOST or family not in (0, module.AF_INET):
                raise module.gaierror(module.EAI_NONAME, "Name or service not known")
            host, found = _placeholder(host), module.AF_INET
        elif family not in (0, found):
            raise module.gaierror(module.EAI_ADDRFAMILY, "Address family for hostname not supported")
        address = (host, port) if found == module.AF_INET else (host, port, 0, 0)
        kinds = [(module.SOCK_STREAM, module.IPPROTO_TCP), (module.SOCK_DGRAM, module.IPPROTO_UDP)]
        return [
            (module.AddressFamily(found), module.SocketKind(kind), number, "", address)
            for kind, number in kinds
            if type in (0, kind) and proto in (0, number)
        ]

    def gethostbyname(name):
        return getaddrinfo(name, None, module.AF_INET, module.SOCK_STREAM)[0][4][0]

    def gethostbyname_ex(name):
        return name, [], [gethostbyname(name)]

    def gethostbyaddr(address):
        name = _by_address.get(address)
        if name is None:
            raise module.herror(1, "Unknown host")
        return name, [], [address]

    def getnameinfo(address, flags):
        host, port = address[:2]
        return (host if flags & module.NI_NUMERICHOST else _by_address.get(host, host)), str(port)

    class socket:
        """A socket that connects to hosts, whose requests the host makes."""

        def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
            global _next
            self._fd, self._io_refs, self._closed = -1, 0, False
            self._timeout = module.getdefaulttimeout()
            if fileno is not None:
                if fileno not in _open:
                    raise OSError(errno.EBADF, NO_SUCH_SOCKET)
                self._fd = fileno
                return
            family = module.AF_INET if family == -1 else family
            kind = module.SOCK_STREAM if type == -1 else type
            if family not in (module.AF_INET, module.AF_INET6, module.AF_UNIX):
                raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
            nonblock, cloexec = getattr(module, "SOCK_NONBLOCK", 0), getattr(module, "SOCK_CLOEXEC", 0)
            if kind & nonblock:
                self._timeout = 0.0
            kind &= ~(nonblock | cloexec)
            if kind != module.SOCK_STREAM:
                raise OSError(errno.ENOTSUP, NO_DATAGRAMS)
            _next += 1
            self._fd = _next
            _open[_next] = _State(family, kind, 0 if proto == -1 else proto)

        # Files of it, and its end, are those of Python's own.
        makefile = own.makefile
        _decref_socketios = own._decref_socketios
        close = own.close
        __enter__, __exit__ = own.__enter__, own.__exit__
        sendfile, _sendfile_use_send = own.sendfile, own._sendfile_use_send
        _check_sendfile_params = own._check_sendfile_params

        def __repr__(self):
            state = _open.get(self._fd)
            peer = f", raddr={state.peer}" if state and state.peer else ""
            return f"<socket.socket fd={self._fd}{' [closed]' if state is None else ''}{peer}>"

        def __getstate__(self):
            raise TypeError(f"cannot pickle {self.__class__.__name__!r} object")

        def __del__(self):
            try:
                self._real_close()
            except Exception:
                pass

        def _state(self):
            state = _open.get(self._fd)
            if state is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            return state

        def _connected(self):
            connection = self._state().connection
            if connection is None:
                raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
            return connection

        family = property(lambda self: _member(module.AddressFamily, self._state().family))
        type = property(lambda self: module.SocketKind(self._state().kind))
        proto = property(lambda self: self._state().proto)
        timeout = property(lambda self: self._timeout)

        def fileno(self):
            return self._fd

        def _real_close(self, _ss=None):
            state = _open.pop(self._fd, None)
            self._fd, self._closed = -1, True
            if state is not None and state.connection is not None:
                state.connection.close()

        def detach(self):
            self._closed = True
            number, self._fd = self._fd, -1
            return number

        def dup(self):
            raise OSError(errno.ENOTSUP, "a socket cannot be copied here")

        def get_inheritable(self):
            return False

        def set_inheritable(self, inheritable):
            pass

        def settimeout(self, value):
            if value is not None and value < 0:
                raise ValueError("Timeout value out of range")
            self._timeout = None if value is None else float(value)

        def gettimeout(self):
            return self._timeout

        def setblocking(self, flag):
            self._timeout = None if flag else 0.0

        def getblocking(self):
            return self._timeout != 0.0

        def setsockopt(self, level, option, *value):
            self._state().options[level, option] = value[0] if value else 0

        def getsockopt(self, level, option, buflen=None):
            if (level, option) == (module.SOL_SOCKET, module.SO_TYPE):
                return self._state().kind
            value = self._state().options.get((level, option), 0)
            return value if buflen is None else int(value).to_bytes(max(buflen, 4), "little")[:buflen]

        def bind(self, address):
            # The port of a client, which is the host's business.
            if self._state().family == module.AF_UNIX or address[1] != 0:
                raise OSError(errno.ENOTSUP, NO_LISTENING)

        def listen(self, backlog=None):
            raise OSError(errno.ENOTSUP, NO_LISTENING)

        accept = listen

        def connect(self, address):
            state = self._state()
            if state.connection is not None:
                raise OSError(errno.EISCONN, os.strerror(errno.EISCONN))
            if state.family == module.AF_UNIX:
                raise FileNotFoundError(errno.ENOENT, NO_SOCKET_FILES)
            host, port = address[:2]
            if numeric(host) is None:
                host = getaddrinfo(host, port, state.family, module.SOCK_STREAM)[0][4][0]
            state.peer = (host, port, *address[2:])
            state.connection = _kiso_http.Connection(_by_address.get(host, host), port)

        def connect_ex(self, address):
            try:
                self.connect(address)
            except OSError as error:
                return error.errno
            return 0

        def getpeername(self):
            self._connected()
            return self._state().peer

        def getsockname(self):
            return ("0.0.0.0", 0) if self._state().family == module.AF_INET else ("::", 0, 0, 0)

        def send(self, data, flags=0):
            return self._connected().send(memoryview(data).cast("B"), self._timeout)

        def sendall(self, data, flags=0):
            self.send(data, flags)

        def sendmsg(self, buffers, ancdata=(), flags=0, address=None):
            return self.send(b"".join(buffers), flags)

        def recv(self, bufsize, flags=0):
            connection = self._connected()
            if not connection.readable() and (self._timeout == 0.0 or connection.pending_request is None):
                if self._timeout == 0.0:
                    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
                if self._timeout is not None:
                    time.sleep(self._timeout)
                    raise TimeoutError("timed out")
                raise _kiso_http.other_protocol(NEVER)
            return connection.receive(bufsize, bool(flags & module.MSG_PEEK), self._timeout)

        def recv_into(self, buffer, nbytes=0, flags=0):
            view = memoryview(buffer).cast("B")
            data = self.recv(nbytes or len(view), flags)
            view[: len(data)] = data
            return len(data)

        def recvfrom(self, bufsize, flags=0):
            return self.recv(bufsize, flags), None

        def recvfrom_into(self, buffer, nbytes=0, flags=0):
            return self.recv_into(buffer, nbytes, flags), None

        def sendto(self, data, *rest):
            raise OSError(errno.ENOTSUP, NO_DATAGRAMS)

        def shutdown(self, how):
            connection = self._connected()
            if how != module.SHUT_WR:
                connection.close()
            connection.closed_by_us = True

    socket.__module__ = "socket"
    socket.__qualname__ = "socket"

    def fromfd(fd, family, type, proto=0):
        return socket(family, type, proto, fileno=fd)

    def close(fd):
        socket(fileno=fd).close()

    def no_pair(*_args, **_kwargs):
        raise OSError(errno.ENOTSUP, "programs have no pairs of sockets here")

    module.socket = module.SocketType = socket
    for function in (getaddrinfo, gethostbyname, gethostbyname_ex, gethostbyaddr, getnameinfo, getservbyname, fromfd, close):
        function.__module__, function.__qualname__ = "socket", function.__name__
        setattr(module, function.__name__, function)
    module.socketpair = no_pair
    module.create_server = lambda *args, **kwargs: socket().listen()
    # As `hostname` says it.
    module.gethostname = lambda: "kiso"
    module.getfqdn = lambda name="": name or "kiso"
    _patch_select(_select_module)


def _number(file):
    return file if isinstance(file, int) else file.fileno()


def _is_readable(number):
    state = _open.get(number)
    return state is None or state.connection is not None and state.connection.readable()


def _wait_for(numbers, timeout):
    """Waits until an answer has come to one of these sockets, or the time is over."""
    connections = [_open[number].connection for number in numbers if number in _open]
    pending = [connection for connection in connections if connection is not None and connection.pending_request is not None]
    if pending:
        _kiso_http.wait_for(pending, timeout)
    elif timeout is None:
        raise _kiso_http.other_protocol(NEVER)
    elif timeout > 0:
        time.sleep(timeout)


def _patch_select(module):
    """`select` and `poll` that know these sockets, too."""
    select_files, PollFiles = module.select, module.poll

    def select(rlist, wlist, xlist, timeout=None):
        rlist, wlist, xlist = list(rlist), list(wlist), list(xlist)
        ours = [file for file in (*rlist, *wlist, *xlist) if _number(file) > _FIRST]
        if not ours:
            return select_files(rlist, wlist, xlist, timeout)
        ready = [file for file in rlist if _number(file) > _FIRST and _is_readable(_number(file))]
        writable = [file for file in wlist if _number(file) > _FIRST]
        files = [[file for file in each if _number(file) <= _FIRST] for each in (rlist, wlist, xlist)]
        if ready or writable:
            timeout = 0
        if any(files):
            found = select_files(*files, timeout)
            return ready + found[0], writable + found[1], found[2]
        if not ready and not writable:
            _wait_for([_number(file) for file in rlist], timeout)
            ready = [file for file in rlist if _is_readable(_number(file))]
        return ready, writable, []

    class poll:
        def __init__(self):
            self._masks = {}

        def register(self, fd, eventmask=module.POLLIN | module.POLLPRI | module.POLLOUT):
            self._masks[_number(fd)] = eventmask

        def modify(self, fd, eventmask):
            if _number(fd) not in self._masks:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            self._masks[_number(fd)] = eventmask

        def unregister(self, fd):
            del self._masks[_number(fd)]

        def _ready(self):
            found = []
            for number, mask in self._masks.items():
                if number > _FIRST:
                    events = mask & module.POLLOUT
                    if mask & module.POLLIN and _is_readable(number):
                        events |= module.POLLIN
                    if events:
                        found.append((number, events))
            return found

        def poll(self, timeout=None):
            found = self._ready()
            files = {number: mask for number, mask in self._masks.items() if number <= _FIRST}
            if files:
                real = PollFiles()
                for number, mask in files.items():
                    real.register(number, mask)
                found += real.poll(0 if found else timeout)
            elif not found:
                _wait_for(self._masks, None if timeout is None or timeout < 0 else timeout / 1000)
                found = self._ready()
            return found

    module.select, module.poll = select, poll
