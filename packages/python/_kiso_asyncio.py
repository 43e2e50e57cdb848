# `asyncio.create_subprocess_exec` and `create_subprocess_shell`. No thread and no socket reports a command here, so its pipes are
# polled, and other tasks run meanwhile.
import asyncio
import subprocess

import _kiso_host
import _kiso_subprocess

_PAUSE = 0.005


class _Reader:
    """A pipe from a command, with as much of `StreamReader` as there is to it."""

    def __init__(self, command, file):
        self._command, self._number = command, _kiso_subprocess.number_of_pipe(file)
        self._data, self._ended = bytearray(), False

    async def _more(self):
        data = self._command._move(wanted=self._number, within=0)
        if data:
            self._data += data
        elif data is not None:
            self._ended = True
        await asyncio.sleep(0 if self._command._moved else _PAUSE)

    def _take(self, count):
        taken = bytes(self._data[:count])
        del self._data[:count]
        return taken

    def at_eof(self):
        return self._ended and not self._data

    async def read(self, n=-1):
        while not self._ended and n and (n < 0 or not self._data):
            await self._more()
        return self._take(len(self._data) if n < 0 else n)

    async def readexactly(self, n):
        while not self._ended and len(self._data) < n:
            await self._more()
        if len(self._data) < n:
            raise asyncio.IncompleteReadError(self._take(n), n)
        return self._take(n)

    async def readuntil(self, separator=b"\n"):
        while (at := self._data.find(separator)) < 0:
            if self._ended:
                raise asyncio.IncompleteReadError(self._take(len(self._data)), None)
            await self._more()
        return self._take(at + len(separator))

    async def readline(self):
        try:
            return await self.readuntil()
        except asyncio.IncompleteReadError as error:
            return error.partial

    def __aiter__(self):
        return self

    async def __anext__(self):
        line = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line


class _Writer:
    """A pipe to a command, with as much of `StreamWriter` as there is to it. What it does not take at once is moved with everything else."""

    def __init__(self, command, file):
        self._command, self._file, self._closing = command, file, False
        command._sink, command._given, command._open = _kiso_subprocess.number_of_pipe(file), b"", True

    def write(self, data):
        if self._closing:
            raise RuntimeError("the pipe is closed")
        self._command._given = bytes(self._command._given) + bytes(data)
        self._command._moves()

    def writelines(self, lines):
        self.write(b"".join(lines))

    async def drain(self):
        command = self._command
        while command._given and command._sink is not None:
            await asyncio.sleep(0 if command._moves() else _PAUSE)
        if command._sink is None and not self._closing:
            raise BrokenPipeError("nobody reads it any more")

    def can_write_eof(self):
        return True

    def write_eof(self):
        self.close()

    def is_closing(self):
        return self._closing

    def close(self):
        self._closing, self._command._open = True, False
        self._command._moves()

    async def wait_closed(self):
        while self._command._sink is not None and self._command.returncode is None:
            await asyncio.sleep(0 if self._command._moves() else _PAUSE)


class Process:
    def __init__(self, command):
        self._command = command
        self.pid = command.pid
        self.stdin = command.stdin and _Writer(command, command.stdin)
        self.stdout = command.stdout and _Reader(command, command.stdout)
        self.stderr = command.stderr and _Reader(command, command.stderr)

    def __repr__(self):
        return f"<Process {self.pid}>"

    @property
    def returncode(self):
        return self._command.poll()

    async def _until(self, done):
        while not done():
            moved = self._command._moves()
            if not done():
                await asyncio.sleep(0 if moved else _PAUSE)

    async def wait(self):
        command = self._command
        await self._until(lambda: command.returncode is not None and not command._to_files)
        return command.returncode

    async def communicate(self, input=None):
        command = self._command
        if command._communicated is None:
            given = bytes(command._given) + (input or b"") if self.stdin else b""
            command._begin(given)
            for reader in (self.stdout, self.stderr):
                if reader is not None and reader._number in command._taken:
                    command._taken[reader._number].append(reader._take(len(reader._data)))
        command._open = False
        await self._until(command._is_done)
        return command.communicate()

    def send_signal(self, signal):
        self._command.send_signal(signal)

    def terminate(self):
        self._command.terminate()

    def kill(self):
        self._command.kill()


def patch(module):
    def of_bytes(options):
        for name in ("text", "universal_newlines", "encoding", "errors", "bufsize"):
            if options.get(name):
                raise ValueError(f"{name} has no meaning here: what is moved is bytes")
        # Nothing is held back, so there is no limit to it.
        options.pop("limit", None)
        return {**options, "bufsize": 0}

    async def create_subprocess_exec(program, *args, **options):
        return Process(subprocess.Popen([program, *args], **of_bytes(options)))

    async def create_subprocess_shell(cmd, **options):
        return Process(subprocess.Popen(cmd, shell=True, **of_bytes(options)))

    module.Process = Process
    module.create_subprocess_exec, module.create_subprocess_shell = create_subprocess_exec, create_subprocess_shell
