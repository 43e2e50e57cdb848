# show and shortlog.
import os
import re
import sys

import _git_core as core
import _git_walk as walks
from _git_changes import Paths
from _git_core import Failure
from _git_diff import split_words
from _git_log import SHOWN, Printer, merges_of, pretty_of
from _git_look import look_of, parse
from _git_pretty import date_text


def cmd_show(argv, call):
    git = call.git()
    options = parse("show", walks.arguments(argv), walks.OPTIONS + SHOWN.lstrip("\n"), "max_count")
    revisions, words = split_words(git, options)
    paths = Paths(git, words) if words else None
    options.no_output = options.no_output or options.quiet
    look, forms = look_of(options, git, {"patch"})
    pretty = pretty_of(git, options, look)
    printer = Printer(git, options, look, forms, pretty, paths, merges_of(options, "first" if options.first_parent else "cc"))
    printer.seen = set()
    named = any(getattr(options, key) for key in walks.SPACES)
    if named or any(".." in word or word.startswith("^") or word.endswith(("^!", "^@", "^-")) for word in revisions):
        walk = walks.Walk(git, options, revisions, paths)
        for sha in walk.all():
            printer.show(walk.get(sha))
        return 0
    if not revisions:
        if git.head() is None:
            branch = git.branch()
            raise Failure(f"your current branch '{branch}' does not have any commits yet")
        revisions = ["HEAD"]
    for word in revisions:
        if not _show(git, git.resolve(word), word, options, printer, first=word == revisions[0]):
            break
    return 0


def _show(git, sha, word, options, printer, first=True):
    try:
        found = git.store[sha]
    except KeyError:
        raise Failure(f"bad object {word}")
    kind = found.type_name
    if kind == b"blob":
        core.out(found.data)
    elif kind == b"tree":
        separate = "\n" if printer.shown else ""
        core.out(f"{separate}tree {word}\n\n")
        for name, mode, _ in found.iteritems():
            core.out(name + (b"/" if mode & 0o170000 == 0o040000 else b"") + b"\n")
        printer.shown = True
    elif kind == b"tag":
        text = ("\n" if printer.shown else "") + f"tag {os.fsdecode(found.name)}\n"
        if found.tagger:
            text += f"Tagger: {os.fsdecode(found.tagger)}\n"
            if found.tag_time is not None and printer.pretty.form == "medium":
                text += f"Date:   {date_text(found.tag_time, found.tag_timezone, printer.pretty.date)}\n"
        message = os.fsdecode(found.message or b"") + os.fsdecode(getattr(found, "signature", None) or b"")
        core.out(f"{text}\n{message}")
        printer.shown = True
        return _show(git, found.object[1], found.object[1].decode(), options, printer)
    elif sha not in printer.seen:
        printer.seen.add(sha)
        if (
            printer.paths is None
            or printer.data(found)
            or any(printer.changes(found, parent) for parent in found.parents or [None])
        ):
            printer.show(found)
    return True


SHORTLOG = """
-s --summary
-n --numbered
-e --email
-c --committer
--group =*
-w [=]
--all
--branches [=]
--tags [=]
--remotes [=]
--since --after =
--until --before =
--author =*
--grep =*
--max-count =
--skip =
--merges
--no-merges
--first-parent
--format --pretty =
--date =
-i --regexp-ignore-case
-E --extended-regexp
"""
UNSET = (
    "max_count skip min_parents max_parents follow full_history simplify_by_decoration reverse topo_order date_order author_date_order "
    "left_right left_only right_only cherry_pick cherry_mark fixed_strings perl_regexp all_match invert_grep S G"
).split()


def cmd_shortlog(argv, call):
    try:
        options = core.parse("shortlog", walks.arguments(argv), SHORTLOG, numbers="max_count")
    except Failure as failure:
        found = re.match(r"unknown (option|switch) `(.*)'", failure.text)
        if found:
            raise Failure(f"unrecognized argument: {'--' if found[1] == 'option' else '-'}{found[2]}")
        raise
    by_committer = options.committer
    for name in UNSET:
        if not hasattr(options, name):
            setattr(options, name, None)
    options.committer = []
    named = any(getattr(options, key) for key in walks.SPACES)
    if not options.all_words() and not named and not sys.stdin.isatty():
        return _shortlog_of_text(options)
    git = call.git()
    revisions, words = split_words(git, options)
    walk = walks.Walk(git, options, revisions, Paths(git, words) if words else None)
    from _git_pretty import Pretty

    pretty = Pretty(git, options.format or "%s", options.date)
    groups = {}
    for sha in walk.all():
        commit = walk.get(sha)
        kinds = options.group or ["committer" if by_committer else "author"]
        for kind in kinds:
            if kind.startswith("trailer:"):
                from _git_template import trailers_of

                key = kind[8:].lower()
                who = [value for name, value in trailers_of(pretty.message(commit)) if name.lower() == key]
            elif kind.startswith("format:") or "%" in kind:
                from _git_template import expand

                who = [expand(pretty, commit, kind.removeprefix("format:"))]
            elif kind in ("author", "committer"):
                who = [os.fsdecode(pretty.shown_person(commit.author if kind == "author" else commit.committer))]
            else:
                raise Failure(f"unknown group type: {kind}")
            for name in who:
                if not options.email and kind in ("author", "committer"):
                    name = name.partition(" <")[0]
                groups.setdefault(name, []).append(pretty.text(commit) if options.format else pretty.subject(commit))
    return _print_groups(groups, options)


def _print_groups(groups, options):
    names = sorted(groups, key=os.fsencode)
    if options.numbered:
        names.sort(key=lambda name: -len(groups[name]))
    for name in names:
        if options.summary:
            core.out(f"{len(groups[name]):6d}\t{name}\n")
            continue
        core.out(f"{name} ({len(groups[name])}):\n")
        for subject in reversed(groups[name]):
            subject = re.sub(r"^\[PATCH[^\]]*\] *", "", subject)
            core.out(f"      {subject}\n")
        core.out("\n")
    return 0


def _shortlog_of_text(options):
    """Commits as `git log` prints them, from standard input."""
    groups, name = {}, None
    wanted = "Commit:" if options.committer else "Author:"
    waiting = False
    for line in sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\n"):
        if line.startswith(wanted):
            name, waiting = line[len(wanted) :].strip(), True
            if not options.email:
                name = name.partition(" <")[0]
        elif waiting and line.startswith("    ") and line.strip():
            groups.setdefault(name, []).append(line.strip())
            waiting = False
    return _print_groups(groups, options)
