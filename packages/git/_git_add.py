# git add, rm, mv and clean.
import os
import shutil

import _git_core as core
from _git_core import Failure, out, quoted, say
from _git_paths import Ignores, Pathspec, Untracked, is_repository, tracked_directories
from _git_work import (
    FILE, GITLINK, INTENT_TO_ADD, PROGRAM, Places, add_blob, changed_file, file_mode, index_entry, index_time, is_conflict,
    parents, read_file, remove_file, save_index,
)  # fmt: skip


def no_match(name):
    return Failure(f"pathspec '{name}' did not match any files")


# Adding.

ADD = """
-n --dry-run
-v --verbose
-f --force
-u --update
-N --intent-to-add
-A --all
--ignore-removal
--refresh
--ignore-missing
--sparse
--chmod =
"""


class Adding:
    """Changes of the index with what they say."""

    def __init__(self, git, index, verbose=False, dry=False):
        self.git, self.index, self.verbose, self.dry = git, index, verbose, dry
        self.directories = None

    def tell(self, word, path):
        if self.verbose or self.dry:
            out(f"{word} '{os.fsdecode(path)}'\n")

    def remove(self, path):
        self.tell("remove", path)
        if not self.dry:
            del self.index[path]

    def add(self, path, found, intent=False):
        git, index = self.git, self.index
        before = index[path] if path in index else None
        if before is not None and is_conflict(before):
            before = before.this or before.other or before.ancestor
        mode = file_mode(git, found, before.mode if before is not None else None)
        if mode == GITLINK:
            from dulwich.index import read_submodule_head

            sha = read_submodule_head(os.fsencode(git.path(path)))
            if sha is None:
                say(f"error: '{os.fsdecode(path)}/' does not have a commit checked out\n")
                raise Failure("adding files failed")
        self.tell("add", path)
        if self.dry:
            return
        if mode != GITLINK:
            sha = add_blob(git, b"" if intent else read_file(git, path, mode))
        if before is None:
            # A file in the place of a directory, or the other way round.
            if self.directories is None:
                self.directories = tracked_directories(index)
            for above in parents(path):
                if above in index:
                    del index[above]
            if path in self.directories:
                for other in [other for other in index if other.startswith(path + b"/")]:
                    del index[other]
        index[path] = entry = index_entry(git, path, mode, sha)
        if intent:
            entry.extended_flags, entry.size = INTENT_TO_ADD, 0
            entry.mtime = (0, 0)

    def update(self, spec, removals=True):
        """Brings the entries that are asked for to what the working tree has."""
        places, written = Places(self.git), index_time(self.git)
        for path, entry in sorted(self.index.items()):
            if spec is not None and not spec.match(path):
                continue
            found = places.lstat(path)
            if is_conflict(entry):
                letter = "D" if found is None else "M"
            elif entry.skip_worktree:
                continue
            else:
                letter = changed_file(self.git, path, entry, found, written)
                if not letter and entry.extended_flags & INTENT_TO_ADD:
                    letter = "M"
            if letter == "D" and removals:
                self.remove(path)
            elif letter and letter != "D":
                self.add(path, found)


def cmd_add(argv, call):
    git = call.git()
    git.need_worktree()
    options = core.parse("add", argv, ADD)
    words = options.all_words()
    if options.chmod not in (None, "+x", "-x"):
        raise Failure(f"--chmod param '{options.chmod}' must be either -x or +x")
    if options.update and options.all:
        raise Failure("options '-A' and '-u' cannot be used together")
    if not words and not options.update and not options.all:
        say("Nothing specified, nothing added.\n")
        if git.config.truth("advice.addEmptyPathspec", True):
            say("hint: Maybe you wanted to say 'git add .'?\n")
            say('hint: Disable this message with "git config advice.addEmptyPathspec false"\n')
        return 0
    spec = Pathspec(git, words) if words else None
    index = git.open_index()
    work, places = Adding(git, index, options.verbose, options.dry_run), Places(git)
    ignores = Ignores(git, not options.force)
    new = [] if options.update or options.refresh else Untracked(git, dict(index.items()), ignores, spec, False).walk().untracked
    refused = []
    if spec is not None:
        known = list(index) + new
        for number, name in enumerate(spec.names):
            path, pattern, _ = spec.wanted[number]
            if any(spec._one(spec.wanted[number], other) for other in known) or not path:
                continue
            found = places.lstat(path)
            behind = next((above for above in parents(path) if os.path.islink(os.fsencode(git.path(above)))), None)
            if behind is not None and pattern is None:
                raise Failure(f"pathspec '{name}' is beyond a symbolic link")
            if pattern is not None or (found is None and not options.ignore_missing):
                raise no_match(name)
            is_dir = os.path.isdir(os.fsencode(git.path(path))) and not os.path.islink(os.fsencode(git.path(path)))
            if ignores.ignored(path, is_dir):
                refused.append(next((a for a in reversed(list(parents(path))) if ignores.ignored(a, True)), path))
            elif options.update:
                raise no_match(name)
    if options.refresh:
        for path, entry in list(index.items()):
            if (spec is None or spec.match(path)) and not is_conflict(entry):
                found = places.lstat(path)
                if found is not None and not changed_file(git, path, entry, found, index_time(git)) and entry.mode != GITLINK:
                    index[path] = index_entry(git, path, entry.mode, entry.sha)
        save_index(git, index)
        return 0
    if not options.intent_to_add:
        work.update(spec, options.all is not False and not options.ignore_removal)
    for path in new:
        found = places.lstat(path.rstrip(b"/"))
        if path.endswith(b"/"):
            path = path[:-1]
            if not options.dry_run:
                _embedded(git, path)
        if found is not None:
            work.add(path, found, options.intent_to_add)
    code = 0
    if options.chmod:
        for path, entry in list(index.items()):
            if not is_conflict(entry) and (spec is None or spec.match(path)):
                if entry.mode not in (FILE, PROGRAM):
                    say(f"cannot chmod {options.chmod} '{os.fsdecode(path)}'\n")
                    code = 1
                else:
                    entry.mode = PROGRAM if options.chmod == "+x" else FILE
    if not options.dry_run:
        save_index(git, index)
    if refused:
        say("The following paths are ignored by one of your .gitignore files:\n")
        say(b"".join(path + b"\n" for path in sorted(set(refused))))
        if git.config.truth("advice.addIgnoredFile", True):
            say("hint: Use -f if you really want to add them.\n")
            say('hint: Disable this message with "git config advice.addIgnoredFile false"\n')
        code = 1
    return code


def _embedded(git, path):
    name = os.fsdecode(path)
    from dulwich.index import read_submodule_head

    if read_submodule_head(os.fsencode(git.path(path))) is None:
        return
    say(f"warning: adding embedded git repository: {name}\n")
    if git.config.truth("advice.addEmbeddedRepo", True):
        lines = (
            "You've added another git repository inside your current repository.\n"
            "Clones of the outer repository will not contain the contents of\n"
            "the embedded repository and will not know how to obtain it.\nIf you meant to add a submodule, use:\n\n"
            f"\tgit submodule add <url> {name}\n\nIf you added this path by mistake, you can remove it from the\nindex with:\n\n"
            f'\tgit rm --cached {name}\n\nSee "git help submodule" for more information.\n'
            'Disable this message with "git config advice.addEmbeddedRepo false"'
        )
        say("".join(f"hint:{' ' if line and not line.startswith(chr(9)) else ''}{line}\n" for line in lines.split("\n")))


# Removing.

RM = """
-n --dry-run
-q --quiet
--cached
-f --force
-r
--ignore-unmatch
--sparse
"""


def _refusal(files, what, hint):
    if not files:
        return ""
    listed = "".join(f"\n    {os.fsdecode(path)}" for path in files)
    return f"error: the following {'files have' if len(files) > 1 else 'file has'} {what}{listed}\n({hint})\n"


def cmd_rm(argv, call):
    git = call.git()
    git.need_worktree()
    options = core.parse("rm", argv, RM)
    words = options.all_words()
    if not words:
        raise Failure("No pathspec was given. Which files should I remove?")
    spec, index = Pathspec(git, words), git.open_index()
    entries = dict(index.items())
    chosen = sorted(path for path in entries if spec.match(path))
    missing = spec.unmatched(chosen)
    if missing and not options.ignore_unmatch:
        raise no_match(missing[0])
    if not options.r:
        for number, name in enumerate(spec.names):
            path, pattern, slash = spec.wanted[number]
            if pattern is None and path not in entries and any(other.startswith(path + b"/") or not path for other in chosen):
                raise Failure(f"not removing '{name}' recursively without -r")
    places, written = Places(git), index_time(git)
    if not options.force:
        head, both, staged, local = git.tree(git.head()), [], [], []
        for path in chosen:
            entry = entries[path]
            if is_conflict(entry):
                continue
            found = places.lstat(path)
            if found is None:
                continue
            changed = changed_file(git, path, entry, found, written) not in ("", "D")
            differs = head.get(path) != (entry.mode, entry.sha)
            if changed and differs:
                if not (entry.extended_flags & INTENT_TO_ADD and options.cached):
                    both.append(path)
            elif not options.cached:
                if differs:
                    staged.append(path)
                elif changed:
                    local.append(path)
        keep = "use --cached to keep the file, or -f to force removal"
        text = _refusal(both, "staged content different from both the\nfile and the HEAD:", "use -f to force removal")
        text += _refusal(staged, "changes staged in the index:", keep) + _refusal(local, "local modifications:", keep)
        if text:
            raise Failure(text.rstrip("\n"), 1, "")
    for path in chosen:
        if not options.quiet:
            out(f"rm '{os.fsdecode(path)}'\n")
        if not options.dry_run:
            del index[path]
    if options.dry_run:
        return 0
    if not options.cached:
        for path in chosen:
            found = places.lstat(path)
            if found is not None and os.path.isdir(os.fsencode(git.path(path))) and entries[path].mode == GITLINK:
                shutil.rmtree(os.fsencode(git.path(path)), ignore_errors=True)
            remove_file(git, path)
    save_index(git, index)


# Moving.

MV = """
-v --verbose
-n --dry-run
-f --force
-k
--sparse
"""


def cmd_mv(argv, call):
    git = call.git()
    git.need_worktree()
    options = core.parse("mv", argv, MV)
    words = options.all_words()
    if len(words) < 2:
        raise Failure("usage: git mv [<options>] <source>... <destination>", 129, "")
    index = git.open_index()
    entries = dict(index.items())
    target = git.tree_path(words[-1])
    place = lambda path: os.fsencode(git.path(path))
    into = os.path.isdir(place(target)) and not os.path.islink(place(target))
    if len(words) > 2 and not into:
        raise Failure(f"destination '{os.fsdecode(target)}' is not a directory")
    moves, taken = [], set()
    for word in words[:-1]:
        source = git.tree_path(word)
        new = (target + b"/" if target else b"") + source.rpartition(b"/")[2] if into else target
        is_dir = os.path.isdir(place(source)) and not os.path.islink(place(source))
        inside = [path for path in entries if path.startswith(source + b"/")]
        why = None
        if not os.path.lexists(place(source)):
            why = "bad source"
        elif is_dir and (new + b"/").startswith(source + b"/"):
            why = "can not move directory into itself"
        elif is_dir and source not in entries and not inside:
            why = "source directory is empty"
        elif is_dir and os.path.lexists(place(new)):
            why = "destination already exists" if into else "destination exists"
        elif not is_dir and source not in entries:
            why = "not under version control"
        elif not is_dir and is_conflict(entries[source]):
            why = "conflicted"
        elif not is_dir and os.path.lexists(place(new)) and source != new:
            if not options.force or os.path.isdir(place(new)):
                why = "destination exists"
            elif options.verbose:
                say(f"warning: overwriting '{os.fsdecode(new)}'\n")
        elif not is_dir and not into and words[-1].endswith("/"):
            why = "destination directory does not exist"
        elif new in taken:
            why = "multiple sources for the same target"
        if why is None and source == new:
            why = "can not move directory into itself" if is_dir else "destination exists"
        shown = os.fsdecode(new) + ("/" if not into and words[-1].endswith("/") else "")
        if why:
            if options.k:
                continue
            raise Failure(f"{why}, source={os.fsdecode(source)}, destination={shown}")
        taken.add(new)
        moves.append((source, new, is_dir, inside))
    for source, new, is_dir, inside in moves:
        if options.dry_run:
            out(f"Checking rename of '{os.fsdecode(source)}' to '{os.fsdecode(new)}'\n")
    for source, new, is_dir, inside in moves:
        if options.verbose or options.dry_run:
            out(f"Renaming {os.fsdecode(source)} to {os.fsdecode(new)}\n")
        if options.dry_run:
            continue
        try:
            if options.force and not is_dir and os.path.lexists(place(new)):
                os.unlink(place(new))
            os.rename(place(source), place(new))
        except OSError as why:
            if options.k:
                continue
            raise Failure(f"renaming '{os.fsdecode(source)}' failed: {why.strerror}")
        for path in [source] if source in entries else inside:
            to = new + path[len(source) :]
            entry = entries[path]
            del index[path]
            index[to] = entry
    if not options.dry_run:
        save_index(git, index)


# Cleaning.

CLEAN = """
-q --quiet
-n --dry-run
-f --force +
-d
-e --exclude =*
-x
-X
"""


def cmd_clean(argv, call):
    git = call.git()
    git.need_worktree()
    options = core.parse("clean", argv, CLEAN)
    if options.x and options.X:
        raise Failure("options '-x' and '-X' cannot be used together")
    if not options.force and not options.dry_run and git.config.truth("clean.requireForce", True):
        raise Failure("clean.requireForce is true and -f not given: refusing to clean")
    words = options.all_words()
    spec, index = Pathspec(git, words) if words else None, git.index()
    ignores = Ignores(git, not options.x, options.exclude)
    directories, top, chosen = tracked_directories(index), os.fsencode(git.root), []
    walk = Untracked(git, index, ignores, spec)
    prefix = git.prefix.rstrip(b"/")

    def inside(path):
        return not prefix or path.startswith(prefix + b"/") or (prefix + b"/").startswith(path + b"/")

    def look(directory, excluded):
        """Chooses what goes in a directory; whether all of it does."""
        whole = True
        for path, is_dir in sorted(walk._entries(directory)):
            entry = index.get(path)
            if entry is not None and (not is_dir or getattr(entry, "mode", 0) == GITLINK):
                whole = False
                continue
            if not inside(path):
                continue
            out_ = excluded or ignores.ignored(path, is_dir)
            goes = out_ if options.X else not out_
            asked = spec is None or spec.match(path + b"/" if is_dir else path)
            if not is_dir:
                if goes and asked:
                    chosen.append(path)
                else:
                    whole = False
            elif path in directories or (prefix + b"/").startswith(path + b"/"):
                whole = False
                if spec is None or asked or spec.below(path + b"/"):
                    look(path, out_)
            elif is_repository(os.path.join(top, path)) and (options.force or 0) < 2:
                whole = False
            elif not (options.d or options.X and not out_ or spec is not None and (asked or spec.below(path + b"/"))):
                whole = False
            elif out_ and not options.X:
                whole = False
            else:
                before = len(chosen)
                all_of_it = look(path, out_) and options.d
                if all_of_it and asked and (goes or options.X and len(chosen) > before):
                    del chosen[before:]
                    chosen.append(path + b"/")
                else:
                    whole = False
        return whole

    look(b"", False)
    code = 0
    for path in sorted(chosen):
        name = quoted(git.shown(path))
        if not options.quiet or options.dry_run:
            out(f"{'Would remove' if options.dry_run else 'Removing'} {name}\n")
        if options.dry_run:
            continue
        place = os.fsencode(git.path(path.rstrip(b"/")))
        try:
            if path.endswith(b"/"):
                shutil.rmtree(place)
            else:
                os.unlink(place)
        except OSError as why:
            say(f"warning: failed to remove {name}: {why.strerror}\n")
            code = 1
    return code
