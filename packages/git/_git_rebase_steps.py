# The steps of a rebase: its list in .git/rebase-merge, and what each line of it does.
import os
import re
import shutil
import subprocess
import sys

import _git_core as core
from _git_core import Failure, error, out, say
from _git_merge import drop_state, has_unmerged, read_state, state_path, write_state
from _git_replay import index_state, maybe_edited, merge_commit, print_commit, subject_of

SHORT = {"p": "pick", "r": "reword", "e": "edit", "s": "squash", "f": "fixup", "d": "drop", "x": "exec", "b": "break"}
HELP = """#
# Commands:
# p, pick <commit> = use commit
# r, reword <commit> = use commit, but edit the commit message
# e, edit <commit> = use commit, but stop for amending
# s, squash <commit> = use commit, but meld into previous commit
# f, fixup <commit> = like "squash" but keep only the previous
#                    commit's log message
# x, exec <command> = run command (the rest of the line) using shell
# b, break = stop here (continue rebase later with 'git rebase --continue')
# d, drop <commit> = remove commit
#
# These lines can be re-ordered; they are executed from top to bottom.
#
# If you remove a line here THAT COMMIT WILL BE LOST.
#
# However, if you remove everything, the rebase will be aborted.
#
"""
RESOLVE = """hint: Resolve all conflicts manually, mark them as resolved with
hint: "git add/rm <conflicted_files>", then run "git rebase --continue".
hint: You can instead skip this commit: run "git rebase --skip".
hint: To abort and get back to the state before "git rebase", run "git rebase --abort".
hint: Disable this message with "git config advice.mergeConflict false"
"""


class Steps:
    def __init__(self, git, call):
        self.git, self.call = git, call
        self.quiet = self.read("quiet") is not None
        self.favour = (self.read("strategy_favour") or "").strip() or None

    # Its files.

    def read(self, name):
        found = read_state(self.git, "rebase-merge/" + name)
        return None if found is None else os.fsdecode(found)

    def write(self, name, text):
        write_state(self.git, "rebase-merge/" + name, text)

    def drop(self, *names):
        drop_state(self.git, *("rebase-merge/" + name for name in names))

    def forget(self):
        shutil.rmtree(state_path(self.git, "rebase-merge"), ignore_errors=True)

    def todo(self):
        return parsed(self.git, self.read("git-rebase-todo") or "")

    def save_todo(self, lines):
        self.write("git-rebase-todo", "".join(text_of(line) for line in lines))

    # Beginning.

    def begin(self, ref, tip, onto, todo, options, stash):
        self.write("head-name", (os.fsdecode(ref) if ref else "detached HEAD") + "\n")
        self.write("orig-head", tip.decode() + "\n")
        self.write("onto", (onto or core.ZERO).decode() + "\n")
        self.write("interactive", "")
        self.save_todo(todo)
        self.write("git-rebase-todo.backup", "".join(text_of(line) for line in todo))
        self.write("done", "")
        self.write("end", f"{len(todo)}\n")
        if options.quiet:
            self.write("quiet", "")
            self.quiet = True
        if options.strategy_option:
            from _git_merge import favoured

            self.favour = favoured(options.strategy_option)[0]
            self.write("strategy_favour", self.favour or "")
        if stash:
            self.write("autostash", stash.decode() + "\n")

    def edit_list(self, upstream, tip, onto):
        from _git_init import editor
        from _git_work import edit_message  # noqa: F401 (the editor's module is read with it)

        git, todo = self.git, self.todo()
        short = git.abbreviate
        head = f"# Rebase {short(upstream) + '..' if upstream else ''}{short(tip)} onto {short(onto or core.ZERO)} "
        text = "".join(shown_line(git, line) for line in todo) or "noop\n"
        text += "\n" + head + f"({len(todo)} command{'' if len(todo) == 1 else 's'})\n" + HELP
        self.write("git-rebase-todo", text)
        command = editor(git.config, True)
        if command == "vi" and not os.environ.get("VISUAL") and not os.environ.get("EDITOR"):
            self.forget()
            raise error("Terminal is dumb, but EDITOR unset")
        if command != ":":
            sys.stdout.flush()
            done = subprocess.run(["sh", "-c", f'{command} "$@"', command, state_path(git, "rebase-merge/git-rebase-todo")])
            if done.returncode:
                self.forget()
                raise error(f"There was a problem with the editor '{command}'.")
        todo = self.todo()
        if todo:
            self.save_todo(todo)
            self.write("end", f"{len(todo)}\n")
        return todo or text.startswith("noop\n")

    def leave(self, onto, onto_name, tip):
        """Goes to the new base and starts."""
        import _git_work

        git, todo = self.git, self.todo()
        # Commits that stand where they would be put are taken as they are.
        skipped = []
        target = onto
        while (
            todo
            and todo[0][0] == "pick"
            and target is not None
            and git.store[todo[0][1].encode()].parents == [target]
            and not self.forced
        ):
            target = todo[0][1].encode()
            skipped.append(todo.pop(0))
        self.save_todo(todo)
        self.write("done", "".join(text_of(line) for line in skipped))
        write_state(git, "ORIG_HEAD", tip + b"\n")
        head_files = git.tree(git.head())
        try:
            _git_work.move(git, head_files, git.tree(target), action="checkout")
        except Failure:
            self.forget()
            raise
        git.detach(target if target else git.head(), f"rebase (start): checkout {onto_name}")
        return self.go()

    forced = False

    # Going through the list.

    def go(self):
        todo = self.todo()
        while todo:
            line = todo.pop(0)
            self.save_todo(todo)
            self.write("done", (self.read("done") or "") + text_of(line))
            code = self.step(line, todo)
            if code is not None:
                return code
        return self.finish()

    def progress(self):
        count = len((self.read("done") or "").splitlines())
        self.write("msgnum", f"{count}\n")
        if not self.quiet:
            say(f"Rebasing ({count}/{int(self.read('end') or 0)})\r")

    def step(self, line, todo):
        """One line of the list; None where it is done, and otherwise the exit code."""
        git, (action, digits, _) = self.git, line
        if action == "drop":
            self.write("msgnum", f"{len((self.read('done') or '').splitlines())}\n")
            return None
        self.progress()
        if action == "break":
            say("")
            return 0
        if action == "exec":
            say(f"Executing: {digits}\n")
            sys.stdout.flush()
            done = subprocess.run(["sh", "-c", digits], cwd=git.root)
            if done.returncode:
                say(
                    f"warning: execution failed: {digits}\nYou can fix the problem, and then run\n\n  git rebase --continue\n\n\n"
                )
                return 1
            return None
        commit = git.store[digits.encode()]
        self.write("message", commit.message)
        head = git.head()
        if action in ("pick", "edit", "reword") and commit.parents == [head] and action != "reword":
            import _git_work

            _git_work.move(git, git.tree(head), git.tree(commit.id), action="merge")
            git.update_ref(b"HEAD", commit.id, "rebase: fast-forward")
            return self.stop_for_edit(commit) if action == "edit" else None
        return self.pick(action, commit, todo)

    def pick(self, action, commit, todo):
        from _git_trees3 import apply_merged, conflict_note

        git, head = self.git, self.git.head()
        ours = git.tree(head)
        merged = merge_commit(git, commit, commit.parents[0] if commit.parents else None, ours, False, self.favour)
        try:
            apply_merged(git, ours, merged)
        except Failure as failure:
            self.save_todo([[action, commit.id.decode(), subject_of(commit)], *todo])
            done = (self.read("done") or "").splitlines(True)
            self.write("done", "".join(done[:-1]))
            raise Failure(
                f"{failure.prefix}{failure.text}\n{RESOLVE}Could not apply {git.abbreviate(commit.id)}... {subject_of(commit)}",
                1,
                "",
            )
        if merged.conflicts:
            out(merged.messages())
        squashing = action in ("squash", "fixup")
        message = self.squash_message(action, commit) if squashing else commit.message
        if merged.conflicts:
            note = os.fsencode(conflict_note(merged))
            write_state(git, "MERGE_MSG", message.rstrip(b"\n") + b"\n\n" + note)
            self.write("message", message.rstrip(b"\n") + b"\n\n" + note)
            self.write("stopped-sha", commit.id.decode() + "\n")
            self.write("action", action)
            self.author(commit)
            write_state(git, "REBASE_HEAD", commit.id + b"\n")
            name = f"{git.abbreviate(commit.id)}... {subject_of(commit)}"
            say(f"error: could not apply {name}\n{RESOLVE}Could not apply {name}\n")
            return 1
        if merged.files == ours and not squashing:
            original = commit.parents and commit.tree == git.store[commit.parents[0]].tree
            if not original:
                say(f"dropping {commit.id.decode()} {subject_of(commit)} -- patch contents already upstream\n")
                return None
        self.commit(action, commit, message, todo)
        return self.stop_for_edit(git.store[git.head()]) if action == "edit" else None

    def author(self, commit):
        name, _, email = commit.author.partition(b" <")
        quote = lambda text: "'" + text.replace("'", "'\\''") + "'"
        zone = core.zone_text(commit.author_timezone).decode()
        self.write(
            "author-script",
            f"GIT_AUTHOR_NAME={quote(os.fsdecode(name))}\nGIT_AUTHOR_EMAIL={quote(os.fsdecode(email.rstrip(b'>')))}\n"
            f"GIT_AUTHOR_DATE={quote(f'@{commit.author_time} {zone}')}\n",
        )

    def squash_message(self, action, commit):
        """The message of several commits in one; the parts that fixup adds are commented out."""
        git = self.git
        before = self.read("message-squash")
        if before is None:
            first = os.fsdecode(git.store[git.head()].message)
            before = f"# This is a combination of 1 commits.\n# This is the 1st commit message:\n\n{first}"
        count = int(re.search(r"combination of (\d+)", before)[1]) + 1
        before = before.replace(f"combination of {count - 1} commits", f"combination of {count} commits", 1).rstrip("\n")
        text = os.fsdecode(commit.message)
        if action == "fixup":
            commented = "".join(f"# {line}\n" if line else "#\n" for line in text.rstrip("\n").split("\n"))
            part = f"# The commit message #{count} will be skipped:\n\n{commented}"
        else:
            part = f"# This is the commit message #{count}:\n\n{text}"
        whole = f"{before}\n\n{part}"
        self.write("message-squash", whole)
        if action == "squash":
            self.write("squash-seen", "")
        return os.fsencode(whole)

    def commit(self, action, commit, message, todo, continued=False):
        """Makes the commit of the index; squash and fixup put it in place of the last one."""
        import _git_work

        git, head = self.git, self.git.head()
        parents, author = [head] if head else [], commit
        last, seen = True, False
        if action in ("squash", "fixup"):
            author = git.store[head]
            parents = author.parents
            last = not todo or todo[0][0] not in ("squash", "fixup")
            if last:
                seen = self.read("squash-seen") is not None
                if seen:
                    message = maybe_edited(git, message)
                message = _git_work.clean_message(message)
            if last:
                self.drop("message-squash", "squash-seen")
        elif action == "reword":
            message = _git_work.clean_message(maybe_edited(git, message))
        elif continued:
            message = _git_work.clean_message(maybe_edited(git, message))
        sha = _git_work.create_commit(
            git, _git_work.write_tree(git), parents, message, author=author.author,
            author_date=(author.author_time, author.author_timezone),
        )  # fmt: skip
        subject = message.decode("utf-8", "replace").lstrip("\n").partition("\n")[0]
        git.update_ref(b"HEAD", sha, f"rebase ({'continue' if continued else action}): {subject}")
        drop_state(git, "MERGE_MSG", "REBASE_HEAD", "AUTO_MERGE", "CHERRY_PICK_HEAD")
        if continued or action == "reword" or seen:
            print_commit(git, sha, not continued)

    def stop_for_edit(self, commit):
        git = self.git
        self.write("stopped-sha", commit.id.decode() + "\n")
        self.write("amend", git.head().decode() + "\n")
        write_state(git, "REBASE_HEAD", commit.id + b"\n")
        say(
            f"Stopped at {git.abbreviate(commit.id)}...  {subject_of(commit)}\nYou can amend the commit now, with\n\n"
            "  git commit --amend \n\nOnce you are satisfied with your changes, run\n\n  git rebase --continue\n"
        )
        return 0

    def finish(self):
        git, head = self.git, self.git.head()
        name, onto = (self.read("head-name") or "").strip(), (self.read("onto") or "").strip()
        stash = self.read("autostash")
        if name.startswith("refs/"):
            ref = os.fsencode(name)
            before = git.refs[ref] if ref in git.refs else None
            git.refs[ref] = head
            if before != head:
                git.log(ref, before, head, f"rebase (finish): {name} onto {onto}")
            git.attach(ref, f"rebase (finish): returning to {name}")
        self.forget()
        drop_state(git, "REBASE_HEAD", "MERGE_MSG", "AUTO_MERGE")
        if stash:
            from _git_rebase import finish_stash

            finish_stash(git, stash.strip().encode(), self.call)
        if not self.quiet:
            say(f"Successfully rebased and updated {name if name.startswith('refs/') else 'detached HEAD'}.\n")
        return 0

    # Going on after a stop.

    def do_continue(self):
        git = self.git
        if has_unmerged(git):
            unmerged = sorted(path for path, entry in git.index().items() if not hasattr(entry, "sha"))
            out("".join(f"{core.quoted(path)}: needs merge\n" for path in unmerged))
            out("You must edit all merge conflicts and then\nmark them as resolved using git add\n")
            return 1
        import _git_work

        changes = _git_work.files_changed(git, untracked="no")
        if changes.unstaged:
            raise Failure("error: cannot rebase: You have unstaged changes.\nerror: Please commit or stash them.", 1, "")
        stopped, amended = self.read("stopped-sha"), self.read("amend")
        if stopped is not None and index_state(git) != git.tree(git.head()):
            commit = git.store[stopped.strip().encode()]
            if amended is not None:
                last = git.store[git.head()]
                sha = _git_work.create_commit(
                    git, _git_work.write_tree(git), last.parents, last.message, author=last.author,
                    author_date=(last.author_time, last.author_timezone),
                )  # fmt: skip
                git.update_ref(b"HEAD", sha, f"rebase (continue): {subject_of(last)}")
                print_commit(git, sha)
            else:
                message = read_state(git, "MERGE_MSG") or commit.message
                action = self.read("action") or "pick"
                self.commit(action if action in ("squash", "fixup") else "pick", commit, message, self.todo(), True)
        self.drop("stopped-sha", "amend", "author-script", "action")
        drop_state(git, "REBASE_HEAD", "MERGE_MSG", "CHERRY_PICK_HEAD")
        return self.go()

    def do_skip(self):
        from _git_trees3 import reset_merge

        git = self.git
        reset_merge(git, git.tree(git.head()))
        self.drop("stopped-sha", "amend", "author-script", "action")
        drop_state(git, "REBASE_HEAD", "MERGE_MSG", "CHERRY_PICK_HEAD")
        return self.go()

    def do_abort(self):
        import _git_work

        git = self.git
        tip = (self.read("orig-head") or "").strip().encode()
        name, stash = (self.read("head-name") or "").strip(), self.read("autostash")
        _git_work.move(git, index_state(git), git.tree(tip), force=True)
        message = f"rebase (abort): returning to {name if name.startswith('refs/') else tip.decode()}"
        if name.startswith("refs/"):
            git.attach(os.fsencode(name), message)
        else:
            git.detach(tip, message)
        self.forget()
        drop_state(git, "REBASE_HEAD", "MERGE_MSG", "AUTO_MERGE", "CHERRY_PICK_HEAD")
        if stash:
            from _git_rebase import finish_stash

            finish_stash(git, stash.strip().encode(), self.call)

    def do_quit(self):
        self.forget()
        drop_state(self.git, "REBASE_HEAD", "MERGE_MSG")

    def do_edit_todo(self):
        from _git_record import edit_file

        edit_file(self.git, state_path(self.git, "rebase-merge/git-rebase-todo"))
        lines = self.todo()
        self.save_todo(lines)
        self.write("end", f"{len(lines) + len((self.read('done') or '').splitlines())}\n")

    def do_show_current_patch(self):
        return self.call.run(["show", "REBASE_HEAD", "--"])


def text_of(line):
    action, digits, rest = line
    return f"{action} {digits}{' ' + rest if rest else ''}".rstrip() + "\n"


def shown_line(git, line):
    action, digits, rest = line
    if action in ("exec", "break"):
        return text_of(line)
    return f"{action} {git.abbreviate(digits)} {rest}\n"


def parsed(git, text):
    """The lines of a list: what to do, whole digits (or a command), and the rest."""
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#") or line == "noop":
            continue
        action, _, rest = line.partition(" ")
        action = SHORT.get(action, action)
        if action not in SHORT.values():
            raise error(f"invalid command '{action}'\nerror: invalid line {number}: {line}")
        if action in ("exec", "break"):
            lines.append([action, rest.strip(), ""])
            continue
        name, _, subject = rest.strip().partition(" ")
        sha = git.find(name)
        if sha is None:
            raise error(f"could not parse '{name}'\nerror: invalid line {number}: {line}")
        lines.append([action, git.commit(sha).id.decode(), subject.strip()])
    if lines and lines[0][0] in ("squash", "fixup") and not os.path.getsize(state_path(git, "rebase-merge/done")):
        raise error(f"cannot '{lines[0][0]}' without a previous commit")
    return lines
