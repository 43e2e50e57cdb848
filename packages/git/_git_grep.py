# `git grep`: lines that match, in tracked files, in the index or in a tree.
import os
import re

import _git_core as core
from _git_core import Failure, error, out

OPTIONS = """
-n --line-number
-i --ignore-case
-l --files-with-matches --name-only
-L --files-without-match
-c --count
-w --word-regexp
-E --extended-regexp
-G --basic-regexp
-F --fixed-strings
-P --perl-regexp
-v --invert-match
-e =*
-f =*
-h
-H
-o --only-matching
-q --quiet
-I
-a --text
-z --null
--and
--cached
--untracked
--full-name
--heading
--break
--column
-r --recursive
-m --max-count =
-A --after-context =
-B --before-context =
-C --context =
--color [=]
--threads =
--all-match
"""


def basic(pattern):
    """A basic regular expression (`\\|`, `\\(`, `\\+`) in Python's form."""
    done, at, start = "", 0, True
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and at + 1 < len(pattern):
            following = pattern[at + 1]
            done += following if following in "|(){}+?" else "\\b" if following in "<>" else char + following
            start, at = following in "|(", at + 2
            continue
        if char == "[":
            end = pattern.find("]", at + 2 if pattern[at + 1 : at + 2] != "^" else at + 3)
            if end > 0:
                done, at, start = done + classes(pattern[at : end + 1]), end + 1, False
                continue
        if char in "|(){}+?" or char == "*" and start:
            done += "\\" + char
        elif (
            char == "^" and not start or char == "$" and at + 1 < len(pattern) and pattern[at + 1 : at + 3] not in ("\\|", "\\)")
        ):
            done += "\\" + char
        else:
            done += char
        start, at = char == "^" and start, at + 1
    return done


NAMES = {"alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "space": r"\s", "upper": "A-Z", "lower": "a-z",
         "xdigit": "0-9a-fA-F", "punct": r"!-/:-@\[-`{-~", "blank": r" \t"}  # fmt: skip


def classes(text):
    return re.sub(r"\[:(\w+):\]", lambda found: NAMES.get(found[1], found[0]), text)


def compiled(options, patterns):
    parts = []
    for pattern in patterns:
        for one in pattern.split("\n"):
            if options.fixed_strings:
                one = re.escape(one)
            elif options.extended_regexp:
                one = classes(one).replace("\\<", r"\b").replace("\\>", r"\b")
            elif not options.perl_regexp:
                one = basic(one)
            parts.append(f"(?:{one})")
    text = "|".join(parts)
    if options.word_regexp:
        text = rf"(?<!\w)(?:{text})(?!\w)"
    try:
        return re.compile(os.fsencode(text), re.I if options.ignore_case else 0)
    except re.error as why:
        told = {
            "missing ), unterminated subpattern": "Unmatched ( or \\(",
            "unbalanced parenthesis": "Unmatched ) or \\)",
            "unterminated character set": "Unmatched [, [^, [:, [., or [=",
            "nothing to repeat": "Invalid preceding regular expression",
        }
        raise Failure(f"command line, '{patterns[0]}': {told.get(why.msg, why.msg)}")


def cmd_grep(argv, call):
    options = core.parse("grep", argv, OPTIONS, numbers="context")
    git = call.git()
    if getattr(options, "and") or options.all_match:
        raise error("patterns are joined by `or` only here", 129)
    patterns, words = list(options.e), list(options.words)
    for name in options.f:
        with open(name, encoding="utf-8", errors="surrogateescape") as file:
            patterns += file.read().splitlines()
    if not patterns:
        if not words and options.paths:
            patterns.append(options.paths.pop(0))
        elif not words:
            raise Failure("no pattern given")
        else:
            patterns.append(words.pop(0))
    pattern = compiled(options, patterns)
    revisions = []
    while words:
        sha = git.find(words[0]) if not os.path.lexists(words[0]) else None
        if sha is None:
            break
        revisions.append(words.pop(0))
    for word in words:
        if not os.path.lexists(word) and not re.search(r"[*?\[:]", word):
            raise Failure(
                f"ambiguous argument '{word}': unknown revision or path not in the working tree.\n"
                "Use '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'"
            )
    from _git_paths import Pathspec

    given = words + (options.paths or [])
    spec = Pathspec(git, given) if given else None
    if not given and git.prefix:
        spec = Pathspec.of_paths(git, [git.prefix.rstrip(b"/")])
    if options.cached and revisions:
        raise Failure("--cached cannot be used with revs")
    if revisions:
        for name in revisions:
            for path, (mode, sha) in sorted(git.tree(git.find(name)).items()):
                if mode & 0o170000 == 0o100000 and (spec is None or spec.match(path)):
                    Found.any |= Found(git, options, pattern, f"{name}:", path).search(git.blob(sha))
    else:
        if git.root is None:
            raise Failure("this operation must be run in a work tree")
        import _git_work

        entries = git.index()
        paths = set(entries)
        if options.untracked:
            paths |= set(_git_work.files_changed(git, untracked="all", staged=False).untracked)
        places = _git_work.Places(git)
        for path in sorted(paths):
            entry = entries.get(path)
            if (
                spec is not None
                and not spec.match(path)
                or entry is not None
                and getattr(entry, "mode", 0o100644) & 0o170000 == 0o160000
            ):
                continue
            if options.cached:
                entry = entry if hasattr(entry, "sha") else getattr(entry, "this", None) or getattr(entry, "other", None)
                if entry is None or entry.mode & 0o170000 != 0o100000:
                    continue
                data = git.blob(entry.sha)
            else:
                found = places.lstat(path)
                if found is None or found.st_mode & 0o170000 != 0o100000:
                    continue
                data = _git_work.read_file(git, path, 0o100644)
            Found.any |= Found(git, options, pattern, "", path).search(data)
            if options.quiet and Found.any:
                return 0
    return 0 if Found.any else 1


class Found:
    """One file that is searched."""

    any = False
    printed = False  # Whether a stretch with lines around it was printed before, so that `--` has to stand between.

    def __init__(self, git, options, pattern, lead, path):
        self.options, self.pattern = options, pattern
        shown = os.fsdecode(path) if options.full_name else git.shown(path)
        self.name = os.fsencode(lead) + (os.fsencode(shown) if options.null else os.fsencode(core.quoted(shown)))

    def search(self, data):
        options = self.options
        binary = b"\0" in data[:8000] and not options.text
        if binary and options.I:
            return False
        if (
            not options.invert_match
            and not self.pattern.search(data)
            and not any(sign in self.pattern.pattern for sign in (b"^", b"$"))
        ):
            if options.files_without_match:
                out(self.name + b"\n")
                return True
            return False
        lines = data.split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        most = int(options.max_count) if options.max_count is not None else None
        hits = []
        for at, line in enumerate(lines):
            if bool(self.pattern.search(line)) != bool(options.invert_match):
                hits.append(at)
                if most is not None and len(hits) >= most or options.quiet or options.files_with_matches:
                    break
        end = b"\0" if options.null else b"\n"
        if options.files_without_match:
            if not hits:
                out(self.name + end)
            return not hits
        if not hits:
            return False
        if options.quiet:
            return True
        if options.files_with_matches:
            out(self.name + end)
        elif options.count:
            out((b"" if options.h else self.name + (b"\0" if options.null else b":")) + b"%d\n" % len(hits))
        elif binary:
            out(b"Binary file " + self.name + b" matches\n")
        else:
            self.show(lines, hits)
        return True

    def show(self, lines, hits):
        options = self.options
        number = lambda value: int(value) if value is not None else int(options.context or 0)
        before, after = number(options.before_context), number(options.after_context)
        if options.heading:
            if getattr(options, "break") and Found.printed:
                out("\n")
            out(self.name + b"\n")
        elif getattr(options, "break") and Found.printed:
            out("\n")
        marked, last = set(hits), None
        stretch = sorted({at for hit in hits for at in range(max(hit - before, 0), min(hit + after + 1, len(lines)))})
        for at in stretch:
            if (before or after) and (
                last is not None and at > last + 1 or last is None and Found.printed and not options.heading
            ):
                out("--\n")
            last, Found.printed = at, True
            hit = at in marked
            sign = b":" if hit else b"-"
            lead = b"" if options.h or options.heading else self.name + (b"\0" if options.null else sign)
            if options.line_number:
                lead += b"%d" % (at + 1) + sign
            if options.only_matching:
                if hit:
                    for found in self.pattern.finditer(lines[at]):
                        if found[0]:
                            column = b"%d:" % (found.start() + 1) if options.column else b""
                            out(lead + column + found[0] + b"\n")
                continue
            if options.column and hit:
                found = self.pattern.search(lines[at])
                lead += b"%d:" % (found.start() + 1 if found else 1)
            out(lead + lines[at] + b"\n")
