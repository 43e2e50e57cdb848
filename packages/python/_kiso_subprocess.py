# `subprocess` on what the host does for programs (`_kiso_host.py`).
import atexit
import errno
import io
import os
import time
import weakref

from _kiso_host import ask, exists, resolve, start, tell

CHUNK = 64 << 10

# Exit codes in command lines for commands that were ended by a signal.
_SIGNALS = {134: 6, 137: 9, 141: 13}

# Commands that read or write files of this program; and what takes the place of a stream of it that they have, too, by its number.
_unfinished, instead_of_own = set(), {}


@atexit.register
def _finish():
    for command in list(_unfinished):
        try:
            command._until(lambda: not command._to_files and command._sink is None, None)
        except OSError:
            pass


class _Pipe(io.RawIOBase):
    """An end of a pipe to a command. While it waits, what else of the command is to be moved is."""

    def __init__(self, number, command, reads):
        self.number = number
        # Not held by its own pipe, so that what nobody uses any more goes at once.
        self._command = weakref.ref(command)
        self._reads = reads

    def readable(self):
        return self._reads

    def writable(self):
        return not self._reads

    def fileno(self):
        raise io.UnsupportedOperation("a pipe to a command has no number here")

    def readinto(self, buffer):
        self._checkClosed()
        data, command = None, self._command()
        while data is None:
            if command is not None:
                data = command._move(wanted=self.number, most=len(buffer))
            else:
                data = ask({"op": "move", "read": [self.number], "max": len(buffer)})[1]
        buffer[: len(data)] = data
        return len(data)

    def write(self, data):
        self._checkClosed()
        left = memoryview(data).cast("B")
        size = len(left)
        while left:
            left = left[_write(self._command(), self.number, left[:CHUNK]) :]
        return size

    def close(self):
        if not self.closed:
            super().close()
            command = self._command()
            if command is not None:
                command._closed(self.number)
            tell({"op": "close", "pipe": self.number})


def _write(command, number, part):
    """Writes to a pipe what it takes; how much. What the command writes to files of this program meanwhile is written."""
    while True:
        files = [] if command is None else [*command._to_files]
        answer, data = ask({"op": "move", "write": number, "read": files}, part)
        if "read" in answer:
            command._keep(answer["read"], data)
        if answer.get("closed"):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        if answer.get("wrote"):
            return answer["wrote"]


def number_of_pipe(file):
    """The pipe that a file object is of, if it is one to a command."""
    for _ in range(3):
        if isinstance(file, _Pipe):
            return file.number
        file = getattr(file, "buffer", None) or getattr(file, "raw", None)
    return None


class _File:
    """A file of this program that is a stream of a command. The program may close it, and the command has it all the same."""

    def __init__(self, file):
        self._file = file
        self._number = file if isinstance(file, int) else file.fileno()
        name = getattr(file, "name", None)
        self._path = os.path.abspath(os.fsdecode(name)) if isinstance(name, (str, bytes)) else None
        self._own = None
        self._note(self._number)

    def plug(self, number):
        """The description of the file for the host, if the host can open it itself; else None."""
        try:
            here, there = os.fstat(self._number), os.stat(self._path or "")
        except OSError:
            return None
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino) or self._path.startswith("/usr/local/lib/"):
            return None
        if number == 0:
            return {"from": [self._path, self._at]}
        # Elsewhere than at the end, it would not be what the program wrote over.
        return {"to": self._path} if self._at == here.st_size or "a" in getattr(self._file, "mode", "") else None

    def at_end(self):
        """The command has written to it, and the program goes on behind that."""
        if not getattr(self._file, "closed", False):
            try:
                os.lseek(self._number, 0, os.SEEK_END)
            except OSError:
                pass

    def _note(self, number):
        try:
            self._at = os.lseek(number, 0, os.SEEK_CUR)
        except OSError:
            self._at = 0

    def _opened(self, flags):
        if self._own is None and self._path is not None and getattr(self._file, "closed", False):
            self._own = os.open(self._path, flags)
            os.lseek(self._own, self._at, os.SEEK_SET)
        return self._number if self._own is None else self._own

    def read(self):
        number = self._opened(os.O_RDONLY)
        data = os.read(number, CHUNK)
        self._note(number)
        return data

    def write(self, data):
        number, left = self._opened(os.O_WRONLY), memoryview(data)
        while left:
            left = left[os.write(number, left) :]
        self._note(number)

    def __del__(self):
        if self._own is not None:
            os.close(self._own)


def patch(module):
    """Makes `Popen` of `subprocess` start commands of the host."""
    PIPE, STDOUT, DEVNULL = module.PIPE, module.STDOUT, module.DEVNULL

    class Popen(module.Popen):
        def __init__(
            self,
            args,
            bufsize=-1,
            executable=None,
            stdin=None,
            stdout=None,
            stderr=None,
            preexec_fn=None,
            close_fds=True,
            shell=False,
            cwd=None,
            env=None,
            universal_newlines=None,
            startupinfo=None,
            creationflags=0,
            restore_signals=True,
            start_new_session=False,
            pass_fds=(),
            *,
            user=None,
            group=None,
            extra_groups=None,
            encoding=None,
            errors=None,
            text=None,
            umask=-1,
            pipesize=-1,
            process_group=None,
        ):
            # `__del__` reads this, also of an object that never started.
            self._child_created = False
            if preexec_fn is not None or pass_fds:
                raise NotImplementedError("preexec_fn and pass_fds have no meaning here: commands share nothing with this program")
            if startupinfo is not None or creationflags:
                raise ValueError("startupinfo and creationflags are only supported on Windows platforms")
            if not (user is group is extra_groups is None):
                raise PermissionError(errno.EPERM, "there are no other users here")
            if bufsize is None:
                bufsize = -1
            if not isinstance(bufsize, int):
                raise TypeError("bufsize must be an integer")
            if text is not None and universal_newlines is not None and bool(universal_newlines) != bool(text):
                both = "Cannot disambiguate when both text and universal_newlines are supplied but different."
                raise module.SubprocessError(f"{both} Pass one or the other.")
            self.args = args
            self.stdin = self.stdout = self.stderr = self.returncode = None
            self.encoding = encoding
            self.errors = errors
            self.text_mode = encoding or errors or text or universal_newlines
            self._signal = None
            # The rest for standard input, and where it comes from.
            self._given, self._source, self._sink = b"", None, None
            # Whether more of it may come.
            self._open = False
            # Output to take from pipes: the bytes of each, by number, or the file that they go to.
            self._taken, self._to_files = {}, {}
            # The files that the command has opened by itself.
            self._written = []
            self._communicated = None

            if isinstance(args, (str, bytes, os.PathLike)):
                words = [os.fsdecode(args)]
            else:
                words = [os.fsdecode(word) for word in args]
            if shell:
                words = ["sh", "-c", *words]
            if executable is not None and words:
                words[0] = os.fsdecode(executable)
            if not words:
                raise IndexError("list index out of range")
            here = os.getcwd()
            if cwd is not None:
                here = os.path.normpath(os.path.join(here, os.fsdecode(cwd)))
                # The error is that of a directory that is not there, or is none.
                os.listdir(cwd)
            env = {os.fsdecode(name): os.fsdecode(value) for name, value in (os.environ if env is None else env).items()}
            if any("\0" in word for word in (*words, *env, *env.values())):
                raise ValueError("embedded null byte")
            if stderr is not None and stderr is stdout and stderr not in (PIPE, DEVNULL):
                stderr = STDOUT
            streams = [self._plug(stdin, 0), self._plug(stdout, 1), self._plug(stderr, 2)]
            started = start(resolve(words, env, here), list(env.items()), here, streams)
            self.pid = started["child"]
            self._child_created = True
            self._attach(started["pipes"], bufsize)

        def _plug(self, stream, number):
            """The description of a stream for the host."""
            if stream is None:
                if number not in instead_of_own:
                    return {"own": number}
                self._to_files[number] = instead_of_own[number]
                return "pipe"
            if stream == PIPE:
                return "pipe"
            if stream == DEVNULL:
                return "null"
            if stream == STDOUT:
                if number != 2:
                    raise ValueError("STDOUT can only be used for stderr")
                return "stdout"
            pipe = number_of_pipe(stream)
            if pipe is not None:
                return {"of": pipe}
            file = stream if isinstance(stream, int) else stream.fileno()
            if file <= 2:
                return {"own": file}
            file = _File(stream)
            plug = file.plug(number)
            if plug is not None:
                if number != 0:
                    self._written.append(file)
                return plug
            if number == 0:
                self._source = file
            else:
                self._to_files[number] = file
            return "pipe"

        def _attach(self, pipes, bufsize):
            """Makes files of the pipes that the program asked for, and keeps the others."""
            if self._source is not None:
                self._sink = pipes[0]
            elif pipes[0] is not None:
                self.stdin = self._file(pipes[0], bufsize, reads=False)
            self._to_files = {pipes[number]: file for number, file in self._to_files.items()}
            if self._to_files or self._sink is not None:
                _unfinished.add(self)
            for number, name in ((1, "stdout"), (2, "stderr")):
                if pipes[number] is not None and pipes[number] not in self._to_files:
                    setattr(self, name, self._file(pipes[number], bufsize, reads=True))

        def _file(self, number, bufsize, reads):
            file = _Pipe(number, self, reads)
            if bufsize != 0:
                size = bufsize if bufsize > 1 else io.DEFAULT_BUFFER_SIZE
                file = io.BufferedReader(file, size) if reads else io.BufferedWriter(file, size)
            if self.text_mode:
                lines = {} if reads else {"line_buffering": bufsize == 1, "write_through": bufsize == 0}
                file = io.TextIOWrapper(file, encoding=self.encoding, errors=self.errors, **lines)
            return file

        def _move(self, wanted=None, most=CHUNK, within=None):
            """Moves once what can be moved, after waiting for it. The bytes of the pipe that is wanted, if there were any."""
            if self._sink is not None and not self._given and self._source is not None:
                self._given = self._source.read()
                if not self._given:
                    self._source = None
            if self._sink is not None and not self._given and not self._open:
                self._unplug()
            request = {"op": "move", "read": [*self._to_files, *self._taken], "max": most}
            if wanted is not None:
                request["read"].insert(0, wanted)
            if self._sink is not None and self._given:
                request["write"] = self._sink
            if self.returncode is None:
                request["child"] = self.pid
            if within is not None:
                request["millis"] = max(0, int(min(within, 86400) * 1000 + 0.999))
            answer, data = ask(request, self._given[:CHUNK] if self._sink is not None else b"")
            self._moved = bool(answer)
            if answer.get("closed"):
                # The reader has ended, which is not an error of this program.
                self._unplug()
            self._given = self._given[answer.get("wrote", 0) :]
            if "code" in answer:
                code = answer["code"]
                signal = _SIGNALS.get(code)
                self.returncode = code if signal is None else -(self._signal or signal)
                for file in self._written:
                    file.at_end()
                self._unplug()
            number = answer.get("read")
            if number is None:
                return None
            if number == wanted:
                return data
            if number in self._to_files:
                self._keep(number, data)
            elif data:
                self._taken[number].append(data)
            else:
                self._communicated[number] = self._taken.pop(number)
            return None

        def _moves(self):
            """Moves what can be moved at once; whether there was anything."""
            if self.returncode is None or self._to_files or self._taken:
                self._move(within=0)
                return self._moved
            return False

        def _keep(self, number, data):
            """Writes to a file what a command wrote to a pipe."""
            if data:
                self._to_files[number].write(data)
            else:
                del self._to_files[number]
                ask({"op": "close", "pipe": number})
                self._finished()

        def _unplug(self):
            """The command has all of its input."""
            sink, self._sink, self._given, self._source = self._sink, None, b"", None
            if sink is not None:
                ask({"op": "close", "pipe": sink})
                self._finished()

        def _finished(self):
            if not self._to_files and self._sink is None:
                _unfinished.discard(self)

        def _closed(self, number):
            """The program has closed a pipe that it has."""
            if number in self._taken:
                self._communicated[number] = self._taken.pop(number)
            if number == self._sink:
                self._sink, self._given = None, b""

        def _until(self, done, timeout, so_far=None):
            end = None if timeout is None else time.monotonic() + timeout
            while not done():
                within = None if end is None else max(0, end - time.monotonic())
                self._move(within=within)
                if within == 0 and not done():
                    raise module.TimeoutExpired(self.args, timeout, output=so_far and so_far(1), stderr=so_far and so_far(2))

        def poll(self):
            return self._internal_poll()

        def _internal_poll(self, _deadstate=None):
            if self._child_created and (self.returncode is None or self._to_files):
                # Not without end, where there is no end to what is written.
                for _ in range(256):
                    if not self._moves():
                        break
            return self.returncode

        def wait(self, timeout=None):
            self._until(lambda: self.returncode is not None and not self._to_files, timeout)
            return self.returncode

        def communicate(self, input=None, timeout=None):
            if self._communicated is not None and input:
                raise ValueError("Cannot send input after starting communication")
            if self._communicated is None:
                used = [file for file in (self.stdin, self.stdout, self.stderr) if file is not None]
                if timeout is None and len(used) == 1 and used[0] is not self.stdin:
                    # With what was read ahead.
                    data = used[0].read()
                    used[0].close()
                    self.wait()
                    return (data, None) if used[0] is self.stdout else (None, data)
                self._begin(input)
            numbers = self._numbers
            parts = lambda n: self._taken.get(n) or self._communicated.get(n) or []
            so_far = lambda stream: b"".join(parts(numbers[stream])) if stream in numbers else None
            self._until(self._is_done, timeout, lambda stream: so_far(stream) or None)
            found = [self._decoded(stream, so_far(stream)) for stream in (1, 2)]
            for file in (self.stdin, self.stdout, self.stderr):
                try:
                    if file is not None:
                        file.close()
                except OSError:
                    # Input that could not be written is not needed any more.
                    pass
            return tuple(found)

        def _is_done(self):
            return self.returncode is not None and not self._taken and not self._to_files

        def _begin(self, input):
            self._communicated, self._numbers = {}, {}
            for stream, file in ((1, self.stdout), (2, self.stderr)):
                if file is not None and not file.closed:
                    self._numbers[stream] = number_of_pipe(file)
                    self._taken[self._numbers[stream]] = []
            if self.stdin is not None and not self.stdin.closed:
                try:
                    self.stdin.flush()
                except BrokenPipeError:
                    pass
                if input is not None and isinstance(input, str) != bool(self.text_mode):
                    wanted = "str" if self.text_mode else "a bytes-like object"
                    raise TypeError(f"input must be {wanted}, not {type(input).__name__}")
                if self.text_mode and input is not None:
                    input = input.encode(self.stdin.encoding, self.stdin.errors)
                self._given, self._sink = memoryview(bytes(input or b"")), number_of_pipe(self.stdin)

        def _decoded(self, stream, data):
            if data is None or not self.text_mode:
                return data
            file = (None, self.stdout, self.stderr)[stream]
            return self._translate_newlines(data, file.encoding, file.errors)

        def send_signal(self, sig):
            self.poll()
            if self.returncode is None and sig:
                # There is one way to end a command.
                self._signal = int(sig)
                ask({"op": "kill", "child": self.pid})

        def terminate(self):
            self.send_signal(15)

        def kill(self):
            self.send_signal(9)

        def __del__(self):
            # A command that was not waited for goes on, and nobody will ask for it.
            if self._child_created and self.returncode is None:
                tell({"op": "forget", "child": self.pid})

    Popen.__module__, Popen.__qualname__ = "subprocess", "Popen"
    module.Popen = Popen


def system(command):
    from subprocess import Popen

    code = Popen(command, shell=True).wait()
    return code << 8 if code >= 0 else -code


def patch_shutil(module):
    found_in_directories = module.which

    def which(cmd, mode=os.F_OK | os.X_OK, path=None):
        found = found_in_directories(cmd, mode, path)
        if found is None and path is None and isinstance(cmd, str) and "/" not in cmd:
            try:
                return f"/usr/bin/{cmd}" if exists(cmd) else None
            except OSError:
                return None
        return found

    module.which = which
