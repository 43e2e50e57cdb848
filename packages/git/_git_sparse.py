# A working tree with a part of the files: the directories of `git sparse-checkout`, in cone mode.
import os

import _git_core as core
from _git_core import Failure, error, out, say

USAGE = "error: need a subcommand\nusage: git sparse-checkout (init | list | set | add | reapply | disable) [<options>]"


class Sparse:
    """Which files are in the working tree."""

    def __init__(self, git):
        self.path = os.path.join(git.gitdir, "info", "sparse-checkout")
        self.on = not git.bare and _is_on(git)
        # Directories that are there with all that is below them, and those above, of which the files alone are there.
        self.whole, self.above = set(), {b""}
        if self.on:
            self._read()

    def _read(self):
        try:
            with open(self.path, "rb") as file:
                lines = [line.rstrip() for line in file.read().split(b"\n")]
        except FileNotFoundError:
            lines = []
        lines = [line for line in lines if line and not line.startswith(b"#")]
        parents = set()
        for line in lines:
            negated, line = line.startswith(b"!"), line.lstrip(b"!")
            if line in (b"/*", b"/*/"):
                if line == b"/*" and b"!/*/" not in lines:
                    self.whole.add(b"")
                continue
            inner = line[1:-3] if negated else line[1:-1]
            if not line.startswith(b"/") or not line.endswith(b"/*/" if negated else b"/") or b"*" in inner.replace(b"\\*", b""):
                raise Failure("the patterns of this sparse checkout are not those of cone mode, which is the only one here")
            name = inner.replace(b"\\", b"")
            if negated:
                parents.add(name)
            else:
                self.whole.add(name)
        self.whole -= parents
        self.above |= parents

    def has(self, path):
        if not self.on:
            return True
        directory = path.rpartition(b"/")[0]
        if directory in self.above:
            return True
        while directory:
            if directory in self.whole:
                return True
            directory = directory.rpartition(b"/")[0]
        return b"" in self.whole

    def write(self, directories):
        """Keeps these directories."""
        directories = {one for one in directories if not any(above in directories for above in _parents(one))}
        parents = {above for one in directories for above in _parents(one)}
        lines = [b"/*", b"!/*/"]
        for name in sorted(directories | parents):
            shown = b"/" + _escaped(name)
            lines += [shown + b"/", b"!" + shown + b"/*/"] if name in parents else [shown + b"/"]
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "wb") as file:
            file.write(b"".join(line + b"\n" for line in lines))


def _parents(name):
    while b"/" in name:
        name = name.rpartition(b"/")[0]
        yield name


def _escaped(name):
    return b"".join(b"\\" + bytes([byte]) if byte in b"\\*?[" else bytes([byte]) for byte in name)


def _is_on(git):
    """Of the working tree, or of the repository."""
    path = os.path.join(git.gitdir, "config.worktree")
    if os.path.exists(path):
        from _git_config import File

        found = [entry.value for entry in File(path).entries if entry.key == "core.sparsecheckout"]
        if found:
            return str(found[-1]).lower() in ("true", "yes", "on", "1")
    return git.config.truth("core.sparseCheckout", False)


def switch_on(git, on=True):
    """As Git has it: in the settings of this working tree."""
    from _git_config import File

    common = File(os.path.join(git.commondir, "config"))
    common.set("extensions.worktreeConfig", "true")
    common.write()
    own = File(os.path.join(git.gitdir, "config.worktree"))
    for key in ("core.sparseCheckout", "core.sparseCheckoutCone"):
        own.set(key, "true" if on else "false")
    own.write()


def apply(git):
    """Brings the working tree to what the directories say."""
    import _git_work as work

    index, sparse = git.open_index(), Sparse(git)
    places, written, kept = work.Places(git), work.index_time(git), []
    entries = [(path, entry) for path, entry in index.items() if not work.is_conflict(entry)]
    missing = [(path, entry) for path, entry in entries if entry.skip_worktree and sparse.has(path)]
    if git.fetch_missing:
        git.fetch_missing(entry.sha for _, entry in missing if entry.mode != work.GITLINK)
    for path, entry in missing:
        if places.lstat(path) is None:
            work.write_file(git, path, entry.mode, b"" if entry.mode == work.GITLINK else git.store[entry.sha].data)
        index[path] = work.index_entry(git, path, entry.mode, entry.sha)
    for path, entry in entries:
        if entry.skip_worktree or sparse.has(path):
            continue
        found = places.lstat(path)
        if found is not None and work.changed_file(git, path, entry, found, written):
            kept.append(path)
            continue
        if found is not None:
            work.remove_file(git, path)
        index[path] = skipped(git, path, entry.mode, entry.sha)
    work.save_index(git, index)
    if kept:
        listed = "".join(f"\t{os.fsdecode(path)}\n" for path in kept)
        say(
            f"warning: The following paths are not up to date and were left despite sparse patterns:\n{listed}\n"
            "After fixing the above paths, you may want to run `git sparse-checkout reapply`.\n"
        )


def skipped(git, path, mode, sha):
    """The entry of a file that is not in the working tree."""
    from dulwich.index import IndexEntry

    entry = IndexEntry((0, 0), (0, 0), 0, 0, mode, 0, 0, 0, sha)
    entry.set_skip_worktree(True)
    return entry


def status_line(git):
    """How much of the files is there, for `git status`."""
    if not Sparse(git).on:
        return None
    entries = [entry for entry in git.index().values() if hasattr(entry, "sha")]
    if not entries:
        return None
    there = sum(not entry.skip_worktree for entry in entries)
    return f"You are in a sparse checkout with {100 * there // len(entries)}% of tracked files present.\n"


def cmd_sparse_checkout(argv, call):
    git, (command, *rest) = call.git(), argv or [""]
    if command not in ("init", "list", "set", "add", "reapply", "disable"):
        raise Failure(USAGE, 129, "")
    options = core.parse("sparse-checkout", rest, "--cone\n--sparse-index\n--skip-checks\n--stdin")
    if git.bare:
        raise Failure("this operation must be run in a work tree")
    if options.cone is False:
        raise Failure("only cone mode is available here: directories, and no patterns")
    sparse = Sparse(git)
    if command in ("list", "add", "reapply") and not sparse.on:
        if command == "add":
            raise Failure("no sparse-checkout to add to")
        raise Failure("this worktree is not sparse" if command == "list" else "must be in a sparse-checkout to reapply sparsity patterns")
    if command == "list":
        for name in sorted(sparse.whole):
            out(core.quoted(name) + "\n")
        return 0
    if command == "disable":
        switch_on(git, False)
    elif command == "init":
        switch_on(git)
        if not os.path.exists(sparse.path):
            sparse.write(set())
    elif command in ("set", "add"):
        names = options.all_words()
        if options.stdin:
            import sys

            names = sys.stdin.read().split("\n")
        named = {_directory(git, name) for name in names if name}
        switch_on(git)
        sparse.write(named - {b""} | (sparse.whole - {b""} if command == "add" else set()))
    apply(git)
    return 0


def _directory(git, name):
    """A directory as it is named from where git runs, from the top of the working tree."""
    here = os.path.relpath(os.getcwd(), git.root)
    path = os.path.normpath(name.lstrip("/") if name.startswith("/") else os.path.join(here, name))
    if path.startswith(".."):
        raise Failure(f"could not normalize path {name}")
    raw = b"" if path == "." else os.fsencode(path)
    entry = git.index().get(raw)
    if entry is not None:
        raise Failure(f"'{name}' is not a directory; to treat it as a directory anyway, rerun with --skip-checks")
    return raw
