# `git merge` and `git merge-base`; cherry-pick, revert, rebase and apply stand in modules of their own and are looked up
# from here.
import os

import _git_core as core
from _git_core import Failure, error, out, say
from _git_merge_head import Head, default_message
from dulwich.objects import Commit


def elsewhere(module, name):
    def command(argv, call):
        import importlib

        return getattr(importlib.import_module(module), name)(argv, call)

    return command


cmd_cherry_pick = elsewhere("_git_replay", "cmd_cherry_pick")
cmd_revert = elsewhere("_git_replay", "cmd_revert")
cmd_rebase = elsewhere("_git_rebase", "cmd_rebase")
cmd_apply = elsewhere("_git_apply", "cmd_apply")

UNMERGED_HINT = """hint: Fix them up in the work tree, and then use 'git add/rm <file>'
hint: as appropriate to mark resolution and make a commit.
"""
DIVERGED = """hint: Diverging branches can't be fast-forwarded, you need to either:
hint:
hint: \tgit merge --no-ff
hint:
hint: or:
hint:
hint: \tgit rebase
hint:
hint: Disable this message with "git config advice.diverging false"
"""


# Files of the git directory that say what is going on.


def state_path(git, name):
    return os.path.join(git.gitdir, name)


def read_state(git, name):
    """The bytes of such a file, or None."""
    try:
        with open(state_path(git, name), "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_state(git, name, data):
    path = state_path(git, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(os.fsencode(data) if isinstance(data, str) else data)


def drop_state(git, *names):
    for name in names:
        try:
            os.unlink(state_path(git, name))
        except OSError:
            pass


def has_unmerged(git):
    return any(not hasattr(entry, "sha") for entry in git.index().values())


# merge-base


def cmd_merge_base(argv, call):
    options = core.parse("merge-base", argv, "-a --all\n--is-ancestor\n--octopus\n--independent")
    git, words = call.git(), options.all_words()
    commits = []
    for word in words:
        sha = git.find(word)
        if sha is None:
            raise Failure(f"Not a valid object name {word}")
        peeled = git.peel(sha, Commit)
        if peeled is None:
            raise Failure(f"Not a valid commit name {word}")
        commits.append(peeled)
    if options.is_ancestor:
        if len(commits) != 2:
            raise Failure("--is-ancestor takes exactly two commits")
        return 0 if git.is_ancestor(*commits) else 1
    if options.independent:
        unique = list(dict.fromkeys(commits))
        for sha in unique:
            if not any(other != sha and git.is_ancestor(sha, other) for other in unique):
                out(sha + b"\n")
        return 0
    if len(commits) < 2:
        raise Failure("usage: git merge-base [-a | --all] <commit> <commit>...", 129, "")
    from dulwich.graph import find_merge_base, find_octopus_base

    if options.octopus:
        bases = find_octopus_base(git.store, commits)
    else:
        bases = [commits[0]] if commits[0] in commits[1:] else find_merge_base(git.store, commits)
    for sha in bases if options.all else bases[:1]:
        out(sha + b"\n")
    return 0 if bases else 1


# merge

OPTIONS = """
-n
--stat
--summary
--squash
--commit
-e --edit
--ff
--ff-only
--verify
-s --strategy =*
-X --strategy-option =*
-m --message =*
-F --file =
-v --verbose
-q --quiet
--abort
--quit
--continue
--allow-unrelated-histories
--progress
--signoff
--into-name =
--rerere-autoupdate
--no-rerere-autoupdate
"""


def favoured(words):
    """Reads the arguments of `-X`."""
    favour = None
    for word in words:
        if word in ("ours", "theirs"):
            favour = word
        elif word not in ("no-renames", "find-renames"):
            raise Failure(f"unknown strategy option: -X{word}")
    return favour, "no-renames" not in words


def cmd_merge(argv, call):
    options = core.parse("merge", argv, OPTIONS)
    git = call.git()
    git.need_worktree()
    words = options.all_words()
    if options.abort:
        return abort(git)
    if options.quit:
        drop_state(git, "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE")
        return 0
    if getattr(options, "continue"):
        if read_state(git, "MERGE_HEAD") is None:
            raise Failure("There is no merge in progress (MERGE_HEAD missing).")
        return call.run(["commit"])
    return Merge(git, options, call).run(words)


def abort(git):
    if read_state(git, "MERGE_HEAD") is None:
        raise Failure("There is no merge to abort (MERGE_HEAD missing).")
    from _git_trees3 import reset_merge

    reset_merge(git, git.tree(git.head()))
    drop_state(git, "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "AUTO_MERGE")


def refuse_unfinished(git):
    if has_unmerged(git):
        raise Failure(
            f"error: Merging is not possible because you have unmerged files.\n{UNMERGED_HINT}"
            "fatal: Exiting because of an unresolved conflict.",
            128,
            "",
        )
    if read_state(git, "MERGE_HEAD") is not None:
        raise Failure("You have not concluded your merge (MERGE_HEAD exists).\nPlease, commit your changes before you merge.")
    if read_state(git, "CHERRY_PICK_HEAD") is not None:
        raise Failure(
            "You have not concluded your cherry-pick (CHERRY_PICK_HEAD exists).\nPlease, commit your changes before you merge."
        )


def print_summary(git, old_files, new_files):
    import _git_patch

    changes = _git_patch.tree_changes(git, old_files, new_files)
    _git_patch.print_stat(git, changes)
    out(_git_patch.mode_summary(git, changes))


class Merge:
    def __init__(self, git, options, call, reflog=None):
        self.git, self.options, self.call = git, options, call
        self.quiet = options.quiet
        self.stat = (
            not options.quiet and not (options.n or options.stat is False) and git.config.get("merge.stat") not in ("false",)
        )
        self.no_ff, self.ff_only = options.ff is False, bool(options.ff_only)
        setting = git.config.get("merge.ff")
        if options.ff is None and not self.ff_only and setting is not None:
            self.no_ff, self.ff_only = core.truth(setting) is False, setting == "only"
        self.reflog = reflog
        # Options that take others back come later in the line; `--no-commit` makes `commit` False.
        self.commit = options.commit is not False

    def say(self, text):
        if not self.quiet:
            out(text)

    def run(self, words):
        git, options = self.git, self.options
        refuse_unfinished(git)
        if options.squash and self.no_ff:
            raise Failure("options '--squash' and '--no-ff.' cannot be used together")
        strategies = options.strategy
        for name in strategies:
            if name not in ("ort", "recursive", "ours", "resolve", "octopus"):
                raise Failure(
                    f"Could not find merge strategy '{name}'.\nAvailable strategies are: octopus ours recursive resolve ort.",
                    1,
                    "",
                )
        if not words:
            branch = git.branch()
            upstream = branch and git.upstream(branch)
            if not upstream:
                raise Failure("No remote for the current branch." if branch else "No current branch.")
            words = [os.fsdecode(upstream)]
        heads = [Head(git, name) for name in words]
        return self.merge(heads, words)

    def merge(self, heads, words, message=None):
        git, head = self.git, self.git.head()
        self.heads, self.named = heads, " ".join(words)
        self.message = message
        if head is None:
            if len(heads) > 1:
                raise Failure("Can merge only exactly one commit into empty head")
            import _git_work

            _git_work.move(git, {}, git.tree(heads[0].sha), action="merge")
            git.update_ref(git.head_ref(), heads[0].sha, "initial pull")
            return 0
        waiting = [one for one in heads if not git.is_ancestor(one.sha, head)]
        if not waiting:
            self.say("Already up to date.\n" if not self.options.squash else "Already up to date. (nothing to squash)\n")
            return 0
        if len(waiting) > 1:
            self.heads = waiting
            return self.octopus(waiting, head)
        one = waiting[0]
        self.heads = [one]
        bases = git.merge_bases(head, one.sha)
        strategies = self.options.strategy
        forward = bases == [head] and not self.no_ff and strategies != ["ours"]
        if self.reflog is None:
            self.reflog = f"merge {self.named}"
        if forward:
            return self.fast_forward(one, head)
        if self.ff_only:
            raise Failure(DIVERGED + "fatal: Not possible to fast-forward, aborting.", 128, "")
        if not bases and not self.options.allow_unrelated_histories:
            raise Failure("refusing to merge unrelated histories")
        git.config.identity("committer")
        return self.three_way(one, head, bases)

    def fast_forward(self, one, head):
        import _git_work

        git = self.git
        self.say(f"Updating {git.abbreviate(head)}..{git.abbreviate(one.sha)}\n")
        old, new = git.tree(head), git.tree(one.sha)
        _git_work.move(git, old, new, action="merge")
        write_state(git, "ORIG_HEAD", head + b"\n")
        self.say("Fast-forward\n")
        if self.options.squash:
            self.squashed(head)
            self.say("Squash commit -- not updating HEAD\n")
        else:
            git.update_ref(b"HEAD", one.sha, f"{self.reflog}: Fast-forward")
        if self.stat:
            print_summary(git, old, new)
        if not self.options.squash:
            _git_work.run_hook(git, "post-merge", "0")
        return 0

    def full_message(self):
        options = self.options
        if options.message:
            text = "\n\n".join(part.rstrip("\n") for part in options.message) + "\n"
        elif options.file:
            with open(options.file, encoding="utf-8", errors="surrogateescape") as file:
                text = file.read()
        else:
            text = self.message or default_message(self.git, self.heads, options.into_name)
        if options.signoff:
            name, _, _ = self.git.config.identity("committer")
            text = text.rstrip("\n") + f"\n\nSigned-off-by: {os.fsdecode(name)}\n"
        return os.fsencode(text)

    def three_way(self, one, head, bases):
        from _git_trees3 import Labels, apply_merged, common_files, merge_trees

        git = self.git
        ours = git.tree(head)
        write_state(git, "ORIG_HEAD", head + b"\n")
        strategy = "ort"
        if self.options.strategy[:1] == ["ours"]:
            strategy = "ours"
            self.check_index(ours)
            return self.conclude(one, head, ours, ours, [head, one.sha], strategy)
        favour, follow = favoured(self.options.strategy_option)
        self.check_index(ours)
        base, label = common_files(git, head, one.sha, bases)
        merged = merge_trees(git, base, ours, git.tree(one.sha), Labels("HEAD", one.name, label), favour, 0, follow)
        try:
            apply_merged(git, ours, merged)
        except Failure as failure:
            raise Failure(failure.text + "\nMerge with strategy ort failed.", 2, failure.prefix) from None
        out(merged.messages())
        if merged.conflicts:
            return self.stopped(merged, one)
        return self.conclude(one, head, ours, merged.files, [head, one.sha], strategy)

    def check_index(self, ours):
        """Refuses a merge that would lose staged changes."""
        import _git_work

        staged = sorted(_git_work.staged_changes(self.git.index(), ours))
        if staged:
            listed = "".join(f"  {os.fsdecode(path)}\n" for path in staged)
            raise Failure(
                f"error: Your local changes to the following files would be overwritten by merge:\n{listed}"
                "Merge with strategy ort failed.",
                2,
                "",
            )

    def pending(self, heads, note=""):
        git = self.git
        message = self.full_message()
        if note:
            message = message.rstrip(b"\n") + b"\n\n" + os.fsencode(note)
        if self.options.squash:
            self.squashed(git.head())
            if note:
                write_state(git, "MERGE_MSG", os.fsencode("\n" + note))
            return
        write_state(git, "MERGE_HEAD", b"".join(one.sha + b"\n" for one in heads))
        write_state(git, "MERGE_MODE", "no-ff" if self.no_ff else "")
        write_state(git, "MERGE_MSG", message)

    def stopped(self, merged, one):
        from _git_trees3 import conflict_note

        self.pending([one], conflict_note(merged))
        if self.options.squash:
            self.say("Squash commit -- not updating HEAD\n")
        out("Automatic merge failed; fix conflicts and then commit the result.\n")
        return 1

    def conclude(self, one, head, ours, files, parents, strategy):
        import _git_work

        git = self.git
        if self.options.squash:
            self.squashed(head)
            self.say("Squash commit -- not updating HEAD\n")
            say("Automatic merge went well; stopped before committing as requested\n")
            return 0
        if not self.commit:
            self.pending(self.heads)
            say("Automatic merge went well; stopped before committing as requested\n")
            return 0
        message = self.full_message()
        if _git_work.run_hook(git, "pre-merge-commit"):
            self.pending(self.heads)
            return 1
        if self.options.edit:
            self.pending(self.heads)
            message = _git_work.clean_message(_git_work.edit_message(git, message, "MERGE_MSG"))
            if not message:
                raise error("Empty commit message.\nNot committing merge; use 'git commit' to complete the merge.")
        else:
            message = _git_work.clean_message(message, False)
        sha = _git_work.create_commit(git, _git_work.write_tree(git), parents, message)
        git.update_ref(b"HEAD", sha, f"{self.reflog}: Merge made by the '{strategy}' strategy.")
        drop_state(git, "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE")
        self.say(f"Merge made by the '{strategy}' strategy.\n")
        if self.stat:
            print_summary(git, ours, files)
        _git_work.run_hook(git, "post-merge", "0")
        return 0

    def squashed(self, head):
        """SQUASH_MSG has what was merged, as `git log` shows it."""
        from dulwich.walk import Walker

        git = self.git
        text = b"Squashed commit of the following:\n"
        for entry in Walker(git.store.object_store, [one.sha for one in self.heads], exclude=[head]):
            commit = entry.commit
            if len(commit.parents) > 1:
                continue
            lines = b"".join(b"    " + line + b"\n" if line else b"    \n" for line in commit.message.rstrip(b"\n").split(b"\n"))
            when = os.fsencode(date_text(commit.author_time, commit.author_timezone))
            text += b"\ncommit %s\nAuthor: %s\nDate:   %s\n\n%s" % (commit.id, commit.author, when, lines)
        write_state(git, "SQUASH_MSG", text)

    def octopus(self, heads, head):
        """Merges several heads one after the other, as long as there is no conflict."""
        from _git_trees3 import Labels, apply_merged, common_files, merge_trees

        git = self.git
        if self.reflog is None:
            self.reflog = f"merge {self.named}"
        if self.ff_only:
            raise Failure(DIVERGED + "fatal: Not possible to fast-forward, aborting.", 128, "")
        ours = git.tree(head)
        self.check_index(ours)
        files, parents, forward = ours, [head], True
        write_state(git, "ORIG_HEAD", head + b"\n")
        for one in heads:
            bases = git.merge_bases(parents[0], one.sha)
            if forward and bases == [head] and parents == [head] and not self.no_ff:
                out(f"Fast-forwarding to: {one.name}\n")
                files, parents = git.tree(one.sha), [one.sha]
                continue
            forward = False
            out(f"Trying simple merge with {one.name}\n")
            base, label = common_files(git, head if len(parents) > 1 else parents[0], one.sha)
            merged = merge_trees(git, base, files, git.tree(one.sha), Labels("HEAD", one.name, label))
            if merged.conflicts:
                self.say(merged.messages())
                say("Automated merge did not work.\nShould not be doing an octopus.\nMerge with strategy octopus failed.\n")
                return 2
            files = merged.files
            parents.append(one.sha)
        merged.files = files
        apply_merged(git, ours, merged)
        return self.conclude(heads[0], head, ours, files, parents, "octopus")


def date_text(when, zone):
    import time

    moment = time.gmtime(when + zone)
    days, months = "Mon Tue Wed Thu Fri Sat Sun".split(), "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
    clock = f"{moment.tm_hour:02}:{moment.tm_min:02}:{moment.tm_sec:02}"
    zone = core.zone_text(zone).decode()
    return f"{days[moment.tm_wday]} {months[moment.tm_mon - 1]} {moment.tm_mday} {clock} {moment.tm_year} {zone}"
