# format-patch: commits as letters.
import os
import re

import _git_core as core
import _git_walk as walks
from _git_changes import Paths, commit_changes
from _git_core import Failure
from _git_diff import split_words
from _git_look import look_of, parse, renames_of
from _git_patch import mode_summary, patch, stat
from _git_pretty import Pretty, body_of, date_text
from _git_template import file_name

OPTIONS = """
-o --output-directory =
--stdout
-N --no-numbered
-n --numbered
-k --keep-subject
--subject-prefix =
--rfc
-v --reroll-count =
--start-number =
--root
--signoff
--signature =
--no-signature
--zero-commit
--numbered-files
--suffix =
--max-count =
"""


def letter(
    git,
    commit,
    look,
    prefix,
    number=None,
    total=None,
    keep=False,
    signoff=None,
    signature=None,
    zero=False,
    renames=True,
    paths=None,
):
    """One commit as a letter in bytes."""
    pretty = Pretty(git, "medium")
    subject, body = pretty.subject(commit), body_of(pretty.message(commit))
    if signoff and signoff not in body:
        trailing = re.search(r"(?:\A|\n\n)(?:[A-Za-z-]+: .*\n?)+\Z", body)
        body = body.rstrip("\n") + ("\n" if trailing and body.strip() else "\n\n" if body.strip() else "") + signoff + "\n"
    count = f" {number:0{len(str(total))}d}/{total}" if number is not None else ""
    words = f"{prefix}{count}".strip()
    tag = "" if keep or not words else f"[{words}] "
    head = [f"From {'0' * 40 if zero else commit.id.decode()} Mon Sep 17 00:00:00 2001"]
    author = os.fsdecode(commit.author)
    name, _, rest = author.partition(" <")
    head.append(f"From: {_encoded(name)} <{rest}")
    head.append(f"Date: {date_text(commit.author_time, commit.author_timezone, 'rfc')}")
    head.append(_folded(f"Subject: {tag}", subject))
    plain = all(text.isascii() for text in (author, subject, body))
    if not plain:
        head += ["MIME-Version: 1.0", "Content-Type: text/plain; charset=UTF-8", "Content-Transfer-Encoding: 8bit"]
    changes = commit_changes(git, commit.parents[0] if commit.parents else None, commit.id, renames, paths)
    body = body.rstrip("\n")
    text = "\n".join(head) + "\n\n" + (body + "\n" if body else "")
    data = os.fsencode(text) + b"---\n" + os.fsencode(stat(git, changes, look) + mode_summary(git, changes, look)) + b"\n"
    data += patch(git, changes, look)
    return data + (b"-- \n%s\n\n" % os.fsencode(signature) if signature else b"")


def _encoded(text):
    if text.isascii():
        return f'"{text}"' if re.search(r'[()<>\[\]:;@\\,."]', text) else text
    quoted = "".join(chr(b) if chr(b).isalnum() and b < 128 else f"={b:02X}" for b in os.fsencode(text))
    return f"=?UTF-8?q?{quoted}?="


def _folded(start, subject):
    """The subject in lines of at most 78 signs."""
    if not subject.isascii():
        return start + _encoded(subject)
    lines, line = [], start.rstrip(" ") if not subject else start
    first = True
    for word in subject.split(" "):
        if not first and len(line) + 1 + len(word) > 77:
            lines.append(line)
            line = " " + word
        else:
            line += word if first else " " + word
        first = False
    return "\n".join([*lines, line])


def cmd_format_patch(argv, call):
    git = call.git()
    options = parse(
        "format-patch",
        walks.arguments(argv),
        OPTIONS
        + "".join(
            line + "\n"
            for line in walks.OPTIONS.strip().splitlines()
            if not line.startswith(("-n ", "-g ")) and "max-count" not in line
        ),
        "max_count",
    )
    revisions, words = split_words(git, options)
    if len(revisions) == 1 and ".." not in revisions[0] and not options.root and options.max_count is None:
        revisions = [revisions[0] + "..HEAD"]
    if not revisions and options.max_count is None:
        return 0
    options.no_merges = True
    if options.stat is None and not options.unified:
        options.stat = "72"
    look = look_of(options, git)[0]
    look.width, look.binary = look.width or 72, True
    look.count = look.count or None
    paths = Paths(git, words) if words else None
    walk = walks.Walk(git, options, revisions, paths)
    commits = [walk.get(sha) for sha in walk.all()][::-1]
    start = int(options.start_number or 1)
    prefix = options.subject_prefix if options.subject_prefix is not None else git.config.get("format.subjectprefix") or "PATCH"
    if options.rfc:
        prefix = "RFC " + prefix
    if options.reroll_count:
        prefix += f" v{options.reroll_count}"
    numbered = options.numbered or len(commits) > 1 and not options.no_numbered and options.numbered is not False
    keep = bool(options.keep_subject)
    if options.signature and options.signature is not True:
        signature = options.signature
    else:
        signature = None if options.no_signature or options.signature is False else version(call)
    signoff = None
    if options.signoff:
        signoff = "Signed-off-by: " + git.config.identity("committer")[0].decode()
    directory = options.output_directory or git.config.get("format.outputdirectory")
    if directory and options.stdout:
        raise Failure("options '--output-directory' and '--stdout' cannot be used together")
    total = start + len(commits) - 1
    for at, commit in enumerate(commits):
        number = start + at
        data = letter(
            git,
            commit,
            look,
            prefix,
            number if numbered and not keep else None,
            total,
            keep,
            signoff,
            signature,
            options.zero_commit,
            renames_of(options, git),
            paths,
        )
        if options.stdout:
            core.out((b"\n" if at else b"") + data)
            continue
        suffix = options.suffix if options.suffix is not None else ".patch"
        name = f"{number:04d}-" + file_name(Pretty(git).subject(commit))
        if options.reroll_count:
            name = f"v{options.reroll_count}-{name}"
        name = str(number) if options.numbered_files else name[: 64 - len(suffix) - 1] + suffix
        if directory:
            os.makedirs(directory, exist_ok=True)
            name = os.path.join(directory, name)
        with open(name, "wb") as file:
            file.write(data)
        core.out(name + "\n")
    return 0


def version(call):
    """The number that `git version` prints."""
    import io
    import sys

    kept = sys.stdout
    sys.stdout = io.TextIOWrapper(io.BytesIO(), write_through=True)
    try:
        call.run(["version"])
        text = sys.stdout.buffer.getvalue().decode()
    finally:
        sys.stdout = kept
    return text.split()[-1] if text.split() else "2.47.3"
