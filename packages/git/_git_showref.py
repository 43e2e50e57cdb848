# The plain commands of references: show-ref, symbolic-ref, update-ref.
import os

import _git_core as core
from _git_core import Failure, out
from dulwich.objects import Tag


def cmd_show_ref(argv, call):
    options = core.parse(
        "show-ref",
        argv,
        "--head\n--heads --branches\n--tags\n-d --dereference\n-s --hash [=]\n--abbrev [=]\n--verify\n--exists\n-q --quiet",
    )
    git, words = call.git(), options.all_words()
    heads = options.branches

    def show(ref, sha):
        if options.quiet:
            return
        digits = sha.decode()
        short = options.hash if options.hash not in (None, True) else options.abbrev
        if short:
            digits = git.abbreviate(sha, None if short is True else int(short))
        out(f"{digits}\n" if options.hash else f"{digits} {os.fsdecode(ref)}\n")
        if options.dereference:
            found = git.store[sha]
            if isinstance(found, Tag):
                while isinstance(found, Tag):
                    found = git.store[found.object[1]]
                digits = found.id.decode()
                out(f"{digits}\n" if options.hash else f"{digits} {os.fsdecode(ref)}^{{}}\n")

    if options.exists:
        if len(words) != 1:
            raise Failure("--exists requires exactly one reference")
        if git.refs.read_ref(os.fsencode(words[0])) is None:
            raise Failure("reference does not exist", 2, "error: ")
        return 0
    if options.verify:
        if not words:
            raise Failure("--verify requires a reference")
        for word in words:
            ref = os.fsencode(word)
            if (ref.startswith(b"refs/") or ref == b"HEAD") and ref in git.refs:
                show(ref, git.refs[ref])
            elif options.quiet:
                return 1
            else:
                raise Failure(f"'{word}' - not a valid ref")
        return 0
    found = False
    names = sorted(ref for ref in git.refs.allkeys() if ref != b"HEAD")
    if options.head:
        names.insert(0, b"HEAD")
    for ref in names:
        if ref not in git.refs:
            continue
        wanted = (
            not (heads or options.tags)
            or heads
            and ref.startswith(b"refs/heads/")
            or options.tags
            and ref.startswith(b"refs/tags/")
        )
        if ref == b"HEAD":
            wanted = True
        if not wanted:
            continue
        if words and not (ref == b"HEAD" and options.head):
            text = "/" + os.fsdecode(ref)
            if not any(text.endswith("/" + word) for word in words):
                continue
        found = True
        show(ref, git.refs[ref])
    return 0 if found else 1


def cmd_symbolic_ref(argv, call):
    options = core.parse("symbolic-ref", argv, "-q --quiet\n--short\n-d --delete\n-m =\n--recurse")
    git, words = call.git(), options.all_words()
    if not 1 <= len(words) <= 2:
        raise Failure("usage: git symbolic-ref [-m <reason>] <name> <ref>", 129, "")
    name = os.fsencode(words[0])
    if len(words) == 2:
        target = os.fsencode(words[1])
        if name == b"HEAD" and not target.startswith(b"refs/"):
            raise Failure("Refusing to point HEAD outside of refs/")
        from dulwich.refs import check_ref_format

        if not check_ref_format(target):
            raise Failure(f"Refusing to set '{words[0]}' to invalid ref '{words[1]}'")
        if name == b"HEAD":
            with open(os.path.join(git.gitdir, "HEAD"), "wb") as file:
                file.write(b"ref: " + target + b"\n")
        else:
            git.refs.set_symbolic_ref(name, target)
        return 0
    value = git.refs.read_ref(name) or b""
    if not value.startswith(b"ref: "):
        if options.delete:
            raise Failure(f"Cannot delete {words[0]}, not a symbolic ref")
        if options.quiet:
            return 1
        raise Failure(f"ref {words[0]} is not a symbolic ref" if value else f"No such ref: {words[0]}")
    if options.delete:
        if name == b"HEAD":
            raise Failure("deleting 'HEAD' is not allowed")
        git.refs.remove_if_equals(name, None)
        return 0
    from _git_revparse import shorten

    target = value[5:].strip()
    out((shorten(git, target) if options.short else os.fsdecode(target)) + "\n")


def cmd_update_ref(argv, call):
    options = core.parse("update-ref", argv, "-m =\n-d\n--no-deref\n--create-reflog")
    git, words = call.git(), options.all_words()
    if not words or len(words) > 3 or options.d and len(words) > 2 or not options.d and len(words) < 2:
        raise Failure(
            "usage: git update-ref [<options>] -d <refname> [<old-oid>]\n   or: git update-ref [<options>]    <refname> "
            "<new-oid> [<old-oid>]",
            129,
            "",
        )
    ref = os.fsencode(words[0])
    from dulwich.refs import check_ref_format

    if ref != b"HEAD" and not check_ref_format(ref) and not words[0].isupper():
        raise Failure(f"update_ref failed for ref '{words[0]}': refusing to update ref with bad name '{words[0]}'")

    def value(word):
        if set(word) <= {"0"}:
            return core.ZERO
        sha = git.find(word)
        if sha is None:
            raise Failure(f"{word}: not a valid SHA1")
        return sha

    def check(word):
        old, now = value(word), git.refs[ref] if ref in git.refs else core.ZERO
        if old == now:
            return
        if old == core.ZERO:
            text = f"cannot lock ref '{words[0]}': reference already exists"
        elif now == core.ZERO:
            text = f"cannot lock ref '{words[0]}': unable to resolve reference '{words[0]}'"
        else:
            text = f"cannot lock ref '{words[0]}': is at {now.decode()} but expected {old.decode()}"
        if options.d:
            raise Failure(text, 1, "error: ")
        raise Failure(f"update_ref failed for ref '{words[0]}': {text}")

    if options.d:
        if len(words) == 2:
            check(words[1])
        from _git_refbase import delete_ref

        delete_ref(git, git.head_ref() or ref if ref == b"HEAD" else ref)
        return 0
    new = value(words[1])
    if len(words) == 3:
        check(words[2])
    if new == core.ZERO:
        from _git_refbase import delete_ref

        delete_ref(git, ref)
        return 0
    if ref == b"HEAD" and options.no_deref:
        git.detach(new, options.m or "")
    else:
        git.update_ref(ref, new, options.m or "")
