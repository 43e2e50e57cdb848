# git stash.
import os
import re

import _git_core as core
from _git_core import Failure, out, say
from _git_paths import Pathspec
from _git_record import create_commit, write_tree
from _git_work import (
    GITLINK, Places, add_blob, check_path, file_mode, files_changed, is_conflict, lstat, move, read_file, remove_file, save_index,
    write_file,
)  # fmt: skip

REF = b"refs/stash"


class Files:
    """Entries for `write_tree` from files with their modes and digits."""

    def __init__(self, files):
        self.files = files

    def items(self):
        from _git_restore import bare

        return [(path, bare(*file)) for path, file in self.files.items()]


def find(git, word, need_log=False):
    """The commit of a stash, and its name as it is shown."""
    entries = git.reflog(REF)
    if word is None:
        if not entries and REF not in git.refs:
            raise Failure("No stash entries found.", 1, "")
        return git.refs[REF], "refs/stash@{0}", 0
    number = word if word.isdigit() else None
    at = re.fullmatch(r"(?:refs/)?stash@\{(\d+)\}", word)
    if number or at:
        count = int(number or at[1])
        shown = f"refs/stash@{{{count}}}" if number else word
        if count >= len(entries):
            if not entries:
                raise core.error(f"{shown} is not a valid reference")
            raise Failure(f"log for '{shown.partition('@')[0]}' only has {len(entries)} entries")
        return entries[count].new_sha, shown, count
    if word in ("stash", "refs/stash") and entries:
        return git.refs[REF], word + "@{0}", 0
    sha = git.find(word)
    if sha is None:
        raise core.error(f"{word} is not a valid reference")
    if need_log:
        raise core.error(f"'{word}' is not a stash reference")
    return sha, word, None


def parts(git, sha, word):
    """The commit of a stash, and those of its base, its index and its untracked files (or None)."""
    commit = git.commit(sha)
    if len(commit.parents) not in (2, 3):
        raise Failure(f"'{word}' is not a stash-like commit")
    return commit, commit.parents[0], commit.parents[1], commit.parents[2] if len(commit.parents) > 2 else None


def drop_entry(git, number, shown, quiet):
    """Takes one entry out of the log of stashes."""
    path = os.path.join(git.commondir, "logs", "refs", "stash")
    with open(path, "rb") as file:
        lines = file.read().splitlines(True)
    at = len(lines) - 1 - number
    sha = lines[at].split(b" ")[1].decode()
    if at + 1 < len(lines):  # The next one takes over what was before.
        lines[at + 1] = lines[at].split(b" ")[0] + lines[at + 1][40:]
    del lines[at]
    if lines:
        with open(path + ".lock", "wb") as file:
            file.write(b"".join(lines))
        os.replace(path + ".lock", path)
        git.refs.set_if_equals(REF, None, lines[-1].split(b" ")[1])
    else:
        clear(git)
    if not quiet:
        out(f"Dropped {shown} ({sha})\n")


def clear(git):
    git.refs.remove_if_equals(REF, None)
    try:
        os.unlink(os.path.join(git.commondir, "logs", "refs", "stash"))
    except OSError:
        pass


# Saving.

PUSH = """
-k --keep-index
-q --quiet
-u --include-untracked
-a --all
-m --message =
-S --staged
"""


def work_files(git, base, changes, spec):
    """The tracked files as the working tree has them: those of HEAD, with what is staged and what is changed."""
    places, files = Places(git), {}
    for path, entry in changes.index.items():
        if not is_conflict(entry):
            files[path] = (entry.mode, entry.sha)
    for path, letter in changes.unstaged.items():
        if letter == "D":
            files.pop(path, None)
            continue
        mode = file_mode(git, places.lstat(path), changes.index[path].mode)
        if mode != GITLINK:
            files[path] = (mode, add_blob(git, read_file(git, path, mode)))
    if spec is not None:
        whole, files = files, dict(base)
        for path in whole.keys() | base.keys():
            if spec.match(path):
                if path in whole:
                    files[path] = whole[path]
                else:
                    files.pop(path, None)
    return files


def push(git, options, words, message):
    head = git.head()
    if head is None:
        raise Failure("You do not have the initial commit yet", 1, "")
    if options.staged and (options.include_untracked or options.all):
        raise Failure("Can't use --staged and --include-untracked or --all at the same time")
    spec = Pathspec(git, words) if words else None
    index, base = git.open_index(), git.tree(head)
    unmerged = sorted(path for path, entry in index.items() if is_conflict(entry))
    if unmerged:
        out("".join(f"{os.fsdecode(path)}: needs merge\n" for path in unmerged))
        raise core.error("could not write index")
    untracked = options.include_untracked or options.all
    changes = files_changed(git, spec, "all" if untracked else "no", bool(options.all), head=base)
    if spec is not None:
        names = spec.unmatched([*changes.index, *changes.untracked, *changes.ignored, *base])
        if names:
            lines = "".join(f"error: pathspec ':(prefix:0){name}' did not match any file(s) known to git\n" for name in names)
            raise Failure(lines + "Did you forget to 'git add'?", 1, "")
    others = (changes.untracked + changes.ignored) if untracked else []
    others = [path for path in others if not path.endswith(b"/")] if untracked else []
    if options.staged and not changes.staged or not options.staged and not (changes.staged or changes.unstaged or others):
        only = bool(options.staged and changes.unstaged)
        if not options.quiet:
            out("No staged changes\n" if only else "No local changes to save\n")
        return 1 if only else 0
    from _git_switch import head_line

    label = os.fsencode(git.branch() or "(no branch)") + b": " + head_line(git, head).rstrip(b"\n")
    staged_files = {path: (entry.mode, entry.sha) for path, entry in changes.index.items() if not entry.extended_flags & 0x2000}
    index_commit = create_commit(git, write_tree(git, index), [head], b"index on " + label + b"\n")
    parents = [head, index_commit]
    if others:
        places, found = Places(git), {}
        for path in others:
            mode = file_mode(git, places.lstat(path))
            found[path] = (mode, add_blob(git, read_file(git, path, mode)))
        parents.append(create_commit(git, write_tree(git, Files(found)), [], b"untracked files on " + label + b"\n"))
    files = staged_files if options.staged else work_files(git, base, changes, spec)
    text = b"WIP on " + label
    if message:
        text = b"On " + label.partition(b":")[0] + b": " + os.fsencode(message)
    sha = create_commit(git, write_tree(git, Files(files)), parents, text)
    store(git, sha, text)
    if not options.quiet:
        out(b"Saved working directory and index state " + text + b"\n")
    for path in others:
        remove_file(git, path)
    clean_after(git, options, spec, base, staged_files, changes)
    return 0


def store(git, sha, text):
    # Several stashes in one log, of which the last one is the reference.
    git.update_ref(REF, sha, text)


def clean_after(git, options, spec, base, staged, changes):
    """The working tree and the index after their changes have been saved."""
    from _git_restore import from_tree

    keep = options.keep_index
    if spec is not None:
        paths = [path for path in {*changes.staged, *changes.unstaged} if spec.match(path)]
        if paths:
            target = {path: file for path, file in (staged if keep else base).items()}
            from_tree(git, Pathspec.of_paths(git, paths), target, True, True, False)
        return
    if options.staged:
        for path, letter in changes.staged.items():
            if path in changes.unstaged:
                raise Failure("Cannot remove worktree changes", 1, "")
        move(git, staged, base, True)
        return
    move(git, staged, base, True)
    if keep:
        move(git, base, staged, True)


# Bringing back.

APPLY = """
--index
-q --quiet
"""


def apply(git, call, word, options, name):
    """Merges a stash into the working tree; whether it did without conflicts."""
    sha, shown, _ = find(git, word)
    commit, base, index_commit, untracked = parts(git, sha, word or "refs/stash@{0}")
    index = git.open_index()
    if any(is_conflict(entry) for _, entry in index.items()):
        out("".join(f"{os.fsdecode(path)}: needs merge\n" for path, entry in sorted(index.items()) if is_conflict(entry)))
        raise core.error("could not write index")
    before = {path: (entry.mode, entry.sha) for path, entry in index.items() if not entry.extended_flags & 0x2000}
    base_files, files, staged = git.tree(base), git.tree(sha), git.tree(index_commit)
    from _git_trees3 import Labels, apply_merged, merge_trees, print_messages

    restored = None
    if options.index and staged != base_files and staged != before:
        restored = merge_trees(git, base_files, before, staged, Labels("ours", "theirs"))
        if restored.conflicts:
            raise core.error("conflicts in index. Try without --index.")
        restored = restored.files
    merged = merge_trees(git, base_files, before, files, Labels("Updated upstream", "Stashed changes"))
    try:
        apply_merged(git, before, merged)
    except Failure as failure:
        say(f"{failure.text}\n")
        if options.index:
            say("Index was not unstashed.\n")
        if not options.quiet:
            call.run(["status"])
        return False
    if not options.quiet:
        print_messages(merged)
        if files == base_files:
            out("Already up to date.\n")
    conflicts = bool(merged.conflicts)
    if not conflicts:
        unstage(git, before, merged.files, restored)
    elif options.index:
        say("Index was not unstashed.\n")
    problem = untracked is not None and not restore_untracked(git, git.tree(untracked))
    if not options.quiet:
        call.run(["status"])
    return not conflicts and not problem


def unstage(git, before, after, restored):
    """Files that a stash brought back are not staged, but new ones are; or the index is as the stash had it."""
    from _git_restore import bare

    index = git.open_index()
    target = restored
    if target is None:
        target = {path: file for path, file in after.items() if path not in before}
        target.update(before)
    for path in list(index):
        if path not in target:
            del index[path]
    for path, file in target.items():
        entry = index[path] if path in index else None
        if entry is None or is_conflict(entry) or (entry.mode, entry.sha) != file:
            index[path] = bare(*file)
    save_index(git, index)


def restore_untracked(git, files):
    there = [path for path in sorted(files) if lstat(os.fsencode(git.path(path))) is not None]
    if there:
        say("".join(f"{os.fsdecode(path)} already exists, no checkout\n" for path in there))
        say("error: could not restore untracked files from stash\n")
        return False
    for path, (mode, _) in files.items():
        check_path(path, mode)
    for path, (mode, sha) in files.items():
        write_file(git, path, mode, git.blob(sha))
    return True


def one_word(words):
    if len(words) > 1:
        raise core.error(f"Too many revisions specified: {' '.join(chr(39) + word + chr(39) for word in words)}", 1)
    return words[0] if words else None


def do_apply(git, call, argv, name):
    git.need_worktree()
    options = core.parse(f"stash {name}", argv, APPLY)
    word = one_word(options.all_words())
    if name == "pop":
        _, shown, number = find(git, word, True)
    done = apply(git, call, word, options, name)
    if name == "pop":
        if done:
            drop_entry(git, number, shown, options.quiet)
        else:
            out("The stash entry is kept in case you need it again.\n")
    return 0 if done else 1


def show(git, call, argv):
    flags = [word for word in argv if word.startswith("-")]
    word = one_word([word for word in argv if not word.startswith("-")])
    sha, _, _ = find(git, word)
    _, base, _, untracked = parts(git, sha, word)
    more = [flag for flag in flags if flag in ("-u", "--include-untracked", "--only-untracked")]
    flags = [flag for flag in flags if flag not in more] or ["--stat"]
    if "--only-untracked" in more:
        return call.run(["diff", *flags, core.EMPTY_TREE.decode(), untracked.decode()]) if untracked else 0
    if more and untracked:
        files = {**git.tree(sha), **git.tree(untracked)}
        sha = write_tree(git, Files(files))
    return call.run(["diff", *flags, base.decode(), sha.decode()])


def branch(git, call, argv):
    options = core.parse("stash branch", argv, "-q --quiet")
    words = options.all_words()
    if not words:
        raise Failure("No branch name specified", 1, "")
    sha, shown, number = find(git, one_word(words[1:]))
    _, base, _, _ = parts(git, sha, shown)
    call.run(["checkout", "-b", words[0], base.decode()])
    options.index = True
    done = apply(git, call, one_word(words[1:]), options, "branch")
    if done and number is not None:
        drop_entry(git, number, shown, False)
    return 0 if done else 1


def cmd_stash(argv, call):
    git = call.git()
    name, rest = (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("push", argv)
    if name in ("push", "save"):
        git.need_worktree()
        options = core.parse(f"stash {name}", rest, PUSH)
        words, message = options.all_words(), options.message
        if name == "save":
            words, message = [], " ".join(words) or message
        elif options.words and name == "push" and not (argv and argv[0] == "push"):
            raise Failure("subcommand wasn't specified; 'push' can't be assumed due to unexpected token '%s'" % options.words[0])
        return push(git, options, words, message)
    if name in ("pop", "apply"):
        return do_apply(git, call, rest, name)
    if name == "list":
        if rest:
            return call.run(["log", "-g", "--first-parent", *rest, "refs/stash", "--"]) if REF in git.refs else 0
        for number, entry in enumerate(git.reflog(REF)):
            out(b"stash@{%d}: " % number + entry.message.rstrip(b"\n") + b"\n")
        return 0
    if name == "show":
        return show(git, call, rest)
    if name == "drop":
        options = core.parse("stash drop", rest, "-q --quiet")
        _, shown, number = find(git, one_word(options.all_words()), True)
        drop_entry(git, number, shown, options.quiet)
        return 0
    if name == "clear":
        if rest:
            raise core.error("git stash clear with arguments is unimplemented", 1)
        clear(git)
        return 0
    if name == "branch":
        return branch(git, call, rest)
    raise Failure(f"subcommand wasn't specified; 'push' can't be assumed due to unexpected token '{name}'")
