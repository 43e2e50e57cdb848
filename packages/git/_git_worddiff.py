# Changes by words (--word-diff): hunks in which words that go stand in [- -], and those that come in {+ +}.
import re

from _git_lines import blocks, grouped
from _git_patch import NO_END, hunk_head

MARKS = {"plain": ((b"[-", b"-]"), (b"{+", b"+}"))}


def word_hunks(olds, news, found, look):
    result = []
    for from1, to1, from2, to2, some in grouped(found, len(olds), len(news), look.context, look.between):
        result.append(hunk_head(olds, from1, to1, from2, to2, look))
        other = from2
        for lo1, hi1, lo2, hi2 in some:
            result += [_kept(line, look) for line in news[other:lo2]]
            result.append(_changed(b"".join(olds[lo1:hi1]), b"".join(news[lo2:hi2]), look))
            other = hi2
        result += [_kept(line, look) for line in news[other:to2]]
    return result


def _kept(line, look):
    end = b"" if line.endswith(b"\n") else b"\n" + NO_END
    if look.words == "porcelain":
        return b" " + line.rstrip(b"\n") + b"\n~\n"
    return line.removesuffix(b"\n") + look.paint["reset"] + b"\n" + end.removeprefix(b"\n")


def _marked(text, side, look):
    """A piece that goes (side 0) or comes (1), each of its lines in marks of its own."""
    if look.words == "porcelain":
        return text
    first, last = MARKS["plain"][side] if look.words == "plain" else (b"", b"")
    colour, reset = (look.paint["new" if side else "old"], look.paint["reset"]) if look.colour else (b"", b"")
    return b"\n".join(colour + first + line + last + reset if line else b"" for line in text.split(b"\n"))


def _changed(old, new, look):
    ones, twos = ([(m.start(), m.end()) for m in re.finditer(rb"\S+", text)] for text in (old, new))
    words = [[text[a:b] for a, b in places] for text, places in ((old, ones), (new, twos))]
    pieces, at = [], 0
    for lo1, hi1, lo2, hi2 in blocks(*words):
        start = twos[lo2][0] if hi2 > lo2 else (twos[lo2 - 1][1] if lo2 else 0)
        pieces.append((" ", new[at:start]))
        if hi1 > lo1:
            pieces.append(("-", old[ones[lo1][0] : ones[hi1 - 1][1]]))
        if hi2 > lo2:
            pieces.append(("+", new[twos[lo2][0] : twos[hi2 - 1][1]]))
            at = twos[hi2 - 1][1]
        else:
            at = start
    pieces.append((" ", new[at:]))
    if look.words == "porcelain":
        text = b""
        for sign, piece in pieces:
            lines = piece.split(b"\n")
            for number, line in enumerate(lines):
                if line:
                    text += sign.encode() + line + b"\n"
                if number < len(lines) - 1:
                    text += b"~\n"
        return text if text.endswith(b"~\n") else text + b"~\n"
    text = b"".join(_marked(piece, 1 if sign == "+" else 0, look) if sign != " " else piece for sign, piece in pieces)
    return text if text.endswith(b"\n") or not text else text + b"\n"
