# Combined diffs: a file after a merge (or in conflict) next to what each of its parents had.
import os

import _git_core as core
from _git_changes import differing, read_worktree
from _git_lines import blocks, split_lines
from _git_patch import Look, is_binary


class Combined:
    """A file that differs from each parent: `parents` are (mode, sha, data) of each, `result` is that of the merge."""

    def __init__(self, path, parents, result):
        self.path, self.parents, self.result = path, parents, result


def merge_changes(git, commit, paths=None):
    """The files of a merge that are not as in any of its parents."""
    tree, sides = commit.tree, []
    for parent in commit.parents:
        sides.append(differing(git, git.store[parent].tree, tree, paths))
    shared = set.intersection(*(old.keys() | new.keys() for old, new in sides))
    found = []
    for path in sorted(shared):
        result = sides[0][1].get(path)
        parents = [old.get(path) for old, new in sides]
        load = lambda file: (
            *file,
            git.blob(file[1]) if file[0] & 0o170000 != 0o160000 else b"Subproject commit " + file[1] + b"\n",
        )
        found.append(
            Combined(path, [load(p) if p else (0, None, b"") for p in parents], load(result) if result else (0, None, b""))
        )
    return found


def conflict(git, path, entry):
    """The file of a conflict in the working tree beside both sides of the index, or None where a side lacks it."""
    if not entry.this or not entry.other:
        return None
    data = read_worktree(git, path)
    sides = [(side.mode, side.sha, git.blob(side.sha)) for side in (entry.this, entry.other)]
    if data is None:
        return Combined(path, sides, (0, None, b""))
    return Combined(path, sides, (entry.this.mode, None, data))


def _merged_losses(count, losses):
    """Lines that parents lost at one place, those that several lost put together: a list of (line, set of parents)."""
    base = []
    for parent, lines in losses:
        if not base:
            base = [(line, {parent}) for line in lines]
            continue
        rows, columns = len(base), len(lines)
        if rows * columns > 4_000_000:
            base += [(line, {parent}) for line in lines]
            continue
        best = [[0] * (columns + 1) for _ in range(rows + 1)]
        for i in range(1, rows + 1):
            for j in range(1, columns + 1):
                if base[i - 1][0] == lines[j - 1]:
                    best[i][j] = best[i - 1][j - 1] + 1
                else:
                    best[i][j] = max(best[i][j - 1], best[i - 1][j])
        i, j, merged = rows, columns, []
        while i or j:
            if i and j and base[i - 1][0] == lines[j - 1]:
                merged.append((lines[j - 1], base[i - 1][1] | {parent}))
                i, j = i - 1, j - 1
            elif j and (not i or best[i][j - 1] >= best[i - 1][j]):
                merged.append((lines[j - 1], {parent}))
                j -= 1
            else:
                merged.append(base[i - 1])
                i -= 1
        base = merged[::-1]
    return base


def combined_patch(git, file, look=None, dense=True, found=None):
    """The patch of a file in bytes; nothing where a dense one has no part that is not as in a parent."""
    look = look or Look()
    count, context = len(file.parents), look.context
    everyone = frozenset(range(count))
    mode, sha, data = file.result
    name = os.fsencode(look.name(file.path))
    head = [b"diff --%s %s" % (b"cc" if dense else b"combined", name)]
    digits = lambda sha: (
        (sha or core.ZERO) if look.full else (git.abbreviate(sha, look.count).encode() if sha else b"0" * (look.count or 7))
    )
    head.append(b"index %s..%s" % (b",".join(digits(parent[1]) for parent in file.parents), digits(sha)))
    added = all(not parent[0] for parent in file.parents)
    if not mode:
        head.append(b"deleted file mode %s" % b",".join(b"%06o" % parent[0] for parent in file.parents))
    elif added:
        head.append(b"new file mode %06o" % mode)
    elif any(parent[0] != mode for parent in file.parents):
        head.append(b"mode %s..%06o" % (b",".join(b"%06o" % parent[0] for parent in file.parents), mode))
    paint = look.paint
    head = [b"%s%s%s\n" % (paint["meta"], line, paint["reset"]) for line in head]
    if is_binary(data) or any(is_binary(parent[2]) for parent in file.parents):
        return b"".join(head) + b"Binary files differ\n"
    lines = split_lines(data)
    size = len(lines)
    new_in = [set() for _ in range(size + 1)]
    losses = [[] for _ in range(size + 1)]
    numbers = []
    texts = [split_lines(parent[2]) for parent in file.parents]
    for at, text in enumerate(texts):
        where, mine = [0] * (size + 2), 0
        for lo1, hi1, lo2, hi2 in blocks(text, lines, look.ignore):
            for line in range(lo2, hi2):
                new_in[line].add(at)
            if hi1 > lo1:
                # Lines that were replaced stand before those that took their place.
                losses[lo2].append((at, text[lo1:hi1]))
        removed = {}
        for lo1, hi1, lo2, hi2 in blocks(text, lines, look.ignore):
            removed[lo2] = hi1 - lo1
        for line in range(size + 1):
            where[line] = mine
            mine += removed.get(line, 0) + (0 if line >= size or at in new_in[line] else 1)
        where[size + 1] = mine
        numbers.append(where)
    losses = [_merged_losses(count, some) for some in losses]
    marked = [bool(new_in[at] or losses[at]) for at in range(size + 1)]
    if dense:
        _only_mixed(marked, new_in, losses, everyone, context)
    hunks, quiet = _hunks(marked, context, size, new_in)
    if not hunks and (dense or mode and not added) and not (mode and any(p[0] != mode for p in file.parents) and not added):
        return b""
    result = list(head)
    old_name, new_name = look.old_prefix + file.path, look.new_prefix + file.path
    result.append(
        b"%s--- %s%s\n" % (paint["meta"], b"/dev/null" if added else os.fsencode(core.quoted(old_name)), paint["reset"])
    )
    result.append(b"%s+++ %s%s\n" % (paint["meta"], os.fsencode(core.quoted(new_name)) if mode else b"/dev/null", paint["reset"]))
    for at in quiet:
        losses[at] = []
    before = 0
    for start, end, with_end in hunks:
        _hunk(result, start, end, with_end, size, count, lines, numbers, new_in, losses, _title(lines, before, start), look)
        before = end
    return b"".join(result)


def _only_mixed(marked, new_in, losses, everyone, context):
    """Takes the marks from hunks in which the result is as in a parent."""
    at, size = 0, len(marked)
    while at < size:
        if not marked[at]:
            at += 1
            continue
        begin, end = at, at + 1
        while end < size:
            if marked[end]:
                end += 1
                continue
            tail = end
            if not new_in[end - 1]:
                tail = end - 1
            ahead = next((near for near in range(min(tail + context, size) - 1, end - 1, -1) if marked[near]), None)
            if ahead is None:
                break
            end = ahead + 1
        kinds = set()
        for line in range(begin, end):
            if new_in[line]:
                kinds.add(frozenset(new_in[line]))
            kinds |= {frozenset(parents) for _, parents in losses[line]}
        if len(kinds) == 1 and everyone not in kinds:
            for line in range(begin, end):
                marked[line] = False
        at = end


def _hunks(marked, context, size, new_in):
    """The hunks as (from, to, whether the losses at the end belong to it), and the lines before hunks whose losses are not shown."""
    shown, quiet = list(marked), set()
    places = len(marked)
    next_of = lambda flags, at, value: next((near for near in range(at, places) if bool(flags[near]) == value), places)
    at = next_of(shown, 0, True)
    while at < places:
        for near in range(max(at - context, 0), at):
            if not shown[near]:
                quiet.add(near)
            shown[near] = True
        while True:
            end = next_of(shown, at, False)
            if end >= places:
                return _runs(shown, size), quiet
            after = next_of(shown, end, True)
            if not new_in[end - 1]:
                end -= 1
            if after < end + context and after < places:
                for near in range(end, after):
                    shown[near] = True
                at = after
                continue
            break
        for near in range(end, min(end + context, places)):
            shown[near] = True
        at = after
    return _runs(shown, size), quiet


def _runs(shown, size):
    runs, at = [], 0
    while at < len(shown):
        if not shown[at]:
            at += 1
            continue
        start = at
        while at < len(shown) and shown[at]:
            at += 1
        runs.append((start, min(at, size), at > size))
    return runs


def _title(lines, start, end):
    """The function that a hunk lies in, among the lines since the last hunk; git leaves its last sign out."""
    for at in range(end - 1, start - 1, -1):
        if lines[at][:1].isalpha() or lines[at][:1] in (b"_", b"$"):
            return lines[at].rstrip(b"\n")[:40].rstrip()[:-1]
    return b""


def _hunk(result, start, end, with_end, size, count, lines, numbers, new_in, losses, name, look):
    paint = look.paint
    spans = []
    for parent in range(count):
        low, high = numbers[parent][start], numbers[parent][end if not with_end else size + 1]
        spans.append(b"-%d,%d" % (low + 1 if numbers[parent][size + 1] else 0, high - low))
    spans.append(b"+%d,%d" % (start + 1 if size else 0, end - start))
    sign = b"@" * (count + 1)
    frag = b"%s%s %s %s%s" % (paint["frag"], sign, b" ".join(spans), sign, paint["reset"])
    result.append(frag + (b" " + name if name else b"") + b"\n")

    def put(marks, line, colour):
        body = line[:-1] if line.endswith(b"\n") else line
        result.append(b"%s%s%s%s\n" % (colour, marks, body, paint["reset"]))
        if not line.endswith(b"\n"):
            result.append(b"\\ No newline at end of file" + paint["reset"] + b"\n")

    for at in range(start, end + 1):
        if at < end or with_end:
            for line, parents in losses[at] if at <= size else ():
                put(b"".join(b"-" if parent in parents else b" " for parent in range(count)), line, paint["old"])
        if at < end:
            marks = b"".join(b"+" if parent in new_in[at] else b" " for parent in range(count))
            put(marks, lines[at], paint["new"] if new_in[at] else b"")
