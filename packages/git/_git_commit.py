# git commit.
import os
import re
import sys
import time

import _git_core as core
from _git_core import Failure, out, say
from _git_record import clean_message, create_commit, edit_file, run_hook, write_tree

COMMIT = """
-q --quiet
-v --verbose
-F --file =
--author =
--date =
-m --message =*
-c --reedit-message =
-C --reuse-message =
--fixup =
--squash =
--reset-author
--trailer =*
-s --signoff
-e --edit
--cleanup =
--status
-S --gpg-sign [=]
-a --all
-i --include
-o --only
-n --no-verify
--verify
--dry-run
--short
--branch
--porcelain
--long
-z --null
--amend
--allow-empty
--allow-empty-message
--no-post-rewrite
-u --untracked-files [=]
"""

CLEANUPS = ("default", "strip", "whitespace", "verbatim", "scissors")
ENDING = ("CHERRY_PICK_HEAD", "REVERT_HEAD", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "SQUASH_MSG", "AUTO_MERGE")
SCISSORS = b"# ------------------------ >8 ------------------------\n"


def read_state(git, name):
    try:
        with open(os.path.join(git.gitdir, name), "rb") as file:
            return file.read()
    except OSError:
        return None


def finish_operation(git):
    """Removes what a merge, a picked or a reverted commit left to be committed."""
    for name in ENDING:
        try:
            os.unlink(os.path.join(git.gitdir, name))
        except OSError:
            pass


def subject(message):
    """The first paragraph of a message in one line, in bytes."""
    lines = message.lstrip(b"\n").split(b"\n\n")[0].strip(b"\n").split(b"\n")
    return b" ".join(line.rstrip() for line in lines)


def date_text(when, zone):
    return time.strftime("%a %b %-d %H:%M:%S %Y ", time.gmtime(when + zone)) + core.zone_text(zone).decode()


class Making:
    """A commit on its way."""

    def __init__(self, git, options):
        self.git, self.options = git, options
        self.head = git.head()
        self.paths = options.all_words()
        self.amended = None
        self.merging, self.picking = read_state(git, "MERGE_HEAD"), read_state(git, "CHERRY_PICK_HEAD")

    def check(self):
        options, git = self.options, self.git
        if options.amend:
            if self.head is None:
                raise Failure("You have nothing to amend.")
            for there, what in ((self.merging, "merge"), (self.picking, "cherry-pick")):
                if there is not None and not os.path.isdir(os.path.join(git.gitdir, "rebase-merge")):
                    raise Failure(f"You are in the middle of a {what} -- cannot amend.")
            self.amended = git.commit(self.head)
        given = [name for name, value in (("-m", options.message), ("-C", options.reuse_message), ("-c", options.reedit_message),
                                          ("-F", options.file), ("--fixup", options.fixup)) if value]  # fmt: skip
        if len(given) > 1 and given != ["-m", "--fixup"]:
            first, second = sorted(given[:2], key=lambda name: ("-m", "-C", "-c", "-F", "--fixup").index(name))
            raise Failure(f"options '{first}' and '{second}' cannot be used together")
        if options.all and self.paths:
            raise Failure(f"paths '{self.paths[0]} ...' with -a does not make sense")
        if options.include and options.only:
            raise Failure("options '-i/--include' and '-o/--only' cannot be used together")
        if (options.include or options.only) and not self.paths and not (options.only and options.amend):
            raise Failure("No paths with --include/--only does not make sense.")
        if options.reset_author and not (options.amend or options.reuse_message or options.reedit_message):
            raise Failure("--reset-author can be used only with -C, -c or --amend.")
        if options.reset_author and options.author:
            raise Failure("options '--reset-author' and '--author' cannot be used together")
        if options.cleanup and options.cleanup not in CLEANUPS:
            raise Failure(f"Invalid cleanup mode {options.cleanup}")
        if options.gpg_sign:
            raise core.error("gpg failed to sign the data", 128)

    # The tree of the commit.

    def stage(self):
        """The index whose tree is committed, and what has to be written as the index afterwards (or None)."""
        from _git_add import Adding
        from _git_paths import Pathspec
        from _git_work import is_conflict

        git, options = self.git, self.options
        index = git.open_index()
        unmerged = sorted(path for path, entry in index.items() if is_conflict(entry))
        if self.paths and not options.include and not options.all:
            for there, what in ((self.merging, "a merge"), (self.picking, "a cherry-pick")):
                if there is not None:
                    raise Failure(f"cannot do a partial commit during {what}.")
        if options.all or self.paths:
            spec = Pathspec(git, self.paths) if self.paths else None
            if spec is not None:
                files = git.tree(self.head)
                missing = spec.unmatched({*index, *files})
                if missing:
                    from _git_restore import missing as no_such

                    raise no_such(missing)
            Adding(git, index).update(spec)
            if spec is not None and not options.include:
                return self.partial(index, spec, files), index
        elif unmerged:
            out("".join(f"U\t{os.fsdecode(path)}\n" for path in unmerged))
            text = "error: Committing is not possible because you have unmerged files.\n"
            if git.config.truth("advice.resolveConflict", True):
                text += "hint: Fix them up in the work tree, and then use 'git add/rm <file>'\n"
                text += "hint: as appropriate to mark resolution and make a commit.\n"
            raise Failure(text + "fatal: Exiting because of an unresolved conflict.", 128, "")
        return index, index if options.all or self.paths else None

    def partial(self, index, spec, files):
        """An index of HEAD's files with those that are asked for as they are in `index`."""
        from dulwich.index import Index, IndexEntry

        from _git_work import is_conflict

        only = Index(index.path, read=False)
        for path, (mode, sha) in files.items():
            entry = index[path] if path in index else None
            if spec.match(path):
                if entry is not None:
                    only[path] = entry
            elif entry is not None and not is_conflict(entry) and (entry.mode, entry.sha) == (mode, sha):
                only[path] = entry
            else:
                only[path] = IndexEntry((0, 0), (0, 0), 0, 0, mode, 0, 0, 0, sha)
        for path, entry in index.items():
            if path not in files and spec.match(path):
                only[path] = entry
        return only

    # The message.

    def source(self):
        """The message to begin with, where it is from, and whether the editor is to work on it."""
        git, options = self.git, self.options
        if options.message and not options.fixup:
            text = b"\n".join(os.fsencode(part if part.endswith("\n") else part + "\n") for part in options.message)
            return text, "message", False
        if options.file is not None:
            try:
                if options.file == "-":
                    return sys.stdin.buffer.read(), "message", False
                with open(options.file, "rb") as file:
                    return file.read(), "message", False
            except OSError as why:
                raise Failure(f"could not read log file '{options.file}': {why.strerror}")
        for name, edit in ((options.reuse_message, False), (options.reedit_message, True)):
            if name:
                return self.looked_up(name).message, "commit", edit
        for name, word in ((options.fixup, "fixup"), (options.squash, "squash")):
            if name:
                kind, colon, rest = name.partition(":")
                if word == "fixup" and colon and kind in ("amend", "reword"):
                    raise Failure(f"unknown option: --fixup={name}")
                text = word.encode() + b"! " + subject(self.looked_up(name).message) + b"\n"
                more = [os.fsencode(part) + b"\n" for part in options.message]
                return text + b"".join(b"\n" + part for part in more), "message", word == "squash" and not more
        if self.amended is not None:
            return self.amended.message, "commit", True
        for name, kind in (("MERGE_MSG", "merge"), ("SQUASH_MSG", "squash")):
            text = read_state(git, name)
            if text is not None:
                return text, kind, True
        return b"", "", True

    def looked_up(self, name):
        found = self.git.find(name)
        if found is None:
            raise Failure(f"could not lookup commit {name}")
        return self.git.commit(found)

    def trailers(self, text):
        """The message with the lines that -s and --trailer add."""
        added = [re.sub(r"^([^:=]+?)\s*[=:]\s*", r"\1: ", trailer) for trailer in self.options.trailer]
        lines = [os.fsencode(line) for line in added]
        if self.options.signoff:
            lines.insert(0, b"Signed-off-by: " + self.git.config.identity("committer")[0])
        if not lines:
            return text
        body = text.rstrip(b"\n")
        last = body.split(b"\n\n")[-1].split(b"\n") if b"\n\n" in body else []
        block = bool(last) and all(re.match(rb"[A-Za-z0-9-]+: |\s", line) for line in last)
        for line in lines:
            if line.startswith(b"Signed-off-by:") and block and last[-1] == line:
                continue
            body += (b"\n" if block else b"\n\n") + line
            block, last = True, last + [line]
        return body + b"\n"

    def template(self, text, index):
        """The text that the editor gets."""
        git, cleanup = self.git, self.options.cleanup
        lines = [text if not text or text.endswith(b"\n") else text + b"\n", b"\n"]
        comment = lambda line: b"#" + (b" " if line and line[:1] != b"\t" else b"") + line + b"\n"
        note = lambda words: lines.extend(map(comment, words))
        if self.options.status is not False and git.config.truth("commit.status", True):
            if self.merging is not None or self.picking is not None:
                what, ref = ("merge", "MERGE_HEAD") if self.merging is not None else ("cherry-pick", "CHERRY_PICK_HEAD")
                note([b"", b"It looks like you may be committing a %s." % what.encode(), b"If this is not correct, please run"])
                note([b"\tgit update-ref -d %s" % ref.encode(), b"and try again.", b""])
                lines.append(b"\n")
            ignored = cleanup in (None, "default", "strip")
            end = b"will be ignored" if ignored else b"will be kept; you may remove them yourself if you want to"
            if ignored:
                note([b"Please enter the commit message for your changes. Lines starting"])
                note([b"with '#' " + end + b", and an empty message aborts the commit."])
            else:
                note([b"Please enter the commit message for your changes. Lines starting", b"with '#' " + end + b"."])
                note([b"An empty message aborts the commit."])
            author, when, zone = self.author
            shown = []
            if author != self.committer[0]:
                shown.append(b"Author:    " + author)
            if self.interesting:
                shown.append(b"Date:      " + date_text(when, zone).encode())
            if shown:
                note([b"", *shown])
            status = "".join(self.view(index).long("normal", hints=False, nowarn=True))
            note([b"", *os.fsencode(status).rstrip(b"\n").split(b"\n"), b""])
        if self.options.verbose:
            lines.append(SCISSORS + b"# Do not modify or remove the line above.\n# Everything below it will be ignored.\n")
            from _git_patch import patch

            text = patch(git, self.changes(index))
            lines.append(os.fsencode(text) if isinstance(text, str) else text)
        return b"".join(lines)

    def view(self, index):
        from _git_status import View, untracked_kind
        from _git_work import files_changed

        kind = untracked_kind(self.options.untracked_files, self.git.config)
        self.untracked = kind
        base = self.base()
        changes = files_changed(self.git, untracked=kind, head=self.git.tree(base), index=index)
        return View(self.git, changes, True, bool(self.options.amend), base is None, True)

    def base(self):
        """The commit that the new commit is compared with: HEAD, or the parent of the commit that is amended."""
        if self.amended is not None:
            return self.amended.parents[0] if self.amended.parents else None
        return self.head

    def changes(self, index):
        from _git_changes import tree_changes

        old = self.git.tree(self.base())
        entries = [(path, entry) for path, entry in index.items() if hasattr(entry, "sha") and not entry.extended_flags & 0x2000]
        new = {path: (entry.mode, entry.sha) for path, entry in entries}
        return tree_changes(self.git, old, new)

    # Who and when.

    def people(self):
        git, options = self.git, self.options
        self.committer = git.config.identity("committer")
        kept = None
        if not options.reset_author:
            name = options.reuse_message or options.reedit_message
            kept = self.looked_up(name) if name else self.amended
            if kept is None and self.picking is not None:
                kept = git.commit(self.picking.strip())
        if kept is not None:
            author, when, zone = kept.author, kept.author_time, kept.author_timezone
        else:
            author, (when, zone) = None, core.parse_date(os.environ.get("GIT_AUTHOR_DATE"))
            if not options.author:
                author = git.config.identity("author")[0]
        if options.author:
            author = self.named_author(options.author)
        if options.date:
            try:
                when, zone = core.parse_date(options.date)
            except Failure:
                raise Failure(f"invalid date format: {options.date}") from None
        self.author, self.interesting = (author, when, zone), kept is not None or bool(options.date)
        if kept is not None and self.picking is not None and not (options.reuse_message or options.reedit_message):
            self.interesting = True

    def named_author(self, text):
        found = re.fullmatch(r"\s*(.*?)\s*<([^<>]*)>\s*", text, re.S)
        if found:
            return os.fsencode(f"{found[1]} <{found[2]}>")
        if self.head is not None:
            for entry in self.git.store.get_walker([self.head]):
                if re.search(os.fsencode(re.escape(text)), entry.commit.author, re.I):
                    return entry.commit.author
        raise Failure(f"--author '{text}' is not 'Name <email>' and matches no existing author")

    # The whole.

    def run(self):
        git, options = self.git, self.options
        self.check()
        index, write = self.stage()
        self.people()
        if options.dry_run or options.short or options.porcelain or options.long or options.null:
            return self.show_only(index)
        if not options.no_verify:
            if write is not None and write is index:
                self.save(write)
            code = run_hook(git, "pre-commit")
            if code:
                return 1
            if code is not None and (write is None or write is index):
                index = git.open_index()  # The hook may have added something.
                write = None
        text, kind, edit = self.source()
        edit = options.edit if options.edit is not None else edit
        tree, base = write_tree(git, index), self.base()
        same = tree == (git.commit(base).tree if base else core.EMPTY_TREE)
        merge = self.merging is not None or self.amended is not None and len(self.amended.parents) > 1
        if same and not options.allow_empty and not merge:
            return self.nothing(index, write)
        text = self.trailers(clean_message(text, False) if options.signoff or options.trailer else text)
        path = os.path.join(git.gitdir, "COMMIT_EDITMSG")
        with open(path, "wb") as file:
            file.write(self.template(text, index) if edit else text)
        shown = ".git/COMMIT_EDITMSG" if git.gitdir == os.path.join(git.root, ".git") else path
        if run_hook(git, "prepare-commit-msg", shown, *([kind] if kind else [])):
            return 1
        if edit:
            try:
                edit_file(git, path)
            except Failure as failure:
                raise core.error(f"{failure.text}\nPlease supply the message using either -m or -F option.") from None
        if not options.no_verify:
            if run_hook(git, "commit-msg", shown):
                return 1
        with open(path, "rb") as file:
            text = file.read()
        if options.verbose and SCISSORS in text:
            text = text[: text.index(SCISSORS)]
        cleanup = options.cleanup or git.config.get("commit.cleanup") or "default"
        if cleanup == "scissors" and edit and SCISSORS in text:
            text = text[: text.index(SCISSORS)]
        if cleanup != "verbatim":
            text = clean_message(text, cleanup == "strip" or cleanup == "default" and bool(edit))
        if not text.strip() and not options.allow_empty_message:
            say("Aborting commit due to empty commit message.\n")
            return 1
        if write is not None:
            self.save(write)
        return self.record(tree, text, index)

    def save(self, index):
        from _git_work import save_index

        save_index(self.git, index)

    def record(self, tree, text, index):
        git, options = self.git, self.options
        if self.amended is not None:
            parents, what = list(self.amended.parents), "commit (amend)"
        else:
            parents, what = [self.head] if self.head else [], "commit"
            if not parents:
                what = "commit (initial)"
            if self.merging is not None:
                parents += [sha for sha in self.merging.split() if sha not in parents]
                what = "commit (merge)"
            elif self.picking is not None:
                what = "commit (cherry-pick)"
        author, when, zone = self.author
        sha = create_commit(git, tree, parents, text, author, (when, zone))
        git.update_ref(b"HEAD", sha, (f"{what}: ".encode() + subject(text)).rstrip(), self.head)
        finish_operation(git)
        run_hook(git, "post-commit")
        if not options.quiet:
            self.summary(sha, parents, text, index)
        return 0

    def summary(self, sha, parents, text, index):
        git = self.git
        line = os.fsencode(git.branch() or "detached HEAD") + (b" (root-commit)" if self.head is None else b"")
        out(b"[" + line + b" " + git.abbreviate(sha).encode() + b"] " + subject(text) + b"\n")
        author, when, zone = self.author
        if author != self.committer[0]:
            out(b" Author: " + author + b"\n")
        if self.interesting:
            out(f" Date: {date_text(when, zone)}\n")
        if len(parents) > 1:
            return
        from _git_patch import mode_summary, shortstat

        changes = self.changes(index)
        for part in (shortstat(git, changes), mode_summary(git, changes)):
            if part:
                out(part if part.endswith("\n") else part + "\n")

    def show_only(self, index):
        git, options = self.git, self.options
        view = self.view(index)
        if options.short or options.porcelain or options.null:
            view.short(options.branch, options.null, not options.porcelain and not options.null)
        else:
            out("".join(view.long(self.untracked, git.config.truth("advice.statusHints", True))))
        return 0 if view.committable() else 1

    def nothing(self, index, write):
        git = self.git
        view = self.view(index)
        if self.amended is not None:
            say(
                "You asked to amend the most recent commit, but doing so would make\nit empty. You can repeat your command with "
                '--allow-empty, or you can\nremove the commit entirely with "git reset HEAD^".\n'
            )
        elif self.picking is not None:
            say(
                "The previous cherry-pick is now empty, possibly due to conflict resolution.\n"
                "If you wish to commit it anyway, use:\n\n    git commit --allow-empty\n\n"
                "Otherwise, please use 'git cherry-pick --skip'\n"
            )
        out("".join(view.long(self.untracked, git.config.truth("advice.statusHints", True))))
        return 1


def cmd_commit(argv, call):
    git = call.git()
    git.need_worktree()
    return Making(git, core.parse("commit", argv, COMMIT)).run()
