# `git tag` and `git describe`.
import fnmatch
import os
import sys

import _git_core as core
from _git_core import Failure, error, out, say
from dulwich.objects import Commit, Tag

OPTIONS = """
-l --list
-n [=]
-d --delete
-v --verify
-a --annotate
-m --message =*
-F --file =
-e --edit
-f --force
--color [=]
--contains =*
--no-contains =*
--merged [=]
--no-merged [=]
--points-at =
--sort =*
--format =
-i --ignore-case
--no-sign
"""


def cmd_tag(argv, call):
    from _git_refs import joined

    argv = joined(argv, ("--merged", "--no-merged", "--contains", "--no-contains", "--points-at"))
    options = core.parse("tag", argv, OPTIONS)
    git, words = call.git(), options.all_words()
    if options.delete:
        return delete(git, words)
    if options.verify:
        raise error("tags cannot be verified here; there is no gpg")
    filters = options.contains or options.no_contains or options.merged or options.no_merged or options.points_at
    if options.list or filters or options.n or not words:
        return listing(git, options, words)
    if len(words) > 2:
        raise Failure("too many arguments")
    return create(git, options, *words)


def listing(git, options, words):
    from _git_reflist import all_refs, filtered, formatted, sort_items

    items = all_refs(git, b"refs/tags/")
    if words:
        name = lambda item: os.fsdecode(item.ref[10:])
        fold = str.lower if options.ignore_case else str
        items = [item for item in items if any(fnmatch.fnmatchcase(fold(name(item)), fold(word)) for word in words)]
    items = filtered(git, items, options)
    keys = options.sort or ([git.config.get("tag.sort")] if git.config.get("tag.sort") else [])
    for item in sort_items(items, keys):
        if options.format is not None:
            out(formatted(item, options.format) + "\n")
            continue
        name = os.fsdecode(item.ref[10:])
        if options.n:
            count = int(options.n) if options.n is not True else 1
            message = os.fsdecode(getattr(item.object, "message", b"") or b"").rstrip("\n")
            lines = message.split("\n")[:count]
            text = "\n    ".join(lines)
            out(f"{name:<15} {text}\n")
        else:
            out(name + "\n")


def create(git, options, name, target="HEAD"):
    from _git_refbase import refuse_overlap, valid_name

    ref = b"refs/tags/" + os.fsencode(name)
    sha = git.find(target)
    if sha is None:
        raise Failure(f"Failed to resolve '{target}' as a valid ref.")
    if not valid_name(ref):
        raise Failure(f"'{name}' is not a valid tag name.")
    before = git.refs[ref] if ref in git.refs else None
    if before is not None and not options.force:
        raise Failure(f"tag '{name}' already exists")
    refuse_overlap(git, ref)
    texts = options.message
    if options.annotate or texts or options.file is not None:
        import _git_work

        if texts:
            message = os.fsencode("\n\n".join(text.rstrip("\n") for text in texts) + "\n")
        elif options.file is not None:
            try:
                with sys.stdin.buffer if options.file == "-" else open(options.file, "rb") as file:
                    message = file.read()
            except OSError as why:
                raise Failure(f"could not open or read '{options.file}': {why.strerror}")
        else:
            initial = f"\n#\n# Write a message for tag:\n#   {name}\n# Lines starting with '#' will be ignored.\n"
            message = _git_work.edit_message(git, initial.encode(), "TAG_EDITMSG")
        if texts and options.edit:
            message = _git_work.edit_message(git, message, "TAG_EDITMSG")
        message = _git_work.clean_message(message, not (texts or options.file is not None) or bool(options.edit))
        if not message and not texts and options.file is None:
            raise Failure("no tag message?")
        tag = Tag()
        thing = git.store[sha]
        if isinstance(thing, Tag):
            say(
                f"hint: You have created a nested tag. The object referred to by your new tag is\nhint: already a tag. If "
                f"you meant to tag "
                f"the object that it points to, use:\nhint:\nhint: \tgit tag -f {name} {target}^{{}}\n"
                'hint: Disable this message with "git config advice.nestedTag false"\n'
            )
        tag.object = (type(thing), sha)
        tag.name = os.fsencode(name)
        tag.tagger, tag.tag_time, tag.tag_timezone = git.config.identity("committer")
        tag.message = message
        git.store.object_store.add_object(tag)
        sha = tag.id
    git.update_ref(ref, sha, f"tag: tagging {sha.decode()}")
    if before is not None and before != sha:
        out(f"Updated tag '{name}' (was {git.abbreviate(before)})\n")


def delete(git, words):
    from _git_refbase import delete_ref

    code = 0
    for word in words:
        ref = b"refs/tags/" + os.fsencode(word)
        if ref not in git.refs:
            say(f"error: tag '{word}' not found.\n")
            code = 1
            continue
        sha = git.refs[ref]
        delete_ref(git, ref)
        out(f"Deleted tag '{word}' (was {git.abbreviate(sha)})\n")
    return code


# describe


def named_commits(git, options):
    """The best name of each commit that has one: rank (2 for annotated tags, 1 for tags, 0 for other names), date, name."""
    found = {}
    for ref in sorted(git.refs.allkeys()):
        is_tag = ref.startswith(b"refs/tags/")
        if not is_tag and not options.all or ref == b"HEAD" or ref not in git.refs:
            continue
        name = os.fsdecode(ref[5:] if options.all else ref[10:])
        plain = os.fsdecode(ref[10:]) if is_tag else name.partition("/")[2]
        if options.match and not any(fnmatch.fnmatchcase(plain, pattern) for pattern in options.match):
            continue
        if any(fnmatch.fnmatchcase(plain, pattern) for pattern in options.exclude):
            continue
        thing = git.store[git.refs[ref]]
        rank, when = (2, thing.tag_time or 0) if is_tag and isinstance(thing, Tag) else (1 if is_tag else 0, 0)
        if rank < 2 and not options.tags and not options.all:
            rank = -1
        commit = git.peel(thing.id, Commit)
        if commit is None:
            continue
        if commit not in found or (rank, when) > found[commit][:2]:
            found[commit] = (rank, when, name)
    return found


def cmd_describe(argv, call):
    options = core.parse(
        "describe",
        argv,
        "--tags\n--always\n--all\n--dirty [=]\n--broken [=]\n--abbrev [=]\n--long\n--match =*\n--exclude =*\n--exact-match\n"
        "--candidates =\n--first-parent\n--contains\n--debug",
    )
    git, words = call.git(), options.all_words()
    if options.contains:
        raise error("describe --contains is not there", 129)
    abbrev = None if options.abbrev in (None, True) else 0 if options.abbrev is False else int(options.abbrev)
    if options.long and abbrev == 0:
        raise Failure("options '--long' and '--abbrev=0' cannot be used together")
    if options.dirty and words:
        raise Failure("option '--dirty' and commit-ishes cannot be used together")
    names = named_commits(git, options)
    if not names and not options.always:
        raise Failure("No names found, cannot describe anything.")
    for word in words or ["HEAD"]:
        sha = git.find(word)
        if sha is None:
            raise Failure(f"Not a valid object name {word}")
        commit = git.peel(sha, Commit)
        if commit is None:
            raise Failure(f"{word} is neither a commit nor blob")
        text = describe(git, commit, names, options, abbrev)
        if options.dirty:
            import _git_work

            if _git_work.files_changed(git, untracked="no").any():
                text += "-dirty" if options.dirty is True else options.dirty
        out(text + "\n")


def describe(git, sha, names, options, abbrev):
    short = lambda: git.abbreviate(sha, abbrev)
    exact = names.get(sha)
    if exact and exact[0] >= 0:
        return f"{exact[2]}-0-g{short()}" if options.long else exact[2]
    if options.exact_match:
        raise Failure(f"no tag exactly matches '{sha.decode()}'")
    if abbrev == 0 and options.always and not names:
        return sha.decode()
    best = nearest(git, sha, names, options.first_parent)
    if best is None:
        if options.always:
            return short() if abbrev != 0 else sha.decode()
        if any(rank < 0 for rank, _, _ in names.values()):
            raise Failure(f"No annotated tags can describe '{sha.decode()}'.\nHowever, there were unannotated tags: try --tags.")
        if options.all or options.tags or names:
            raise Failure(f"No tags can describe '{sha.decode()}'.\nTry --always, or create some tags.")
        raise Failure("No names found, cannot describe anything.")
    depth, name = best
    return name if abbrev == 0 else f"{name}-{depth}-g{short()}"


def nearest(git, sha, names, first_parent, limit=10):
    """The name that leaves the fewest commits over, with their number, among those first met on the way back."""
    import heapq

    order = [(-git.store[sha].commit_time, 0, sha)]
    known, met, count = {sha}, [], 0
    while order and len(met) < limit:
        _, _, current = heapq.heappop(order)
        found = names.get(current)
        if found and found[0] >= 0:
            met.append((current, found))
        commit = git.store[current]
        for parent in commit.parents[:1] if first_parent else commit.parents:
            if parent not in known and parent in git.store.object_store:
                known.add(parent)
                count += 1
                heapq.heappush(order, (-git.store[parent].commit_time, count, parent))
    if not met:
        return None
    from _git_reflist import history

    every = history(git, sha)
    ranked = []
    for at, (commit, found) in enumerate(met):
        ranked.append((len(every - history(git, commit)), at, found[2]))
    depth, _, name = min(ranked)
    return depth, name
