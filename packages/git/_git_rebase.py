# `git rebase`: applies the commits that are not in another branch again on top of it, by a list that can be edited.
import os
import re

import _git_core as core
from _git_core import Failure, error, out, say
from _git_merge import state_path
from _git_rebase_steps import Steps
from _git_replay import index_state, subject_of
from dulwich.objects import Commit

OPTIONS = """
--onto =
-i --interactive
--continue
--abort
--skip
--quit
--edit-todo
--show-current-patch
-q --quiet
-n --no-stat
-f --force-rebase --no-ff
--ff
--root
--autosquash
--autostash
--keep-empty
-X --strategy-option =*
-m --merge
-x --exec =*
--reapply-cherry-picks
--update-refs
--committer-date-is-author-date
--signoff
--no-verify
--keep-base
"""
BUSY = """It seems that there is already a rebase-merge directory, and
I wonder if you are in the middle of another rebase.  If that is the
case, please try
\tgit rebase (--continue | --abort | --skip)
If that is not the case, please
\trm -fr ".git/rebase-merge"
and run me again.  I am stopping in case you still have something
valuable there.
"""


def cmd_rebase(argv, call):
    options = core.parse("rebase", argv, OPTIONS)
    git = call.git()
    git.need_worktree()
    for name in ("continue", "abort", "skip", "quit", "edit_todo", "show_current_patch"):
        if getattr(options, name):
            if not os.path.isdir(state_path(git, "rebase-merge")):
                raise Failure("no rebase in progress")
            return getattr(Steps(git, call), "do_" + name)()
    if os.path.isdir(state_path(git, "rebase-merge")):
        raise Failure(BUSY)
    for name in ("update_refs", "committer_date_is_author_date", "signoff", "keep_base"):
        if getattr(options, name):
            raise error(
                f"unknown option `{name.replace('_', '-')}'\nusage: git rebase [-i] [options] [--onto <newbase>] "
                f"[<upstream> [<branch>]]",
                129,
            )
    return start(git, options, call)


def dirty(git):
    """The changes that prevent a rebase, as an error message; empty if there are none."""
    import _git_work

    changes = _git_work.files_changed(git, untracked="no")
    if changes.unstaged or changes.unmerged:
        text = "error: cannot rebase: You have unstaged changes.\n"
        if changes.staged:
            text += "error: additionally, your index contains uncommitted changes.\n"
        return text
    return "error: cannot rebase: Your index contains uncommitted changes.\n" if changes.staged else ""


def start(git, options, call):
    words = options.all_words()
    upstream_name = None
    if options.root:
        upstream = None
        branch_words = words
    else:
        if words:
            upstream_name, branch_words = words[0], words[1:]
        else:
            branch, branch_words = git.branch(), []
            found = branch and git.upstream(branch)
            if not found:
                raise Failure(
                    NO_UPSTREAM.format(branch=branch or "<branch>") if branch else "You are not currently on a branch.", 1, ""
                )
            upstream_name = os.fsdecode(found)
        name = git.previous_branch(1) if upstream_name == "-" else upstream_name
        sha = git.find(name)
        upstream = sha and git.peel(sha, Commit)
        if upstream is None:
            raise Failure(f"invalid upstream '{upstream_name}'")
    onto_name = options.onto or upstream_name
    if options.onto and "..." in options.onto:
        left, right = options.onto.split("...", 1)
        bases = git.merge_bases(git.commit(left or "HEAD").id, git.commit(right or "HEAD").id)
        if len(bases) != 1:
            raise Failure(f"'{options.onto}': need exactly one merge base")
        onto = bases[0]
    elif options.root and not options.onto:
        onto = None
    else:
        found = git.find(git.previous_branch(1) if onto_name == "-" else onto_name)
        onto = found and git.peel(found, Commit)
        if onto is None:
            raise Failure(f"Does not point to a valid commit '{onto_name}'")
    ref, tip = git.head_ref(), git.head()
    switch = None
    if branch_words:
        branch = branch_words[0]
        full = b"refs/heads/" + os.fsencode(branch)
        if full in git.refs:
            switch, ref, tip = branch, full, git.refs[full]
        else:
            found = git.find(branch)
            tip = found and git.peel(found, Commit)
            if tip is None:
                raise Failure(f"no such branch/commit '{branch}'")
            switch, ref = branch, None
    if tip is None:
        raise Failure("You do not have the initial commit yet")
    stash = None
    if text := dirty(git):
        if options.autostash or options.autostash is None and git.config.truth("rebase.autoStash"):
            stash = make_stash(git)
            out(f"Created autostash: {git.abbreviate(stash)}\n")
        else:
            raise Failure(text + "error: Please commit or stash them.", 1, "")
    git.config.identity("committer")
    shown = os.fsdecode(ref[11:]) if ref else "HEAD"
    commits = listed(git, upstream, onto, tip, bool(options.reapply_cherry_picks))
    interactive = bool(options.interactive or options.exec)
    todo = [["pick", sha.decode(), subject_of(git.store[sha])] for sha in commits]
    squash = options.autosquash or options.autosquash is None and interactive and git.config.truth("rebase.autoSquash")
    if squash:
        todo = autosquashed(git, todo)
    bases = git.merge_bases(upstream, tip) if upstream else []
    linear = all(len(git.store[sha].parents) == 1 for sha in git_between(git, bases[0], tip)) if bases else False
    if (
        not interactive
        and not squash
        and upstream
        and onto == upstream
        and bases == [onto]
        and linear
        and not options.force_rebase
    ):
        if switch and ref != git.head_ref():
            code = call.run(["checkout", "-q", switch])
            if code:
                return code
        if not options.quiet:
            out(f"Current branch {shown} is up to date.\n" if ref else "HEAD is up to date.\n")
        finish_stash(git, stash, call)
        return 0
    for command in options.exec:
        todo = [line for entry in todo for line in (entry, ["exec", command, ""])]
    steps = Steps(git, call)
    steps.begin(ref, tip, onto, todo, options, stash)
    if options.interactive:
        if not steps.edit_list(upstream, tip, onto):
            steps.forget()
            raise error("nothing to do")
    return steps.leave(onto, onto_name or "root", tip)


NO_UPSTREAM = """There is no tracking information for the current branch.
Please specify which branch you want to rebase against.
See git-rebase(1) for details.

    git rebase '<branch>'

If you wish to set tracking information for this branch you can do so with:

    git branch --set-upstream-to=<remote>/<branch> {branch}
"""


def git_between(git, base, tip):
    from dulwich.walk import Walker

    return [entry.commit.id for entry in Walker(git.store.object_store, [tip], exclude=[base])]


def change_id(git, sha):
    """A digest of the changes of a commit, to find the same changes in another commit."""
    from _git_changes import commit_changes

    commit = git.store[sha]
    if len(commit.parents) != 1:
        return None
    import hashlib

    import _git_patch

    digest = hashlib.sha1()
    for change in commit_changes(git, commit.parents[0], sha, False):
        patch = _git_patch.patch_of(git, change, _git_patch.Look())
        lines = [line for line in patch.split(b"\n") if not line.startswith((b"index ", b"@@"))]
        digest.update(b"\n".join(lines))
    return digest.digest()


def listed(git, upstream, onto, tip, keep_same):
    """The commits to apply again, the oldest first, without merges and without those whose change is upstream."""
    from dulwich.walk import Walker

    exclude = [upstream] if upstream else [onto] if onto else []
    walked = [entry.commit for entry in Walker(git.store.object_store, [tip], exclude=exclude, order="topo")]
    found = [commit.id for commit in walked if len(commit.parents) < 2][::-1]
    if not upstream or keep_same or not found:
        return found
    theirs = [entry.commit for entry in Walker(git.store.object_store, [upstream], exclude=[tip])]
    if not theirs:
        return found
    known = {change_id(git, commit.id) for commit in theirs} - {None}
    kept = []
    for sha in found:
        if change_id(git, sha) in known:
            say(f"warning: skipped previously applied commit {git.abbreviate(sha)}\n")
        else:
            kept.append(sha)
    if len(kept) < len(found):
        say(
            "hint: use --reapply-cherry-picks to include skipped commits\n"
            'hint: Disable this message with "git config advice.skippedCherryPicks false"\n'
        )
    return kept


def autosquashed(git, todo):
    """`fixup! x` and `squash! x` go behind the commit that they name."""
    placed = []
    for entry in todo:
        found = re.match(r"((?:fixup|squash)! )+", entry[2])
        target = None
        if found:
            wanted = entry[2][found.end() :]
            for at, (_, sha, subject) in enumerate(placed):
                if subject == wanted or sha.startswith(wanted) and re.fullmatch("[0-9a-f]{4,40}", wanted):
                    target = at
                    break
            else:
                target = next((at for at, other in enumerate(placed) if other[2].startswith(wanted)), None)
        if target is None:
            placed.append(entry)
            continue
        at = target + 1
        while at < len(placed) and placed[at][0] != "pick":
            at += 1
        placed.insert(at, [entry[2].partition("!")[0], *entry[1:]])
    return placed


def make_stash(git):
    """Puts what is changed into a commit as `git stash` does, and the files of HEAD into the working tree."""
    import _git_work

    head = git.head()
    branch = git.branch() or "(no branch)"
    line = f"on {branch}: {git.abbreviate(head)} {subject_of(git.store[head])}\n"
    staged = _git_work.create_commit(git, _git_work.write_tree(git), [head], os.fsencode("index " + line))
    index = git.open_index()
    changes = _git_work.files_changed(git, untracked="no")
    for path, letter in changes.unstaged.items():
        entry = changes.index[path]
        if letter == "D":
            del index[path]
            continue
        mode = _git_work.file_mode(git, os.lstat(git.path(path)), entry.mode)
        sha = _git_work.add_blob(git, _git_work.read_file(git, path, mode))
        index[path] = _git_work.index_entry(git, path, mode, sha)
    tree = _git_work.write_tree(git, index)
    stash = _git_work.create_commit(git, tree, [head, staged], os.fsencode("WIP " + line))
    _git_work.move(git, index_state(git), git.tree(head), force=True)
    return stash


def finish_stash(git, stash, call):
    if not stash:
        return
    import _git_work
    from _git_trees3 import Labels, apply_merged, bare_entry, merge_trees

    parent = git.store[stash].parents[0]
    current = git.tree(git.head())
    merged = merge_trees(git, git.tree(parent), current, git.tree(stash), Labels("Updated upstream", "Stashed changes"))
    if merged.conflicts:
        git.update_ref(b"refs/stash", stash, "autostash")
        say("Applying autostash resulted in conflicts.\nYour changes are safe in the stash.\n"
            'You can run "git stash pop" or "git stash drop" at any time.\n')  # fmt: skip
        return
    apply_merged(git, current, merged)
    index = git.open_index()
    for path in merged.files.keys() | current.keys():
        before, after = current.get(path), merged.files.get(path)
        if before == after or before is None:
            continue
        index[path] = bare_entry(before)
    _git_work.save_index(git, index)
    say("Applied autostash.\n")
