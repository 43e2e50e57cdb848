# Which lines differ between two texts: Myers' search from both ends, its groups slid to where git puts them, and the hunks.
import re

BUDGET = 4_000_000


def split_lines(data):
    """Lines with their ends; the last one may have none."""
    lines = data.split(b"\n")
    last = lines.pop()
    lines = [line + b"\n" for line in lines]
    if last:
        lines.append(last)
    return lines


def keyed(lines, ignore):
    """The keys by which lines are compared: `ignore` is None, `all`, `change`, `eol` or `cr`."""
    if ignore == "all":
        return [re.sub(rb"\s+", b"", line) for line in lines]
    if ignore == "change":
        return [re.sub(rb"\s+", b" ", line.rstrip()) for line in lines]
    if ignore == "eol":
        return [line.rstrip() for line in lines]
    if ignore == "cr":
        return [line[:-2] + b"\n" if line.endswith(b"\r\n") else line for line in lines]
    return lines


class _Search:
    def __init__(self, a, b):
        self.a, self.b, self.spent = a, b, 0

    def split(self, lo1, hi1, lo2, hi2):
        """A point that a shortest path between the corners goes through, or a far one where that would cost too much."""
        a, b = self.a, self.b
        dmin, dmax = lo1 - hi2, hi1 - lo2
        fmid, bmid = lo1 - lo2, hi1 - hi2
        odd = (fmid - bmid) & 1
        fmin = fmax = fmid
        bmin = bmax = bmid
        forward, back = {fmid: lo1}, {bmid: hi1}
        far = 1 << 60
        limit = 256 if self.spent < BUDGET else 24
        cost = 0
        while True:
            cost += 1
            if fmin > dmin:
                fmin -= 1
                forward[fmin - 1] = -1
            else:
                fmin += 1
            if fmax < dmax:
                fmax += 1
                forward[fmax + 1] = -1
            else:
                fmax -= 1
            for d in range(fmax, fmin - 1, -2):
                less, more = forward[d - 1], forward[d + 1]
                i = less + 1 if less >= more else more
                j = i - d
                while i < hi1 and j < hi2 and a[i] == b[j]:
                    i += 1
                    j += 1
                forward[d] = i
                if odd and bmin <= d <= bmax and back[d] <= i:
                    return i, j
            if bmin > dmin:
                bmin -= 1
                back[bmin - 1] = far
            else:
                bmin += 1
            if bmax < dmax:
                bmax += 1
                back[bmax + 1] = far
            else:
                bmax -= 1
            for d in range(bmax, bmin - 1, -2):
                less, more = back[d - 1], back[d + 1]
                i = less if less < more else more - 1
                j = i - d
                while i > lo1 and j > lo2 and a[i - 1] == b[j - 1]:
                    i -= 1
                    j -= 1
                back[d] = i
                if not odd and fmin <= d <= fmax and i <= forward[d]:
                    return i, j
            self.spent += fmax - fmin + bmax - bmin + 2
            if cost >= limit:
                ahead = max(
                    (min(forward[d], hi1, hi2 + d) * 2 - d, min(forward[d], hi1, hi2 + d), d) for d in range(fmin, fmax + 1, 2)
                )
                behind = min(
                    (max(back[d], lo1, lo2 + d) * 2 - d, max(back[d], lo1, lo2 + d), d) for d in range(bmin, bmax + 1, 2)
                )
                if hi1 + hi2 - behind[0] < ahead[0] - lo1 - lo2:
                    return ahead[1], ahead[1] - ahead[2]
                return behind[1], behind[1] - behind[2]

    def run(self, changed1, changed2, places1, places2):
        a, b = self.a, self.b
        waiting = [(0, len(a), 0, len(b))]
        while waiting:
            lo1, hi1, lo2, hi2 = waiting.pop()
            while lo1 < hi1 and lo2 < hi2 and a[lo1] == b[lo2]:
                lo1 += 1
                lo2 += 1
            while lo1 < hi1 and lo2 < hi2 and a[hi1 - 1] == b[hi2 - 1]:
                hi1 -= 1
                hi2 -= 1
            if lo1 == hi1:
                for j in range(lo2, hi2):
                    changed2[places2[j]] = 1
            elif lo2 == hi2:
                for i in range(lo1, hi1):
                    changed1[places1[i]] = 1
            else:
                i, j = self.split(lo1, hi1, lo2, hi2)
                if (i, j) in ((lo1, lo2), (hi1, hi2)):
                    for k in range(lo1, hi1):
                        changed1[places1[k]] = 1
                    for k in range(lo2, hi2):
                        changed2[places2[k]] = 1
                    continue
                waiting.append((lo1, i, lo2, j))
                waiting.append((i, hi1, j, hi2))


def _kept(lines, lo, hi, counts, changed):
    """The places whose lines take part in the search. One that the other side lacks does not, nor a frequent one among such."""
    size, root = len(lines), 1
    while size > 0:
        root, size = root << 1, size >> 2
    most = min(root, 1024)
    kind = bytearray(hi - lo)
    for at in range(lo, hi):
        found = counts.get(lines[at], 0)
        kind[at - lo] = 0 if not found else 2 if found >= most else 1
    places = []
    for at in range(hi - lo):
        if kind[at] == 1 or (kind[at] == 2 and not _among_lost(kind, at)):
            places.append(lo + at)
        else:
            changed[lo + at] = 1
    return places


def _among_lost(kind, at):
    def look(places):
        lost, many = 0, 1
        for near in places:
            if kind[near] == 0:
                lost += 1
            elif kind[near] == 2:
                many += 1
            else:
                break
        return lost, many

    lost, many = look(range(at - 1, max(at - 100, 0) - 1, -1))
    if not lost:
        return False
    lost2, many2 = look(range(at + 1, min(at + 101, len(kind))))
    return bool(lost2) and (many + many2) * 4 < many + many2 + lost + lost2


def changed_lines(old, new, old_text=None, new_text=None):
    """Two arrays that say of each line whether it is removed or added."""
    lo, n1, n2 = 0, len(old), len(new)
    changed1, changed2 = bytearray(n1 + 1), bytearray(n2 + 1)
    while lo < n1 and lo < n2 and old[lo] == new[lo]:
        lo += 1
    hi1, hi2 = n1, n2
    while hi1 > lo and hi2 > lo and old[hi1 - 1] == new[hi2 - 1]:
        hi1 -= 1
        hi2 -= 1
    counts1, counts2 = {}, {}
    for line in old:
        counts1[line] = counts1.get(line, 0) + 1
    for line in new:
        counts2[line] = counts2.get(line, 0) + 1
    places1 = _kept(old, lo, hi1, counts2, changed1)
    places2 = _kept(new, lo, hi2, counts1, changed2)
    numbers = {}
    a = [numbers.setdefault(old[at], len(numbers)) for at in places1]
    b = [numbers.setdefault(new[at], len(numbers)) for at in places2]
    _Search(a, b).run(changed1, changed2, places1, places2)
    _slide(old, changed1, changed2, old_text or old)
    _slide(new, changed2, changed1, new_text or new)
    return changed1, changed2


class _Groups:
    """Runs of changed lines, one (perhaps empty) before each line that stays, and one at the end."""

    def __init__(self, lines, changed):
        self.lines, self.changed, self.size = lines, changed, len(changed) - 1
        self.start = self.end = 0
        self._stretch()

    def _stretch(self):
        while self.end < self.size and self.changed[self.end]:
            self.end += 1

    def next(self):
        if self.end == self.size:
            return False
        self.start = self.end = self.end + 1
        self._stretch()
        return True

    def previous(self):
        self.end = self.start = self.start - 1
        while self.start and self.changed[self.start - 1]:
            self.start -= 1

    def up(self):
        lines, changed = self.lines, self.changed
        if not self.start or lines[self.start - 1] != lines[self.end - 1]:
            return False
        self.start -= 1
        self.end -= 1
        changed[self.start], changed[self.end] = 1, 0
        while self.start and changed[self.start - 1]:
            self.start -= 1
        return True

    def down(self):
        lines, changed = self.lines, self.changed
        if self.end >= self.size or lines[self.start] != lines[self.end]:
            return False
        changed[self.start], changed[self.end] = 0, 1
        self.start += 1
        self.end += 1
        self._stretch()
        return True


def _slide(lines, changed, other_changed, text):
    group, other = _Groups(lines, changed), _Groups(None, other_changed)
    while True:
        if group.start != group.end:
            while True:
                size, matching = group.end - group.start, -1
                while group.up():
                    other.previous()
                earliest = group.end
                if other.end > other.start:
                    matching = group.end
                while group.down():
                    other.next()
                    if other.end > other.start:
                        matching = group.end
                if size == group.end - group.start:
                    break
            if group.end == earliest:
                pass
            elif matching != -1:
                while other.end == other.start:
                    group.up()
                    other.previous()
            else:
                best, best_score = -1, None
                for shift in range(max(earliest, group.end - size - 1, group.end - 100), group.end + 1):
                    one, two = _split_score(text, shift), _split_score(text, shift - size)
                    score = one[0] + two[0], one[1] + two[1]
                    if best_score is not None:
                        ahead = (score[0] > best_score[0]) - (score[0] < best_score[0])
                    if best_score is None or 60 * ahead + score[1] - best_score[1] <= 0:
                        best, best_score = shift, score
                while group.end > best:
                    group.up()
                    other.previous()
        if not group.next():
            return
        other.next()


def _indent(line):
    """The width of the blanks before a line's words; -1 where it has none."""
    width = 0
    for byte in line:
        if byte == 32:
            width += 1
        elif byte == 9:
            width += 8 - width % 8
        elif byte not in b"\n\r\v\f":
            return width
        if width >= 200:
            return 200
    return -1


def _split_score(lines, at):
    """How bad it is for a group to begin or end before a line: its indent, and a penalty."""
    indent = _indent(lines[at]) if at < len(lines) else -1
    before, before_indent, after, after_indent = 0, -1, 0, -1
    for near in range(at - 1, -1, -1):
        before_indent = _indent(lines[near])
        if before_indent != -1:
            break
        before += 1
        if before == 20:
            before_indent = 0
            break
    for near in range(at + 1, len(lines)):
        after_indent = _indent(lines[near])
        if after_indent != -1:
            break
        after += 1
        if after == 20:
            after_indent = 0
            break
    penalty = 0
    if before_indent == -1 and before == 0:
        penalty += 1
    if at >= len(lines):
        penalty += 21
    blank_after = 1 + after if indent == -1 else 0
    blanks = before + blank_after
    penalty += -30 * blanks + 6 * blank_after
    effective = indent if indent != -1 else after_indent
    if effective != -1 and before_indent != -1:
        if effective > before_indent:
            penalty += 10 if blanks else -4
        elif effective < before_indent:
            if after_indent != -1 and after_indent > effective:
                penalty += 17 if blanks else 24
            else:
                penalty += 17 if blanks else 23
    return effective, penalty


def blocks(old, new, ignore=None, ignore_blank=False):
    """The differences of two lists of lines, each as (from, to, from, to), half open."""
    changed1, changed2 = changed_lines(keyed(old, ignore), keyed(new, ignore), old, new)
    found, i, j, n1, n2 = [], 0, 0, len(old), len(new)
    while i < n1 or j < n2:
        if changed1[i] or changed2[j]:
            from1, from2 = i, j
            while i < n1 and changed1[i]:
                i += 1
            while j < n2 and changed2[j]:
                j += 1
            found.append((from1, i, from2, j))
        else:
            i += 1
            j += 1
    if ignore_blank:
        return [b for b in found if any(line.strip() for line in old[b[0] : b[1]] + new[b[2] : b[3]])]
    return found


def grouped(found, n1, n2, context=3, between=0):
    """Blocks in hunks, each as (from, to, from, to, blocks) with the lines around them."""
    hunks, start = [], 0
    for at in range(1, len(found) + 1):
        if at == len(found) or found[at][0] - found[at - 1][1] > 2 * context + between:
            some = found[start:at]
            first, last = some[0], some[-1]
            before = min(first[0], first[2], context)
            after = min(n1 - last[1], n2 - last[3], context)
            hunks.append((first[0] - before, last[1] + after, first[2] - before, last[3] + after, some))
            start = at
    return hunks


def function_of(lines, before):
    """The text behind `@@`: the last line above that begins with a letter, `_` or `$`."""
    for at in range(before - 1, -1, -1):
        byte = lines[at][:1]
        if byte.isalpha() or byte in (b"_", b"$"):
            return lines[at][:80].rstrip()
    return b""


def span(start, count):
    if count == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + 1 if count else start, count)
