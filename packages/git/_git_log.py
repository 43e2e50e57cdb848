# log, whatchanged and rev-list; show, shortlog, reflog and format-patch stand in files of their own.
import os
import re

import _git_core as core
import _git_walk as walks
from _git_changes import Paths, commit_changes
from _git_core import Failure
from _git_diff import split_words
from _git_look import chosen, look_of, parse, renames_of, rendered
from _git_pretty import Pretty

SHOWN = """
--oneline
--pretty --format [=]
--abbrev-commit
--decorate [=]
--clear-decorations
--date =
--relative-date
--graph
--parents
-m
-c
--cc
--remerge-diff
--diff-merges =
--no-diff-merges
--root
--use-mailmap
--no-notes
"""


def pretty_of(git, options, look, default="medium"):
    """The `Pretty` that the words ask for."""
    if options.date == "":
        raise Failure("unknown date format ")
    text = options.pretty if options.pretty not in (None, True, False) else None
    abbreviate = options.abbrev_commit
    if options.oneline:
        text, abbreviate = text or "oneline", True if abbreviate is None else abbreviate
    if text is None and options.pretty is None:
        text = git.config.get("format.pretty")
    if abbreviate is None:
        abbreviate = git.config.truth("log.abbrevcommit", False)
    date = "relative" if options.relative_date else options.date
    pretty = Pretty(git, text if text is not None else default, date, abbreviate, look.colour)
    pretty.least = look.count
    if options.decorate is True:
        pretty.decorate = "short"
    elif options.decorate in ("short", "full"):
        pretty.decorate = options.decorate
    elif options.decorate not in (None, False, "no", "auto"):
        raise Failure(f"invalid --decorate option: {options.decorate}")
    elif options.decorate is None and git.config.get("log.decorate") in ("short", "full", "true", "yes"):
        pretty.decorate = git.config.get("log.decorate").replace("true", "short").replace("yes", "short")
    if options.parents:
        pretty.patches = "parents"
    return pretty


class Printer:
    """Prints commits one behind the other, with the changes of each."""

    def __init__(self, git, options, look, forms, pretty, paths=None, merges=None, graph=None, always=True):
        self.git, self.options, self.look, self.forms, self.pretty, self.paths = git, options, look, forms, pretty, paths
        self.merges, self.graph, self.always, self.shown = merges, graph, always, False
        self.renames = renames_of(options, git)
        self.end = "\0" if look.zero else "\n"
        self.open = False

    def changes(self, commit, parent=None):
        old = parent or (commit.parents[0] if commit.parents else None)
        changes = commit_changes(self.git, old, commit.id, self.renames, self.paths)
        return chosen(self.git, changes, self.options)

    def data(self, commit, changes=None):
        """The changes of a commit in bytes."""
        if not self.forms or self.forms == {"none"}:
            return b""
        if changes is not None:
            return rendered(self.git, chosen(self.git, changes, self.options), self.forms, self.look)
        if len(commit.parents) > 1 and self.merges in (None, "off"):
            return b""
        if len(commit.parents) > 1 and self.merges in ("cc", "c"):
            return self._combined(commit)
        return rendered(self.git, self.changes(commit), self.forms, self.look)

    def _combined(self, commit):
        from _git_combined import combined_patch, merge_changes

        text, counted = b"", self.forms & {"stat", "shortstat", "numstat", "summary"}
        files = merge_changes(self.git, commit, self.paths)
        for form in ("raw", "name_status", "name_only"):
            if form not in self.forms:
                continue
            for file in files:
                kinds = "".join("A" if not old[0] else "D" if not file.result[0] else "M" for old in file.parents)
                name = self.look.name(file.path)
                if form == "name_only":
                    text += os.fsencode(name + self.end)
                elif form == "name_status":
                    text += os.fsencode(f"{kinds}\t{name}{self.end}")
                else:
                    sides = [*file.parents, file.result]
                    modes = " ".join(f"{side[0]:06o}" for side in sides)
                    digits = " ".join(self.git.abbreviate(side[1]) if side[1] else "0" * 7 for side in sides)
                    text += os.fsencode(f"{':' * len(file.parents)}{modes} {digits} {kinds}\t{name}{self.end}")
        if counted:
            text += rendered(self.git, self.changes(commit), counted, self.look)
        if "patch" in self.forms:
            patch = b"".join(combined_patch(self.git, file, self.look, self.merges == "cc") for file in files)
            text += b"\n" + patch if counted and patch else patch
        return text

    def _any(self, commit, changes):
        """Whether a commit has changes that are asked for, where none are printed."""
        if changes is None and len(commit.parents) > 1:
            return False
        return bool(chosen(self.git, changes, self.options) if changes is not None else self.changes(commit))

    def show(self, commit, mark="", entry=None, parents=None, changes=None, shown_parents=None):
        """Prints one commit; False where it is left out because none of its changes is asked for."""
        many = len(commit.parents) > 1 and self.merges == "m" and changes is None
        again = False
        for parent in commit.parents if many else [None]:
            if many:
                found = self.changes(commit, parent)
                data = rendered(self.git, found, self.forms, self.look) if self.forms - {"none"} else b""
            else:
                data = self.data(commit, changes)
            if not self.always and not (data or not self.forms - {"none"} and self._any(commit, changes)):
                return False
            text = self.pretty.text(commit, "" if self.graph else mark, entry, parents)
            combined = len(commit.parents) > 1 and self.merges in ("c", "cc") and changes is None and bool(self.forms - {"none"})
            if many and self.pretty.form not in ("user",):
                text = re.sub(r"^(commit )?(\S+)", lambda m: f"{m[0]} (from {self.pretty.digits(parent)})", text, count=1)
            self._put(commit, text, data, shown_parents, mark, combined, again)
            again = True
        return True

    def _put(self, commit, text, data, shown_parents, mark, combined, again=False):
        pretty, result = self.pretty, b""
        user = pretty.form == "user"
        separate = self.shown and not pretty.ends
        if self.graph and not again:
            self.graph.update(commit.id, shown_parents, mark or "*")
        if separate:
            pad = self.graph.padding() if self.graph and not self.open_end else ""
            result += os.fsencode(pad + self.end)
        self.shown, self.open_end = True, False
        if pretty.ends and not (user and not pretty.template and not text):
            text += self.end if not data or self.end == "\n" else self.end
        lines = text
        if self.graph:
            lines = self._drawn(text, again)
        result += os.fsencode(lines)
        if data or combined:
            # A line between the words and the changes, except where a commit is one line.
            gap = (
                b""
                if (pretty.form == "oneline" or user and not pretty.template) and not combined
                else (b"---\n" if {"stat", "patch"} <= self.forms and not combined else b"\n")
            )
            body = gap + data
            if self.graph:
                body = b"".join(os.fsencode(self.graph.padding()) + line for line in body.splitlines(True))
            result += body
        self.open_end = user and not pretty.ends
        core.out(result)

    def _drawn(self, text, again=False):
        graph, result = self.graph, ""
        ended = text.endswith("\n")
        lines = (text[:-1] if ended else text).split("\n")
        if again:
            return "\n".join(graph.padding() + line for line in lines) + ("\n" if ended else "")
        while True:
            line, is_commit = graph.line()
            if is_commit:
                result += line
                break
            result += line + "\n"
        result += lines[0]
        for line in lines[1:]:
            result += "\n" + graph.line()[0] + line
        if graph.finished:
            return result + ("\n" if ended else "")
        result += "\n"
        rest = []
        while not graph.finished:
            rest.append(graph.line()[0])
        return result + "\n".join(rest) + ("\n" if ended else "")

    open_end = False


def merges_of(options, default=None):
    """How the changes of a merge are shown: off, m (one by one), first, c or cc."""
    named = {
        "off": "off",
        "none": "off",
        "on": "m",
        "m": "m",
        "separate": "m",
        "first-parent": "first",
        "1": "first",
        "combined": "c",
        "c": "c",
        "dense-combined": "cc",
        "cc": "cc",
    }
    if options.diff_merges:
        if options.diff_merges not in named:
            raise Failure(f"invalid value for '--diff-merges': '{options.diff_merges}'")
        return named[options.diff_merges]
    if options.no_diff_merges:
        return "off"
    if options.remerge_diff:
        raise Failure("unrecognized argument: --remerge-diff")
    return "cc" if options.cc else "c" if options.c else "m" if options.m else default


def cmd_log(argv, call, command="log", default_forms=(), always=True):
    git = call.git()
    options = parse(command, walks.arguments(argv), walks.OPTIONS + SHOWN.lstrip("\n"), "max_count")
    revisions, words = split_words(git, options)
    paths = Paths(git, words) if words else None
    options.no_output = options.no_output or options.quiet
    look, forms = look_of(options, git, default_forms)
    if options.graph and options.simplify_by_decoration:
        raise Failure("--simplify-by-decoration cannot be drawn with --graph here")
    if options.graph and options.reverse:
        raise Failure("options '--graph' and '--reverse' cannot be used together")
    if options.follow and (not paths or len(paths.wanted) != 1):
        raise Failure("--follow requires exactly one pathspec")
    if options.walk_reflogs:
        from _git_reflog import log_of

        return log_of(git, options, revisions, pretty_of(git, options, look), look, forms)
    merges = merges_of(options, "first" if options.first_parent else None)
    if (options.cc or options.c) and not forms:
        forms = {"patch"}
    pretty = pretty_of(git, options, look)
    walk = walks.Walk(git, options, revisions, paths, graph=options.graph)
    graph = None
    if options.graph:
        from _git_graph import Graph

        graph = Graph()
    printer = Printer(git, options, look, forms, pretty, paths, merges, graph, always)
    always = always and not (options.diff_filter or options.S is not None or options.G is not None or options.follow)
    printer.always, left = always, walk.limit
    if not always:
        # Commits that are not shown do not count.
        walk.limit = None
    for sha in walk.all():
        if left is not None and not always and left <= 0:
            break
        commit = walk.get(sha)
        shown_parents = walk.shown_parents(sha) if graph else None
        mark = walk.marks.get(sha, "") if options.left_right or options.cherry_mark else ""
        if printer.show(commit, mark, None, None, walk.follow_names.get(sha), shown_parents) and left is not None:
            left -= 1
    if printer.open_end and look.zero:
        core.out("")
    return 0


def cmd_whatchanged(argv, call):
    return cmd_log(argv, call, "whatchanged", {"raw"}, False)


REV_LIST = """
--count
--parents
--timestamp
--oneline
--pretty --format [=]
--abbrev-commit
--no-commit-header
--date =
--decorate [=]
--relative-date
"""


def cmd_rev_list(argv, call):
    git = call.git()
    declared = walks.OPTIONS.lstrip("\n") + REV_LIST.lstrip("\n")
    options = parse("rev-list", walks.arguments(argv), declared, "max_count")
    revisions, words = split_words(git, options)
    if not revisions and not any((options.all, options.branches, options.tags, options.remotes)):
        raise Failure("usage: git rev-list [<options>] <commit>... [--] [<path>...]", 129, "")
    paths = Paths(git, words) if words else None
    walk = walks.Walk(git, options, revisions, paths, None)
    if options.count:
        shas = list(walk.all())
        if options.left_right and walk.sides:
            left = sum(walk.marks.get(sha) == "<" for sha in shas)
            core.out(f"{left}\t{len(shas) - left}\n")
        else:
            core.out(f"{len(shas)}\n")
        return 0
    look, _ = look_of(options, git)
    pretty = pretty_of(git, options, look, "oneline") if options.pretty or options.oneline else None
    for sha in walk.all():
        commit = walk.get(sha)
        mark = walk.marks.get(sha, "") if options.left_right else ""
        shown = git.abbreviate(sha) if options.abbrev_commit else sha.decode()
        line = (f"{commit.commit_time} " if options.timestamp else "") + mark + shown
        if options.parents:
            line += "".join(" " + parent.decode() for parent in walk.parents(sha))
        if options.quiet:
            continue
        if pretty is None:
            core.out(line + "\n")
        elif pretty.form == "user":
            head = "" if options.no_commit_header else f"commit {line}\n"
            core.out(head + pretty.text(commit, mark) + "\n")
        else:
            core.out(pretty.text(commit, mark) + "\n")
    return 0


def print_commit_of_diff_tree(git, commit, options, look, forms, paths):
    """A merge in diff-tree: nothing, or what differs from all parents with -c and --cc."""
    if not options.cc and not options.c:
        return 0
    printer = Printer(git, options, look, forms, None, paths, "cc" if options.cc else "c")
    data = printer.data(commit)
    if data:
        core.out((b"" if options.no_commit_id else commit.id + b"\n") + data)
    return 0


def cmd_show(argv, call):
    from _git_show import cmd_show as command

    return command(argv, call)


def cmd_shortlog(argv, call):
    from _git_show import cmd_shortlog as command

    return command(argv, call)


def cmd_reflog(argv, call):
    from _git_reflog import cmd_reflog as command

    return command(argv, call)


def cmd_format_patch(argv, call):
    from _git_mail import cmd_format_patch as command

    return command(argv, call)
