# Making commits: the tree of the index, the commit's object, the message with its editor, and the hooks around them.
import os
import subprocess

import _git_core as core
from _git_core import Failure


def write_tree(git, index=None):
    """Stores the trees of the index and returns the digits of the top one. `index` is an index, or entries by paths."""
    from dulwich.objects import Tree

    entries = dict((git.open_index() if index is None else index).items())
    unmerged = [(path, stage) for path, entry in sorted(entries.items()) if not hasattr(entry, "sha")
                for stage in (entry.ancestor, entry.this, entry.other) if stage is not None]  # fmt: skip
    if unmerged:
        listed = "".join(f"{os.fsdecode(path)}: unmerged ({stage.sha.decode()})\n" for path, stage in unmerged)
        raise Failure(f"{listed}error: Error building trees", 128, "")
    directories = {b"": {}}
    for path, entry in entries.items():
        if entry.extended_flags & 0x2000:  # Only meant to be added.
            continue
        directory, _, name = path.rpartition(b"/")
        if directory not in directories:
            above = directory
            while above not in directories:
                directories[above] = {}
                above = above.rpartition(b"/")[0]
        directories[directory][name] = (entry.mode, entry.sha)
    store = git.store.object_store
    # Children come before the directories they are in.
    for directory in sorted(directories, key=lambda name: name.count(b"/") + 1 if name else 0, reverse=True):
        tree = Tree()
        for name, (mode, sha) in directories[directory].items():
            tree.add(name, mode, sha)
        if tree.id not in store:
            store.add_object(tree)
        if not directory:
            return tree.id
        above, _, name = directory.rpartition(b"/")
        directories[above][name] = (0o040000, tree.id)


def _when(date, git, role):
    """The time that a date stands for: text, a pair of seconds and zone, or None for the configured one."""
    if isinstance(date, tuple):
        return date
    return core.parse_date(date or os.environ.get(f"GIT_{role.upper()}_DATE"))


def create_commit(git, tree, parents, message, author=None, author_date=None, committer=None, committer_date=None, encoding=None):
    """Stores a commit and returns its digits. Names are bytes (`Ada <ada@example.com>`), dates text or (seconds, zone)."""
    from dulwich.objects import Commit

    commit = Commit()
    commit.tree, commit.parents = tree, list(parents)
    by, when, zone = git.config.identity("author") if author is None else (author, None, None)
    if author_date is not None or when is None:
        when, zone = _when(author_date, git, "author")
    commit.author, commit.author_time, commit.author_timezone = by, when, zone
    by, when, zone = git.config.identity("committer") if committer is None else (committer, None, None)
    if committer_date is not None or when is None:
        when, zone = _when(committer_date, git, "committer")
    commit.committer, commit.commit_time, commit.commit_timezone = by, when, zone
    if encoding:
        commit.encoding = encoding
    commit.message = message
    git.store.object_store.add_object(commit)
    return commit.id


# Messages.


def clean_message(message, comments=True):
    """A message without spaces at its lines' ends, blank lines around it or in rows, and (with `comments`) lines with `#`."""
    lines = []
    for line in message.split(b"\n"):
        if comments and line.startswith(b"#"):
            continue
        line = line.rstrip()
        if line or (lines and lines[-1]):
            lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return b"\n".join(lines) + b"\n" if lines else b""


def editor(git):
    """The command of the editor, or None."""
    environment = os.environ.get
    return environment("GIT_EDITOR") or git.config.get("core.editor") or environment("VISUAL") or environment("EDITOR")


def edit_file(git, path, command=None):
    """Starts the editor for a file and waits for it."""
    command = command or editor(git)
    if not command:
        raise core.error("Terminal is dumb, but EDITOR unset")
    if command == ":":
        return
    import sys

    sys.stdout.flush()
    done = subprocess.run(["sh", "-c", f'{command} "$@"', command, path])
    if done.returncode:
        raise core.error(f"there was a problem with the editor '{command}'")


def edit_message(git, initial, path_in_gitdir="COMMIT_EDITMSG"):
    """Lets the user's editor work on a message and returns what it left."""
    path = os.path.join(git.gitdir, path_in_gitdir)
    with open(path, "wb") as file:
        file.write(initial)
    try:
        edit_file(git, path)
    except Failure as failure:
        raise core.error(f"{failure.text}\nPlease supply the message using either -m or -F option.") from None
    with open(path, "rb") as file:
        return file.read()


# Hooks.


def hook_program(path):
    """The words that run a hook, by its first line; None where there is none."""
    try:
        with open(path, "rb") as file:
            first = file.readline(300)
    except OSError:
        return None
    program = ["sh"]
    if first.startswith(b"#!"):
        named = os.fsdecode(first[2:].strip()).split()
        if named and os.path.basename(named[0]) == "env":
            named = [word for word in named[1:] if word != "-S"]
        if named:
            program = [os.path.basename(named[0]), *named[1:]]
    return [*program, path]


def run_hook(git, name, *words, stdin=b""):
    """Runs a hook at the top of the working tree; its exit code, or None where there is none."""
    directory = git.config.get("core.hooksPath")
    if directory:
        directory = os.path.join(git.root or git.gitdir, os.path.expanduser(directory))
    else:
        directory = os.path.join(git.commondir, "hooks")
    path = os.path.join(directory, name)
    program = hook_program(path)
    if program is None:
        return None
    import sys

    sys.stdout.flush()
    environment = dict(os.environ, GIT_PREFIX=os.fsdecode(git.prefix))
    try:
        where = git.root or git.gitdir
        done = subprocess.run([*program, *words], input=stdin, stdout=sys.stderr, cwd=where, env=environment)
    except OSError as why:
        raise Failure(f"cannot run {path}: {why.strerror}", 128, "fatal: ")
    return done.returncode
