# Shared by the commands of branches, tags and remotes: valid names, removing a reference, and the upstream of a branch.
import os

from _git_core import Failure


def valid_name(ref):
    from dulwich.refs import check_ref_format

    return check_ref_format(ref) and not ref.rpartition(b"/")[2].startswith(b"-") and not ref.endswith(b"/HEAD")


def delete_ref(git, ref):
    """Removes a reference, its log, and the directories that are empty then."""
    git.refs.remove_if_equals(ref, None)
    path = os.path.join(git.commondir, "logs", os.fsdecode(ref))
    try:
        os.unlink(path)
    except OSError:
        return
    directory = os.path.dirname(path)
    while (
        directory.startswith(os.path.join(git.commondir, "logs", "refs") + "/")
        and directory.count("/") > git.commondir.count("/") + 3
    ):
        try:
            os.rmdir(directory)
        except OSError:
            break
        directory = os.path.dirname(directory)


def settings_file(git):
    from _git_config import File

    return File(os.path.join(git.commondir, "config"), ".git/config")


def set_upstream(git, branch, upstream):
    """Notes what a branch follows: a full name of a branch or of a remote's branch."""
    file = settings_file(git)
    text = os.fsdecode(upstream)
    if text.startswith("refs/heads/"):
        remote, merge = ".", text
    else:
        remote, _, name = text.removeprefix("refs/remotes/").partition("/")
        merge = "refs/heads/" + name
    file.set(f"branch.{branch}.remote", remote)
    file.set(f"branch.{branch}.merge", merge)
    file.write()
    return remote


def other_heads(git):
    """The other working trees whose HEAD is a branch: their own directories in the repository, their tops, and the branches' full names."""
    found = []
    base = os.path.join(git.commondir, "worktrees")
    places = [(git.commondir, os.path.dirname(git.commondir))]
    try:
        for name in sorted(os.listdir(base)):
            with open(os.path.join(base, name, "gitdir"), encoding="utf-8", errors="surrogateescape") as file:
                places.append((os.path.join(base, name), os.path.dirname(file.read().strip())))
    except OSError:
        pass
    for gitdir, root in places:
        if os.path.abspath(gitdir) == git.gitdir:
            continue
        try:
            with open(os.path.join(gitdir, "HEAD"), "rb") as file:
                head = file.read().strip()
        except OSError:
            continue
        if head.startswith(b"ref: "):
            found.append((gitdir, root, head[5:]))
    return found


def worktrees(git):
    """Branches (full names) that other working trees have, with their directories."""
    return {ref: root for _, root, ref in other_heads(git)}


def bad_name(name):
    return Failure(
        f"fatal: '{name}' is not a valid branch name\nhint: See `man git check-ref-format`\n"
        'hint: Disable this message with "git config advice.refSyntax false"',
        128,
        "",
    )


def refuse_overlap(git, ref):
    """`a` and `a/b` cannot both be there."""
    text = ref
    while b"/" in text:
        text = text.rpartition(b"/")[0]
        if text in git.refs and text != b"refs":
            raise Failure(
                f"cannot lock ref '{os.fsdecode(ref)}': '{os.fsdecode(text)}' exists; cannot create '{os.fsdecode(ref)}'"
            )
    below = sorted(other for other in git.refs.allkeys() if other.startswith(ref + b"/"))
    if below:
        raise Failure(
            f"cannot lock ref '{os.fsdecode(ref)}': '{os.fsdecode(below[0])}' exists; cannot create '{os.fsdecode(ref)}'"
        )
