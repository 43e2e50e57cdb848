# `git blame`: the commit that each line of a file comes from.
import os
import re
import time

import _git_core as core
from _git_core import Failure, error, out
from dulwich.errors import NotTreeError
from dulwich.objects import SubmoduleEncountered

OPTIONS = """
-L =*
-s
-e --show-email
-l
-t
-w
-f --show-name
-n --show-number
--porcelain
-p
--line-porcelain
-b
--root
--abbrev =
--date =
--first-parent
-M [=]
-C [=]
--incremental
--reverse
"""


def cmd_blame(argv, call):
    options = core.parse("blame", argv, OPTIONS)
    git = call.git()
    if options.incremental or options.reverse or options.C or options.M:
        raise error("this form of blame is not there", 129)
    words, paths = list(options.words), options.paths
    if paths is None:
        if not words:
            raise Failure("usage: git blame [<options>] [<rev-opts>] [<rev>] [--] <file>", 129, "")
        paths = [words.pop()]
        if words and git.find(words[0]) is None and git.find(paths[0]) is not None:
            words, paths = [paths[0]], [words[0]]
    if len(paths) != 1 or len(words) > 1:
        raise Failure("usage: git blame [<options>] [<rev-opts>] [<rev>] [--] <file>", 129, "")
    path = git.tree_path(paths[0])
    if words:
        start = git.commit(words[0]).id
        found = lookup(git, start, path)
        if found is None:
            raise Failure(f"no such path {paths[0]} in {words[0]}")
        data, tip = git.blob(found[1]), (start, path)
    else:
        start = git.head()
        if start is None:
            raise Failure("no such ref: HEAD")
        try:
            with open(git.path(path), "rb") as file:
                data = file.read()
        except OSError as why:
            found = lookup(git, start, path)
            if found is None:
                raise Failure(f"no such path '{paths[0]}' in HEAD")
            raise Failure(f"Cannot lstat '{paths[0]}': {why.strerror}")
        if path not in git.index() or lookup(git, start, path) is None and not hasattr(git.index()[path], "sha"):
            raise Failure(f"no such path '{paths[0]}' in HEAD")
        tip = (None, path)
    blame = Blame(git, start, data, tip, bool(options.w), bool(options.first_parent))
    lines = wanted_lines(options.L, blame.lines, paths[0])
    if options.porcelain or options.p or options.line_porcelain:
        return porcelain(git, blame, lines, bool(options.line_porcelain))
    show(git, blame, lines, options)


def lookup(git, commit, path):
    """Mode and digits of a file in a commit, or None."""
    try:
        return git.store[git.store[commit].tree].lookup_path(git.store.object_store.__getitem__, path)
    except (KeyError, NotTreeError, SubmoduleEncountered):
        return None


class Blame:
    """`origin` has for each line the commit (None for what is not committed), the path and the number of the line there."""

    def __init__(self, git, start, data, tip, ignore, first_parent):
        from _git_lines import split_lines

        self.git, self.ignore, self.first_parent = git, "all" if ignore else None, first_parent
        self.lines = split_lines(data)
        self.origin = [None] * len(self.lines)
        self.boundary, self.previous = {}, {}
        self.texts = {}
        # Lines that a version still has to explain: pairs of (line of the file, line of that version).
        self.asked = {tip: [(at, at) for at in range(len(self.lines))]}
        self.texts[tip] = self.lines
        if tip[0] is None:
            self.hand_on(tip, [start])
        self.walk()

    def text(self, version):
        from _git_lines import split_lines

        if version not in self.texts:
            found = lookup(self.git, *version)
            self.texts[version] = split_lines(self.git.blob(found[1])) if found else []
        return self.texts[version]

    def walk(self):
        import heapq

        import itertools

        queue, queued, counter = [], set(), itertools.count()
        push = lambda version: heapq.heappush(queue, (-self.git.store[version[0]].commit_time, next(counter), version))
        for version in self.asked:
            if version[0] is not None:
                push(version)
                queued.add(version)
        while queue:
            version = heapq.heappop(queue)[2]
            queued.discard(version)
            if version not in self.asked:
                continue
            parents = self.git.store[version[0]].parents
            parents = [parent for parent in parents if parent in self.git.store.object_store]
            for following in self.hand_on(version, parents[:1] if self.first_parent else parents):
                if following not in queued:
                    push(following)
                    queued.add(following)

    def hand_on(self, version, parents):
        """Asks the parents for the lines that they have, too; the rest is this version's."""
        lines = self.asked.pop(version)
        touched = []
        places = [(parent, self.place(version, parent)) for parent in parents]
        # A parent with the very same file takes everything.
        for parent, place in places:
            if place and version[0] is not None and lookup(self.git, parent, place)[1] == lookup(self.git, *version)[1]:
                places = [(parent, place)]
                break
        for parent, place in places:
            if not place or not lines:
                continue
            following = (parent, place)
            self.previous.setdefault(version, following)
            same = self.same(following, version)
            moved = [(at, same[here]) for at, here in lines if here in same]
            lines = [(at, here) for at, here in lines if here not in same]
            if moved:
                self.asked[following] = sorted(self.asked.get(following, []) + moved)
                touched.append(following)
        for at, here in lines:
            self.origin[at] = (version[0], version[1], here)
        if version[0] is not None and not self.git.store[version[0]].parents:
            self.boundary[version[0]] = True
        return touched

    def place(self, version, parent):
        """The path of the file in a parent, through a rename, or None."""
        path = version[1]
        if lookup(self.git, parent, path) is not None:
            return path
        if version[0] is None:
            return None
        from _git_changes import commit_changes

        for change in commit_changes(self.git, parent, version[0], True):
            if change.kind == "R" and change.new_path == path:
                return change.old_path
        return None

    def same(self, old, new):
        """Lines of the new version with the lines of the old one that they are."""
        from _git_lines import blocks

        olds, news = self.text(old), self.text(new)
        found, i, j = {}, 0, 0
        for from1, to1, from2, to2 in [*blocks(olds, news, self.ignore), (len(olds), 0, len(news), 0)]:
            while i < from1 and j < from2:
                found[j] = i
                i, j = i + 1, j + 1
            i, j = to1, to2
        return found


def wanted_lines(ranges, lines, name):
    """Indexes of the lines that -L asks for."""
    if not ranges:
        return list(range(len(lines)))
    chosen = set()
    for text in ranges:
        function = re.fullmatch(r":(.+)", text)
        if function:
            start = next(
                (at for at, line in enumerate(lines) if re.search(os.fsencode(function[1]), line) and line[:1].strip()), None
            )
            if start is None:
                raise Failure(f"-L parameter '{function[1]}' starting at line 1: no match")
            end = next(
                (at for at in range(start + 1, len(lines)) if lines[at][:1].isalpha() or lines[at][:1] in (b"_", b"$")),
                len(lines),
            )
            chosen |= set(range(start, end))
            continue
        parts = re.fullmatch(r"(/(?:[^/\\]|\\.)*/|\d*)(?:,(/(?:[^/\\]|\\.)*/|[+-]?\d*))?", text)
        if not parts:
            raise Failure("usage: git blame [<options>] [<rev-opts>] [<rev>] [--] <file>", 129, "")

        def line_of(part, after):
            for at in range(after, len(lines)):
                if re.search(os.fsencode(part[1:-1]), lines[at]):
                    return at + 1
            raise Failure(f"-L parameter '{part[1:-1]}' starting at line {after + 1}: No match")

        first, last = parts[1], parts[2]
        start = line_of(first, 0) if first.startswith("/") else int(first or 1)
        if not last:
            end = len(lines) if "," in text or parts[2] is None else start
        elif last.startswith("/"):
            end = line_of(last, start)
        elif last.startswith("+"):
            end = start + int(last[1:]) - 1
        elif last.startswith("-"):
            start, end = max(start - int(last[1:]) + 1, 1), start
        else:
            end = int(last)
        if start > len(lines):
            raise Failure(f"file {name} has only {len(lines)} line{'' if len(lines) == 1 else 's'}")
        if start > end:
            start, end = end, start
        chosen |= set(range(max(start, 1) - 1, min(end, len(lines))))
    return sorted(chosen)


def author_of(git, sha):
    """Name, address, seconds and zone."""
    if sha is None:
        now = int(time.time())
        return b"Not Committed Yet", b"not.committed.yet", now, core.local_zone(now)
    commit = git.store[sha]
    name, _, email = commit.author.partition(b" <")
    return name, email.rstrip(b">"), commit.author_time, commit.author_timezone


def show(git, blame, lines, options):
    from _git_reflist import date

    least = int(options.abbrev) + 1 if options.abbrev else 8
    shas = {blame.origin[at][0] for at in lines}
    width = 40 if options.l else max([least] + [len(git.abbreviate(sha)) + 1 for sha in shas if sha])
    kind = options.date or "iso"
    authors = {sha: author_of(git, sha) for sha in shas}
    who = {
        sha: (b"<" + email + b">" if options.show_email else name).decode("utf-8", "replace")
        for sha, (name, email, _, _) in authors.items()
    }
    longest = max((len(name) for name in who.values()), default=0)
    digits = len(str(lines[-1] + 1)) if lines else 1
    names = {blame.origin[at][1] for at in lines}
    show_name = (
        options.show_name
        or len(names | ({blame.origin[lines[0]][1]} if lines else set())) > 1
        or any(name != blame_path for name in names for blame_path in [blame_name(blame)])
    )
    name_width = max((len(os.fsdecode(name)) for name in names), default=0)
    old_digits = max((len(str(blame.origin[at][2] + 1)) for at in lines), default=1)
    dates = {sha: date(when, zone, kind) if not options.t else f"{when} {core.zone_text(zone).decode()}"
             for sha, (_, _, when, zone) in authors.items()}  # fmt: skip
    date_width = max(map(len, dates.values()), default=0)
    for at in lines:
        sha, path, number = blame.origin[at]
        shown = (sha or core.ZERO).decode()
        mark = "^" if sha in blame.boundary and not options.root and not options.b else ""
        shown = " " * width if options.b and sha in blame.boundary else mark + shown[: width - len(mark)]
        line = shown
        if show_name:
            line += f" {os.fsdecode(path):<{name_width}}"
        if options.show_number:
            line += f" {number + 1:>{old_digits}}"
        if not options.s:
            line += f" ({who[sha]:<{longest}} {dates[sha]:<{date_width}}"
        line += f" {at + 1:>{digits}}) "
        out(line.encode("utf-8", "surrogateescape") + blame.lines[at].rstrip(b"\n") + b"\n")


def blame_name(blame):
    return next(iter(blame.texts))[1]


def porcelain(git, blame, lines, every):
    from _git_reflist import split_message

    told = set()
    at = 0
    while at < len(lines):
        sha, path, number = blame.origin[lines[at]]
        end = at + 1
        while (
            end < len(lines) and lines[end] == lines[end - 1] + 1 and blame.origin[lines[end]] == (sha, path, number + end - at)
        ):
            end += 1
        for step in range(at, end):
            group = f" {end - at}" if step == at else ""
            out(f"{(sha or core.ZERO).decode()} {number + step - at + 1} {lines[step] + 1}{group}\n")
            if every or sha not in told and step == at:
                name, email, when, zone = author_of(git, sha)
                commit = git.store[sha] if sha else None
                text = b"author %s\nauthor-mail <%s>\nauthor-time %d\nauthor-tz %s\n" % (name, email, when, core.zone_text(zone))
                if commit:
                    name, _, email = commit.committer.partition(b" <")
                    email, when, zone = email.rstrip(b">"), commit.commit_time, commit.commit_timezone
                text += b"committer %s\ncommitter-mail <%s>\ncommitter-time %d\ncommitter-tz %s\n" % (
                    name, email, when, core.zone_text(zone),
                )  # fmt: skip
                summary = (
                    split_message(commit.message)[0] if commit else f"Version of {os.fsdecode(path)} from {os.fsdecode(path)}"
                )
                text += b"summary " + os.fsencode(summary) + b"\n"
                if sha in blame.boundary:
                    text += b"boundary\n"
                else:
                    before = blame.previous.get((sha, path))
                    text += b"previous %s %s\n" % (before[0], os.fsencode(core.quoted(before[1]))) if before else b""
                out(text + b"filename " + os.fsencode(core.quoted(path)) + b"\n")
                told.add(sha)
            out(b"\t" + blame.lines[lines[step]].rstrip(b"\n") + b"\n")
        at = end
