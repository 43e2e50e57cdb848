# The options that diff, log, show and the like have in common, and changes printed in the forms that they ask for.
import os
import re

import _git_core as core
import _git_patch as patches
from _git_core import Failure

OPTIONS = """
-p -u --patch
-s --no-output
-U --unified [=]
--raw
--patch-with-stat
--stat [=]
--compact-summary
--numstat
--shortstat
--summary
--name-only
--name-status
--check
-M --find-renames [=]
-C --find-copies [=]
--find-copies-harder
--renames
-R
-w --ignore-all-space
-b --ignore-space-change
--ignore-space-at-eol
--ignore-cr-at-eol
--ignore-blank-lines
-a --text
-W --function-context
--inter-hunk-context =
--color [=]
-z
--full-index
--binary
--abbrev [=]
--diff-filter =
--relative [=]
--no-prefix
--default-prefix
--src-prefix =
--dst-prefix =
--exit-code
--quiet
-S =
-G =
--pickaxe-regex
--pickaxe-all
--word-diff [=]
--color-words
--no-ext-diff
--no-textconv
--minimal
--diff-algorithm =
"""
FORMS = "raw name_only name_status check numstat stat shortstat summary patch".split()


def parse(command, argv, more="", numbers=None):
    """Options of a command that shows changes; an unknown one gets the text that these commands have for it."""
    try:
        options = core.parse(command, argv, OPTIONS + more.lstrip("\n"), numbers=numbers)
    except Failure as failure:
        found = re.match(r"unknown (option|switch) `(.*)'", failure.text)
        if not found:
            raise
        word = ("--" if found[1] == "option" else "-") + found[2]
        if command in ("diff", "diff-tree", "diff-index", "diff-files"):
            raise Failure(
                f"invalid option: {word}\nusage: git {command} [<options>] [<commit>...] [--] [<path>...]", 129, "error: "
            )
        raise Failure(f"unrecognized argument: {word}")
    if options.patch is False:
        options.no_output = True
    if options.no_output:
        # The last one counts: `-s -p` shows patches.
        words = argv[: argv.index("--")] if "--" in argv else argv
        last = max(at for at, word in enumerate(words) if re.match(r"-s\Z|--no-(p|o)|-[a-zA-Z]*s", word) or at == 0)
        if any(
            re.match(r"(-p|-u|--patch|--stat|--raw|--numstat|--shortstat|--summary|--name-)", word) for word in words[last + 1 :]
        ):
            options.no_output, options.patch = None, options.patch or None
    return options


def _number(text, option):
    if not str(text).isdigit():
        raise Failure(f"{option} expects a numerical value", 129, "error: ")
    return int(text)


def _share(text):
    """`50%`, `5` and `50` of -M as a part of one."""
    if text is True or not text:
        return 0.5
    found = re.fullmatch(r"(\d+)(?:\.(\d+))?(%?)", text)
    if not found:
        raise Failure(f"invalid argument to find-renames: {text}", 129, "error: ")
    value = float(f"{found[1]}.{found[2] or 0}") / 100 if found[3] else float(f"0.{found[1]}")
    return min(value, 1.0)


def look_of(options, git=None, default=()):
    """How changes are to be shown, and in which forms (a set); `default` are the forms where the words name none."""
    look, setting = patches.Look(), git.config.get if git else lambda key, default=None: default
    forms = {form for form in FORMS if getattr(options, form)}
    if options.unified is not None or options.binary or options.word_diff or options.color_words:
        forms.add("patch")
    if options.patch_with_stat:
        forms |= {"patch", "stat"}
    if options.compact_summary:
        forms.add("stat")
        look.compact = True
    if options.function_context:
        look.whole = True
    if len(forms & {"name_only", "name_status", "check"}) > 1:
        raise Failure("options '--name-only', '--name-status', '--check', and '-s' cannot be used together")
    if options.no_output and not (options.patch and forms - {"patch"}):
        forms = {"none"} if not (forms - {"patch"}) or options.patch is not False else forms - {"patch"}
    elif not forms:
        forms = set(default)
    context = options.unified if options.unified not in (None, True) else setting("diff.context")
    look.context = _number(context, "unified") if context is not None else 3
    if options.inter_hunk_context:
        look.between = _number(options.inter_hunk_context, "inter-hunk-context")
    look.ignore = (
        "all"
        if options.ignore_all_space
        else "change"
        if options.ignore_space_change
        else "eol"
        if options.ignore_space_at_eol
        else "cr"
        if options.ignore_cr_at_eol
        else None
    )
    look.ignore_blank, look.text = bool(options.ignore_blank_lines), bool(options.text)
    look.full, look.binary, look.zero = bool(options.full_index), bool(options.binary), bool(options.z)
    if options.abbrev not in (None, True):
        look.count = 40 if options.abbrev is False else max(4, min(_number(options.abbrev, "abbrev"), 40))
    if options.no_prefix or setting("diff.noprefix") == "true" and not options.default_prefix:
        look.old_prefix = look.new_prefix = b""
    for name, value in (("old_prefix", options.src_prefix), ("new_prefix", options.dst_prefix)):
        if value is not None:
            setattr(look, name, os.fsencode(value))
    if options.R:
        look.old_prefix, look.new_prefix = look.new_prefix, look.old_prefix
    if isinstance(options.stat, str):
        sizes = [int(part) if part.isdigit() else None for part in options.stat.split(",")]
        look.width, look.name_width, look.count_rows = (sizes + [None, None])[:3]
    if options.color not in (None, True, False, "always", "auto", "never"):
        raise Failure('option `color\' expects "always", "auto", or "never"', 129, "error: ")
    look.colour = options.color in (True, "always") or bool(options.color_words)
    if options.word_diff or options.color_words:
        kind = "color" if options.color_words else "plain" if options.word_diff is True else options.word_diff
        if kind not in ("plain", "color", "porcelain", "none"):
            raise Failure(f"bad --word-diff argument: {kind}", 129, "error: ")
        look.words = None if kind == "none" else kind
        look.colour = look.colour or kind == "color"
    if options.diff_algorithm not in (None, False, "myers", "default", "minimal"):
        raise Failure('option diff-algorithm accepts "myers" and "minimal"', 129, "error: ")
    if options.relative:
        look.relative = os.fsencode(options.relative) if options.relative is not True else git.prefix if git else b""
        if look.relative and options.relative is not True and not look.relative.endswith(b"/"):
            look.relative += b"/"
    return look, forms


def renames_of(options, git=None, default=True):
    """The argument `renames` of `tree_changes`."""
    setting = (git.config.get("diff.renames") or "true").lower() if git and default else "true" if default else "false"
    if options.find_renames is False or options.renames is False:
        return False
    if options.find_copies or options.find_copies_harder:
        harder = options.find_copies_harder
        return {"score": _share(options.find_copies), "copies": 2 if harder else 1}
    if options.find_renames or options.renames:
        return {"score": _share(options.find_renames)}
    if setting in ("copies", "copy"):
        return {"copies": 1}
    return setting not in ("false", "no", "0", "off")


def chosen(git, changes, options):
    """The changes that -R, --diff-filter, --relative, -S and -G leave."""
    if options.R:
        changes = sorted((change.reversed() for change in changes), key=lambda change: change.path)
    if options.relative:
        prefix = look_of(options, git)[0].relative
        changes = [change for change in changes if change.path.startswith(prefix)]
    if options.S is not None or options.G is not None:
        hits = [change for change in changes if pickaxe(git, change, options)]
        changes = changes if options.pickaxe_all and hits else hits
    if options.diff_filter:
        for letter in options.diff_filter:
            if letter.upper() not in "ACDMRTUXB*":
                raise Failure(f"unknown change class '{letter}' in --diff-filter={options.diff_filter}", 129, "error: ")
        kept = {letter for letter in options.diff_filter if letter.isupper()}
        dropped = {letter.upper() for letter in options.diff_filter if letter.islower()}
        changes = [c for c in changes if (not kept or c.kind in kept) and c.kind not in dropped]
    return changes


def pickaxe(git, change, options):
    """Whether -S or -G finds its words in a change."""
    if change.kind == "U" or change.old_sha == change.new_sha:
        return False
    old, new = change.data(git, 0), change.data(git, 1)
    # Of `git log`; `git diff` has no such option.
    ignore_case = getattr(options, "regexp_ignore_case", None)
    if options.S is not None:
        if options.pickaxe_regex or ignore_case:
            expression = _expression(options.S, ignore_case, fixed=not options.pickaxe_regex)
            return len(expression.findall(old)) != len(expression.findall(new))
        words = os.fsencode(options.S)
        return old.count(words) != new.count(words)
    expression = _expression(options.G, ignore_case)
    if not (expression.search(old) or expression.search(new)):
        return False
    found = patches.compared(git, change, patches.Look())
    if found is None:
        return False
    olds, news, some = found
    return any(expression.search(line) for block in some for line in olds[block[0] : block[1]] + news[block[2] : block[3]])


def _expression(text, ignore_case, fixed=False):
    """An extended regular expression, or words that are fixed, in Python's form."""
    from _git_grep import classes

    text = re.escape(text) if fixed else classes(text).replace("\\<", r"\b").replace("\\>", r"\b")
    try:
        return re.compile(os.fsencode(text), re.M | (re.I if ignore_case else 0))
    except re.error as why:
        raise Failure(f"invalid regex: {why}")


def rendered(git, changes, forms, look):
    """Changes in bytes, in the order in which git puts the forms."""
    result = ""
    if "raw" in forms:
        result += patches.raw(git, changes, look)
    if "name_only" in forms:
        result += patches.names(changes, look)
    if "name_status" in forms:
        result += patches.names(changes, look, True)
    if "check" in forms:
        result += patches.check(git, changes, look)
    if "numstat" in forms:
        result += patches.numstat(git, changes, look)
    if "stat" in forms:
        result += patches.stat(git, changes, look)
    if "shortstat" in forms:
        short = patches.shortstat(git, changes, look)
        result += short + "\n" if short else ""
    if "summary" in forms:
        result += patches.mode_summary(git, changes, look)
    data = os.fsencode(result)
    if "patch" in forms:
        text = patches.patch(git, changes, look)
        data += b"\n" + text if data and text else text
    return data
