# Applies the changes of one commit in another place: `git cherry-pick` and `git revert`, one commit or several with a list to
# go on with.
import os
import re
import shutil

import _git_core as core
from _git_core import Failure, out, say
from _git_merge import (
    UNMERGED_HINT, date_text, drop_state, favoured, has_unmerged, read_state, state_path, write_state,
)  # fmt: skip
from dulwich.objects import Commit

OPTIONS = """
-n --no-commit
-m --mainline =
-x
-e --edit
-s --signoff
-X --strategy-option =*
--strategy =
--allow-empty
--allow-empty-message
--keep-redundant-commits
--continue
--abort
--skip
--quit
"""
WORDS = {
    "cherry-pick": ("CHERRY_PICK_HEAD", "pick", "could not apply", "Cherry-picking"),
    "revert": ("REVERT_HEAD", "revert", "could not revert", "Reverting"),
}


def cmd_cherry_pick(argv, call):
    return Replay("cherry-pick", argv, call).run()


def cmd_revert(argv, call):
    return Replay("revert", argv, call).run()


def subject_of(commit):
    """The first paragraph of a message, in one line of text."""
    lines = []
    for line in commit.message.lstrip(b"\n").split(b"\n"):
        if not line.strip():
            break
        lines.append(line.strip())
    return b" ".join(lines).decode("utf-8", "replace") if lines else ""


def merge_commit(git, commit, parent, ours, revert=False, favour=None, follow=True):
    """The merge that brings what `commit` changed against `parent` (digits or None) to the files `ours`."""
    from _git_trees3 import Labels, merge_trees

    name = f"{git.abbreviate(commit.id)} ({subject_of(commit)})"
    before, after = git.tree(parent), git.tree(commit.id)
    if revert:
        return merge_trees(git, after, ours, before, Labels("HEAD", f"parent of {name}", name), favour, 0, follow)
    return merge_trees(git, before, ours, after, Labels("HEAD", name, f"parent of {name}"), favour, 0, follow)


def index_state(git):
    """The files of the index as a tree has them."""
    return {path: (entry.mode, entry.sha) for path, entry in git.index().items() if hasattr(entry, "sha")}


def print_commit(git, sha, dated=True):
    """Prints git's summary of a new commit."""
    import _git_patch

    commit = git.store[sha]
    branch = git.branch()
    out(f"[{branch or 'detached HEAD'} {git.abbreviate(sha)}] {subject_of(commit)}\n")
    if commit.author != commit.committer:
        out(b" Author: " + commit.author + b"\n")
    if dated:
        out(f" Date: {date_text(commit.author_time, commit.author_timezone)}\n")
    parent = commit.parents[0] if commit.parents else None
    changes = _git_patch.commit_changes(git, parent, sha)
    if changes:
        out(_git_patch.shortstat(git, changes) + "\n" + _git_patch.mode_summary(git, changes))


def maybe_edited(git, message, force=False):
    """The message after the editor; as it is where there is none, since nobody could write in one."""
    import _git_record

    if force or _git_record.editor(git):
        return _git_record.edit_message(git, message)
    return message


class Replay:
    def __init__(self, command, argv, call):
        self.command = command
        self.options = core.parse(command, argv, OPTIONS)
        self.call, self.git = call, call.git()
        self.git.need_worktree()
        self.head_name, self.verb, self.failing, self.doing = WORDS[command]
        self.revert = command == "revert"
        self.no_commit = bool(self.options.no_commit)

    def fail(self, text, hint=""):
        return Failure(f"error: {text}\n{hint}fatal: {self.command} failed", 128, "")

    def sequence(self):
        return read_state(self.git, "sequencer/todo")

    def run(self):
        options = self.options
        for name in ("continue", "abort", "skip", "quit"):
            if getattr(options, name):
                return getattr(self, "do_" + name)()
        words = options.all_words()
        if not words:
            raise Failure(f"usage: git {self.command} [--edit] [-n] [-m <parent-number>] [-s] <commit>...", 129, "")
        commits = self.commits(words)
        if has_unmerged(self.git):
            raise self.fail(f"{self.doing} is not possible because you have unmerged files.", UNMERGED_HINT)
        if (
            self.sequence() is not None
            or not self.no_commit
            and read_state(self.git, self.head_name) is not None
            and len(commits) > 1
        ):
            raise self.fail(
                f"a {'revert' if self.revert else 'cherry-pick'} is already in progress",
                f'hint: try "git {self.command} (--continue | --skip | --abort | --quit)"\n',
            )
        if len(commits) > 1:
            write_state(self.git, "sequencer/head", self.git.head() + b"\n")
            self.save_options()
        return self.go(commits)

    def commits(self, words):
        git = self.git
        if not any(".." in word or word.startswith("^") for word in words):
            found = []
            for word in words:
                sha = git.find(word)
                if sha is None:
                    raise (
                        core.unknown_revision(word)
                        if not re.fullmatch(r"[\w./~^@{}-]+", word)
                        else Failure(f"bad revision '{word}'")
                    )
                peeled = git.peel(sha, Commit)
                if peeled is None:
                    raise self.fail(f"{word}: can't {self.command} a {git.store[sha].type_name.decode()}")
                found.append(peeled)
            return found
        from dulwich.walk import Walker

        include, exclude = [], []
        for word in words:
            if ".." in word:
                left, right = word.split("..", 1)
                exclude.append(left or "HEAD")
                include.append(right or "HEAD")
            elif word.startswith("^"):
                exclude.append(word[1:])
            else:
                include.append(word)
        try:
            include, exclude = [git.commit(name).id for name in include], [git.commit(name).id for name in exclude]
        except Failure:
            raise Failure(f"bad revision '{words[0]}'")
        walked = [entry.commit.id for entry in Walker(git.store.object_store, include, exclude=exclude, order="topo")]
        if not walked:
            raise self.fail("empty commit set passed")
        return walked if self.revert else walked[::-1]

    # The list that is worked on.

    def save(self, commits):
        lines = [f"{self.verb} {self.git.abbreviate(sha)} {subject_of(self.git.store[sha])}\n" for sha in commits]
        write_state(self.git, "sequencer/todo", "".join(lines))

    def save_options(self):
        options = self.options
        lines = ["[options]\n"]
        for key, value in (("no-commit", self.no_commit), ("record-origin", options.x), ("signoff", options.signoff)):
            if value:
                lines.append(f"\t{key} = true\n")
        if options.mainline:
            lines.append(f"\tmainline = {options.mainline}\n")
        lines += [f"\tstrategy-option = {word}\n" for word in options.strategy_option]
        if len(lines) > 1:
            write_state(self.git, "sequencer/opts", "".join(lines))

    def load_options(self):
        text = os.fsdecode(read_state(self.git, "sequencer/opts") or b"")
        for key, value in re.findall(r"^\t([a-z-]+) = (.*)$", text, re.M):
            if key == "no-commit":
                self.no_commit = True
            elif key == "record-origin":
                self.options.x = True
            elif key == "signoff":
                self.options.signoff = True
            elif key == "mainline":
                self.options.mainline = value
            elif key == "strategy-option":
                self.options.strategy_option.append(value)

    def go(self, commits):
        several = read_state(self.git, "sequencer/head") is not None
        while commits:
            if several:
                self.save(commits)
            code = self.one(self.git.store[commits[0]])
            if code:
                return code
            commits = commits[1:]
        self.forget_sequence()
        return 0

    def forget_sequence(self):
        shutil.rmtree(state_path(self.git, "sequencer"), ignore_errors=True)

    def parent(self, commit):
        mainline = self.options.mainline
        if len(commit.parents) > 1:
            if mainline is None:
                raise self.fail(f"commit {commit.id.decode()} is a merge but no -m option was given.")
            if not mainline.isdigit() or not 1 <= int(mainline) <= len(commit.parents):
                raise self.fail(f"commit {commit.id.decode()} does not have parent {mainline}")
            return commit.parents[int(mainline) - 1]
        if mainline is not None and mainline != "1":
            raise self.fail(f"commit {commit.id.decode()} does not have parent {mainline}")
        return commit.parents[0] if commit.parents else None

    def message(self, commit, parent):
        if not self.revert:
            text = commit.message
            if self.options.x:
                text = with_trailer(text, b"(cherry picked from commit " + commit.id + b")")
        else:
            subject = subject_of(commit)
            if subject.startswith('Revert "') and not subject.startswith('Revert "Revert "'):
                subject = 'Reapply "' + subject[8:]
            else:
                subject = f'Revert "{subject}"'
            text = f"{subject}\n\nThis reverts commit {commit.id.decode()}"
            if len(commit.parents) > 1:
                text += f", reversing\nchanges made to {parent.decode()}"
            text = os.fsencode(text + ".\n")
        if self.options.signoff:
            text = with_trailer(text, b"Signed-off-by: " + self.git.config.identity("committer")[0])
        return text

    def one(self, commit):
        """Applies one commit; 0 when it is done, 1 where it stopped."""
        import _git_work
        from _git_trees3 import apply_merged, conflict_note

        git, head = self.git, self.git.head()
        parent = self.parent(commit)
        current = index_state(git)
        ours = git.tree(head)
        if not self.no_commit and current != ours:
            raise self.fail(f"your local changes would be overwritten by {self.command}.",
                            "hint: commit your changes or stash them to proceed.\n")  # fmt: skip
        if not self.no_commit:
            git.config.identity("committer")
        favour, follow = favoured(self.options.strategy_option)
        merged = merge_commit(git, commit, parent, current, self.revert, favour, follow)
        message = self.message(commit, parent)
        try:
            apply_merged(git, current, merged)
        except Failure as failure:
            if self.sequence() is None:
                raise Failure(f"{failure.prefix}{failure.text}\nfatal: {self.command} failed", 128, "")
            raise
        out(merged.messages())
        if merged.conflicts:
            write_state(git, "MERGE_MSG", message.rstrip(b"\n") + b"\n\n" + os.fsencode(conflict_note(merged)))
            if not (self.no_commit and not self.revert):
                write_state(git, self.head_name, commit.id + b"\n")
            self.tell_conflict(commit)
            return 1
        if self.no_commit:
            write_state(git, "MERGE_MSG", message)
            if self.revert:
                write_state(git, self.head_name, commit.id + b"\n")
            return 0
        if merged.files == ours and not self.options.keep_redundant_commits:
            original = commit.tree == (git.store[commit.parents[0]].tree if commit.parents else core.EMPTY_TREE)
            if not (self.options.allow_empty and original):
                return self.empty(commit, message)
        if self.options.edit:
            message = _git_work.edit_message(git, message)
        self.commit(commit, message)
        return 0

    def empty(self, commit, message):
        write_state(self.git, "MERGE_MSG", message)
        write_state(self.git, self.head_name, commit.id + b"\n")
        self.call.run(["status"])
        if self.revert:
            return 1
        say(
            "The previous cherry-pick is now empty, possibly due to conflict resolution.\n"
            "If you wish to commit it anyway, use:\n\n    git commit --allow-empty\n\n"
            "Otherwise, please use 'git cherry-pick --skip'\n"
        )
        return 1

    def commit(self, commit, message):
        import _git_work

        git = self.git
        message = _git_work.clean_message(message, False)
        tree = _git_work.write_tree(git)
        if self.revert:
            sha = _git_work.create_commit(git, tree, [git.head()], message)
        else:
            sha = _git_work.create_commit(
                git, tree, [git.head()], message, author=commit.author, author_date=(commit.author_time, commit.author_timezone)
            )
        git.update_ref(b"HEAD", sha, f"{self.command}: {message.decode('utf-8', 'replace').partition(chr(10))[0]}")
        drop_state(git, "MERGE_MSG", self.head_name, "AUTO_MERGE")
        print_commit(git, sha)

    def tell_conflict(self, commit):
        git = self.git
        say(f"error: {self.failing} {git.abbreviate(commit.id)}... {subject_of(commit)}\n")
        if self.no_commit:
            say(
                "hint: after resolving the conflicts, mark the corrected paths\nhint: with 'git add <paths>' or 'git rm "
                "<paths>'\n"
            )
        else:
            say(
                "hint: After resolving the conflicts, mark them with\n"
                'hint: "git add/rm <pathspec>", then run\n'
                f'hint: "git {self.command} --continue".\n'
                f'hint: You can instead skip this commit with "git {self.command} --skip".\n'
                f'hint: To abort and get back to the state before "git {self.command}",\n'
                f'hint: run "git {self.command} --abort".\n'
            )
        say('hint: Disable this message with "git config advice.mergeConflict false"\n')

    # Going on.

    def remaining(self):
        todo = self.sequence()
        if todo is None:
            return []
        shas = [self.git.find(line.split()[1]) for line in os.fsdecode(todo).splitlines() if len(line.split()) > 1]
        return [sha for sha in shas if sha]

    def current(self):
        found = read_state(self.git, self.head_name)
        return found and found.strip()

    def do_continue(self):
        git, current = self.git, self.current()
        if current is None and self.sequence() is None:
            raise self.fail("no cherry-pick or revert in progress")
        self.load_options()
        if current is not None:
            refuse_unmerged_commit(git)
            if index_state(git) == git.tree(git.head()):
                return self.empty(git.store[current], read_state(git, "MERGE_MSG") or b"")
            import _git_work

            message = _git_work.clean_message(maybe_edited(git, read_state(git, "MERGE_MSG") or b""))
            if not message:
                raise Failure("Aborting commit due to empty commit message.", 1, "")
            self.commit(git.store[current], message)
        return self.go(self.remaining()[1:])

    def do_skip(self):
        from _git_trees3 import reset_merge

        git = self.git
        if self.current() is None and self.sequence() is None:
            raise self.fail(f"no {self.command} in progress")
        reset_merge(git, git.tree(git.head()))
        drop_state(git, self.head_name, "MERGE_MSG", "AUTO_MERGE")
        self.load_options()
        return self.go(self.remaining()[1:])

    def do_abort(self):
        from _git_trees3 import reset_merge

        git = self.git
        if self.current() is None and self.sequence() is None:
            raise self.fail("no cherry-pick or revert in progress")
        first = read_state(git, "sequencer/head")
        reset_merge(git, git.tree(first.strip() if first else git.head()))
        if first and first.strip() != git.head():
            git.update_ref(b"HEAD", first.strip(), f"reset: moving to {first.strip().decode()}")
        self.do_quit()

    def do_quit(self):
        drop_state(self.git, self.head_name, "MERGE_MSG", "AUTO_MERGE")
        self.forget_sequence()


def refuse_unmerged_commit(git):
    unmerged = sorted(path for path, entry in git.index().items() if not hasattr(entry, "sha"))
    if unmerged:
        out("".join(f"U\t{core.quoted(path)}\n" for path in unmerged))
        raise Failure(
            f"error: Committing is not possible because you have unmerged files.\n{UNMERGED_HINT}"
            "fatal: Exiting because of an unresolved conflict.",
            128,
            "",
        )


def with_trailer(message, trailer):
    """A message with a line at its end, in the block of such lines where there is one."""
    text = message.rstrip(b"\n")
    last = text.rpartition(b"\n\n")
    lines = last[2].split(b"\n")
    block = last[1] and all(re.match(rb"[A-Za-z0-9-]+: |\(cherry picked from commit ", line) for line in lines)
    if block and lines[-1] == trailer:
        return text + b"\n"
    return text + (b"\n" if block else b"\n\n") + trailer + b"\n"
