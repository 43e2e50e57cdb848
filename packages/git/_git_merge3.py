# Merging of lines: two texts that come from one, with marks where both changed the same place.
from _git_lines import blocks, split_lines


class Region:
    """A stretch of the result: clean lines, or `ours`, `base` and `theirs` of a conflict."""

    def __init__(self, lines=None, ours=None, base=None, theirs=None):
        self.lines, self.ours, self.base, self.theirs = lines, ours, base, theirs


def regions(base, ours, theirs, style="merge"):
    """The result in stretches. Changes that touch each other are a conflict, unless they are the same."""
    first, second = blocks(base, ours), blocks(base, theirs)
    found, clean, at = [], [], 0
    i = j = 0
    shift_ours = shift_theirs = 0

    def flush():
        nonlocal clean
        if clean:
            found.append(Region(clean))
            clean = []

    while i < len(first) or j < len(second):
        one, other = first[i] if i < len(first) else None, second[j] if j < len(second) else None
        if other is None or one is not None and one[1] < other[0]:
            clean += base[at : one[0]] + ours[one[2] : one[3]]
            at, shift_ours, i = one[1], one[3] - one[1], i + 1
            continue
        if one is None or other[1] < one[0]:
            clean += base[at : other[0]] + theirs[other[2] : other[3]]
            at, shift_theirs, j = other[1], other[3] - other[1], j + 1
            continue
        if one[:2] == other[:2] and ours[one[2] : one[3]] == theirs[other[2] : other[3]]:
            clean += base[at : one[0]] + ours[one[2] : one[3]]
            at, shift_ours, shift_theirs = one[1], one[3] - one[1], other[3] - other[1]
            i, j = i + 1, j + 1
            continue
        start, end = min(one[0], other[0]), max(one[1], other[1])
        ours_from, theirs_from = start + shift_ours, start + shift_theirs
        grown = True
        while grown:
            grown = False
            while i < len(first) and first[i][0] <= end:
                end, shift_ours, i, grown = max(end, first[i][1]), first[i][3] - first[i][1], i + 1, True
            while j < len(second) and second[j][0] <= end:
                end, shift_theirs, j, grown = max(end, second[j][1]), second[j][3] - second[j][1], j + 1, True
        clean += base[at:start]
        flush()
        found.append(Region(None, ours[ours_from : end + shift_ours], base[start:end], theirs[theirs_from : end + shift_theirs]))
        at = end
    clean += base[at:]
    flush()
    if style != "merge":
        return [part for region in found for part in (zealous(region) if style == "zdiff3" else whole(region))]
    return simplified([part for region in found for part in refined(region)])


def whole(region):
    same = region.lines is None and region.ours == region.theirs
    return [Region(region.ours)] if same else [region]


def zealous(region):
    """Takes what is the same at the ends of both sides out of a conflict; the base stays whole."""
    if region.lines is not None or region.ours == region.theirs:
        return whole(region)
    ours, theirs = region.ours, region.theirs
    least, before, after = min(len(ours), len(theirs)), 0, 0
    while before < least and ours[before] == theirs[before]:
        before += 1
    while after < least - before and ours[-1 - after] == theirs[-1 - after]:
        after += 1
    middle = Region(None, ours[before : len(ours) - after], region.base, theirs[before : len(theirs) - after])
    parts = [Region(ours[:before]), middle, Region(ours[len(ours) - after :])]
    return [part for part in parts if part.lines is None or part.lines]


def refined(region):
    """A conflict without the lines that both sides have."""
    if region.lines is not None:
        return [region]
    ours, theirs = region.ours, region.theirs
    if not ours or not theirs:
        return [region] if ours != theirs else []
    parts, at = [], 0
    for from1, to1, from2, to2 in blocks(ours, theirs):
        if from1 > at:
            parts.append(Region(ours[at:from1]))
        parts.append(Region(None, ours[from1:to1], [], theirs[from2:to2]))
        at = to1
    if at < len(ours):
        parts.append(Region(ours[at:]))
    return parts


def simplified(parts):
    """Conflicts with three lines or fewer between them are one."""
    done = []
    for part in parts:
        if part.lines is None and len(done) > 1 and done[-1].lines is not None and done[-2].lines is None:
            between = done[-1].lines
            if len(between) <= 3:
                last = done[-2]
                del done[-1]
                done[-1] = Region(
                    None, last.ours + between + part.ours, last.base + between + part.base, last.theirs + between + part.theirs
                )
                continue
        if part.lines is None and done and done[-1].lines is None:
            last = done[-1]
            done[-1] = Region(None, last.ours + part.ours, last.base + part.base, last.theirs + part.theirs)
            continue
        if part.lines is not None and done and done[-1].lines is not None:
            done[-1] = Region(done[-1].lines + part.lines)
            continue
        done.append(part)
    return done


def merge_text(base, ours, theirs, labels, favour=None, style="merge", size=7):
    """The merged bytes and the number of conflicts. `labels` are for ours, base and theirs; `favour` is ours, theirs or union."""
    count, result = 0, []
    for region in regions(split_lines(base), split_lines(ours), split_lines(theirs), "merge" if favour else style):
        if region.lines is not None:
            result += region.lines
        elif favour == "ours":
            result += region.ours
        elif favour == "theirs":
            result += region.theirs
        elif favour == "union":
            result += ended(region.ours) + region.theirs
        else:
            count += 1
            near = (region.ours or region.theirs or result or [b""])[0]
            end = b"\r\n" if near.endswith(b"\r\n") else b"\n"
            result = ended(result)
            result.append(mark(b"<", size, labels[0], end))
            result += ended(region.ours)
            if style != "merge":
                result.append(mark(b"|", size, labels[1], end))
                result += ended(region.base)
            result.append(mark(b"=", size, b"", end))
            result += ended(region.theirs)
            result.append(mark(b">", size, labels[2], end))
    return b"".join(result), count


def mark(sign, size, label, end):
    return sign * size + (b" " + label if label else b"") + end


def ended(lines):
    if lines and not lines[-1].endswith(b"\n"):
        return lines[:-1] + [lines[-1] + b"\n"]
    return lines
