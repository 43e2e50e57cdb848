# git ls-files and check-ignore.
import os
import sys

import _git_core as core
from _git_core import Failure, out, quoted
from _git_paths import Ignores, Pathspec, Untracked
from _git_work import INTENT_TO_ADD, Places, changed_file, index_time, is_conflict

LS_FILES = """
-c --cached
-d --deleted
-m --modified
-o --others
-i --ignored
-s --stage
-u --unmerged
-t
-z
-x --exclude =*
--exclude-standard
--directory
--error-unmatch
--full-name
--deduplicate
--abbrev [=]
"""


def cmd_ls_files(argv, call):
    git = call.git()
    options = core.parse("ls-files", argv, LS_FILES)
    if options.others or options.modified or options.deleted:
        git.need_worktree()
    words = options.all_words()
    spec = Pathspec(git, words) if words else None
    if options.ignored and not (options.others or options.cached):
        raise Failure("ls-files -i must be used with either -o or -c")
    if options.ignored and not (options.exclude or options.exclude_standard):
        raise Failure("ls-files --ignored needs some exclude pattern")
    cached = options.cached or options.stage or options.unmerged
    if not (cached or options.deleted or options.modified or options.others):
        cached = True
    index, prefix = dict(sorted(git.index().items())), git.prefix
    end = b"\0" if options.z else b"\n"
    least = None if options.abbrev in (None, False) else 7 if options.abbrev is True else int(options.abbrev)
    shown = set()

    def asked(path):
        return (not prefix or path.startswith(prefix)) if spec is None else spec.match(path)

    def show(path, tag, stage=None, number=0):
        name = path if options.full_name else os.fsencode(git.shown(path))
        if options.deduplicate and stage is None and not options.stage:
            if path in shown:
                return
            shown.add(path)
        line = (tag + " ").encode() if options.t else b""
        if stage is not None and (options.stage or options.unmerged):
            sha = git.abbreviate(stage.sha, least) if least else stage.sha.decode()
            line += f"{stage.mode:06o} {sha} {number}\t".encode()
        out(line + (name if options.z else os.fsencode(quoted(name))) + end)

    ignores = Ignores(git, bool(options.exclude_standard), options.exclude)
    matched = []
    if options.others:
        if options.ignored:
            walk = Untracked(git, index, ignores, spec, bool(options.directory), True, True).walk()
            found = walk.ignored
        else:
            found = Untracked(git, index, ignores, spec, bool(options.directory), False, True).walk().untracked
        for path in found:
            if asked(path):
                matched.append(path)
                show(path, "?")
    places, written = (Places(git), index_time(git)) if options.deleted or options.modified else (None, 0)
    for path, entry in index.items():
        if not asked(path):
            continue
        matched.append(path)
        if options.ignored and not ignores.ignored(path, False):
            continue
        stages = [(entry, 0)]
        if is_conflict(entry):
            sides = enumerate((entry.ancestor, entry.this, entry.other), 1)
            stages = [(stage, number) for number, stage in sides if stage is not None]
        if cached:
            for stage, number in stages:
                if number or not options.unmerged:
                    show(path, "M" if number else "S" if entry.skip_worktree else "H", stage, number)
        if options.deleted or options.modified:
            found = places.lstat(path)
            for stage, number in stages:
                letter = "D" if found is None else "M" if number else changed_file(git, path, stage, found, written)
                if not letter and stage.extended_flags & INTENT_TO_ADD:
                    letter = "M"
                if options.deleted and letter == "D":
                    show(path, "R", stage, number)
                if options.modified and letter:
                    show(path, "C", stage, number)
    if options.error_unmatch and spec is not None:
        missing = spec.unmatched(matched)
        if missing:
            lines = "".join(f"error: pathspec '{name}' did not match any file(s) known to git\n" for name in missing)
            raise Failure(lines + "Did you forget to 'git add'?", 1, "")


CHECK_IGNORE = """
-q --quiet
-v --verbose
--stdin
-z
-n --non-matching
--no-index
"""


def cmd_check_ignore(argv, call):
    git = call.git()
    git.need_worktree()
    options = core.parse("check-ignore", argv, CHECK_IGNORE)
    words = options.all_words()
    if options.stdin and words:
        raise Failure("cannot specify pathnames with --stdin")
    if options.z and not options.stdin:
        raise Failure("-z only makes sense with --stdin")
    if not options.stdin and not words:
        raise Failure("no path specified")
    if options.quiet and options.verbose:
        raise Failure("cannot have both --quiet and --verbose")
    if options.quiet and len(words) > 1:
        raise Failure("--quiet is only valid with a single pathname")
    if options.non_matching and not options.verbose:
        raise Failure("--non-matching is only valid with --verbose")
    if options.stdin:
        lines = sys.stdin.buffer.read().split(b"\0" if options.z else b"\n")
        words = [os.fsdecode(line) for line in (lines[:-1] if lines and not lines[-1] else lines)]
    index = {} if options.no_index else git.index()
    ignores, count = Ignores(git), 0
    for word in words:
        path, rule = git.tree_path(word), None
        if path and path not in index and not any(other.startswith(path + b"/") for other in index):
            place = git.path(path)
            rule = ignores.deciding(path, word.endswith("/") or os.path.isdir(place) and not os.path.islink(place))
        if rule is not None and not rule.excludes and not options.verbose:
            rule = None
        count += rule is not None
        if options.quiet or rule is None and not options.non_matching:
            continue
        if options.z:
            fields = [os.fsencode(rule.source), b"%d" % rule.number, rule.text] if rule else [b"", b"", b""]
            out(b"".join(field + b"\0" for field in (*(fields if options.verbose else ()), os.fsencode(word))))
            continue
        line = os.fsencode(quoted(word))
        if options.verbose:
            line = (os.fsencode(quoted(rule.source)) + b":%d:" % rule.number + rule.text if rule else b"::") + b"\t" + line
        out(line + b"\n")
    return 0 if count else 1
