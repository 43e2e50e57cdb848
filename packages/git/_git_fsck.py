# git fsck: whether every object can be read and is what its name says, and whether what the references lead to is there.
import os
import zlib

import _git_core as core
from _git_core import Failure, out, say
from dulwich.errors import ObjectFormatException
from dulwich.objects import Blob, Commit, Tag, Tree

FSCK = """
--full
--strict
--unreachable
--dangling
--root
--tags
--cache
--reflogs
--connectivity-only
--lost-found
--progress
-v --verbose
"""

# Bits of the exit code: an object that is wrong, and one that is missing.
WRONG, MISSING = 1, 2


class Check:
    def __init__(self, git, options):
        self.git, self.options, self.code = git, options, 0
        # For each object that can be read: its kind, and the kinds and digits that it leads to.
        self.kinds, self.links = {}, {}
        self.unreadable, self.shallow = set(), git.store.get_shallow()

    def wrong(self, text, bit=WRONG):
        say(f"error: {text}\n")
        self.code |= bit

    def read_all(self):
        for sha in sorted(set(self.git.store.object_store)):
            try:
                item = self.git.store.object_store[sha]
                kind, links = item.type_name.decode(), linked(item, self.shallow)
                if not (kind == "blob" and self.options.connectivity_only) and made_anew(item) != sha:
                    raise ValueError(f"hash mismatch, found {made_anew(item).decode()}")
            except (ObjectFormatException, zlib.error, OSError, ValueError, KeyError, EOFError, AssertionError, IndexError) as why:
                if isinstance(why, ValueError) and "hash mismatch" in str(why):
                    say(f"error: {why} for {place_of(self.git, sha)}\n")
                self.wrong(f"{sha.decode()}: object corrupt or missing: {place_of(self.git, sha)}")
                self.unreadable.add(sha)
                continue
            self.kinds[sha], self.links[sha] = kind, links
            self.look(sha, item, kind)

    def look(self, sha, item, kind):
        if self.options.connectivity_only:
            return
        if kind == "tree":
            for problem, is_error in tree_problems(item, bool(self.options.strict)):
                say(f"{'error' if is_error else 'warning'} in tree {sha.decode()}: {problem}\n")
                self.code |= WRONG if is_error else 0
        elif kind != "blob":
            try:
                item.check()
            except ObjectFormatException as why:
                say(f"error in {kind} {sha.decode()}: {why}\n")
                self.code |= WRONG
        if kind == "commit" and self.options.root and not item.parents:
            out(f"root {sha.decode()}\n")
        if kind == "tag" and self.options.tags:
            target = item.object[0].type_name.decode()
            out(f"tagged {target} {item.object[1].decode()} ({os.fsdecode(item.name)}) in {sha.decode()}\n")

    def roots(self, words):
        """Digits that everything reachable is reachable from, each with the kind that it must have, or None."""
        git = self.git
        if words:
            named = [(word, git.find(word)) for word in words]
            for word, sha in named:
                if sha is None:
                    self.wrong(f"invalid parameter: expected sha1, got '{word}'")
            return [(sha, None) for _, sha in named if sha is not None]
        found, heads = [], 0
        for ref in sorted(git.refs.allkeys()):
            try:
                sha = git.refs[ref]
            except KeyError:
                continue
            if sha not in self.kinds:
                if ref != b"HEAD":
                    self.wrong(f"{os.fsdecode(ref)}: invalid sha1 pointer {sha.decode()}", MISSING)
                else:
                    self.wrong(f"HEAD: invalid sha1 pointer {sha.decode()}", MISSING)
                continue
            heads += ref != b"HEAD"
            if ref.startswith(b"refs/heads/") and self.kinds[sha] != "commit":
                self.wrong(f"{os.fsdecode(ref)}: not a commit")
            found.append((sha, None))
        if git.head_ref() and git.head() is None:
            say(f"notice: HEAD points to an unborn branch ({git.branch()})\n")
        if not heads:
            say("notice: No default references\n")
        if self.options.reflogs is not False and not self.options.lost_found:
            found += [(sha, None) for sha in logged(git) if sha in self.kinds]
        for index in indexes(git):
            for entry in index:
                stages = [entry] if hasattr(entry, "sha") else [entry.ancestor, entry.this, entry.other]
                found += [(stage.sha, "blob") for stage in stages if stage is not None and stage.mode & 0o170000 != 0o160000]
        return found

    def walk(self, roots):
        seen, waiting = set(), []
        for sha, kind in roots:
            if sha not in seen:
                seen.add(sha)
                waiting.append((sha, kind))
        lost = {}
        while waiting:
            sha, kind = waiting.pop()
            if sha not in self.kinds:
                if self.git.fetch_missing:
                    # The server of a partial clone has it.
                    continue
                lost[sha] = kind or "unknown"
                continue
            for wanted, inner in self.links[sha]:
                if inner in seen:
                    continue
                seen.add(inner)
                waiting.append((inner, wanted))
                if inner not in self.kinds and not self.git.fetch_missing:
                    out(f"broken link from {self.kinds[sha]:>7} {sha.decode()}\n              to {wanted:>7} {inner.decode()}\n")
                    self.code |= MISSING
        for sha, kind in sorted(lost.items()):
            out(f"missing {kind} {sha.decode()}\n")
            self.code |= MISSING
        return seen

    def rest(self, seen):
        """Names what nothing leads to."""
        unreachable = sorted(sha for sha in self.kinds if sha not in seen)
        used = {inner for sha in unreachable for _, inner in self.links[sha]}
        for sha in unreachable:
            if self.options.unreachable:
                out(f"unreachable {self.kinds[sha]} {sha.decode()}\n")
            elif sha not in used and self.options.dangling is not False:
                out(f"dangling {self.kinds[sha]} {sha.decode()}\n")
            if sha not in used and self.options.lost_found:
                self.keep(sha)

    def keep(self, sha):
        is_commit = self.kinds[sha] == "commit"
        path = os.path.join(self.git.commondir, "lost-found", "commit" if is_commit else "other", sha.decode())
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(self.git.store[sha].data if self.kinds[sha] == "blob" else sha + b"\n")


def linked(item, shallow):
    if isinstance(item, Commit):
        parents = () if item.id in shallow else item.parents
        return [("tree", item.tree), *(("commit", parent) for parent in parents)]
    if isinstance(item, Tag):
        return [(item.object[0].type_name.decode(), item.object[1])]
    if isinstance(item, Tree):
        kinds = {0o040000: "tree", 0o160000: None}
        entries = [(kinds.get(mode & 0o170000, "blob"), sha) for _, mode, sha in item.iteritems()]
        return [(kind, sha) for kind, sha in entries if kind]
    return []


def made_anew(item):
    import hashlib

    data = item.as_raw_string()
    return hashlib.sha1(item.type_name + b" %d\0" % len(data) + data).hexdigest().encode()


def tree_problems(tree, strict):
    """Problems of the entries of a tree, and for each whether it is an error."""
    names, problems, modes = set(), [], {0o100644, 0o100755, 0o120000, 0o040000, 0o160000}
    entries = list(tree.iteritems())
    for name, mode, sha in entries:
        plain = name.partition(b":")[0].rstrip(b" .").lower()
        if not name:
            problems.append(("emptyName: contains empty pathname", strict))
        elif name in (b".", b".."):
            dots = {b".": "hasDot: contains '.'", b"..": "hasDotdot: contains '..'"}
            problems.append((dots[name], strict))
        elif plain in (b".git", b"git~1"):
            problems.append(("hasDotgit: contains '.git'", strict))
        elif b"/" in name:
            problems.append(("fullPathname: contains full pathnames", strict))
        if name in names:
            problems.append(("duplicateEntries: contains duplicate file entries", True))
        names.add(name)
        if sha == core.ZERO:
            problems.append(("nullSha1: contains entries pointing to null sha1", strict))
        if mode not in modes and (strict or mode != 0o100664):
            problems.append(("badFilemode: contains bad file modes", strict))
    raw = [name + (b"/" if mode & 0o170000 == 0o040000 else b"") for name, mode, _ in entries]
    if raw != sorted(raw):
        problems.append(("treeNotSorted: not properly sorted", True))
    return list(dict.fromkeys(problems))


def place_of(git, sha):
    digits = sha.decode()
    return os.path.join(os.path.relpath(git.commondir), "objects", digits[:2], digits[2:])


def logged(git):
    """Digits in the logs of references, of every working tree."""
    found = set()
    for base in [git.commondir, *gitdirs(git)]:
        for directory, _, names in os.walk(os.path.join(base, "logs")):
            for name in names:
                with open(os.path.join(directory, name), "rb") as file:
                    found.update(sha for line in file for sha in line.split(b" ", 2)[:2] if sha != core.ZERO and len(sha) == 40)
    return sorted(found)


def gitdirs(git):
    base = os.path.join(git.commondir, "worktrees")
    return [os.path.join(base, name) for name in sorted(os.listdir(base))] if os.path.isdir(base) else []


def indexes(git):
    from dulwich.index import Index

    for directory in [git.commondir, *gitdirs(git)]:
        path = os.path.join(directory, "index")
        if os.path.exists(path):
            try:
                yield [entry for _, entry in Index(path).items()]
            except Exception as why:
                raise Failure(f"index file corrupt: {why}")


def cmd_fsck(argv, call):
    options, git = core.parse("fsck", argv, FSCK), call.git()
    check = Check(git, options)
    check.read_all()
    check.rest(check.walk(check.roots(options.all_words())))
    return check.code
