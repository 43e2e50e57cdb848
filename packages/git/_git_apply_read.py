# Reading patches as `git diff` writes them: the files, the hunks, and binary pieces.
import re

from _git_core import error
from _git_lines import split_lines


class Patch:
    """A patch of one file. `hunks` are (start, count, start, count, lines), each line with its sign."""

    def __init__(self):
        self.old = self.new = None
        self.old_mode = self.new_mode = None
        self.kind, self.score, self.hunks, self.binary = "M", None, [], None

    @property
    def name(self):
        return self.new if self.new is not None else self.old

    def reverse(self):
        self.old, self.new = self.new, self.old
        self.old_mode, self.new_mode = self.new_mode, self.old_mode
        self.kind = {"A": "D", "D": "A"}.get(self.kind, self.kind)
        swap = {b"+": b"-", b"-": b"+"}
        self.hunks = [
            (c, d, a, b, order([(swap.get(sign, sign), line) for sign, line in lines]), at)
            for a, b, c, d, lines, at in self.hunks
        ]
        if self.binary:
            self.binary = self.binary[::-1]


def order(lines):
    """Lines that go stand before those that come."""
    done, come = [], []
    for sign, line in lines:
        if sign == b"+":
            come.append((sign, line))
            continue
        if sign == b" ":
            done += come
            come = []
        done.append((sign, line))
    return done + come


def unquoted(name):
    if name.startswith(b'"'):
        end = re.match(rb'"((?:[^"\\]|\\.)*)"', name)
        if end:
            plain = {b"n": b"\n", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"r": b"\r", b"v": b"\v"}

            def back(found):
                code = found[1]
                return bytes([int(code, 8) & 255]) if code.isdigit() else plain.get(code, code)

            return re.sub(rb"\\([0-7]{3}|.)", back, end[1])
    return name


def stripped(name, level, timed=True):
    """A name of a patch without its first directories; None for /dev/null."""
    if not name.startswith(b'"') and timed:
        name = name.split(b"\t")[0]
    name = unquoted(name.rstrip(b"\r\n"))
    if name == b"/dev/null":
        return None
    parts = name.split(b"/")
    return b"/".join(parts[level:]) if len(parts) > level else name


def header_names(line, level):
    """Both names of `diff --git a/x b/x`, where they are the same."""
    rest = line[len(b"diff --git ") :].rstrip(b"\r\n")
    if rest.startswith(b'"'):
        found = re.match(rb'("(?:[^"\\]|\\.)*") (.*)$', rest)
        return (stripped(found[1], level, False), stripped(found[2], level, False)) if found else (None, None)
    for at in [found.start() for found in re.finditer(rb" ", rest)]:
        one, other = stripped(rest[:at], level, False), stripped(rest[at + 1 :], level, False)
        if one == other:
            return one, other
    return None, None


def read_patches(data, level, recount=False):
    lines = split_lines(data)
    patches, at, current = [], 0, None
    while at < len(lines):
        line = lines[at]
        if line.startswith(b"diff --git "):
            current = Patch()
            current.old, current.new = header_names(line, level)
            patches.append(current)
            at += 1
            while at < len(lines) and (found := re.match(rb"(old mode|new mode|deleted file mode|new file mode|similarity "
                b"index|dissimilarity "
                                                         rb"index|rename from|rename to|copy from|copy to|index) "
                                                             b"(.*)", lines[at])):  # fmt: skip
                extended(current, found[1], found[2].rstrip(b"\r"))
                at += 1
            if at < len(lines) and lines[at].startswith(b"GIT binary patch"):
                current.binary, at = read_binary(lines, at + 1)
            elif at < len(lines) and lines[at].startswith(b"Binary files "):
                current.binary = ()
                at += 1
        elif line.startswith(b"--- ") and at + 1 < len(lines) and lines[at + 1].startswith(b"+++ "):
            old, new = stripped(line[4:], level), stripped(lines[at + 1][4:], level)
            if current is None or current.hunks:
                current = Patch()
                patches.append(current)
            if current.kind not in ("R", "C"):
                current.old, current.new = old, new
                if old is None:
                    current.kind = "A"
                elif new is None:
                    current.kind = "D"
                elif old != new and current.kind == "M":
                    # Names such as a.orig and a: the shorter one is meant.
                    current.old = current.new = min((old, new), key=len)
            at += 2
        elif line.startswith(b"@@ ") and current is not None:
            at = read_hunk(current, lines, at, recount)
        else:
            at += 1
    return patches


def extended(patch, what, value):
    if what == b"old mode":
        patch.old_mode = int(value, 8)
    elif what == b"new mode":
        patch.new_mode = int(value, 8)
    elif what == b"deleted file mode":
        patch.kind, patch.old_mode, patch.new = "D", int(value, 8), None
    elif what == b"new file mode":
        patch.kind, patch.new_mode, patch.old = "A", int(value, 8), None
    elif what in (b"rename from", b"copy from"):
        patch.kind, patch.old = ("R" if what[:1] == b"r" else "C"), unquoted(value)
    elif what in (b"rename to", b"copy to"):
        patch.new = unquoted(value)
    elif what == b"similarity index":
        patch.score = int(value.rstrip(b"%"))
    elif what == b"index" and b" " in value:
        patch.old_mode = patch.old_mode or int(value.rpartition(b" ")[2], 8)


def read_hunk(patch, lines, at, recount):
    found = re.match(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", lines[at])
    if not found:
        raise error(f"corrupt patch at line {at + 1}", 128)
    start1, count1, start2, count2 = (int(part) if part is not None else 1 for part in found.groups())
    at, body, old, new, head = at + 1, [], 0, 0, at + 1
    while recount or old < count1 or new < count2:
        if at >= len(lines):
            if recount:
                break
            raise error(f"corrupt patch at line {at + 1}", 128)
        line = lines[at]
        sign = line[:1]
        if line in (b"\n", b"\r\n"):
            sign, line = b" ", b" " + line
        if sign == b"\\":
            body[-1] = (body[-1][0], body[-1][1].rstrip(b"\n"))
        elif sign in (b" ", b"+", b"-") and not (recount and line.startswith((b"--- ", b"diff "))):
            body.append((sign, line[1:]))
            old, new = old + (sign != b"+"), new + (sign != b"-")
        elif recount:
            break
        else:
            raise error(f"corrupt patch at line {at + 1}", 128)
        at += 1
    if old > count1 and not recount or new > count2 and not recount:
        raise error(f"corrupt patch at line {at}", 128)
    if at < len(lines) and lines[at].startswith(b"\\") and body:
        body[-1] = (body[-1][0], body[-1][1].rstrip(b"\n"))
        at += 1
    patch.hunks.append((start1, old, start2, new, body, head))
    return at


def read_binary(lines, at):
    """Two pieces, (kind, bytes) each: the way to the new file and the way back."""
    import base64
    import zlib

    pieces = []
    while at < len(lines) and (found := re.match(rb"(literal|delta) (\d+)", lines[at])):
        at, packed = at + 1, b""
        while at < len(lines) and lines[at].strip():
            line = lines[at].rstrip(b"\r\n")
            length = line[0] - 64 if line[:1].isupper() else line[0] - 96 + 26
            try:
                packed += base64.b85decode(line[1:])[:length]
            except ValueError:
                raise error(f"corrupt binary patch at line {at + 1}", 128)
            at += 1
        at += 1
        try:
            pieces.append((found[1], zlib.decompress(packed)))
        except zlib.error:
            raise error(f"corrupt binary patch at line {at}", 128)
    return tuple(pieces), at
