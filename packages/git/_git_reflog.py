# reflog, and log -g.
import os
import re

import _git_core as core
import _git_walk as walks
from _git_core import Failure
from _git_look import look_of, parse
from _git_pretty import date_text


class Entry:
    """One entry of a reference's log as it is shown: `name` is `HEAD@{0}`."""

    def __init__(self, name, full, entry):
        self.name, self.full = name, full
        self.message, self.by = os.fsdecode(entry.message).strip("\n"), os.fsdecode(entry.committer)


def entries_of(git, word, date):
    """The entries of a reference (`word` may end in `@{2}`), each with its commit."""
    at = re.fullmatch(r"(.*)@\{(\d+)\}", word)
    base, start = (at[1] or git.branch() or "HEAD", int(at[2])) if at else (word, 0)
    ref = git.ref(base)
    if ref is None:
        raise core.unknown_revision(word)
    shown = base if base != "@" else "HEAD"
    result = []
    for number, entry in enumerate(git.reflog(ref)):
        if number < start:
            continue
        which = date_text(entry.timestamp, entry.timezone, date) if date else str(number)
        result.append((entry.new_sha, Entry(f"{shown}@{{{which}}}", f"{os.fsdecode(ref)}@{{{which}}}", entry), entry.timestamp))
    return result


def log_of(git, options, revisions, pretty, look, forms):
    from _git_log import Printer, merges_of

    if git.head() is None and not revisions and not options.all:
        raise Failure(f"your current branch '{git.branch()}' does not have any commits yet")
    found = []
    date = options.date or git.config.get("log.date")
    if options.all:
        for ref in sorted(git.refs.allkeys()):
            if ref != b"HEAD":
                found += entries_of(git, os.fsdecode(ref), date)
        revisions = ["HEAD"]
    for word in revisions or ["HEAD"]:
        found += entries_of(git, word, date)
    if options.all:
        found.sort(key=lambda item: -item[2])
    walk = walks.Walk(git, options, [], None, None)
    printer = Printer(git, options, look, forms, pretty, None, merges_of(options))
    count = 0
    for sha, entry, when in found[walk.jump :] if walk.jump else found:
        if walk.limit is not None and count >= walk.limit:
            break
        if walk.since is not None and when < walk.since:
            break
        try:
            commit = git.store[sha]
        except KeyError:
            continue
        if commit.type_name != b"commit" or not walk.wanted_quietly(commit):
            continue
        count += 1
        printer.show(commit, "", entry)
    return 0


def cmd_reflog(argv, call):
    from _git_log import SHOWN, pretty_of

    git, verb = call.git(), argv[0] if argv else "show"
    if verb == "exists":
        ref = os.fsencode(argv[1]) if len(argv) > 1 else b""
        return 0 if ref and git.reflog(ref) else 1
    if verb == "list":
        top = os.path.join(git.commondir, "logs")
        names = []
        for directory, directories, files in os.walk(top):
            names += [os.path.relpath(os.path.join(directory, name), top) for name in files]
        core.out("".join(name + "\n" for name in sorted(names)))
        return 0
    if verb in ("expire", "delete"):
        return _shorten(git, verb, argv[1:])
    words = argv[1:] if verb == "show" else argv
    options = parse("reflog", walks.arguments(words), walks.OPTIONS + SHOWN.lstrip("\n"), "max_count")
    look, forms = look_of(options, git)
    if options.pretty is None and not options.oneline:
        options.oneline = True
    return log_of(git, options, options.all_words(), pretty_of(git, options, look), look, forms)


def _shorten(git, verb, argv):
    options = core.parse(
        "reflog",
        argv,
        "--all\n--expire =\n--expire-unreachable =\n--rewrite\n--updateref\n-n --dry-run\n--verbose\n"
        "--stale-fix\n--single-worktree\n",
    )
    if verb == "delete":
        for word in options.words:
            at = re.fullmatch(r"(.*)@\{(\d+)\}", word)
            if not at:
                raise Failure(f"not a reflog: {word}", 1, "error: ")
            _rewrite(git, git.ref(at[1]), lambda number, entry: number != int(at[2]), options.dry_run)
        return 0
    if options.expire not in ("now", "all", "never", None) or options.expire_unreachable not in ("now", "all", "never", None):
        raise Failure("reflog expire takes only 'now', 'all' and 'never' here")
    refs = [ref for ref in git.refs.allkeys()] if options.all else [git.ref(word) for word in options.words]
    if options.all:
        refs.append(b"HEAD")
    for ref in dict.fromkeys(refs):
        if options.expire in ("now", "all"):
            _rewrite(git, ref, lambda number, entry: False, options.dry_run)
    return 0


def _rewrite(git, ref, kept, dry):
    path = os.path.join(git.gitdir if ref == b"HEAD" else git.commondir, "logs", os.fsdecode(ref or b""))
    if ref is None or not os.path.isfile(path):
        return
    with open(path, "rb") as file:
        lines = file.read().splitlines(True)
    lines = [line for number, line in zip(range(len(lines) - 1, -1, -1), lines) if kept(number, line)]
    if not dry:
        with open(path + ".lock", "wb") as file:
            file.writelines(lines)
        os.replace(path + ".lock", path)
