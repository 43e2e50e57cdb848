# Paths from the index or from a tree: git checkout with paths, git restore, and git reset.
import os

import _git_core as core
from _git_core import Failure, out, say
from _git_paths import Pathspec
from _git_work import (
    GITLINK, Places, changed_file, files_changed, index_entry, index_time, is_conflict, move, remove_file, save_index, write_file,
)  # fmt: skip


def missing(names):
    return Failure("\n".join(f"error: pathspec '{name}' did not match any file(s) known to git" for name in names), 1, "")


def bare(mode, sha):
    from dulwich.index import IndexEntry

    return IndexEntry((0, 0), (0, 0), 0, 0, mode, 0, 0, 0, sha)


def side(entry, options):
    return entry.this if options.ours else entry.other


def from_index(git, options, spec):
    """Writes files as the index has them; how many."""
    index = git.open_index()
    entries = sorted((path, entry) for path, entry in index.items() if spec.match(path))
    unmatched = spec.unmatched([path for path, _ in entries])
    if unmatched:
        raise missing(unmatched)
    problems = []
    for path, entry in entries:
        if is_conflict(entry):
            if options.ours or options.theirs:
                if side(entry, options) is None:
                    whose = "our" if options.ours else "their"
                    problems.append(f"error: path '{os.fsdecode(path)}' does not have {whose} version")
            elif not options.force and not getattr(options, "ignore_unmerged", None):
                problems.append(f"error: path '{os.fsdecode(path)}' is unmerged")
            else:
                say(f"warning: path '{os.fsdecode(path)}' is unmerged\n")
    if problems:
        raise Failure("\n".join(problems), 1, "")
    places, written, count = Places(git), index_time(git), 0
    for path, entry in entries:
        if is_conflict(entry):
            if options.ours or options.theirs:
                chosen = side(entry, options)
                write_file(git, path, chosen.mode, git.blob(chosen.sha))
                count += 1
            continue
        if changed_file(git, path, entry, places.lstat(path), written):
            write_file(git, path, entry.mode, b"" if entry.mode == GITLINK else git.blob(entry.sha))
            index[path] = index_entry(git, path, entry.mode, entry.sha)
            places, count = Places(git), count + 1
    if count:
        save_index(git, index)
    return count


def from_tree(git, spec, files, staged, worktree, overlay):
    """Puts files of a tree into the index or the working tree; without `overlay` the others go. How many are written."""
    index = git.open_index()
    entries = dict(index.items())
    wanted = {path: file for path, file in files.items() if spec.match(path)}
    known = {path for path in entries if spec.match(path)}
    unmatched = spec.unmatched(wanted.keys() if overlay else wanted.keys() | known)
    if unmatched:
        raise missing(unmatched)
    places, written, count = Places(git), index_time(git), 0
    for path in sorted(known - wanted.keys(), reverse=True) if not overlay else ():
        if worktree:
            remove_file(git, path)
        if staged:
            del index[path]
    for path, (mode, sha) in sorted(wanted.items()):
        entry = entries.get(path)
        same = entry is not None and not is_conflict(entry) and (entry.mode, entry.sha) == (mode, sha)
        if worktree:
            found = places.lstat(path)
            if changed_file(git, path, entry if same else bare(mode, sha), found, written if same else 0):
                write_file(git, path, mode, b"" if mode == GITLINK else git.blob(sha))
                places, count = Places(git), count + 1
                if staged or same:
                    index[path] = index_entry(git, path, mode, sha)
                    continue
        if staged and not same:
            index[path] = index_entry(git, path, mode, sha) if worktree else bare(mode, sha)
    save_index(git, index)
    return count


def checkout_paths(git, options, name, paths):
    spec = Pathspec(git, paths)
    for option in ("-b", "--detach", "--track"):
        if getattr(options, option.lstrip("-"), None):
            raise Failure(f"'{option}' cannot be used with updating paths")
    if options.ours and options.theirs:
        raise Failure("options '--ours' and '--theirs' cannot be used together")
    if name is not None and (options.ours or options.theirs):
        raise Failure("--ours/--theirs cannot be used with a tree")
    if name is None:
        count, where = from_index(git, options, spec), "the index"
    else:
        from dulwich.objects import Tree

        sha = git.resolve(name)
        count = from_tree(git, spec, git.tree(sha), True, True, options.overlay is not False)
        where = git.abbreviate(git.peel(sha, Tree))
    if not options.quiet and options.paths is None:
        say(f"Updated {count} path{'' if count == 1 else 's'} from {where}\n")
    return 0


RESTORE = """
-s --source =
-S --staged
-W --worktree
-q --quiet
--progress
--ignore-unmerged
--overlay
-2 --ours
-3 --theirs
"""


def cmd_restore(argv, call):
    git = call.git()
    git.need_worktree()
    options = core.parse("restore", argv, RESTORE)
    words = options.all_words()
    options.force = False
    staged, worktree = bool(options.staged), bool(options.worktree) or not options.staged
    if not words:
        raise Failure("you must specify path(s) to restore")
    if (options.ours or options.theirs) and (options.source or staged):
        raise Failure(f"'{'--ours' if options.ours else '--theirs'}' or '--merge' cannot be used when checking out of a tree"
                      if options.source else "'--ours/--theirs' cannot be used with --staged")  # fmt: skip
    source = options.source or ("HEAD" if staged else None)
    if source is None:
        from_index(git, options, Pathspec(git, words))
        return 0
    sha = git.head() if source == "HEAD" else git.find(source)
    if sha is None:
        raise Failure(f"could not resolve {source}")
    from_tree(git, Pathspec(git, words), git.tree(sha), staged, worktree, bool(options.overlay))
    return 0


# git reset.

RESET = """
-q --quiet
--soft
--mixed
--hard
--merge
--keep
--refresh
"""


def unstaged_text(git):
    """The list of changed files after a reset."""
    found = files_changed(git, staged=False, untracked="no")
    letters = {**found.unstaged, **{path: "U" for path in found.unmerged}}
    if not letters:
        return ""
    lines = [f"{letter}\t{core.quoted(path)}\n" for path, letter in sorted(letters.items())]
    return "Unstaged changes after reset:\n" + "".join(lines)


def reset_index(git, files, spec=None):
    """Makes the index that of a tree, and keeps what is known of the files of unchanged entries."""
    index = git.open_index()
    for path, entry in list(index.items()):
        if (spec is None or spec.match(path)) and path not in files:
            del index[path]
    for path, (mode, sha) in files.items():
        if spec is not None and not spec.match(path):
            continue
        entry = index[path] if path in index else None
        if entry is None or is_conflict(entry) or (entry.mode, entry.sha) != (mode, sha) or entry.extended_flags:
            index[path] = bare(mode, sha)
    save_index(git, index)


def cmd_reset(argv, call):
    git = call.git()
    options = core.parse("reset", argv, RESET)
    flags = argv[: argv.index("--")] if "--" in argv else argv
    # The last one counts.
    modes = [mode for word in flags for mode in ("soft", "mixed", "hard", "merge", "keep") if word.startswith("--" + mode[0])
             and ("--" + mode).startswith(word) and getattr(options, mode)][::-1]  # fmt: skip
    words, paths, name = list(options.words), options.paths, "HEAD"
    if words:
        found = None
        try:
            found = git.find(words[0])
        except Failure:
            if paths is not None:
                raise
        unborn = words[0] in ("HEAD", "@") and git.head() is None
        if found is not None or unborn:
            name = words.pop(0)
            if paths is None and not words and name not in ("HEAD", "@") and git.root and os.path.lexists(name):
                raise Failure(
                    f"ambiguous argument '{name}': both revision and filename\n"
                    "Use '--' to separate paths from revisions, like this:\n"
                    "'git <command> [<revision>...] -- [<file>...]'"
                )
        elif paths is not None:
            raise Failure(f"Failed to resolve '{words[0]}' as a valid {'tree' if paths else 'revision'}.")
    if paths is None:
        for word in words:
            if not (os.path.lexists(word) or word.startswith(":") or any(sign in word for sign in "*?[")):
                raise core.unknown_revision(word)
    targets = words + (paths or [])
    mode = modes[0] if modes else "mixed"
    if mode != "soft" and git.root is None and mode != "mixed":
        git.need_worktree()
    if targets:
        if mode == "mixed" and modes:
            say("warning: --mixed with paths is deprecated; use 'git reset -- <paths>' instead.\n")
        elif mode != "mixed":
            raise Failure(f"Cannot do {mode} reset with paths.")
        files = git.tree(git.head() if name in ("HEAD", "@") else git.resolve(name))
        reset_index(git, files, Pathspec(git, targets))
        text = unstaged_text(git)
        if not options.quiet:
            out(text)
        return 0
    from dulwich.objects import Commit

    head = git.head()
    target = head if name in ("HEAD", "@") else git.peel(git.resolve(name), Commit)
    if target is None and name not in ("HEAD", "@"):
        raise Failure(f"Could not parse object '{name}'.")
    if git.root is None and mode != "soft":
        raise Failure(f"{mode} reset is not allowed in a bare repository")
    files = git.tree(target) if mode != "soft" else None
    if mode == "soft":
        if os.path.exists(os.path.join(git.gitdir, "MERGE_HEAD")) or any(is_conflict(entry) for entry in git.index().values()):
            raise Failure("Cannot do a soft reset in the middle of a merge.")
    elif mode == "mixed":
        reset_index(git, files)
    elif mode == "hard":
        move(git, git.tree(head), files, True)
    elif mode == "keep":
        keep(git, head, files, name)
    else:
        from _git_trees3 import reset_merge

        try:
            reset_merge(git, files)
        except Failure as failure:
            raise Failure(f"error: {failure.text}\nfatal: Could not reset index file to revision '{name}'.", 128, "") from None
    if target is not None:
        move_head(git, head, target, f"reset: moving to {name}")
    if mode == "hard" and not options.quiet and target is not None:
        from _git_switch import head_line

        out(b"HEAD is now at " + head_line(git, target))
    if mode == "mixed":
        text = unstaged_text(git)  # It also notes the state of the files in the index.
        if not options.quiet:
            out(text)
    from _git_commit import finish_operation

    finish_operation(git)
    return 0


def keep(git, head, files, name):
    if os.path.exists(os.path.join(git.gitdir, "MERGE_HEAD")) or any(is_conflict(entry) for entry in git.index().values()):
        raise Failure("Cannot do a keep reset in the middle of a merge.")
    before = git.tree(head)
    staged, entries = files_changed(git, untracked="no"), dict(git.open_index().items())
    for path in sorted(path for path in before.keys() | files.keys() if before.get(path) != files.get(path)):
        entry = entries.get(path)
        if (entry and (entry.mode, entry.sha)) == files.get(path):
            continue
        if path in staged.staged or path in staged.unstaged and staged.unstaged[path] != "D":
            why = "would be overwritten by merge. Cannot merge." if path in staged.staged else "not uptodate. Cannot merge."
            raise Failure(
                f"error: Entry '{os.fsdecode(path)}' {why}\nfatal: Could not reset index file to revision '{name}'.", 128, ""
            )
    move(git, before, files)
    if entries:
        reset_index(git, files)


def move_head(git, old, new, message):
    """Sets the branch or HEAD and notes in ORIG_HEAD where it was."""
    if old is not None:
        with open(os.path.join(git.gitdir, "ORIG_HEAD"), "wb") as file:
            file.write(old + b"\n")
    if old == new:
        if git.head_ref():
            git.log(b"HEAD", old, new, message)
    elif git.head_ref():
        git.update_ref(git.head_ref(), new, message)
    else:
        git.detach(new, message)
