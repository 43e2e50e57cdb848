# Changes between trees, the index and the working tree: files by paths, renames among them, and which paths are asked for.
import hashlib
import os
import re
import stat

import _git_core as core
from _git_core import Failure
from _git_lines import split_lines

LINK, FILE, MODULE, DIRECTORY = 0o120000, 0o100000, 0o160000, 0o040000


class Change:
    """One file that differs. `kind` is one of A D M R C T U; `old_data` and `new_data` are for a side that is not an object (yet)."""

    def __init__(self, old_path, new_path, old, new, kind, score=None, old_data=None, new_data=None):
        self.old_path, self.new_path, self.kind, self.score = old_path, new_path, kind, score
        self.old_mode, self.old_sha = old or (0, None)
        self.new_mode, self.new_sha = new or (0, None)
        self.old_data, self.new_data = old_data, new_data
        # Digits of the working tree's files are counted, not stored: a raw line shows them as zeros.
        self.unstored = False

    @property
    def path(self):
        return self.new_path if self.new_path is not None else self.old_path

    def data(self, git, side):
        sha, mode, data = (
            (self.old_sha, self.old_mode, self.old_data) if side == 0 else (self.new_sha, self.new_mode, self.new_data)
        )
        if data is not None:
            return data
        if not mode:
            return b""
        if mode & 0o170000 == MODULE:
            return b"Subproject commit %s\n" % (sha or core.ZERO)
        return git.blob(sha)

    def reversed(self):
        kind = {"A": "D", "D": "A"}.get(self.kind, self.kind)
        other = Change(
            self.new_path,
            self.old_path,
            (self.new_mode, self.new_sha),
            (self.old_mode, self.old_sha),
            kind,
            self.score,
            self.new_data,
            self.old_data,
        )
        other.unstored = self.unstored
        return other


# Paths that are asked for.


def _glob(pattern, flags, slashes):
    """A pattern of a path as an expression; with `slashes`, `*` stops at a slash and `**` does not."""
    text, at = b"", 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        at += 1
        if byte == b"*":
            if slashes:
                if pattern[at : at + 2] == b"*/":
                    text, at = text + b"(?:.*/)?", at + 2
                elif pattern[at : at + 1] == b"*":
                    text, at = text + b".*", at + 1
                else:
                    text += b"[^/]*"
            else:
                text += b".*"
        elif byte == b"?":
            text += b"[^/]" if slashes else b"."
        elif byte == b"[" and b"]" in pattern[at + 1 :]:
            end = pattern.index(b"]", at + 1)
            inner = pattern[at:end].replace(b"\\", b"\\\\")
            text += b"[" + (b"^" + inner[1:] if inner[:1] in (b"!", b"^") else inner) + b"]"
            at = end + 1
        elif byte == b"\\" and at < len(pattern):
            text += re.escape(pattern[at : at + 1])
            at += 1
        else:
            text += re.escape(byte)
    return re.compile(text + rb"(?:\Z|(?<=/))" if not slashes else text + rb"\Z", flags | re.S)


class Paths:
    """Paths and patterns of a command line; nothing asks for every path."""

    def __init__(self, git, words):
        self.wanted, self.unwanted = [], []
        for word in words or ():
            top = literal = glob = exclude = False
            flags, rest = 0, word
            if word.startswith(":("):
                magic, closed, rest = word[2:].partition(")")
                if not closed:
                    raise Failure(f"Missing ')' at the end of pathspec magic in '{word}'")
                for name in filter(None, magic.split(",")):
                    if name not in ("top", "literal", "glob", "exclude", "icase"):
                        raise Failure(f"Invalid pathspec magic '{name}' in '{word}'")
                names = magic.split(",")
                top, literal, glob, exclude = "top" in names, "literal" in names, "glob" in names, "exclude" in names
                flags = re.I if "icase" in names else 0
            elif word.startswith(":") and len(word) > 1:
                short = re.match(r":([!^/]*):?", word)
                if short[1]:
                    rest = word[short.end() :]
                    top, exclude = "/" in short[1], "!" in short[1] or "^" in short[1]
            elif word == "":
                raise Failure("empty string is not a valid pathspec. please use . instead if you meant to match all paths")
            if word == ":":
                rest, top = "", True
            if top or git.root is None:
                path = os.path.normpath(rest).lstrip("/") if rest else ""
                path = os.fsencode("" if path == "." else path)
            else:
                path = git.tree_path(rest)
            wild = not literal and bool(re.search(rb"[*?\[]", path))
            entry = (path, _glob(path, flags, glob) if wild or flags else None, rest.endswith("/"))
            (self.unwanted if exclude else self.wanted).append(entry)

    def __bool__(self):
        return bool(self.wanted or self.unwanted)

    @staticmethod
    def _one(entry, path):
        spec, pattern, directory = entry
        if (
            not spec
            or path.startswith(spec)
            and (path[len(spec) : len(spec) + 1] == b"/" or len(path) == len(spec) and not directory)
        ):
            return True
        return pattern is not None and pattern.match(path) is not None

    def match(self, path):
        if self.wanted and not any(self._one(entry, path) for entry in self.wanted):
            return False
        return not any(self._one(entry, path) for entry in self.unwanted)

    __call__ = match

    def below(self, directory):
        """Whether a directory (with a slash at its end) can hold a path that is asked for."""
        if not self.wanted:
            return True
        for spec, pattern, _ in self.wanted:
            if pattern is not None or not spec or directory.startswith(spec + b"/") or (spec + b"/").startswith(directory):
                return True
        return False


def as_matcher(git, paths):
    """A `Paths` of words, of a list of paths in bytes, or as it is."""
    if paths is None or isinstance(paths, Paths):
        return paths or None
    words = list(paths)
    if words and isinstance(words[0], bytes):
        chosen = Paths(git, ())
        chosen.wanted = [(word.rstrip(b"/"), None, False) for word in words]
        return chosen
    return Paths(git, words) if words else None


# Differences of trees.


def differing(git, old, new, paths=None):
    """The files of two trees (digits or None) that differ, as two dicts; equal directories are not read."""
    old_files, new_files = {}, {}
    paths = as_matcher(git, paths)

    def entries(sha):
        return {name: (mode, sha) for name, mode, sha in git.store[sha].iteritems()} if sha and sha != core.EMPTY_TREE else {}

    waiting = [(b"", old, new)]
    while waiting:
        base, one, two = waiting.pop()
        if one == two:
            continue
        ones, twos = entries(one), entries(two)
        for name in ones.keys() | twos.keys():
            a, b = ones.get(name), twos.get(name)
            if a == b:
                continue
            path = base + name
            a_dir, b_dir = (bool(x) and x[0] & 0o170000 == DIRECTORY for x in (a, b))
            if (a_dir or b_dir) and (paths is None or paths.below(path + b"/")):
                waiting.append((path + b"/", a[1] if a_dir else None, b[1] if b_dir else None))
            if paths is None or paths.match(path):
                if a and not a_dir:
                    old_files[path] = a
                if b and not b_dir:
                    new_files[path] = b
    return old_files, new_files


def commit_changes(git, old, new, renames=True, paths=None):
    """Changes from one commit or tree to another (digits, or None for nothing)."""
    from dulwich.objects import Tree

    sides = [sha if sha is None or sha == core.EMPTY_TREE else git.peel(sha, Tree) for sha in (old, new)]
    return tree_changes(git, *differing(git, *sides, paths), renames)


def tree_changes(git, old_files, new_files, renames=True, paths=None, data=None):
    """Changes between two dicts of files (path -> (mode, sha)), by path. `renames` is False, True, or a dict with `score` and `copies`."""
    paths = as_matcher(git, paths)
    found, gone, data = [], [], data or {}
    for path in sorted(old_files.keys() | new_files.keys()):
        old, new = old_files.get(path), new_files.get(path)
        if old == new or paths is not None and not paths.match(path):
            continue
        if old is None:
            found.append(Change(path, path, None, new, "A", None, None, data.get(path)))
        elif new is None:
            gone.append(Change(path, path, old, None, "D"))
        else:
            kind = "M" if old[0] & 0o170000 == new[0] & 0o170000 else "T"
            found.append(Change(path, path, old, new, kind, None, None, data.get(path)))
    if renames and found:
        options = renames if isinstance(renames, dict) else {}
        found, gone = _Renames(git, found, gone, options, old_files).find()
    return sorted(found + gone, key=lambda change: change.path)


def _chunks(data):
    """Bytes by pieces: lines, or 64 bytes of longer ones."""
    counts = {}
    if b"\0" not in data[:8000]:
        data = data.replace(b"\r\n", b"\n")
    for line in split_lines(data):
        for at in range(0, len(line), 64):
            piece = line[at : at + 64]
            counts[piece] = counts.get(piece, 0) + len(piece)
    return counts


def similarity(old, new, least=0.5, cache=None):
    """Of 60000, how much of the greater of two texts both have."""
    size = max(len(old), len(new))
    if not size or size * (1 - least) < size - min(len(old), len(new)):
        return 0
    if not old or not new:
        return 0

    def counted(data):
        if cache is None:
            return _chunks(data)
        if data not in cache:
            cache[data] = _chunks(data)
        return cache[data]

    one, two = counted(old), counted(new)
    common = sum(min(count, two[piece]) for piece, count in one.items() if piece in two)
    return min(common * 60000 // size, 60000)


class _Renames:
    def __init__(self, git, found, gone, options, old_files):
        self.git, self.found, self.gone = git, found, gone
        self.least = options.get("score", 0.5)
        self.copies, self.old_files = options.get("copies"), old_files
        self.limit = options.get("limit") or 400

    def find(self):
        added = [change for change in self.found if change.kind == "A" and change.new_mode & 0o170000 != MODULE]
        sources = [change for change in self.gone if change.old_mode & 0o170000 != MODULE]
        self.pairs, self.used, self.cache = {}, set(), {}
        self._same(added, sources)
        if self.least < 1:
            self._alike(added, sources)
        if self.copies:
            self._copied(added)
        for change in added:
            if change.path in self.pairs:
                old, score, kind = self.pairs[change.path]
                change.old_path, change.old_mode, change.old_sha, change.kind = old.old_path, old.old_mode, old.old_sha, kind
                change.old_data, change.score = old.old_data, score * 100 // 60000
        return self.found, [change for change in self.gone if change.path not in self.used]

    def _take(self, new, old, score):
        self.pairs[new.path] = (old, score, "R")
        self.used.add(old.path)

    def _same(self, added, sources):
        by_sha = {}
        for old in sources:
            by_sha.setdefault((old.old_sha, old.old_mode & 0o170000), []).append(old)
        for new in added:
            fit = [old for old in by_sha.get((new.new_sha, new.new_mode & 0o170000), ()) if old.path not in self.used]
            if fit:
                name = os.path.basename(new.path)
                self._take(new, next((old for old in fit if os.path.basename(old.path) == name), fit[0]), 60000)

    def _score(self, old, new, least):
        if old.old_mode & 0o170000 != FILE or new.new_mode & 0o170000 != FILE:
            return 0
        return similarity(old.data(self.git, 0), new.data(self.git, 1), least, self.cache)

    def _alike(self, added, sources):
        left = lambda: ([n for n in added if n.path not in self.pairs], [o for o in sources if o.path not in self.used])
        news, olds = left()
        if not self.copies:
            names = [{}, {}]
            for by_name, changes in zip(names, (news, olds)):
                for change in changes:
                    by_name.setdefault(os.path.basename(change.path), []).append(change)
            for name, some in names[0].items():
                others = names[1].get(name, ())
                if len(some) == len(others) == 1:
                    score = self._score(others[0], some[0], self.least)
                    if score >= (self.least + (1 - self.least) / 2) * 60000:
                        self._take(some[0], others[0], score)
            news, olds = left()
        if not news or not olds or len(news) * len(olds) > self.limit**2:
            return
        scores = []
        for at, new in enumerate(news):
            best = []
            for old in olds:
                score = self._score(old, new, self.least)
                if score >= self.least * 60000:
                    best.append((-score, os.path.basename(old.path) != os.path.basename(new.path), at, old.path, old))
            scores += sorted(best, key=lambda item: item[:2])[:4]
        for score, _, at, _, old in sorted(scores, key=lambda item: item[:2]):
            if news[at].path not in self.pairs and old.path not in self.used:
                self._take(news[at], old, -score)

    def _copied(self, added):
        """Files that came of ones that stay: of changed ones, or of all (`copies` is 2)."""
        changed = {change.path for change in self.found if change.kind in "MT"}
        stay = [path for path in sorted(self.old_files) if path in changed or self.copies > 1 or path in self.used]
        for new in added:
            if new.path in self.pairs or len(stay) > self.limit**2:
                continue
            best = None
            for path in stay:
                old = Change(path, path, self.old_files[path], None, "D")
                score = 60000 if old.old_sha == new.new_sha else self._score(old, new, self.least)
                if score >= self.least * 60000 and (best is None or score > best[1]):
                    best = old, score, "C"
            if best:
                self.pairs[new.path] = best


# The working tree.


def hash_blob(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest().encode()


def _seconds(value):
    return value if isinstance(value, tuple) else (int(value), round((value - int(value)) * 1e9))


def read_worktree(git, path, info=None):
    """The bytes of a file of the working tree: those of a link are where it leads. None where there is none."""
    full = git.path(path)
    try:
        info = info or os.lstat(full)
        if stat.S_ISLNK(info.st_mode):
            return os.fsencode(os.readlink(full))
        if not stat.S_ISREG(info.st_mode):
            return None
        with open(full, "rb") as file:
            return file.read()
    except OSError:
        return None


def behind_link(git, path, known):
    """Whether a directory of the path is a link (or no directory): what lies there is not the tree's."""
    at = path.rfind(b"/")
    if at < 0:
        return False
    directory = path[:at]
    if directory not in known:
        try:
            real = stat.S_ISDIR(os.lstat(git.path(directory)).st_mode)
        except OSError:
            real = True
        known[directory] = not real or behind_link(git, directory, known)
    return known[directory]


def worktree_files(git, entries=None, paths=None):
    """Files that differ between index and working tree: two dicts of files, the data that were read, and the paths in conflict.

    A file of the size and time of its entry that is older than the index is not read."""
    entries = git.index() if entries is None else entries
    paths = as_matcher(git, paths)
    try:
        written = os.stat(os.path.join(git.gitdir, "index")).st_mtime_ns
    except OSError:
        written = 0
    modes = git.config.truth("core.filemode", True)
    old_files, new_files, data, conflicts, known = {}, {}, {}, [], {}
    for path, entry in entries.items():
        if paths is not None and not paths.match(path):
            continue
        if not hasattr(entry, "sha"):
            conflicts.append(path)
            continue
        if entry.extended_flags & 0x4000 or entry.flags & 0x8000:
            continue
        mode, sha = entry.mode, entry.sha
        intended = bool(entry.extended_flags & 0x2000)
        try:
            info = os.lstat(git.path(path))
            if behind_link(git, path, known):
                raise FileNotFoundError
        except OSError:
            if not intended:
                old_files[path] = (mode, sha)
            continue
        kind = stat.S_IFMT(info.st_mode)
        if kind == stat.S_IFDIR:
            if mode & 0o170000 != MODULE:
                old_files[path] = (mode, sha)
            continue
        if kind not in (stat.S_IFREG, stat.S_IFLNK):
            continue
        now = LINK if kind == stat.S_IFLNK else mode if mode & 0o170000 == FILE and not modes else 0o100644
        if kind == stat.S_IFREG and modes and info.st_mode & 0o100:
            now = 0o100755
        seconds, rest = _seconds(entry.mtime)
        if not intended and now == mode and info.st_size == entry.size and int(info.st_mtime) == seconds:
            exact = info.st_mtime_ns % 10**9
            if (not rest or abs(exact - rest) < 1000) and info.st_mtime_ns < written:
                continue
        text = read_worktree(git, path, info)
        if text is None:
            continue
        found = hash_blob(text)
        if intended:
            new_files[path], data[path] = (now, found), text
        elif found != sha or now != mode:
            old_files[path], new_files[path], data[path] = (mode, sha), (now, found), text
    return old_files, new_files, data, conflicts


def worktree_changes(git, index_entries=None, paths=None, renames=False):
    """Changes from the index to the working tree; a path in conflict has the kind U."""
    old_files, new_files, data, conflicts = worktree_files(git, index_entries, paths)
    changes = tree_changes(git, old_files, new_files, renames, None, data)
    for change in changes:
        change.unstored = True
    for path in conflicts:
        there = os.path.lexists(git.path(path))
        changes.append(Change(path, path, None, (FILE | 0o644, None) if there else None, "U"))
    return sorted(changes, key=lambda change: change.path)


def index_files(entries):
    """The files of the index that have no conflict, as a tree has them, without those that are only meant to be added."""
    return {path: (e.mode, e.sha) for path, e in entries.items() if hasattr(e, "sha") and not e.extended_flags & 0x2000}
