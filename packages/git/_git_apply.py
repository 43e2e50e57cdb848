# `git apply`: patches are put on files of the working tree or of the index.
import os
import sys

import _git_core as core
from _git_core import Failure, error, out, say
from _git_apply_read import read_patches
from _git_lines import split_lines

OPTIONS = """
--check
--stat
--numstat
--summary
-R --reverse
--index
--cached
-p =
-v --verbose
-q --quiet
--apply
--exclude =*
--include =*
--directory =
--whitespace =
--ignore-whitespace
--unidiff-zero
--recount
--allow-empty
-C =
--binary
"""


# Putting a patch on a text.


def place(lines, wanted, at, first, last):
    """Where the lines stand: at the place that the patch names or as near to it as can be; None where they are not."""
    size = len(wanted)
    fits = lambda start: 0 <= start <= len(lines) - size and lines[start : start + size] == wanted
    if first and last:
        return 0 if lines == wanted else None
    if first:
        return 0 if fits(0) else None
    if last:
        return len(lines) - size if fits(len(lines) - size) else None
    for distance in range(len(lines) + 1):
        for start in {at - distance, at + distance}:
            if fits(start):
                return start
    return None


def patched(patch, data, options, name):
    """The new bytes, or a failure's text."""
    lines, shift = split_lines(data), 0
    loose = (lambda line: b" ".join(line.split())) if options.ignore_whitespace else None
    for start1, count1, start2, count2, body, head in patch.hunks:
        old = [line for sign, line in body if sign != b"+"]
        new = [line for sign, line in body if sign != b"-"]
        lead = next((index for index, (sign, _) in enumerate(body) if sign != b" "), len(body))
        trail = next((index for index, (sign, _) in enumerate(body[::-1]) if sign != b" "), len(body))
        expected = (start1 - 1 if count1 else start1) + shift
        at_start = start1 <= 1 and not options.unidiff_zero and (start1 == 0 or start1 == 1 and lead < 3)
        at_end = trail < lead and not options.unidiff_zero
        haystack, needle = (lines, old) if loose is None else ([loose(line) for line in lines], [loose(line) for line in old])
        found = (
            place(haystack, needle, expected, start1 == 0 and not old, False)
            if not old
            else (place(haystack, needle, expected, at_start, at_end))
        )
        least = int(options.C) if options.C is not None else None
        if found is None and least is not None:
            cut1, cut2 = max(lead - least, 0), max(trail - least, 0)
            found = place(haystack, needle[cut1 : len(needle) - cut2], expected + cut1, False, False)
            if found is not None:
                old, new = old[cut1 : len(old) - cut2], new[cut1 : len(new) - cut2]
        if found is None and at_start and not at_end and lead == trail:
            found = place(haystack, needle, expected, False, False)
        if found is None:
            if options.verbose:
                say(f"error: while searching for:\n{os.fsdecode(b''.join(old))}\n")
            return None, f"error: patch failed: {name}:{start1}\nerror: {name}: patch does not apply"
        offset = found - (start2 - 1 if count2 else start2)
        if options.verbose and offset and old:
            say(f"Hunk #{patch.hunks.index((start1, count1, start2, count2, body, head)) + 1} succeeded at {found + 1} "
                f"(offset {offset} line{'' if abs(offset) == 1 else 's'}).\n")  # fmt: skip
        if options.ignore_whitespace:
            kept, index = [], found
            for sign, line in body:
                if sign == b"+":
                    kept.append(line)
                else:
                    if sign == b" ":
                        kept.append(lines[index])
                    index += 1
            new = kept
        lines[found : found + len(old)] = new
        shift += len(new) - len(old) + (found - expected)
    return b"".join(lines), None


class Apply:
    def __init__(self, git, options):
        self.git, self.options = git, options
        self.from_index = bool(options.index or options.cached)
        self.entries = git.index() if git is not None and git.root is not None else {}
        # The results of the patches so far: bytes and mode by path, or None for a removed file.
        self.results = {}

    def whole(self, path):
        return os.path.join(os.fsencode(self.git.root), path) if self.git is not None and self.git.root else path

    def lookup(self, path):
        """Bytes and mode of a file as it is now, or None."""
        if path in self.results:
            return self.results[path]
        if self.options.cached:
            entry = self.entries.get(path)
            return (self.git.blob(entry.sha), entry.mode) if entry is not None and hasattr(entry, "sha") else None
        whole = self.whole(path)
        try:
            if os.path.islink(whole):
                return os.readlink(whole), 0o120000
            with open(whole, "rb") as file:
                data = file.read()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        entry = self.entries.get(path)
        mode = getattr(entry, "mode", 0o100644)
        if self.git is not None and self.git.config.truth("core.fileMode", True) and os.stat(whole).st_mode & 0o100:
            mode = 0o100755
        return data, mode

    def one(self, patch):
        """Works out what a patch makes; a failure's text, or None."""
        import _git_work

        name = os.fsdecode(patch.name)
        for path in {patch.old, patch.new} - {None}:
            try:
                _git_work.check_path(path, patch.new_mode or 0o100644)
            except Failure as failure:
                raise Failure(failure.text, 128, "error: ") from None
        data, mode = b"", patch.new_mode or 0o100644
        if patch.old is not None:
            old = os.fsdecode(patch.old)
            found = self.lookup(patch.old)
            if self.from_index and patch.old not in self.entries and patch.old not in self.results:
                return f"error: {old}: does not exist in index"
            if found is None:
                return f"error: {old}: No such file or directory"
            if self.options.index and patch.old in self.entries and patch.old not in self.results:
                entry = self.entries[patch.old]
                if not hasattr(entry, "sha") or _git_work.blob_id(found[0]) != entry.sha:
                    return f"error: {old}: does not match index"
            data, mode = found
            if self.behind_link(patch.old):
                return f"error: {old}: beyond a symbolic link"
        if patch.new is not None and patch.new != patch.old:
            if self.options.index and patch.new in self.entries and patch.new not in self.results:
                return f"error: {name}: already exists in index"
            if self.lookup(patch.new) is not None:
                where = "index" if self.from_index and patch.new in self.entries else "working directory"
                return f"error: {name}: already exists in {where}"
            if self.behind_link(patch.new):
                return f"error: {name}: beyond a symbolic link"
        if patch.binary is not None:
            new, problem = self.binary(patch, data, name)
        else:
            new, problem = patched(patch, data, self.options, os.fsdecode(patch.old or patch.new))
        if problem:
            return problem
        if patch.kind == "D" and new:
            return f"error: removal patch leaves file contents\nerror: {os.fsdecode(patch.old)}: patch does not apply"
        if patch.kind in ("D", "R"):
            self.results[patch.old] = None
        if patch.new is not None:
            self.results[patch.new] = (new, patch.new_mode or mode)
        return None

    def behind_link(self, path):
        if self.options.cached:
            return False
        parts = path.split(b"/")[:-1]
        return any(os.path.islink(self.whole(b"/".join(parts[: count + 1]))) for count in range(len(parts)))

    def binary(self, patch, data, name):
        if not patch.binary:
            return (
                None,
                f"error: cannot apply binary patch to '{name}' without full index line\nerror: {name}: patch does not apply",
            )
        kind, piece = patch.binary[0]
        if kind == b"literal":
            return piece, None
        from dulwich.pack import apply_delta

        try:
            return b"".join(apply_delta(data, piece)), None
        except Exception:
            return None, f"error: binary patch does not apply to '{name}'\nerror: {name}: patch does not apply"

    def write(self):
        import _git_work

        git, options = self.git, self.options
        if git is None or git.root is None:
            for path, result in self.results.items():
                if result is None:
                    os.unlink(path)
                    continue
                if os.path.dirname(path):
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(result[0])
            return
        index = git.open_index() if self.from_index else None
        gone = [path for path, result in self.results.items() if result is None]
        for path in gone:
            if not options.cached:
                _git_work.remove_file(git, path)
            if index is not None and path in index:
                del index[path]
        for path, result in self.results.items():
            if result is None:
                continue
            data, mode = result
            if not options.cached:
                _git_work.write_file(git, path, mode, data)
            if index is not None:
                sha = _git_work.add_blob(git, data)
                if options.cached:
                    from _git_trees3 import bare_entry

                    index[path] = bare_entry((mode, sha))
                else:
                    index[path] = _git_work.index_entry(git, path, mode, sha)
        if index is not None:
            _git_work.save_index(git, index)


def cmd_apply(argv, call):
    options = core.parse("apply", argv, OPTIONS)
    try:
        git = call.git()
    except Failure:
        git = None
    if options.whitespace not in (None, "nowarn", "warn"):
        raise error(f"unrecognized whitespace option '{options.whitespace}'", 128)
    if (options.index or options.cached) and git is None:
        raise error("'--index' outside a repository" if options.index else "'--cached' outside a repository", 128)
    if options.p is not None and not options.p.isdigit():
        raise Failure(f"option -p expects a non-negative integer, got '{options.p}'")
    level = int(options.p) if options.p is not None else 1
    patches = []
    for name in options.all_words() or ["-"]:
        try:
            with sys.stdin.buffer if name == "-" else open(name, "rb") as file:
                data = file.read()
        except OSError as why:
            raise Failure(f"can't open patch '{name}': {why.strerror}", 128, "error: ")
        found = read_patches(data, level, bool(options.recount))
        if not found and not options.allow_empty:
            raise error('No valid patches in input (allow with "--allow-empty")', 128)
        patches += found
    kept = []
    for patch in patches:
        if chosen(git, patch, options):
            kept.append(patch)
        elif options.verbose:
            say(f"Skipped patch '{shown(patch)}'.\n")
    patches = kept
    if options.reverse:
        patches.reverse()
        for patch in patches:
            patch.reverse()
    for patch in patches:
        if options.directory:
            base = os.fsencode(options.directory.rstrip("/")) + b"/"
            patch.old, patch.new = (None if name is None else base + name for name in (patch.old, patch.new))
        if git is not None and git.prefix:
            patch.old, patch.new = (None if name is None else git.prefix + name for name in (patch.old, patch.new))
    work = options.check or options.apply or not (options.stat or options.numstat or options.summary)
    run, problems = Apply(git, options), []
    if work or options.index or options.cached:
        for patch in patches:
            if options.verbose:
                say(f"Checking patch {shown(patch)}...\n")
            problem = run.one(patch)
            if problem:
                problems.append(problem)
        if problems:
            raise Failure("\n".join(problems), 1, "")
    if options.stat or options.numstat or options.summary:
        summaries(git, patches, options)
    if options.check or not work:
        return 0
    run.write()
    if options.verbose:
        for patch in patches:
            say(f"Applied patch {shown(patch)} cleanly.\n")


def shown(patch):
    if patch.kind in ("R", "C"):
        return f"{os.fsdecode(patch.old)} => {os.fsdecode(patch.new)}"
    return core.quoted(patch.name)


def chosen(git, patch, options):
    import fnmatch

    name = os.fsdecode(patch.name)
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in options.exclude):
        return False
    return not options.include or any(fnmatch.fnmatchcase(name, pattern) for pattern in options.include)


def summaries(git, patches, options):
    """--stat, --numstat and --summary, from texts that have just the lines of the patch."""
    import _git_patch
    from _git_changes import Change

    changes = []
    for patch in patches:
        body = [line for hunk in patch.hunks for line in hunk[4]]
        olds = b"".join(line if line.endswith(b"\n") else line + b"\n" for sign, line in body if sign == b"-")
        news = b"".join(line if line.endswith(b"\n") else line + b"\n" for sign, line in body if sign == b"+")
        # Lines of the two sides must not be taken for the same.
        olds = b"".join(b"-" + line for line in split_lines(olds))
        news = b"".join(b"+" + line for line in split_lines(news))
        if patch.binary is not None:
            olds, news = b"\0", b"\0\0"
        old_mode = patch.old_mode or 0o100644
        old = (old_mode, b"1" * 40) if patch.kind != "A" else None
        new = (patch.new_mode or old_mode, b"2" * 40 if olds or news else b"1" * 40) if patch.kind != "D" else None
        old_path = patch.old if patch.old is not None else patch.new
        new_path = patch.new if patch.new is not None else patch.old
        changes.append(Change(old_path, new_path, old, new, patch.kind, patch.score, olds, news))
    if options.stat:
        old_stat(git, changes)
    if options.numstat:
        for change in changes:
            found = _git_patch.counts(git, change)
            out(("-\t-" if found is None else "%d\t%d" % found) + f"\t{core.quoted(change.path)}\n")
    if options.summary:
        out(_git_patch.mode_summary(git, changes))


def old_stat(git, changes):
    """--stat has a layout of its own here."""
    import _git_patch

    counts = [_git_patch.counts(git, change) for change in changes]
    names = [core.quoted(change.path) for change in changes]
    longest = min(max(map(len, names), default=0), 50)
    most = max((sum(found) for found in counts if found), default=0)
    room = 70 if longest + most <= 70 else 70 - longest
    total = [0, 0]
    for name, found in zip(names, counts):
        if len(name) > 50:
            tail = name[len(name) - 47 :]
            name = "..." + (tail[tail.index("/") :] if "/" in tail else tail)
        if found is None:
            out(f" {name:<{longest}} |  Bin\n")
            continue
        plus, minus = found
        total = [total[0] + plus, total[1] + minus]
        if most and longest + most > 70:
            both = (plus + minus) * room // most if most > room else plus + minus
            plus = plus * room // most if most > room else plus
            minus = both - plus
        out(f" {name:<{longest}} |{sum(found):5} {'+' * plus}{'-' * minus}\n")
    out(_git_patch.shortstat_text(len(changes), *total) + "\n" if changes else " 0 files changed\n")
