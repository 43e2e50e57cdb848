# The operation that a repository is in, in git's words: the branch or the detached HEAD, a merge, a picked commit, a rebase.
import os
import re


def read(git, name):
    """The text of a file of the repository's directory without the line's end, or None."""
    try:
        with open(os.path.join(git.gitdir, name), encoding="utf-8", errors="surrogateescape") as file:
            return file.read().strip("\n")
    except OSError:
        return None


def rebase_directory(git):
    for name in ("rebase-merge", "rebase-apply"):
        if os.path.isdir(os.path.join(git.gitdir, name)):
            return name
    return None


def short_name(git, text):
    """A branch or a commit as the texts on a rebase name it."""
    if text is None or text == "detached HEAD":
        return None
    if text.startswith("refs/heads/"):
        return text[11:]
    return git.abbreviate(text) if re.fullmatch(r"[0-9a-f]{40}", text) else text


def detached_line(git):
    """`HEAD detached at ...`: by what it was detached with."""
    head = git.head()
    for entry in git.reflog(b"HEAD"):
        found = re.fullmatch(rb"checkout: moving from (.*) to (\S+)", entry.message)
        if found:
            name, sha = os.fsdecode(found[2]), entry.new_sha
            ref = git.ref(name)
            shown = git.abbreviate(sha)
            if ref and ref != b"HEAD" and git.find(name + "^{commit}") == sha:
                shown = os.fsdecode(ref)
                shown = shown.removeprefix("refs/tags/").removeprefix("refs/remotes/")
            return f"HEAD detached {'at' if sha == head else 'from'} {shown}\n"
    return "Not currently on any branch.\n"


def branch_lines(git):
    directory = rebase_directory(git)
    if directory and git.head_ref() is None:
        onto = short_name(git, read(git, directory + "/onto"))
        kind = "interactive rebase" if os.path.exists(os.path.join(git.gitdir, directory, "interactive")) else "rebase"
        return [f"{kind} in progress; onto {onto}\n"]
    branch = git.branch()
    return [f"On branch {branch}\n"] if branch is not None else [detached_line(git)]


def _todo(git, text):
    """The steps in a file of a rebase, with digits as git shortens them."""
    steps = []
    for line in (text or "").split("\n"):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(" ", 2)
        if len(words) > 1 and re.fullmatch(r"[0-9a-f]{40}", words[1]):
            words[1] = git.abbreviate(words[1])
        steps.append(" ".join(words))
    return steps


def _rebase_steps(git, directory, hints):
    done, left = _todo(git, read(git, directory + "/done")), _todo(git, read(git, directory + "/git-rebase-todo"))
    lines = []
    if not done:
        lines.append("No commands done.\n")
    else:
        s = "" if len(done) == 1 else "s"
        lines.append(f"Last command{s} done ({len(done)} command{s} done):\n")
        lines += [f"   {step}\n" for step in done[-2:]]
        if len(done) > 2 and hints:
            from os.path import join, relpath

            lines.append(f"  (see more in file {relpath(join(git.gitdir, directory, 'done'))})\n")
    if not left:
        lines.append("No commands remaining.\n")
    else:
        s = "" if len(left) == 1 else "s"
        lines.append(f"Next command{s} to do ({len(left)} remaining command{s}):\n")
        lines += [f"   {step}\n" for step in left[:2]]
        if hints:
            lines.append('  (use "git rebase --edit-todo" to view and edit)\n')
    return lines


def state_lines(git, unmerged, hints):
    there = lambda name: os.path.exists(os.path.join(git.gitdir, name))
    lines = []
    hint = lambda text: lines.append(f"  ({text})\n") if hints else None

    def rebasing(directory):
        branch, onto = (short_name(git, read(git, f"{directory}/{name}")) for name in ("head-name", "onto"))
        return f" branch '{branch}' on '{onto}'" if branch else ""

    directory = rebase_directory(git)
    if directory and there(directory + "/applying"):
        lines.append("You are in the middle of an am session.\n")
        if not unmerged:
            hint('fix conflicts and then run "git am --continue"')
        hint('use "git am --skip" to skip this patch')
        hint('use "git am --abort" to restore the original branch')
        lines.append("\n")
    elif directory:
        if there(directory + "/interactive"):
            lines += _rebase_steps(git, directory, hints)
        where = rebasing(directory)
        if unmerged or there("MERGE_MSG") or not there(directory + "/interactive"):
            lines.append(f"You are currently rebasing{where}.\n")
            if unmerged:
                hint('fix conflicts and then run "git rebase --continue"')
                hint('use "git rebase --skip" to skip this patch')
                hint('use "git rebase --abort" to check out the original branch')
            else:
                hint('all conflicts fixed: run "git rebase --continue"')
        else:
            lines.append(f"You are currently editing a commit while rebasing{where}.\n")
            hint('use "git commit --amend" to amend the current commit')
            hint('use "git rebase --continue" once you are satisfied with your changes')
        lines.append("\n")
    elif there("MERGE_HEAD"):
        if unmerged:
            lines.append("You have unmerged paths.\n")
            hint('fix conflicts and run "git commit"')
            hint('use "git merge --abort" to abort the merge')
        else:
            lines.append("All conflicts fixed but you are still merging.\n")
            hint('use "git commit" to conclude merge')
        lines.append("\n")
    elif there("CHERRY_PICK_HEAD"):
        lines.append(f"You are currently cherry-picking commit {git.abbreviate(read(git, 'CHERRY_PICK_HEAD'))}.\n")
        lines += _picking("cherry-pick", unmerged, hints)
    if there("REVERT_HEAD"):
        lines.append(f"You are currently reverting commit {git.abbreviate(read(git, 'REVERT_HEAD'))}.\n")
        lines += _picking("revert", unmerged, hints)
    elif there("sequencer/todo") and not there("CHERRY_PICK_HEAD") and not directory:
        first = (read(git, "sequencer/todo") or "pick").split(" ")[0]
        command = "revert" if first == "revert" else "cherry-pick"
        lines.append(f"{command.capitalize()} currently in progress.\n")
        lines += _picking(command, unmerged, hints, False)
    if there("BISECT_LOG"):
        start = read(git, "BISECT_START")
        begun = f", started from branch '{short_name(git, start)}'" if start else ""
        lines.append(f"You are currently bisecting{begun}.\n")
        hint('use "git bisect reset" to get back to the original branch')
        lines.append("\n")
    return lines


def _picking(command, unmerged, hints, stopped=True):
    if not hints:
        return ["\n"]
    if unmerged:
        first = f'fix conflicts and run "git {command} --continue"'
    elif stopped:
        first = f'all conflicts fixed: run "git {command} --continue"'
    else:
        first = f'run "git {command} --continue" to continue'
    operation = f"{command} operation"
    return [
        f"  ({first})\n",
        f'  (use "git {command} --skip" to skip this patch)\n',
        f'  (use "git {command} --abort" to cancel the {operation})\n',
        "\n",
    ]
