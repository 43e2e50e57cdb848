# The repository that every command of git works on, and names of its commits. What commands need besides comes along.
import os
import re
import time

from dulwich.errors import NotGitRepository
from dulwich.graph import find_merge_base
from dulwich.objects import Blob, Commit, Tag, Tree
from dulwich.repo import Repo as Store

import _git_words
from _git_settings import Settings, global_config_path, local_zone, parse_date, split_key, truth, zone_text  # noqa: F401
from _git_words import Failure, Options, error, out, parse, quoted, say  # noqa: F401

EMPTY_TREE = b"4b825dc642cb6eb9a060e54bf8d69288fbee4904"
ZERO = b"0" * 40


class Git:
    """A repository as it is seen from a directory: `store` is dulwich's, `root` the top of the working tree (None in a bare one), and
    `prefix` the way from there to the directory, with a slash at its end, or nothing."""

    def __init__(self, given=(), gitdir=None, worktree=None):
        gitdir = gitdir or os.environ.get("GIT_DIR")
        worktree = worktree or os.environ.get("GIT_WORK_TREE")
        here = os.getcwd()
        try:
            self.store = Store(gitdir) if gitdir else self._discover(here)
        except NotGitRepository:
            where = f": '{gitdir}'" if gitdir else " (or any of the parent directories): .git"
            raise Failure(f"not a git repository{where}") from None
        self.gitdir = os.path.abspath(os.fsdecode(self.store.controldir()))
        self.commondir = os.path.abspath(os.fsdecode(self.store.commondir()))
        self.config = Settings(given, self.commondir)
        _git_words.quote_path = self.config.truth("core.quotePath", True)
        if gitdir and (worktree or not self.config.truth("core.bare", os.path.basename(self.gitdir) != ".git")):
            # dulwich takes a git directory that is named by itself for a bare repository.
            self.store.bare = False
        self.bare = bool(self.store.bare) and not worktree
        # Of a repository that was cloned in part: fetches objects that are missing.
        self.fetch_missing = None
        if self.config.has("remote", b"promisor"):
            from _git_wire import promise

            self.fetch_missing = promise(self)
        self.root = None if self.bare else os.path.abspath(worktree or (here if gitdir else os.fsdecode(self.store.path)))
        inside = self.root is not None and (here + "/").startswith(self.root.rstrip("/") + "/")
        in_gitdir = (here + "/").startswith(self.gitdir + "/")
        self.inside_worktree = inside and not in_gitdir
        self.prefix = os.fsencode(os.path.relpath(here, self.root) + "/") if self.inside_worktree and here != self.root else b""

    @staticmethod
    def _discover(here):
        path = here
        while True:
            for candidate in (path,):
                try:
                    return Store(candidate)
                except NotGitRepository:
                    pass
            if path == "/":
                raise NotGitRepository(here)
            path = os.path.dirname(path)

    def need_worktree(self):
        if self.root is None:
            raise Failure("this operation must be run in a work tree")

    def path(self, tree_path):
        """Where a file of the working tree lies; `tree_path` is bytes."""
        return os.path.join(self.root, os.fsdecode(tree_path))

    def tree_path(self, word):
        """A path of the command line as the tree has it, in bytes: from the top of the working tree, without a slash at its end."""
        whole = os.path.normpath(os.path.join(os.getcwd(), word))
        top = self.root.rstrip("/")
        if whole == top or whole == self.root:
            return b""
        if not whole.startswith(top + "/"):
            raise Failure(f"{word}: '{word}' is outside repository at '{self.root}'")
        return os.fsencode(whole[len(top) + 1 :])

    def shown(self, tree_path):
        """A path of the tree as seen from the directory, in text; a slash at its end stays."""
        path = os.fsdecode(tree_path)
        if self.prefix:
            path = os.path.relpath(path, os.fsdecode(self.prefix)) + ("/" if path.endswith("/") else "")
        return path

    # Names of commits.

    @property
    def refs(self):
        return self.store.refs

    def head_ref(self):
        """The full name of the branch (bytes), or None where HEAD is a commit."""
        value = self.refs.read_ref(b"HEAD")
        return value[5:].strip() if value and value.startswith(b"ref: ") else None

    def branch(self):
        """The name of the branch in text, or None where HEAD is a commit."""
        ref = self.head_ref()
        return os.fsdecode(ref.removeprefix(b"refs/heads/")) if ref else None

    def value(self, ref):
        """The target of a reference, by its full name, or None where that has no commit yet."""
        try:
            return self.refs[ref]
        except KeyError:
            return None

    def head(self):
        """The commit of HEAD, or None where the branch has none yet."""
        return self.value(b"HEAD")

    def ref(self, name):
        """The full name of a reference by any name that it has (bytes), or None."""
        name = os.fsencode(name) if isinstance(name, str) else name
        if name == b"@":
            name = b"HEAD"
        forms = (b"%s", b"refs/%s", b"refs/tags/%s", b"refs/heads/%s", b"refs/remotes/%s", b"refs/remotes/%s/HEAD")
        for form in forms:
            full = form % name
            if b"/" not in full and not re.fullmatch(rb"[A-Z_]+", full):
                continue
            try:
                if full in self.refs:
                    return full
            except Exception:
                return None
        return None

    def upstream(self, branch):
        """The full name of what a branch follows (bytes), or None."""
        remote, merge = self.config.get(f"branch.{branch}.remote"), self.config.get(f"branch.{branch}.merge")
        if not remote or not merge:
            return None
        return os.fsencode(merge if remote == "." else merge.replace("refs/heads/", f"refs/remotes/{remote}/", 1))

    def reflog(self, ref):
        """Entries of a reference's log, the newest first."""
        try:
            return list(self.store.read_reflog(ref))[::-1]
        except (OSError, KeyError):
            return []

    def _base(self, name):
        """The object of a name without operators, or None."""
        at = re.fullmatch(r"(.*)@\{([^}]*)\}", name)
        if at:
            base, spec = at[1], at[2]
            if spec.lower() in ("u", "upstream", "push"):
                branch = base or self.branch()
                up = branch and self.upstream(branch)
                if not up:
                    raise Failure(f"no upstream configured for branch '{branch}'")
                return self.refs[up] if up in self.refs else None
            if spec.startswith("-") and spec[1:].isdigit() and not base:
                return self._base(self.previous_branch(int(spec[1:])))
            ref = (self.ref(base) if base else self.head_ref()) or b"HEAD"
            entries = self.reflog(ref)
            if spec.isdigit():
                if int(spec) < len(entries):
                    return entries[int(spec)].new_sha
                raise Failure(f"log for '{base or 'HEAD'}' only has {len(entries)} entries")
            when = parse_date(spec)[0]
            return next((entry.new_sha for entry in entries if entry.timestamp <= when), None)
        if name == "-":
            name = self.previous_branch(1)
        ref = self.ref(name)
        if ref is not None:
            try:
                return self.refs[ref]
            except KeyError:
                return None
        described = re.fullmatch(r".*-\d+-g([0-9a-f]{4,40})", name)
        digits = (described[1] if described else name).lower()
        if re.fullmatch(r"[0-9a-f]{4,40}", digits):
            return self._short(digits)
        return None

    def _short(self, digits):
        if len(digits) == 40:
            return digits.encode() if digits.encode() in self.store.object_store else None
        found = sorted(set(self.store.object_store.iter_prefix(digits.encode())))
        if len(found) > 1:
            commits = [sha for sha in found if isinstance(self.store[sha], Commit)]
            if len(commits) != 1:
                raise Failure(f"short object ID {digits} is ambiguous", 128, "error: ")
            found = commits
        return found[0] if found else None

    def previous_branch(self, back):
        moves = (re.fullmatch(rb"checkout: moving from (\S+) to \S+", entry.message.strip()) for entry in self.reflog(b"HEAD"))
        names = [os.fsdecode(move[1]) for move in moves if move]
        if len(names) < back:
            raise Failure(f"invalid reference: @{{-{back}}}")
        return names[back - 1]

    def find(self, name):
        """The object that a name stands for, as its digits in bytes, or None: `HEAD~2`, `v1^{tree}`, `main:a.txt`, `:a.txt`, `:/words`."""
        if name.startswith(":/"):
            from dulwich.walk import Walker

            heads = [self.refs[ref] for ref in self.refs.allkeys() if ref in self.refs]
            heads = [self.peel(sha, Commit) for sha in heads]
            for entry in Walker(self.store.object_store, [sha for sha in heads if sha]):
                if re.search(os.fsencode(name[2:]), entry.commit.message):
                    return entry.commit.id
            return None
        if name.startswith(":"):
            stage = re.match(r":([0-3]):", name)
            path = os.fsencode(name[stage.end() if stage else 1 :])
            return self._staged(path, int(stage[1]) if stage else 0)
        base, colon, path = name.partition(":")
        if colon:
            sha = self.find(base)
            tree = sha and self.peel(sha, Tree)
            if not tree:
                return None
            if path.startswith("./") or path.startswith("../") or path == ".":
                try:
                    path = os.fsdecode(self.tree_path(path))
                except Failure:
                    return None
            path = os.fsencode(path.strip("/"))
            if not path:
                return tree
            try:
                return self.store[tree].lookup_path(self.store.object_store.__getitem__, path)[1]
            except KeyError:
                return None
        parts = re.fullmatch(r"((?:@\{[^}]*\}|[^~^])*)((?:[~^](?:\{[^}]*\})?\d*)*)", name, re.S)
        if not parts:
            return None
        sha = self._base(parts[1] or "HEAD" if parts[2] or name else name)
        for sign, kind, count in re.findall(r"([~^])(\{[^}]*\})?(\d*)", parts[2]):
            if sha is None:
                return None
            if kind:
                sha = self._typed(sha, kind[1:-1])
                continue
            sha = self.peel(sha, Commit)
            steps = int(count) if count else 1
            if sign == "^":
                parents = self.store[sha].parents if sha else []
                sha = sha if steps == 0 else parents[steps - 1] if steps <= len(parents) else None
            else:
                for _ in range(steps):
                    parents = self.store[sha].parents if sha else []
                    sha = parents[0] if parents else None
        return sha

    def _staged(self, path, stage):
        found = self.index().get(path)
        if found is None:
            return None
        if hasattr(found, "sha"):
            return found.sha if stage == 0 else None
        entry = {1: found.ancestor, 2: found.this, 3: found.other}.get(stage)
        return entry.sha if entry else None

    def _typed(self, sha, kind):
        if kind == "":
            while isinstance(self.store[sha], Tag):
                sha = self.store[sha].object[1]
            return sha
        kinds = {"commit": Commit, "tree": Tree, "blob": Blob, "tag": Tag}
        return self.peel(sha, kinds[kind]) if kind in kinds else sha if kind == "object" else None

    def peel(self, sha, kind):
        """The object of this kind that a tag or a commit leads to, or None."""
        while sha is not None:
            try:
                found = self.store[sha]
            except KeyError:
                return None
            if isinstance(found, kind):
                return found.id
            if isinstance(found, Tag):
                sha = found.object[1]
            elif isinstance(found, Commit) and kind is Tree:
                sha = found.tree
            else:
                return None
        return None

    def resolve(self, name):
        """As `find`, and a failure where there is none."""
        sha = self.find(name)
        if sha is None:
            raise self.unknown(name)
        return sha

    def unknown(self, word):
        """The failure for a word that is neither an object nor a file."""
        base, colon, path = word.partition(":")
        if colon and path and not base:
            there = os.path.lexists(path)
            where = "exists on disk, but not in the index" if there else "does not exist (neither on disk nor in the index)"
            return Failure(f"path '{path}' {where}")
        if colon and base and self.find(base) is None:
            return Failure(f"invalid object name '{base}'.")
        if colon and path and base:
            if path.startswith("../"):
                try:
                    self.tree_path(path)
                except Failure:
                    return Failure(f"'{path}' is outside repository at '{self.root}'")
            there = self.root is not None and os.path.lexists(self.path(os.fsencode(path)))
            return Failure(f"path '{path}' {'exists on disk, but not in' if there else 'does not exist in'} '{base}'")
        return unknown_revision(word)

    def commit(self, name):
        """The commit (dulwich's) that a name or digits in bytes stand for."""
        sha = self.resolve(name) if isinstance(name, str) else name
        found = self.peel(sha, Commit)
        if found is None:
            raise unknown_revision(name if isinstance(name, str) else name.decode())
        return self.store[found]

    def merge_bases(self, one, other):
        """The digits of the best common ancestors of two commits."""
        return find_merge_base(self.store, [one, other])

    def is_ancestor(self, old, new):
        return old == new or old in self.merge_bases(old, new)

    def abbreviate(self, sha, least=None):
        """The digits as git shortens them, in text: at least seven, and as many as it takes."""
        digits = sha.decode() if isinstance(sha, bytes) else sha
        if least is None:
            least = int(self.config.get("core.abbrev") or 7) if (self.config.get("core.abbrev") or "7").isdigit() else 7
        for length in range(max(least, 4), 40):
            if sum(1 for _ in zip(self.store.object_store.iter_prefix(digits[:length].encode()), range(2))) < 2:
                return digits[:length]
        return digits

    # Trees and the index.

    def tree(self, sha):
        """The files of a tree or of a commit (digits in bytes, or None for nothing): mode and digits of each by its path."""
        files = {}
        if sha is None or sha == EMPTY_TREE:
            return files
        waiting = [(b"", self.peel(sha, Tree))]
        while waiting:
            base, tree = waiting.pop()
            for name, mode, sha in self.store[tree].iteritems():
                if mode & 0o170000 == 0o040000:
                    waiting.append((base + name + b"/", sha))
                else:
                    files[base + name] = (mode, sha)
        return files

    def open_index(self):
        """dulwich's index; call its `write` after changes."""
        return self.store.open_index(config=self.config.stack)

    def index(self):
        """The entries of the index by their paths: each has `mode` and `sha`, or `ancestor`, `this` and `other` after a conflict."""
        return dict(self.open_index().items())

    def blob(self, sha):
        """The bytes of a file."""
        return self.store[sha].data

    # Changes of references, with their logs.

    def update_ref(self, ref, sha, message, old=None):
        """Sets a reference and writes its log; that of HEAD, too, where it is HEAD's branch."""
        name, when, zone = self._logged_by()
        before = self.value(ref)
        if old is not None and before != old:
            raise Failure(f"cannot lock ref '{os.fsdecode(ref)}': is at {(before or ZERO).decode()} but expected {old.decode()}")
        if ref == b"HEAD" and self.head_ref():
            ref = self.head_ref()
            before = self.value(ref)
        if not self.refs.set_if_equals(ref, before, sha):
            raise Failure(f"cannot lock ref '{os.fsdecode(ref)}'")
        if ref == self.head_ref():
            self.log(b"HEAD", before, sha, message)
        self.log(ref, before, sha, message)

    def detach(self, sha, message):
        """Makes HEAD a commit."""
        before = self.head()
        path = os.path.join(self.gitdir, "HEAD")
        with open(path + ".lock", "wb") as file:
            file.write(sha + b"\n")
        os.replace(path + ".lock", path)
        self.log(b"HEAD", before, sha, message)

    def attach(self, ref, message):
        """Makes HEAD a branch, by its full name."""
        before = self.head()
        path = os.path.join(self.gitdir, "HEAD")
        with open(path + ".lock", "wb") as file:
            file.write(b"ref: " + ref + b"\n")
        os.replace(path + ".lock", path)
        if self.head():
            self.log(b"HEAD", before, self.head(), message)

    def _logged_by(self):
        try:
            return self.config.identity("committer")
        except Failure:
            now = int(time.time())
            return b"nobody <nobody@localhost>", now, local_zone(now)

    def log(self, ref, old, new, message, gitdir=None):
        """Appends to a reference's log; that of HEAD is the one of a working tree, of this one where no other directory is given."""
        if not (ref == b"HEAD" or ref.startswith((b"refs/heads/", b"refs/remotes/", b"refs/stash"))):
            return
        name, when, zone = self._logged_by()
        path = os.path.join((gitdir or self.gitdir) if ref == b"HEAD" else self.commondir, "logs", os.fsdecode(ref))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        line = b"%s %s %s %d %s\t%s\n" % (
            old or ZERO,
            new,
            name,
            when,
            zone_text(zone),
            os.fsencode(message).replace(b"\n", b" "),
        )
        with open(path, "ab") as file:
            file.write(line)


def unknown_revision(name):
    return Failure(
        f"ambiguous argument '{name}': unknown revision or path not in the working tree.\n"
        "Use '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'"
    )
