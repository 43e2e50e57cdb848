# The way from HEAD to a branch or a commit, with what git says on it.
import os
import re

import _git_core as core
from _git_core import Failure, out, say

DETACHED = """Note: switching to '{name}'.

You are in 'detached HEAD' state. You can look around, make experimental
changes and commit them, and you can discard any commits you make in this
state without impacting any branches by switching back to a branch.

If you want to create a new branch to retain commits you create, you may
do so (now or later) by using -c with the switch command. Example:

  git switch -c <new-branch-name>

Or undo this operation with:

  git switch -

Turn off this advice by setting config variable advice.detachedHead to false

"""


def subject_of(git, sha):
    from _git_commit import subject

    return subject(git.commit(sha).message)


def head_line(git, sha):
    return git.abbreviate(sha).encode() + b" " + subject_of(git, sha) + b"\n"


def check_branch_name(git, name):
    from dulwich.refs import check_ref_format

    ref = os.fsencode("refs/heads/" + name)
    if not check_ref_format(ref) or name.startswith("-") or name == "HEAD":
        hint = '\nhint: See `man git check-ref-format`\nhint: Disable this message with "git config advice.refSyntax false"'
        raise Failure(f"'{name}' is not a valid branch name" + (hint if git.config.truth("advice.refSyntax", True) else ""))
    return ref


def local_changes(git, sha=None):
    """The files that the working tree has different from HEAD or from a commit, a line each."""
    from _git_work import files_changed

    found = files_changed(git, untracked="no", head=git.tree(sha or git.head()))
    letters = dict(found.unstaged)
    for path, letter in found.staged.items():
        letters[path] = "D" if found.unstaged.get(path) == "D" else letter
    letters.update({path: "U" for path in found.unmerged})
    return "".join(f"{letter}\t{core.quoted(path)}\n" for path, letter in sorted(letters.items()))


def lost_commits(git, old, new):
    """The warning for commits that no reference leads to after HEAD has left them; nothing where there are none."""
    from dulwich.objects import Commit

    refs = [ref for ref in git.refs.keys() if ref != b"HEAD" and ref in git.refs]
    tips = {git.peel(git.refs[ref], Commit) for ref in refs} | {new}
    tips.discard(None)
    if old in tips:
        return ""
    lost = [entry.commit for entry in git.store.get_walker([old], exclude=sorted(tips))]
    if not lost:
        return ""
    several = len(lost) > 1
    text = f"Warning: you are leaving {len(lost)} commit{'s' if several else ''} behind, not connected to\n"
    text += "any of your branches:\n\n"
    text += "".join(f"  {os.fsdecode(head_line(git, commit.id))}" for commit in lost[:4])
    if len(lost) > 4:
        text += f" ... and {len(lost) - 4} more.\n"
    text += f"\nIf you want to keep {'them' if several else 'it'} by creating a new branch, this may be a good time\n"
    return text + f"to do so with:\n\n git branch <new-branch-name> {git.abbreviate(old)}\n\n"


class Switching:
    """The way from HEAD to a branch or a commit."""

    def __init__(self, git, options, create=None, recreate=None):
        self.git, self.options, self.create, self.recreate = git, options, create, recreate
        self.force = options.force or getattr(options, "discard_changes", None)
        self.old, self.old_branch = git.head(), git.branch()

    def remote_for(self, name):
        """The remote's branch that a name without a branch of its own stands for."""
        found = [ref for ref in self.git.refs.keys() if re.fullmatch(rb"refs/remotes/[^/]+/" + re.escape(os.fsencode(name)), ref)]
        if len(found) > 1:
            default = self.git.config.get("checkout.defaultRemote")
            found = [ref for ref in found if default and ref.startswith(os.fsencode(f"refs/remotes/{default}/"))]
        return found[0] if len(found) == 1 else None

    def check_elsewhere(self, ref):
        from _git_refs import worktrees

        place = worktrees(self.git).get(ref)
        if place is not None and not self.options.ignore_other_worktrees:
            raise Failure(f"'{os.fsdecode(ref[11:])}' is already used by worktree at '{place}'")

    def to_new(self, name, start):
        """Creates a branch at a commit, or resets it."""
        git, quiet = self.git, self.options.quiet
        again = self.recreate is not None
        ref = check_branch_name(git, name)
        existed = ref in git.refs
        if existed and not again:
            raise Failure(f"a branch named '{name}' already exists")
        if existed:
            self.check_elsewhere(ref)
        if self.old is None and start in (None, "HEAD"):
            git.attach(ref, "")
            if not quiet:
                say(f"Switched to a new branch '{name}'\n")
            return 0
        shown = start or "HEAD"
        if start == "-":
            shown = start = git.previous_branch(1)
        sha = self.start_commit(name, shown)
        source = git.ref(shown) if start else None
        self.files(sha)
        before = self.old_branch or (self.old.decode() if self.old else "")
        if ref == git.head_ref():
            git.update_ref(ref, sha, f"branch: Reset to {shown}")
        else:
            old = git.refs[ref] if existed else None
            if old != sha:
                if not git.refs.set_if_equals(ref, old, sha):
                    raise Failure(f"cannot lock ref '{os.fsdecode(ref)}'")
                git.log(ref, old, sha, f"branch: {'Reset to' if existed else 'Created from'} {shown}")
        if not quiet:
            if again and existed:
                word = "Reset" if name == self.old_branch else "Switched to and reset"
            else:
                word = "Switched to a new"
        changes = self.go(ref, f"checkout: moving from {before} to {name}", sha)
        if not quiet:
            say(f"{word} branch '{name}'\n")
        out(changes)
        self.track(name, source, start)
        return 0

    def track(self, name, source, start):
        track = self.options.track
        if track is False or source is None:
            return
        remote = source.startswith(b"refs/remotes/")
        if not (track or remote and self.git.config.get("branch.autoSetupMerge", "true").lower() != "false"):
            return
        if not (remote or source.startswith(b"refs/heads/")):
            raise Failure(f"cannot set up tracking information; starting point '{start}' is not a branch")
        from _git_refs import set_upstream

        set_upstream(self.git, name, source)
        if not self.options.quiet:
            shown = os.fsdecode(source.removeprefix(b"refs/remotes/").removeprefix(b"refs/heads/"))
            out(f"branch '{name}' set up to track '{shown}'.\n")

    def start_commit(self, name, start):
        from dulwich.objects import Commit

        found = self.git.find(start)
        sha = found and self.git.peel(found, Commit)
        if not sha:
            raise Failure(f"'{start}' is not a commit and a branch '{name}' cannot be created from it")
        return sha

    def files(self, sha):
        """The working tree and the index of a commit."""
        from _git_work import move

        git = self.git
        if self.force:
            move(git, git.tree(self.old), git.tree(sha), True)
        elif self.old is None:
            move(git, {}, git.tree(sha))
        elif git.commit(self.old).tree != git.commit(sha).tree:
            move(git, git.tree(self.old), git.tree(sha))
        else:
            move(git, {}, {})

    def leave(self, new):
        """Says what HEAD was, where it was no branch."""
        if self.old_branch is None and self.old is not None and not self.options.quiet:
            if self.old != new:
                text = lost_commits(self.git, self.old, new)
                say(text or b"Previous HEAD position was " + head_line(self.git, self.old))

    def go(self, ref, message, sha):
        """Makes HEAD the branch. The list of changed files is for the caller to print behind what is said on standard error."""
        from _git_commit import finish_operation

        self.leave(sha)
        self.git.attach(ref, message)
        finish_operation(self.git)
        return "" if self.options.quiet or self.force else local_changes(self.git, sha)

    def to_branch(self, ref):
        git, quiet = self.git, self.options.quiet
        name = os.fsdecode(ref[11:])
        sha = git.refs[ref]
        if ref != git.head_ref():
            self.check_elsewhere(ref)
        self.files(sha)
        word = "Already on" if ref == git.head_ref() else "Switched to branch"
        before = self.old_branch or (self.old.decode() if self.old else "")
        changes = self.go(ref, f"checkout: moving from {before} to {name}", sha)
        if not quiet:
            say(f"{word} '{name}'\n")
        out(changes)
        if not quiet:
            from _git_status import tracking_text

            out(tracking_text(git))
        return 0

    def to_commit(self, name, sha):
        from _git_commit import finish_operation

        git, quiet = self.git, self.options.quiet
        self.files(sha)
        if not quiet:
            if self.old_branch is not None and git.config.truth("advice.detachedHead", True) and not self.options.detach:
                say(DETACHED.format(name=name))
            self.leave(sha)
        if self.old_branch is not None or self.old != sha:
            before = self.old_branch or (self.old.decode() if self.old else "")
            git.detach(sha, f"checkout: moving from {before} to {name}")
        finish_operation(git)
        if not quiet:
            say(b"HEAD is now at " + head_line(git, sha))
            out("" if self.force else local_changes(git, sha))
        return 0

    def orphan(self, name, start, keep):
        git = self.git
        ref = check_branch_name(git, name)
        if ref in git.refs:
            raise Failure(f"a branch named '{name}' already exists")
        from _git_work import move

        if keep and start:
            sha = self.start_commit(name, start)
            self.files(sha)
        elif not keep:
            move(git, git.tree(self.old), {}, bool(self.force))
        git.attach(ref, "")
        if not self.options.quiet:
            say(f"Switched to a new branch '{name}'\n")
        return 0
