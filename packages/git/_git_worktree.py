# git worktree: further working trees of a repository.
import os
import shutil

import _git_core as core
from _git_core import Failure, out, quoted, say


class Place:
    """A working tree: its directory, and that of its own files in the repository (`name` is None for the main one)."""

    def __init__(self, name, gitdir, path):
        self.name, self.gitdir, self.path = name, gitdir, path

    def read(self, name):
        try:
            with open(os.path.join(self.gitdir, name), "rb") as file:
                return os.fsdecode(file.read()).rstrip("\n")
        except OSError:
            return None

    @property
    def locked(self):
        return self.read("locked")

    def prunable(self):
        """Why it can be forgotten, or None."""
        if self.name is None or self.locked is not None:
            return None
        if self.read("gitdir") is None:
            return "gitdir file does not exist"
        return None if os.path.exists(os.path.join(self.path, ".git")) else "gitdir file points to non-existent location"


def places(git):
    found = [Place(None, git.commondir, main_root(git))]
    base = os.path.join(git.commondir, "worktrees")
    try:
        names = sorted(os.listdir(base))
    except OSError:
        names = []
    for name in names:
        place = Place(name, os.path.join(base, name), "")
        place.path = os.path.dirname(place.read("gitdir") or "")
        if os.path.isdir(place.gitdir):
            found.append(place)
    return [found[0], *sorted(found[1:], key=lambda place: place.path)]


def main_root(git):
    return os.path.dirname(git.commondir) if os.path.basename(git.commondir) == ".git" else git.commondir


def head_of(git, place):
    """The digits of a working tree's HEAD (or None) and the full name of its branch (or None)."""
    text = place.read("HEAD") or ""
    if text.startswith("ref: "):
        ref = os.fsencode(text[5:].strip())
        return (git.refs[ref] if ref in git.refs else None), ref
    return os.fsencode(text) or None, None


def find(git, word):
    whole = os.path.abspath(word)
    everyone = places(git)
    for place in everyone:
        if place.path == whole or os.path.exists(whole) and os.path.realpath(place.path) == os.path.realpath(whole):
            return place
    ends = [place for place in everyone if ("/" + place.path).endswith("/" + word.strip("/"))]
    if len(ends) == 1:
        return ends[0]
    raise Failure(f"'{word}' is not a working tree")


ADD = """
-f --force +
-b =
-B =
-d --detach
--checkout
--lock
--reason =
-q --quiet
--track
--guess
"""


def add(git, call, argv):
    options = core.parse("worktree add", argv, ADD)
    words = options.all_words()
    if not words or len(words) > 2:
        usage = "usage: git worktree add [-f] [--detach] [--checkout] [--lock [--reason <string>]]\n"
        raise Failure(usage + "                        [(-b | -B) <new-branch>] <path> [<commit-ish>]", 129, "")
    if sum(bool(option) for option in (options.b, options.B, options.detach)) > 1:
        raise Failure("options '-b', '-B', and '--detach' cannot be used together")
    path = os.path.abspath(words[0])
    from _git_switch import branch_ref, check_branch_name, commit_of

    start = words[1] if len(words) > 1 else None
    if start == "-":
        start = git.previous_branch(1)
    new, name, source = options.b or options.B, None, None
    base = start or "HEAD"
    if not start and not new and not options.detach:
        name = os.path.basename(path.rstrip("/"))
        if branch_ref(git, name):
            base = name
        else:
            new, name = name, None
    elif start and not new and not options.detach:
        if branch_ref(git, start):
            name = start
        elif commit_of(git, start) is None:
            end = b"/" + os.fsencode(start)
            remote = [ref for ref in git.refs.keys() if ref.startswith(b"refs/remotes/") and ref.endswith(end)]
            if len(remote) == 1 and options.guess is not False:
                new, base, source = start, os.fsdecode(remote[0][13:]), remote[0]
    sha = commit_of(git, base)
    if sha is None:
        raise Failure(f"invalid reference: {base}")
    others = places(git)

    def check_unused(ref):
        for place in others:
            if head_of(git, place)[1] == ref and not options.force:
                raise Failure(f"'{os.fsdecode(ref[11:])}' is already used by worktree at '{place.path}'")

    again = options.B and branch_ref(git, new)
    if again:
        check_unused(again)
    if not options.quiet:
        if again:
            say(f"Preparing worktree (resetting branch '{new}'; was at {git.abbreviate(git.refs[again])})\n")
        elif new:
            say(f"Preparing worktree (new branch '{new}')\n")
        elif name:
            say(f"Preparing worktree (checking out '{name}')\n")
        else:
            say(f"Preparing worktree (detached HEAD {git.abbreviate(sha)})\n")
    ref = branch_ref(git, name) if name else None
    if new:
        ref = check_branch_name(git, new)
        old = git.refs[ref] if ref in git.refs else None
        if old and not options.B:
            raise Failure(f"a branch named '{new}' already exists")
        if old != sha:
            git.refs.set_if_equals(ref, old, sha)
            git.log(ref, old, sha, f"branch: {'Reset to' if old else 'Created from'} {base}")
        source = source or (git.ref(base) if start else None)
        if source and source.startswith(b"refs/remotes/") and options.track is not False:
            from _git_refs import set_upstream

            set_upstream(git, new, source)
            if not options.quiet:
                out(f"branch '{new}' set up to track '{os.fsdecode(source[13:])}'.\n")
    if os.path.exists(path) and (not os.path.isdir(path) or os.listdir(path)):
        raise Failure(f"'{words[0]}' already exists")
    for place in others[1:]:
        if place.path == path:
            if (options.force or 0) < (1 if place.locked is None else 2):
                what = "missing but locked" if place.locked is not None else "missing but already registered"
                fix = "'add -f -f' to override, or 'unlock' and 'prune' or 'remove' to clear" if place.locked is not None else (
                    "'add -f' to override, or 'prune' or 'remove' to clear")  # fmt: skip
                raise Failure(f"'{words[0]}' is a {what} worktree;\nuse {fix}")
            shutil.rmtree(place.gitdir, ignore_errors=True)
    if ref and not new:
        check_unused(ref)
    make(git, path, ref, sha, options)
    if options.checkout is not False:
        fill(git, path, sha)
    if not options.quiet:
        from _git_switch import head_line

        out(b"HEAD is now at " + head_line(git, sha))
    return 0


def make(git, path, ref, sha, options):
    """The directories and files that make a working tree."""
    base = os.path.join(git.commondir, "worktrees")
    plain = "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in os.path.basename(path)).strip(".") or "worktree"
    name, number = plain, 0
    while os.path.exists(os.path.join(base, name)):
        number += 1
        name = f"{plain}{number}"
    own = os.path.join(base, name)
    try:
        os.makedirs(os.path.join(own, "refs"))
        os.makedirs(path, exist_ok=True)
        files = {
            "gitdir": os.path.join(path, ".git"), "commondir": "../..", "ORIG_HEAD": sha.decode(),
            "HEAD": f"ref: {os.fsdecode(ref)}" if ref else sha.decode(),
        }  # fmt: skip
        if options.lock:
            files["locked"] = options.reason or ""
        for file, text in files.items():
            with open(os.path.join(own, file), "wb") as out_:
                out_.write(os.fsencode(text) + (b"\n" if text else b""))
        with open(os.path.join(path, ".git"), "wb") as out_:
            out_.write(os.fsencode(f"gitdir: {own}\n"))
    except OSError as why:
        raise Failure(f"could not create directory of '{path}': {why.strerror}")


def opened(git, path):
    """The repository as it is seen from another working tree."""
    here = os.getcwd()
    os.chdir(path)
    try:
        return core.Git()
    finally:
        os.chdir(here)


def fill(git, path, sha):
    from _git_work import move

    inside = opened(git, path)
    move(inside, {}, git.tree(sha), True)
    inside.log(b"HEAD", None, sha, "")
    inside.log(b"HEAD", sha, sha, "reset: moving to HEAD")


def show(git, argv):
    options = core.parse("worktree list", argv, "--porcelain\n-v --verbose\n-z")
    everyone = places(git)
    end = "\0" if options.z else "\n"
    if options.porcelain:
        for place in everyone:
            sha, ref = head_of(git, place)
            out(f"worktree {place.path}{end}")
            if place.name is None and git.config.truth("core.bare", False):
                out(f"bare{end}")
            else:
                out(f"HEAD {(sha or core.ZERO).decode()}{end}")
                out(f"branch {os.fsdecode(ref)}{end}" if ref else f"detached{end}")
            for word, why in (("locked", place.locked), ("prunable", place.prunable())):
                if why is not None and place.name is not None:
                    out(f"{word}{' ' + why if why else ''}{end}")
            out(end)
        return 0
    width = max(len(quoted(place.path)) for place in everyone)
    ids = [git.abbreviate(head_of(git, place)[0] or core.ZERO) for place in everyone]
    for place, sha in zip(everyone, ids):
        _, ref = head_of(git, place)
        line = f"{quoted(place.path):<{width}} "
        if place.name is None and git.config.truth("core.bare", False):
            line += "(bare)"
        else:
            line += f" {sha:<{max(map(len, ids))}} "
            line += f"[{os.fsdecode(ref).removeprefix('refs/heads/')}]" if ref else "(detached HEAD)"
        locked, prunable = place.locked if place.name else None, place.prunable()
        if locked is not None:
            line += f"\n\tlocked: {locked}" if options.verbose and locked else " locked"
        elif prunable:
            line += f"\n\tprunable: {prunable}" if options.verbose else " prunable"
        out(line + "\n")
    return 0


def forget(git, place):
    shutil.rmtree(place.gitdir, ignore_errors=True)
    try:
        os.rmdir(os.path.join(git.commondir, "worktrees"))
    except OSError:
        pass


def one_path(options, usage):
    words = options.all_words()
    if len(words) != 1:
        raise Failure(f"usage: git worktree {usage}", 129, "")
    return words[0]


def remove(git, argv):
    options = core.parse("worktree remove", argv, "-f --force +")
    word = one_path(options, "remove [-f] <worktree>")
    place, force = find(git, word), options.force or 0
    if place.name is None:
        raise Failure(f"'{word}' is a main working tree")
    if place.locked is not None and force < 2:
        why = f", lock reason: {place.locked}" if place.locked else ";"
        raise Failure(f"cannot remove a locked working tree{why}\nuse 'remove -f -f' to override or unlock first")
    if os.path.exists(place.path):
        if not force:
            from _git_work import files_changed

            found = files_changed(opened(git, place.path))
            if found.any() or found.untracked:
                raise Failure(f"'{word}' contains modified or untracked files, use --force to delete it")
        try:
            shutil.rmtree(place.path)
        except OSError as why:
            raise core.error(f"failed to delete '{place.path}': {why.strerror}", 128)
    forget(git, place)
    return 0


def prune(git, argv):
    options = core.parse("worktree prune", argv, "-n --dry-run\n-v --verbose\n--expire =")
    for place in places(git)[1:]:
        why = place.prunable()
        if why:
            if options.dry_run or options.verbose:
                say(f"Removing worktrees/{place.name}: {why}\n")
            if not options.dry_run:
                forget(git, place)
    return 0


def shift(git, argv):
    options = core.parse("worktree move", argv, "-f --force +")
    words = options.all_words()
    if len(words) != 2:
        raise Failure("usage: git worktree move <worktree> <new-path>", 129, "")
    place, target = find(git, words[0]), os.path.abspath(words[1])
    if place.name is None:
        raise Failure(f"'{words[0]}' is a main working tree")
    if os.path.isdir(target):
        target = os.path.join(target, os.path.basename(place.path))
    if os.path.exists(target):
        raise Failure(f"target '{words[1]}' already exists")
    if place.locked is not None and (options.force or 0) < 2:
        why = f", lock reason: {place.locked}" if place.locked else ";"
        raise Failure(f"cannot move a locked working tree{why}\nuse 'move -f -f' to override or unlock first")
    try:
        os.rename(place.path, target)
    except OSError as why:
        raise Failure(f"failed to move '{place.path}' to '{target}': {why.strerror}")
    with open(os.path.join(place.gitdir, "gitdir"), "wb") as file:
        file.write(os.fsencode(os.path.join(target, ".git") + "\n"))
    return 0


def lock(git, argv, locking):
    options = core.parse("worktree lock", argv, "--reason =") if locking else core.parse("worktree unlock", argv, "-q --quiet")
    word = one_path(options, "lock [--reason <string>] <worktree>" if locking else "unlock <worktree>")
    place = find(git, word)
    if place.name is None:
        raise Failure("The main working tree cannot be locked or unlocked")
    path = os.path.join(place.gitdir, "locked")
    if locking:
        if place.locked is not None:
            raise Failure(f"'{word}' is already locked" + (f", reason: {place.locked}" if place.locked else ""))
        with open(path, "wb") as file:
            file.write(os.fsencode(options.reason + "\n") if options.reason else b"")
    else:
        if place.locked is None:
            raise Failure(f"'{word}' is not locked")
        os.unlink(path)
    return 0


def cmd_worktree(argv, call):
    git = call.git()
    name, rest = (argv[0], argv[1:]) if argv else (None, [])
    if name == "add":
        return add(git, call, rest)
    if name == "list":
        return show(git, rest)
    if name == "remove":
        return remove(git, rest)
    if name == "prune":
        return prune(git, rest)
    if name == "move":
        return shift(git, rest)
    if name in ("lock", "unlock"):
        return lock(git, rest, name == "lock")
    usage = "usage: git worktree (add | list | lock | move | prune | remove | unlock) [<options>]"
    if name is None:
        raise Failure(f"need a subcommand\n{usage}", 129, "error: ")
    raise Failure(f"unknown subcommand: `{name}'\n{usage}", 129, "error: ")
