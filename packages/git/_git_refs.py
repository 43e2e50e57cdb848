# `git branch`, and the plain commands of references: show-ref, symbolic-ref, update-ref; the others are looked up from here.
import os
import re

import _git_core as core
from _git_core import Failure, out, say
from _git_refbase import bad_name, delete_ref, refuse_overlap, other_heads, set_upstream, settings_file, valid_name, worktrees
from dulwich.objects import Commit


def elsewhere(module, name):
    def command(argv, call):
        import importlib

        return getattr(importlib.import_module(module), name)(argv, call)

    return command


cmd_for_each_ref = elsewhere("_git_reflist", "cmd_for_each_ref")
cmd_tag = elsewhere("_git_tag", "cmd_tag")
cmd_describe = elsewhere("_git_tag", "cmd_describe")
cmd_remote = elsewhere("_git_remotes", "cmd_remote")


OPTIONS = """
-a --all
-r --remotes
-v --verbose +
-q --quiet
-l --list
--show-current
--merged [=]
--no-merged [=]
--contains =*
--no-contains =*
--points-at =
--sort =*
--format =
--color [=]
-i --ignore-case
-d --delete
-D
-m --move
-M
-c --copy
-C
-f --force
-u --set-upstream-to =
--unset-upstream
-t --track [=]
--create-reflog
"""


def cmd_branch(argv, call):
    # `--merged main` may have its commit behind a space, and may have none.
    argv = joined(argv, ("--merged", "--no-merged", "--contains", "--no-contains"))
    options = core.parse("branch", argv, OPTIONS)
    git, words = call.git(), options.all_words()
    if options.merged is False:
        options.merged, options.no_merged = None, True
    if options.show_current:
        branch = git.branch()
        if branch:
            out(branch + "\n")
        return 0
    if options.delete or options.D:
        return delete(git, options, words)
    if options.move or options.M or options.copy or options.C:
        return rename(git, options, words)
    if options.set_upstream_to:
        return follow(git, options, words)
    if options.unset_upstream:
        branch = words[0] if words else git.branch()
        if branch is None:
            raise Failure("could not unset upstream of HEAD when it does not point to any branch")
        if not git.upstream(branch):
            raise Failure(f"branch '{branch}' has no upstream information")
        file = settings_file(git)
        file.unset(f"branch.{branch}.remote")
        file.unset(f"branch.{branch}.merge")
        file.write()
        return 0
    filters = options.contains or options.no_contains or options.merged or options.no_merged or options.points_at
    if options.list or filters or not words or (options.all or options.remotes) and not words:
        return listing(git, options, words)
    if options.all or options.remotes:
        raise Failure("options '-a' and '-r' do not take a branch name\nSee 'git help branch'.")
    if len(words) > 2:
        raise Failure("usage: git branch [<options>] [-f] <branch-name> [<start-point>]", 129, "")
    return create(git, options, *words)


def joined(argv, names):
    """Words behind options whose value may be left out; `HEAD` where there is none."""
    done, rest = [], list(argv)
    while rest:
        word = rest.pop(0)
        if word in names:
            value = rest.pop(0) if rest and not rest[0].startswith("-") else "HEAD"
            done.append(f"{word}={value}")
        else:
            done.append(word)
    return done


def listing(git, options, words):
    from _git_reflist import Item, all_refs, filtered, formatted, glob, sort_items
    from _git_revparse import shorten
    import fnmatch

    bases = [b"refs/remotes/"] if options.remotes and not options.all else [b"refs/heads/"]
    if options.all:
        bases.append(b"refs/remotes/")
    items = all_refs(git, *bases)
    name = lambda item: os.fsdecode(item.ref).split("/", 2)[2]
    head = git.head_ref()
    if words:
        fit = lambda text, word: (
            fnmatch.fnmatchcase(text.lower(), word.lower())
            if options.ignore_case
            else (glob(text, word) or fnmatch.fnmatchcase(text, word))
        )
        items = [item for item in items if any(fit(name(item), word) for word in words)]
    items = filtered(git, items, options)
    keys = options.sort or ([git.config.get("branch.sort")] if git.config.get("branch.sort") else [])
    items = sort_items(items, keys)
    detached = None
    if head is None and git.head() and not options.remotes and not words:
        detached = detached_name(git)
        if filtered(git, [Item(git, b"HEAD", git.head())], options):
            items.insert(0, Item(git, b"HEAD", git.head()))
    if options.format is not None:
        for item in items:
            if item.ref == b"HEAD":
                out(formatted(item, options.format.replace("%(refname:short)", detached).replace("%(refname)", detached)) + "\n")
            else:
                out(formatted(item, options.format) + "\n")
        return 0
    others = worktrees(git)
    rows = []
    for item in items:
        current = item.ref == head or item.ref == b"HEAD"
        mark = "*" if current else "+" if item.ref in others else " "
        shown = detached if item.ref == b"HEAD" else name(item)
        if options.all and item.ref.startswith(b"refs/remotes/"):
            shown = "remotes/" + shown
        value = git.refs.read_ref(item.ref) or b""
        link = os.fsdecode(value[5:].strip()) if item.ref != b"HEAD" and value.startswith(b"ref: ") else None
        rows.append((mark, shown, item, link and shorten(git, os.fsencode(link))))
    width = max((len(row[1]) for row in rows), default=0)
    for mark, shown, item, link in rows:
        if link:
            text = f"{shown:<{width}} -> {link}" if options.verbose else f"{shown} -> {link}"
        elif options.verbose:
            text = f"{shown:<{width}} {details(git, item, options.verbose, others)}"
        else:
            text = shown
        out(f"{mark} {text}\n")


def details(git, item, verbose, others):
    from _git_reflist import split_message, tracking
    from _git_revparse import shorten

    commit = git.store[git.peel(item.sha, Commit)]
    text = git.abbreviate(item.sha) + " "
    if verbose > 1 and item.ref in others:
        text += f"({others[item.ref]}) "
    if item.ref.startswith(b"refs/heads/"):
        upstream = git.upstream(os.fsdecode(item.ref[11:]))
        if upstream is not None:
            track = tracking(git, item.ref, "track", upstream).strip("[]")
            if verbose > 1:
                text += f"[{shorten(git, upstream)}{': ' + track if track else ''}] "
            elif track:
                text += f"[{track}] "
    return text + split_message(commit.message)[0]


def detached_name(git):
    """The name of a detached HEAD in the list."""
    from _git_merge import read_state

    name = read_state(git, "rebase-merge/head-name")
    if name:
        return f"(no branch, rebasing {os.fsdecode(name.strip()).removeprefix('refs/heads/')})"
    for entry in git.reflog(b"HEAD"):
        move = re.fullmatch(rb"checkout: moving from \S+ to (\S+)", entry.message.strip())
        if move:
            target = os.fsdecode(move[1])
            ref = git.ref(target)
            if ref is None or ref == b"HEAD":
                target = git.abbreviate(entry.new_sha)
            at = "at" if entry.new_sha == git.head() else "from"
            return f"(HEAD detached {at} {target})"
    return f"(HEAD detached at {git.abbreviate(git.head())})"


def create(git, options, name, start=None):
    ref = b"refs/heads/" + os.fsencode(name)
    if not valid_name(ref):
        raise bad_name(name)
    given = start or "HEAD"
    sha = git.find(given)
    commit = sha and git.peel(sha, Commit)
    if ref in git.refs and not options.force:
        raise Failure(f"a branch named '{name}' already exists")
    if commit is None:
        if sha is None:
            raise Failure(f"not a valid object name: '{start or git.branch()}'")
        raise Failure(f"not a valid branch point: '{given}'")
    if ref == git.head_ref():
        raise Failure(f"cannot force update the branch '{name}' used by worktree at '{git.root}'")
    others = worktrees(git)
    if ref in others:
        raise Failure(f"cannot force update the branch '{name}' used by worktree at '{others[ref]}'")
    refuse_overlap(git, ref)
    known = ref in git.refs
    source = git.ref(start) if start else None
    message = f"branch: Reset to {given}" if known else f"branch: Created from {given}"
    git.update_ref(ref, commit, message)
    auto = git.config.get("branch.autoSetupMerge") or "true"
    track = options.track
    if track is None and source is not None:
        track = source.startswith(b"refs/remotes/") and auto != "false" or auto == "always"
    if track:
        if source is None or not source.startswith((b"refs/heads/", b"refs/remotes/")):
            raise Failure("cannot set up tracking information; starting point '%s' is not a branch" % given)
        set_upstream(git, name, source)
        if not options.quiet:
            out(f"branch '{name}' set up to track '{os.fsdecode(source).split('/', 2)[2]}'.\n")


def delete(git, options, words):
    if not words:
        raise Failure("branch name required")
    force, code = options.D or options.force, 0
    others = worktrees(git)
    for word in words:
        base = b"refs/remotes/" if options.remotes else b"refs/heads/"
        if not options.remotes and (word == "-" or word.startswith("@{-")):
            word = git.previous_branch(1 if word == "-" else int(word[3:-1]))
        ref = base + os.fsencode(word)
        kind = "remote-tracking branch" if options.remotes else "branch"
        if ref == git.head_ref() and not git.bare:
            say(f"error: cannot delete branch '{word}' used by worktree at '{git.root}'\n")
            code = 1
            continue
        if ref in others:
            say(f"error: cannot delete branch '{word}' used by worktree at '{others[ref]}'\n")
            code = 1
            continue
        if ref not in git.refs:
            say(
                f"error: {kind} '{word}' not found\n"
                if not options.remotes
                else f"error: remote-tracking branch '{word}' not found\n"
            )
            if not options.remotes and b"refs/remotes/" + os.fsencode(word) in git.refs:
                say("hint: Did you forget --remote?\n")
            code = 1
            continue
        sha = git.refs[ref]
        if not force and not options.remotes and not merged(git, word, sha):
            say(
                f"error: the branch '{word}' is not fully merged\nhint: If you are sure you want to delete it, run "
                f"'git branch -D {word}'\n"
                'hint: Disable this message with "git config advice.forceDeleteBranch false"\n'
            )
            code = 1
            continue
        delete_ref(git, ref)
        if not options.remotes:
            file = settings_file(git)
            if file.rename_section(f"branch.{word}", None):
                file.write()
        if not options.quiet:
            out(f"Deleted {kind} {word} (was {git.abbreviate(sha)}).\n")
    return code


def merged(git, name, sha):
    upstream = git.upstream(name)
    top = git.refs[upstream] if upstream and upstream in git.refs else git.head()
    done = top is not None and git.is_ancestor(sha, top)
    if upstream and upstream in git.refs and git.head():
        in_head = git.is_ancestor(sha, git.head())
        if done and not in_head:
            say(
                f"warning: deleting branch '{name}' that has been merged to\n         '{os.fsdecode(upstream)}', but not "
                f"yet merged to HEAD\n"
            )
        elif not done and in_head:
            say(f"warning: not deleting branch '{name}' that is not yet merged to\n         '{os.fsdecode(upstream)}', "
                "even though it is merged to HEAD\n")  # fmt: skip
    return done


def rename(git, options, words):
    copy = options.copy or options.C
    force = options.M or options.C or options.force
    if not words or len(words) > 2:
        raise Failure(
            "branch name required" if not words else f"too many arguments for a {'copy' if copy else 'rename'} operation"
        )
    old, new = words if len(words) == 2 else (git.branch(), words[0])
    if old is None:
        raise Failure(f"cannot {'copy' if copy else 'rename'} the current branch while not on any")
    old_ref, new_ref = b"refs/heads/" + os.fsencode(old), b"refs/heads/" + os.fsencode(new)
    if not valid_name(new_ref):
        raise bad_name(new)
    others = [] if copy else [gitdir for gitdir, _, ref in other_heads(git) if ref == old_ref]
    if old_ref not in git.refs:
        if old_ref == git.head_ref() and not copy:
            git.refs.set_symbolic_ref(b"HEAD", new_ref)
            return 0
        raise Failure(f"no branch named '{old}'")
    if new_ref in git.refs and old_ref != new_ref:
        if not force:
            raise Failure(f"a branch named '{new}' already exists")
        if new_ref == git.head_ref():
            raise Failure(f"cannot force update the branch '{new}' used by worktree at '{git.root}'")
        used = worktrees(git).get(new_ref)
        if used is not None:
            raise Failure(f"cannot force update the branch '{new}' used by worktree at '{used}'")
    sha = git.refs[old_ref]
    verb = "copied" if copy else "renamed"
    message = f"Branch: {verb} {os.fsdecode(old_ref)} to {os.fsdecode(new_ref)}"
    if old_ref == new_ref:
        return 0
    logs = lambda ref: os.path.join(git.commondir, "logs", os.fsdecode(ref))
    history = None
    if os.path.exists(logs(old_ref)):
        with open(logs(old_ref), "rb") as file:
            history = file.read()
    is_head = git.head_ref() == old_ref
    if not copy:
        delete_ref(git, old_ref)
    refuse_overlap(git, new_ref)
    if new_ref in git.refs:
        delete_ref(git, new_ref)
    git.refs[new_ref] = sha
    if history is not None:
        os.makedirs(os.path.dirname(logs(new_ref)), exist_ok=True)
        with open(logs(new_ref), "wb") as file:
            file.write(history)
    git.log(new_ref, sha, sha, message)
    # Each working tree that has the branch goes with it.
    for gitdir in others + [git.gitdir] * (is_head and not copy):
        with open(os.path.join(gitdir, "HEAD"), "wb") as file:
            file.write(b"ref: " + new_ref + b"\n")
        if gitdir == git.gitdir:
            git.log(b"HEAD", sha, core.ZERO, message)
            git.log(b"HEAD", None, sha, message)
        else:
            git.log(b"HEAD", sha, sha, message, gitdir)
    file = settings_file(git)
    if copy:
        for entry in [entry for entry in file.entries if entry.key.startswith(f"branch.{old}.")]:
            file.add(f"branch.{new}." + entry.key.rpartition(".")[2], entry.value or "")
        file.write()
    elif file.rename_section(f"branch.{old}", f"branch.{new}"):
        file.write()
    return 0


def follow(git, options, words):
    branch = words[0] if words else git.branch()
    if branch is None:
        raise Failure(f"could not set upstream of HEAD to {options.set_upstream_to} when it does not point to any branch")
    if b"refs/heads/" + os.fsencode(branch) not in git.refs:
        raise Failure(f"branch '{branch}' does not exist" if words else f"no commit on branch '{branch}' yet")
    source = git.ref(options.set_upstream_to)
    if source is None:
        raise Failure(
            f"fatal: the requested upstream branch '{options.set_upstream_to}' does not exist\nhint:\n"
            "hint: If you are planning on basing your work on an upstream\n"
            'hint: branch that already exists at the remote, you may need to\nhint: run "git fetch" to retrieve it.\nhint:\n'
            "hint: If you are planning to push out a new local branch that\nhint: will track its remote counterpart, you "
            "may want to use\n"
            'hint: "git push -u" to set the upstream config as you push.\n'
            'hint: Disable this message with "git config advice.setUpstreamFailure false"',
            128,
            "",
        )
    if not source.startswith((b"refs/heads/", b"refs/remotes/")):
        raise Failure(f"cannot set up tracking information; starting point '{options.set_upstream_to}' is not a branch")
    if source == b"refs/heads/" + os.fsencode(branch):
        say(f"warning: not setting branch '{branch}' as its own upstream\n")
        return 0
    set_upstream(git, branch, source)
    if not options.quiet:
        out(f"branch '{branch}' set up to track '{os.fsdecode(source).split('/', 2)[2]}'.\n")


cmd_show_ref = elsewhere("_git_showref", "cmd_show_ref")
cmd_symbolic_ref = elsewhere("_git_showref", "cmd_symbolic_ref")
cmd_update_ref = elsewhere("_git_showref", "cmd_update_ref")
