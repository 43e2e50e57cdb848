# git checkout and switch between branches. Paths of checkout, restore, reset, stash and worktree have their own modules.
import os
import re

import _git_core as core
from _git_core import Failure, out
from _git_go import Switching, check_branch_name, head_line, local_changes  # noqa: F401

CHECKOUT = """
-q --quiet
-b =
-B =
-l
-f --force
-d --detach
-t --track [=]
--guess
--orphan =
--progress
--overlay
-2 --ours
-3 --theirs
--ignore-other-worktrees
"""

SWITCH = """
-q --quiet
-c --create =
-C --force-create =
-f --force
--discard-changes
-d --detach
-t --track [=]
--guess
--orphan =
--progress
--ignore-other-worktrees
"""


def commit_of(git, name):
    """The commit that a word stands for, or None."""
    from dulwich.objects import Commit

    try:
        found = git.find(name)
    except Failure:
        return None
    return found and git.peel(found, Commit)


def branch_ref(git, name):
    ref = os.fsencode("refs/heads/" + name)
    return ref if name and ref in git.refs else None


def cmd_checkout(argv, call):
    git = call.git()
    git.need_worktree()
    options = core.parse("checkout", argv, CHECKOUT)
    words, paths = list(options.words), options.paths
    if options.b is not None and options.B is not None or options.orphan and (options.b or options.B):
        raise Failure("options '-b', '-B', and '--orphan' cannot be used together")
    go = Switching(git, options, options.b, options.B)
    name = options.b if options.b is not None else options.B
    if options.orphan:
        return go.orphan(options.orphan, words[0] if words else None, True)
    if name is not None or options.track and words and not paths:
        if name is None:
            source = git.ref(words[0])
            if source is None or not source.startswith(b"refs/remotes/"):
                raise Failure("--track needs a branch name" if source is None else "missing branch name; try -b")
            name, go.create = os.fsdecode(source[13:].partition(b"/")[2]), True
        if len(words) > 1 or paths:
            raise Failure(f"Cannot update paths and switch to branch '{name}' at the same time.")
        return go.to_new(name, words[0] if words else None)
    from _git_restore import checkout_paths

    if paths is not None and not (len(words) == 1 and not paths):
        if len(words) > 1:
            raise Failure(f"only one reference expected, {len(words)} given.")
        if words:
            tree = git.find(git.previous_branch(1) if words[0] == "-" else words[0])
            from dulwich.objects import Tree

            if tree is None:
                raise Failure(f"invalid reference: {words[0]}")
            if git.peel(tree, Tree) is None:
                raise Failure(f"reference is not a tree: {words[0]}")
        if paths:
            return checkout_paths(git, options, words[0] if words else None, paths)
    if not words:
        if options.detach:
            return go.to_commit("HEAD", git.commit("HEAD").id)
        if git.head() is None:
            raise Failure("You are on a branch yet to be born")
        if options.force:
            go.files(git.head())
        elif not options.quiet:
            out(local_changes(git))
        if not options.quiet:
            from _git_status import tracking_text

            out(tracking_text(git))
        return 0
    word = words[0]
    if word == "-":
        word = git.previous_branch(1)
    at = re.fullmatch(r"@\{-(\d+)\}", word)
    if at:
        word = git.previous_branch(int(at[1]))
    sha = commit_of(git, word)
    here = os.path.lexists(os.path.join(os.getcwd(), word))
    unborn = word == git.branch() and git.head() is None
    if sha is None or unborn:
        tree = None
        if sha is None and len(words) > 1:
            try:
                tree = git.find(word)
            except Failure:
                tree = None
        if tree is not None:
            return checkout_paths(git, options, word, words[1:])
        if len(words) == 1 and options.guess is not False and not options.ours and not options.theirs:
            remote = go.remote_for(word)
            if remote is not None:
                if here and paths is None:
                    raise Failure(
                        f"'{word}' could be both a local file and a tracking branch.\n"
                        "Please use -- (and optionally --no-guess) to disambiguate"
                    )
                return go.to_new(word, os.fsdecode(remote[13:]))
        if paths is not None:
            raise Failure(f"invalid reference: {word}")
        return checkout_paths(git, options, None, words)
    if len(words) > 1:
        return checkout_paths(git, options, word, words[1:])
    if here and paths is None and words[0] == word:
        raise Failure(
            f"ambiguous argument '{word}': both revision and filename\nUse '--' to separate paths from revisions, like this:\n"
            "'git <command> [<revision>...] -- [<file>...]'"
        )
    ref = branch_ref(git, word)
    if ref and not options.detach:
        return go.to_branch(ref)
    return go.to_commit(word, sha)


def cmd_switch(argv, call):
    git = call.git()
    git.need_worktree()
    options = core.parse("switch", argv, SWITCH)
    words = options.all_words()
    if sum(value is not None for value in (options.create, options.force_create, options.orphan)) > 1:
        raise Failure("options '-c', '-C', and '--orphan' cannot be used together")
    for name, what in (("MERGE_HEAD", "merging"), ("rebase-merge", "rebasing"), ("rebase-apply", "rebasing"),
                       ("CHERRY_PICK_HEAD", "cherry-picking"), ("REVERT_HEAD", "reverting")):  # fmt: skip
        if os.path.exists(os.path.join(git.gitdir, name)):
            verb = {"merging": "merge", "rebasing": "rebase", "cherry-picking": "cherry-pick", "reverting": "revert"}[what]
            raise Failure(f'cannot switch branch while {what}\nConsider "git {verb} --quit" or "git worktree add".')
    go = Switching(git, options, options.create, options.force_create)
    if len(words) > 1:
        raise Failure(f"only one reference expected, {len(words)} given.")
    word = words[0] if words else None
    if options.orphan:
        if word:
            raise Failure("'--orphan' cannot take <start-point>")
        return go.orphan(options.orphan, None, False)
    name = options.create if options.create is not None else options.force_create
    if name is None and options.track and word:
        source = git.ref(word)
        if source is not None and source.startswith(b"refs/remotes/"):
            name = os.fsdecode(source[13:].partition(b"/")[2])
    if name is not None:
        if word is not None and commit_of(git, git.previous_branch(1) if word == "-" else word) is None:
            raise Failure(f"invalid reference: {word}")
        return go.to_new(name, word)
    if word is None:
        if options.detach:
            return go.to_commit("HEAD", git.commit("HEAD").id)
        raise Failure("missing branch or commit argument")
    if word == "-":
        word = git.previous_branch(1)
    ref, sha = branch_ref(git, word), commit_of(git, word)
    if options.detach:
        if sha is None:
            raise Failure(f"invalid reference: {word}")
        return go.to_commit(word, sha)
    if ref:
        return go.to_branch(ref)
    if sha is None:
        remote = go.remote_for(word) if options.guess is not False else None
        if remote is None:
            raise Failure(f"invalid reference: {word}")
        return go.to_new(word, os.fsdecode(remote[13:]))
    full = git.ref(word)
    kind = f"commit '{word}'"
    if word in ("HEAD", "@"):
        kind = f"'{os.fsdecode(git.head_ref())}'" if git.head_ref() else "commit 'HEAD'"
    elif full and full.startswith(b"refs/tags/"):
        kind = f"tag '{word}'"
    elif full and full.startswith(b"refs/remotes/"):
        kind = f"remote branch '{word}'"
    hint = "\nhint: If you want to detach HEAD at the commit, try again with the --detach option."
    raise Failure(f"a branch is expected, got {kind}" + (hint if git.config.truth("advice.suggestDetachingHead", True) else ""))


def _elsewhere(module, name):
    """A command that another module has."""

    def command(argv, call):
        import importlib

        return getattr(importlib.import_module(module), name)(argv, call)

    return command


cmd_restore, cmd_reset = _elsewhere("_git_restore", "cmd_restore"), _elsewhere("_git_restore", "cmd_reset")
cmd_stash, cmd_worktree = _elsewhere("_git_stash", "cmd_stash"), _elsewhere("_git_worktree", "cmd_worktree")
