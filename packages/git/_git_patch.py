# How changes are printed: as patches, as counts of lines (--stat and the like), as names, and as summaries.
import os
import re

import _git_core as core
from _git_changes import Change, commit_changes, tree_changes, worktree_changes  # noqa: F401 (other modules take them from here)
from _git_lines import blocks, function_of, grouped, span, split_lines

PLAIN = {"meta": b"", "frag": b"", "func": b"", "old": b"", "new": b"", "reset": b""}
COLOURS = {"meta": b"\x1b[1m", "frag": b"\x1b[36m", "func": b"", "old": b"\x1b[31m", "new": b"\x1b[32m", "reset": b"\x1b[m"}


class Look:
    """How changes are to be shown."""

    context, between, ignore, ignore_blank, text, full, binary, whole = 3, 0, None, False, False, False, False, False
    old_prefix, new_prefix, width, name_width, count, least = b"a/", b"b/", None, None, None, None
    raw_count = None
    colour, zero, relative, no_deletes, words, compact = False, False, b"", False, None, False

    @property
    def paint(self):
        return COLOURS if self.colour else PLAIN

    def name(self, path):
        """A path as it is shown: from the directory that --relative names, in quotes where it needs them."""
        return core.quoted(self.cut(path))

    def cut(self, path):
        return path[len(self.relative) :] if self.relative and path.startswith(self.relative) else path


def is_binary(data):
    return b"\0" in data[:8000]


def compared(git, change, look):
    """The lines of both sides and the blocks that differ, or None if a side is not text."""
    old, new = change.data(git, 0), change.data(git, 1)
    if not look.text and (is_binary(old) or is_binary(new)):
        return None
    olds, news = split_lines(old), split_lines(new)
    return olds, news, blocks(olds, news, look.ignore, look.ignore_blank)


def _changed(change):
    return change.old_sha != change.new_sha


def parts(change):
    """A change of a file into a link (or back) is shown as one that goes and one that comes."""
    if change.kind != "T":
        return [change]
    gone = Change(change.old_path, change.old_path, (change.old_mode, change.old_sha), None, "D", None, change.old_data)
    come = Change(change.new_path, change.new_path, None, (change.new_mode, change.new_sha), "A", None, None, change.new_data)
    return [gone, come]


# Patches.


def _side(prefix, path, look):
    raw = look.cut(path)
    return os.fsencode(core.quoted(prefix + raw))


def _digits(git, sha, look):
    if look.full:
        return sha or core.ZERO
    if sha is None:
        return b"0" * (look.count or 7)
    return git.abbreviate(sha, look.count).encode() if git else sha[: look.count or 7]


def patch_of(git, change, look):
    """The patch of one change in bytes."""
    if change.kind == "U":
        return b"* Unmerged path %s\n" % os.fsencode(look.name(change.path))
    return b"".join(_patch_of(git, part, look) for part in parts(change))


def _patch_of(git, change, look):
    paint = look.paint
    old_name, new_name = _side(look.old_prefix, change.old_path, look), _side(look.new_prefix, change.new_path, look)
    head = [b"diff --git %s %s" % (old_name, new_name)]
    if change.kind == "A":
        head.append(b"new file mode %06o" % change.new_mode)
        old_name = b"/dev/null"
    elif change.kind == "D":
        head.append(b"deleted file mode %06o" % change.old_mode)
        new_name = b"/dev/null"
    elif change.old_mode != change.new_mode:
        head += [b"old mode %06o" % change.old_mode, b"new mode %06o" % change.new_mode]
    if change.kind in "RC":
        word = b"rename" if change.kind == "R" else b"copy"
        head.append(b"similarity index %d%%" % change.score)
        head.append(b"%s from %s" % (word, os.fsencode(look.name(change.old_path))))
        head.append(b"%s to %s" % (word, os.fsencode(look.name(change.new_path))))
    found = compared(git, change, look) if _changed(change) else ([], [], [])
    if found is not None and look.ignore and not found[2] and len(head) == 1:
        return b""
    if _changed(change):
        mode = b" %06o" % change.new_mode if change.kind in "MRC" and change.old_mode == change.new_mode else b""
        binary = found is None and look.binary
        old, new = (
            (change.old_sha or core.ZERO, change.new_sha or core.ZERO)
            if binary
            else (_digits(git, change.old_sha, look), _digits(git, change.new_sha, look))
        )
        head.append(b"index %s..%s%s" % (old, new, mode))
    lines = [b"%s%s%s\n" % (paint["meta"], line, paint["reset"]) for line in head]
    if found is None:
        if look.binary:
            return b"".join(lines) + _binary_patch(change.data(git, 0), change.data(git, 1))
        return b"".join(lines) + b"Binary files %s and %s differ\n" % (old_name, new_name)
    if found[2] and not (change.kind == "D" and look.no_deletes):
        for mark, name in ((b"---", old_name), (b"+++", new_name)):
            tab = b"\t" if name != b"/dev/null" and b" " in name and not name.startswith(b'"') else b""
            lines.append(b"%s%s %s%s%s\n" % (paint["meta"], mark, name, paint["reset"], tab))
        lines += hunk_lines(*found, look)
    return b"".join(lines)


def _binary_patch(old, new):
    import base64
    import zlib

    def literal(data):
        packed, text = zlib.compress(data), b"literal %d\n" % len(data)
        for at in range(0, len(packed), 52):
            piece = packed[at : at + 52]
            size = bytes([len(piece) + (64 if len(piece) <= 26 else 70)])
            text += size + base64.b85encode(piece, pad=True) + b"\n"
        return text + b"\n"

    return b"GIT binary patch\n" + literal(new) + literal(old)


NO_END = b"\\ No newline at end of file\n"


def hunk_lines(olds, news, found, look):
    if look.words:
        from _git_worddiff import word_hunks

        return word_hunks(olds, news, found, look)
    paint, result = look.paint, []
    reset = paint["reset"]
    hunks = grouped(found, len(olds), len(news), look.context, look.between)
    if look.whole:
        hunks = _whole_functions(hunks, olds, news)

    def put(sign, line, colour=b""):
        end = line.endswith(b"\n")
        body = line[:-1] if end else line
        if sign == b"+" and colour:
            result.append(b"%s+%s%s\n" % (colour, reset, b"%s%s%s" % (colour, body, reset) if body else b""))
        elif colour:
            result.append(b"%s%s%s%s\n" % (colour, sign, body, reset))
        else:
            result.append(b"%s%s%s\n" % (sign, body, reset))
        if not end:
            result.append(NO_END[:-1] + reset + b"\n")

    for from1, to1, from2, to2, some in hunks:
        result.append(hunk_head(olds, from1, to1, from2, to2, look))
        other = from2
        for lo1, hi1, lo2, hi2 in some:
            for line in news[other:lo2]:
                put(b" ", line)
            for line in olds[lo1:hi1]:
                put(b"-", line, paint["old"])
            for line in news[lo2:hi2]:
                put(b"+", line, paint["new"])
            other = hi2
        for line in news[other:to2]:
            put(b" ", line)
    return result


def hunk_head(olds, from1, to1, from2, to2, look):
    paint = look.paint
    name = function_of(olds, from1)
    if look.colour and name:
        name = b" " + paint["reset"] + name + paint["reset"]
    elif name:
        name = b" " + name
    return b"%s@@ -%s +%s @@%s%s\n" % (paint["frag"], span(from1, to1 - from1), span(from2, to2 - from2), paint["reset"], name)


def _whole_functions(hunks, olds, news):
    """Hunks from the beginning of the function that they lie in to its end, those that meet put together."""
    wider = []
    heads = [at for at, line in enumerate(olds) if line[:1].isalpha() or line[:1] in (b"_", b"$")]
    for from1, to1, from2, to2, some in hunks:
        start = max((at for at in heads if at <= some[0][0]), default=0)
        end = next((at for at in heads if at >= max(some[-1][1], start + 1)), len(olds))
        while end > some[-1][1] and end < len(olds) and not olds[end - 1].strip():
            end -= 1
        before, after = max(from1 - start, 0), max(end - to1, 0)
        new = [from1 - before, to1 + after, max(from2 - before, 0), min(to2 + after, len(news)), list(some)]
        if wider and new[0] <= wider[-1][1]:
            wider[-1] = [wider[-1][0], max(wider[-1][1], new[1]), wider[-1][2], max(wider[-1][3], new[3]), wider[-1][4] + new[4]]
        else:
            wider.append(new)
    return wider


def patch(git, changes, look=None):
    look = look or Look()
    return b"".join(patch_of(git, change, look) for change in changes)


def print_patch(git, changes, look=None):
    look = look or Look()
    for change in changes:
        core.out(patch_of(git, change, look))


# Counts.


def counts(git, change, look=None):
    """How many lines are added and removed; None if a side is not text."""
    if not _changed(change):
        return 0, 0
    found = compared(git, change, look or Look())
    if found is None:
        return None
    return sum(block[3] - block[2] for block in found[2]), sum(block[1] - block[0] for block in found[2])


def arrow(change, look=None):
    """`old => new` of a rename, what both have in common outside of braces."""
    look = look or Look()
    old, new = getattr(change, "stat_names", None) or (look.cut(change.old_path), look.cut(change.new_path))
    if old == new:
        return core.quoted(new)
    if core.quoted(old).startswith('"') or core.quoted(new).startswith('"'):
        return f"{core.quoted(old)} => {core.quoted(new)}"
    head = 0
    for at in range(min(len(old), len(new))):
        if old[at] != new[at]:
            break
        if old[at : at + 1] == b"/":
            head = at + 1
    tail, at = 0, 1
    while at <= min(len(old), len(new)) - max(head - 1, 0) and old[-at] == new[-at]:
        if old[-at : len(old) - at + 1] == b"/":
            tail = at
        at += 1
    middle = [os.fsdecode(path[head : max(len(path) - tail, head)]) for path in (old, new)]
    text = f"{middle[0]} => {middle[1]}"
    if head or tail:
        text = os.fsdecode(old[:head]) + "{" + text + "}" + os.fsdecode(old[len(old) - tail :] if tail else b"")
    return text


def _scaled(count, width, most):
    return 1 + count * (width - 1) // most if count else 0


def _shown_width(text):
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text) if not text.isascii() else len(text)


def stat(git, changes, look=None):
    """The lines of --stat, with the sum at the end."""
    look = look or Look()
    rows, most, number, binary = [], 0, 0, 0
    for change in changes:
        name = arrow(change, look)
        if look.compact:
            name += _compact_mark(change)
        if change.kind == "U":
            rows.append((name, None, "Unmerged"))
            continue
        found = counts(git, change, look)
        if found is None:
            sizes = len(change.data(git, 0)), len(change.data(git, 1))
            rows.append((name, None, "Bin %d -> %d bytes" % sizes))
            binary, number = max(binary, len("%d -> %d bytes" % sizes) + 4), max(number, 3)
        elif found == (0, 0) and look.ignore and change.kind == "M" and change.old_mode == change.new_mode:
            continue
        else:
            rows.append((name, found, None))
            most = max(most, sum(found))
    if not rows:
        return ""
    number = max(number, len(str(most)))
    width = look.width or int(os.environ.get("COLUMNS") or 80) if (os.environ.get("COLUMNS") or "80").isdigit() else 80
    width = max(width, 16 + 6 + number)
    names = max(_shown_width(row[0]) for row in rows)
    graph = most if most + 4 > binary else binary - 4
    room = look.name_width if look.name_width and look.name_width < names else names
    if room + number + 6 + graph > width:
        if graph > width * 3 // 8 - number - 6:
            graph = max(width * 3 // 8 - number - 6, 6)
        if room > width - number - 6 - graph:
            room = width - number - 6 - graph
        else:
            graph = width - number - 6 - room
    lines, paint = [], look.paint
    shown = rows[: look.count_rows] if getattr(look, "count_rows", None) else rows
    for name, found, other in shown:
        lead = ""
        if _shown_width(name) > room:
            name = name[-max(room - 3, 0) :] if room > 3 else ""
            slash = name.find("/")
            name = "..." + (name[slash:] if slash >= 0 else name)
        start = f" {name}{' ' * (room - _shown_width(name))} | {lead}"
        if found is None:
            lines.append(
                start + (f"{'Bin':>{number}}{_painted_sizes(other[3:], paint)}" if other.startswith("Bin") else other) + "\n"
            )
            continue
        added, removed = found
        if graph <= most:
            total = _scaled(added + removed, graph, most)
            if total < 2 and added and removed:
                total = 2
            if added < removed:
                plus = _scaled(added, graph, most)
                minus = total - plus
            else:
                minus = _scaled(removed, graph, most)
                plus = total - minus
        else:
            plus, minus = added, removed
        reset = paint["reset"].decode()
        marks = (paint["new"].decode() + "+" * plus + reset if plus else "") + (
            paint["old"].decode() + "-" * minus + reset if minus else ""
        )
        lines.append(f"{start}{sum(found):>{number}}{' ' + marks if sum(found) else ''}\n")
    if len(shown) < len(rows):
        lines.append(" ...\n")
    return "".join(lines) + shortstat(git, changes, look) + "\n"


def _painted_sizes(text, paint):
    reset = paint["reset"].decode()
    return (
        re.sub(r"(\d+) -> (\d+)", rf"{paint['old'].decode()}\1{reset} -> {paint['new'].decode()}\2{reset}", text)
        if reset
        else text
    )


def _compact_mark(change):
    if change.kind == "A":
        return " (new +x)" if change.new_mode == 0o100755 else " (new +l)" if change.new_mode == 0o120000 else " (new)"
    if change.kind == "D":
        return " (gone)"
    if change.old_mode != change.new_mode and change.kind != "U":
        return " (mode +x)" if change.new_mode & 0o111 else " (mode -x)"
    return ""


def print_stat(git, changes, look=None):
    core.out(stat(git, changes, look))


def shortstat(git, changes, look=None):
    """` 1 file changed, 2 insertions(+), 1 deletion(-)`, without an end of line; nothing for no changes."""
    files = added = removed = 0
    for change in changes:
        if change.kind == "U":
            continue
        found = counts(git, change, look)
        if look and look.ignore and found == (0, 0) and change.kind == "M" and change.old_mode == change.new_mode:
            continue
        files += 1
        if found:
            added, removed = added + found[0], removed + found[1]
    return shortstat_text(files, added, removed) if files or changes else ""


def shortstat_text(files, added, removed):
    text = f" {files} file{'' if files == 1 else 's'} changed"
    if added or not removed and files:
        text += f", {added} insertion{'' if added == 1 else 's'}(+)"
    if removed or not added and files:
        text += f", {removed} deletion{'' if removed == 1 else 's'}(-)"
    return text


def numstat(git, changes, look):
    text = ""
    for change in changes:
        if change.kind == "U":
            text += f"0\t0\t{look.name(change.path)}\n" if change.new_mode else ""
            continue
        found = counts(git, change, look)
        numbers = "-\t-\t" if found is None else "%d\t%d\t" % found
        if look.zero:
            old, new = os.fsdecode(look.cut(change.old_path)), os.fsdecode(look.cut(change.new_path))
            text += numbers + (f"\0{old}\0{new}\0" if change.kind in "RC" else f"{new}\0")
        elif not (found == (0, 0) and look.ignore and change.kind == "M" and change.old_mode == change.new_mode):
            text += f"{numbers}{arrow(change, look)}\n"
    return text


# Names and summaries.


def mode_summary(git, changes, look=None):
    """Lines such as ` create mode 100644 a.txt`."""
    look, text = look or Look(), ""
    for change in changes:
        name = look.name(change.path)
        if change.kind == "A":
            text += f" create mode {change.new_mode:06o} {name}\n"
        elif change.kind == "D":
            text += f" delete mode {change.old_mode:06o} {name}\n"
        elif change.kind in "RC":
            text += f" {'rename' if change.kind == 'R' else 'copy'} {arrow(change, look)} ({change.score}%)\n"
            if change.old_mode != change.new_mode:
                text += f" mode change {change.old_mode:06o} => {change.new_mode:06o}\n"
        elif change.kind in "MT" and change.old_mode != change.new_mode:
            text += f" mode change {change.old_mode:06o} => {change.new_mode:06o} {name}\n"
    return text


def names(changes, look, status=False):
    text = ""
    for change in changes:
        kind = change.kind + (f"{change.score:03d}" if change.kind in "RC" else "")
        both = (
            [change.old_path, change.new_path]
            if change.kind in "RC" and status
            else [change.old_path if change.kind == "M" else change.path]
        )
        if look.zero:
            text += "\0".join(([kind] if status else []) + [os.fsdecode(look.cut(path)) for path in both]) + "\0"
        else:
            text += "\t".join(([kind] if status else []) + [look.name(path) for path in both]) + "\n"
    return text


def raw(git, changes, look):
    text = ""
    for change in changes:
        kind = change.kind + (f"{change.score:03d}" if change.kind in "RC" else "")
        new = None if change.unstored else change.new_sha
        digits = [
            (sha or core.ZERO).decode() if look.raw_count else _digits(git, sha, look).decode() for sha in (change.old_sha, new)
        ]
        text += f":{change.old_mode:06o} {change.new_mode:06o} {digits[0]} {digits[1]} {kind}"
        paths = [change.old_path, change.new_path] if change.kind in "RC" else [change.path]
        if look.zero:
            text += "\0" + "\0".join(os.fsdecode(look.cut(path)) for path in paths) + "\0"
        else:
            text += "\t" + "\t".join(look.name(path) for path in paths) + "\n"
    return text


def check(git, changes, look):
    """Blanks that should not be in added lines (--check)."""
    text = ""
    for change in changes:
        if change.kind in "DU" or not _changed(change) or (found := compared(git, change, look)) is None:
            continue
        olds, news, some = found
        name = look.name(change.path)
        for _, _, start, end in some:
            for at in range(start, end):
                line = news[at].rstrip(b"\n")
                trouble = []
                if re.match(rb"(<{7}|>{7}|={7}|\|{7})( |\Z)", line):
                    text += f"{name}:{at + 1}: leftover conflict marker\n"
                if line != line.rstrip():
                    trouble.append("trailing whitespace")
                if re.match(rb"[\t ]* \t", line):
                    trouble.append("space before tab in indent")
                if trouble:
                    text += f"{name}:{at + 1}: {', '.join(trouble)}.\n+{os.fsdecode(line)}\n"
        if some and some[-1][3] == len(news) and news and not news[-1].strip() and some[-1][3] > some[-1][2]:
            at = len(news)
            while at > some[-1][2] and not news[at - 1].strip():
                at -= 1
            text += f"{name}:{at + 1}: new blank line at EOF.\n"
    return text
