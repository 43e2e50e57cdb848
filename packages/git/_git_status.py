# git status in its forms. The other commands on the working tree's files have their own modules, which are named at the end.
import os

import _git_core as core
from _git_core import Failure, out, quoted

UNTRACKED_WORDS = {"no": "no", "false": "no", "normal": "normal", "true": "normal", "all": "all"}
LABELS = {"A": "new file", "M": "modified", "D": "deleted", "T": "typechange", "R": "renamed", "C": "copied"}
UNMERGED_LABELS = {
    "DD": "both deleted", "AU": "added by us", "UD": "deleted by them", "UA": "added by them", "DU": "deleted by us",
    "AA": "both added", "UU": "both modified",
}  # fmt: skip


def ahead_behind(git, ours, theirs):
    """How many commits each has that the other has not."""
    from heapq import heappop, heappush

    if ours == theirs:
        return 0, 0
    seen, waiting, counts = {}, [], [0, 0]
    store = git.store

    def mark(sha, sides):
        before = seen.get(sha, 0)
        now = before | sides
        if now == before:
            return
        seen[sha] = now
        for side in (1, 2):
            counts[side - 1] += (now == side) - (before == side)
        heappush(waiting, (-store[sha].commit_time, sha))

    mark(ours, 1)
    mark(theirs, 2)

    def settled(sha):
        return seen[sha] == 3 and all(seen.get(parent, 3) == 3 for parent in store[sha].parents)

    while not all(settled(sha) for _, sha in waiting):
        _, sha = heappop(waiting)
        for parent in store[sha].parents:
            mark(parent, seen[sha])
    return counts[0], counts[1]


def tracking(git):
    """Name of the upstream, whether it is there, and the counts; None where the branch follows nothing."""
    branch = git.branch()
    up = branch and git.upstream(branch)
    if not up:
        return None
    name = os.fsdecode(up.removeprefix(b"refs/remotes/").removeprefix(b"refs/heads/"))
    if up not in git.refs:
        return name, False, 0, 0
    head = git.head()
    return (name, True, *ahead_behind(git, head, git.refs[up])) if head else (name, True, 0, 0)


def tracking_text(git, hints=True):
    """git's text on a branch and its upstream; empty without an upstream."""
    found = tracking(git)
    if found is None:
        return ""
    name, there, ahead, behind = found
    several = lambda count: f"{count} commit{'' if count == 1 else 's'}"
    if not there:
        text = f"Your branch is based on '{name}', but the upstream is gone.\n"
        hint = 'use "git branch --unset-upstream" to fixup'
    elif not ahead and not behind:
        return f"Your branch is up to date with '{name}'.\n"
    elif not behind:
        text, hint = f"Your branch is ahead of '{name}' by {several(ahead)}.\n", 'use "git push" to publish your local commits'
    elif not ahead:
        text = f"Your branch is behind '{name}' by {several(behind)}, and can be fast-forwarded.\n"
        hint = 'use "git pull" to update your local branch'
    else:
        text = f"Your branch and '{name}' have diverged,\nand have {ahead} and {behind} different commits each, respectively.\n"
        hint = 'use "git pull" if you want to integrate the remote branch with yours'
    return text + (f"  ({hint})\n" if hints else "")


class View:
    """The content of status: `staged` has (letter, old path, new path), the rest is that of `files_changed`."""

    def __init__(self, git, changes, renames=True, amend=False, initial=None, committing=False):
        self.git, self.changes, self.amend, self.committing = git, changes, amend, committing
        # Whether there is no commit to compare with.
        self.initial = git.head() is None if initial is None else initial
        self.staged, self.renamed = [], {}
        plain = {path: letter for path, letter in changes.staged.items() if path not in changes.unmerged}
        letters = set(plain.values())
        if renames and "A" in letters and "D" in letters:
            from _git_changes import tree_changes

            old = {path: changes.head[path] for path, letter in plain.items() if letter != "A"}
            new = {path: (changes.index[path].mode, changes.index[path].sha) for path, letter in plain.items() if letter != "D"}
            for change in tree_changes(git, old, new):
                self.staged.append((change.kind, change.old_path, change.new_path))
                if change.kind in "RC":
                    self.renamed[change.new_path] = (change.old_path, change.kind, change.score)
        else:
            self.staged = [(letter, path, path) for path, letter in sorted(plain.items())]

    # The long form.

    def name(self, path):
        return quoted(self.git.shown(path))

    def whence(self):
        """Which commit is about to be made: that of a merge, of a picked commit, or an ordinary one."""
        there = lambda name: os.path.exists(os.path.join(self.git.gitdir, name))
        return "merge" if there("MERGE_HEAD") else "pick" if there("CHERRY_PICK_HEAD") else None

    def committable(self):
        return bool(self.staged) or (self.whence() == "merge" and not self.changes.unmerged)

    def long(self, untracked="normal", hints=True, show_stash=False, nowarn=False):
        from _git_state import branch_lines, state_lines

        git, changes, lines = self.git, self.changes, []
        hint = lambda text: lines.append(f"  ({text})\n") if hints else None
        initial = self.initial
        lines += branch_lines(git)
        if not initial:
            text = tracking_text(git, hints)
            lines += [text, "\n"] if text else []
        lines += state_lines(git, bool(changes.unmerged), hints)
        if not initial:
            from _git_sparse import status_line

            text = status_line(git)
            lines += [text, "\n"] if text else []
        if initial:
            lines += ["\n", "Initial commit\n" if self.committing else "No commits yet\n", "\n"]
        unstage = None
        if self.whence() is None:
            source = " --source=HEAD^1" if self.amend else ""
            unstage = 'use "git rm --cached <file>..." to unstage' if initial else (
                f'use "git restore{source} --staged <file>..." to unstage')  # fmt: skip
        if self.staged:
            lines.append("Changes to be committed:\n")
            if unstage:
                hint(unstage)
            for letter, old, new in self.staged:
                shown = f"{self.name(old)} -> {self.name(new)}" if letter in "RC" else self.name(new)
                lines.append(f"\t{LABELS[letter] + ':':<12}{shown}\n")
            lines.append("\n")
        if changes.unmerged:
            lines.append("Unmerged paths:\n")
            if unstage:
                hint(unstage)
            kinds = set(changes.unmerged.values())
            deleted, other = kinds & {"UD", "DU"}, kinds - {"UD", "DU", "DD"}
            if "DD" not in kinds and not deleted:
                hint('use "git add <file>..." to mark resolution')
            elif "DD" in kinds and not deleted and not other:
                hint('use "git rm <file>..." to mark resolution')
            else:
                hint('use "git add/rm <file>..." as appropriate to mark resolution')
            for path, letters in sorted(changes.unmerged.items()):
                lines.append(f"\t{UNMERGED_LABELS[letters] + ':':<17}{self.name(path)}\n")
            lines.append("\n")
        if changes.unstaged:
            lines.append("Changes not staged for commit:\n")
            rm = "/rm" if "D" in changes.unstaged.values() else ""
            hint(f'use "git add{rm} <file>..." to update what will be committed')
            hint('use "git restore <file>..." to discard changes in working directory')
            for path, letter in sorted(changes.unstaged.items()):
                lines.append(f"\t{LABELS[letter] + ':':<12}{self.name(path)}\n")
            lines.append("\n")
        for title, command, paths in (("Untracked", "add", changes.untracked), ("Ignored", "add -f", changes.ignored)):
            if paths:
                lines.append(f"{title} files:\n")
                hint(f'use "git {command} <file>..." to include in what will be committed')
                lines += [f"\t{self.name(path)}\n" for path in paths]
                lines.append("\n")
        if untracked == "no" and self.committable():
            lines.append(f"Untracked files not listed{' (use -u option to show untracked files)' if hints else ''}\n")
        if not self.committable():
            say = lambda text, more: lines.append(f"{text}{more if hints else ''}\n")
            if self.amend:
                lines.append("No changes\n")
            elif nowarn:
                pass
            elif changes.unstaged or changes.unmerged:
                say("no changes added to commit", ' (use "git add" and/or "git commit -a")')
            elif changes.untracked:
                say("nothing added to commit but untracked files present", ' (use "git add" to track)')
            elif initial:
                say("nothing to commit", ' (create/copy files and use "git add" to track)')
            elif untracked == "no":
                say("nothing to commit", " (use -u to show untracked files)")
            else:
                say("nothing to commit", ", working tree clean") if hints else lines.append("nothing to commit\n")
        if show_stash:
            count = len(git.reflog(b"refs/stash"))
            if count:
                lines.append(f"Your stash currently has {count} entr{'y' if count == 1 else 'ies'}\n")
        return lines

    # The short form and its like.

    def letters(self):
        """The two letters of each path, with a space for what has not changed."""
        both = {path: letters for path, letters in self.changes.unmerged.items()}
        for letter, old, new in self.staged:
            both[new] = letter + " "
        for path, letter in self.changes.unstaged.items():
            both[path] = both.get(path, "  ")[0] + letter
        return sorted(both.items())

    def short(self, branch, nul, relative):
        end = b"\0" if nul else b"\n"

        def shown(path):
            if nul:
                return path
            text = self.git.shown(path) if relative else os.fsdecode(path)
            # Where two paths stand in a line, spaces would be misread.
            plain = quoted(text)
            return os.fsencode(f'"{plain}"' if " " in plain and not plain.startswith('"') else plain)

        if branch:
            out(os.fsencode(self.branch_line()) + end)
        for path, letters in self.letters():
            line = letters.encode() + b" "
            if path in self.renamed:
                old = self.renamed[path][0]
                line += path + b"\0" + old if nul else shown(old) + b" -> " + shown(path)
            else:
                line += shown(path)
            out(line + end)
        for sign, paths in ((b"?? ", self.changes.untracked), (b"!! ", self.changes.ignored)):
            for path in paths:
                out(sign + shown(path) + end)

    def branch_line(self):
        branch = self.git.branch()
        if branch is None:
            return "## HEAD (no branch)"
        line = f"## No commits yet on {branch}" if self.git.head() is None else f"## {branch}"
        found = tracking(self.git)
        if found:
            name, there, ahead, behind = found
            counts = [f"ahead {ahead}"] * bool(ahead) + [f"behind {behind}"] * bool(behind) if there else ["gone"]
            line += f"...{name}" + (f" [{', '.join(counts)}]" if counts else "")
        return line

    def porcelain2(self, branch, nul, show_stash=False):
        git, end = self.git, "\0" if nul else "\n"
        changes = self.changes
        if branch:
            head, found = git.head(), tracking(git)
            out(f"# branch.oid {head.decode() if head else '(initial)'}{end}# branch.head {git.branch() or '(detached)'}{end}")
            if found:
                out(f"# branch.upstream {found[0]}{end}")
                out(f"# branch.ab +{found[2]} -{found[3]}{end}" if found[1] and head else "")
        if show_stash and git.reflog(b"refs/stash"):
            out(f"# stash {len(git.reflog(b'refs/stash'))}{end}")
        from _git_work import Places, file_mode

        places = Places(git)
        name = (lambda path: os.fsdecode(path)) if nul else (lambda path: quoted(path))
        zero = core.ZERO.decode()
        later = []
        for path, letters in self.letters():
            entry, found = changes.index.get(path), places.lstat(path)
            if path in changes.unmerged:
                stages = [entry.ancestor, entry.this, entry.other]
                modes = " ".join(f"{stage.mode if stage else 0:06o}" for stage in stages)
                ids = " ".join(stage.sha.decode() if stage else zero for stage in stages)
                known = next(stage.mode for stage in stages if stage)
                here = file_mode(git, found, known) if found else 0
                later.append(f"u {letters} N... {modes} {here:06o} {ids} {name(path)}{end}")
                continue
            old = self.renamed.get(path)
            before = changes.head.get(old[0] if old else path)
            index_mode = entry.mode if entry and not entry.extended_flags & 0x2000 else 0
            here = 0
            if entry is not None and letters[1] != "D":
                here = entry.mode if letters[1] == " " else file_mode(git, found, entry.mode)
            sub = "N..." if 0o160000 not in (index_mode, before[0] if before else 0) else "SC.." if letters[1] == "M" else "S..."
            line = f"{letters.replace(' ', '.')} {sub} {before[0] if before else 0:06o} {index_mode:06o} {here:06o} "
            line += f"{before[1].decode() if before else zero} {entry.sha.decode() if index_mode else zero} "
            if old:
                out(f"2 {line}{old[1]}{old[2]} {name(path)}{end if nul else chr(9)}{name(old[0])}{end}")
            else:
                out(f"1 {line}{name(path)}{end}")
        out("".join(later))
        for sign, paths in (("?", changes.untracked), ("!", changes.ignored)):
            out("".join(f"{sign} {name(path)}{end}" for path in paths))


def untracked_kind(value, config):
    """Reads -u and status.showUntrackedFiles."""
    if value is None:
        value = config.get("status.showUntrackedFiles") or "normal"
    if value is True:
        return "all"
    if value is False:
        return "no"
    if value.lower() not in UNTRACKED_WORDS:
        raise Failure(f"Invalid untracked files mode '{value}'")
    return UNTRACKED_WORDS[value.lower()]


STATUS = """
-s --short
-b --branch
--show-stash
--porcelain [=]
--long
-z --null
-u --untracked-files [=]
--ignored [=]
-v --verbose
-M --find-renames [=]
--renames
"""


def cmd_status(argv, call):
    git = call.git()
    git.need_worktree()
    options = core.parse("status", argv, STATUS)
    from _git_paths import Pathspec
    from _git_work import files_changed

    words = options.all_words()
    untracked = untracked_kind(options.untracked_files, git.config)
    if options.ignored not in (None, True, False, "traditional", "no"):
        raise Failure(f"Invalid ignored mode '{options.ignored}'")
    if options.porcelain not in (None, True, False, "v1", "v2", "1", "2"):
        raise Failure(f"unsupported porcelain version '{options.porcelain}'")
    changes = files_changed(git, Pathspec(git, words) if words else None, untracked, options.ignored in (True, "traditional"))
    renames = options.renames if options.renames is not None else options.find_renames
    if renames is None:
        renames = git.config.truth("status.renames", git.config.get("diff.renames", "true").lower() not in ("false", "no", "0"))
    view = View(git, changes, renames)
    porcelain = options.porcelain or (options.null and not options.short and not options.long)
    short, branch = options.short, options.branch
    if not porcelain and short is None and not options.long:
        short = git.config.truth("status.short", False)
    if not porcelain and branch is None:
        branch = git.config.truth("status.branch", False)
    if porcelain in ("v2", "2"):
        view.porcelain2(branch, options.null, options.show_stash)
    elif porcelain or short and not options.long:
        view.short(branch, options.null, not porcelain and git.config.truth("status.relativePaths", True))
    else:
        stash = options.show_stash if options.show_stash is not None else git.config.truth("status.showStash", False)
        out("".join(view.long(untracked, git.config.truth("advice.statusHints", True), stash)))
        if options.verbose:
            call.run(["diff", "--cached"])


def _elsewhere(module, name):
    """A command that another module has."""

    def command(argv, call):
        import importlib

        return getattr(importlib.import_module(module), name)(argv, call)

    return command


cmd_add, cmd_rm, cmd_mv, cmd_clean = (_elsewhere("_git_add", name) for name in ("cmd_add", "cmd_rm", "cmd_mv", "cmd_clean"))
cmd_commit = _elsewhere("_git_commit", "cmd_commit")
cmd_ls_files, cmd_check_ignore = (_elsewhere("_git_listing", name) for name in ("cmd_ls_files", "cmd_check_ignore"))
cmd_update_index = _elsewhere("_git_update_index", "cmd_update_index")
