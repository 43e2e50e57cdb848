# diff, diff-tree, diff-index, diff-files.
import os
import stat

import _git_core as core
from _git_changes import (
    Change,
    Paths,
    as_matcher,
    commit_changes,
    hash_blob,
    index_files,
    tree_changes,
    worktree_files,
)
from _git_core import Failure
from _git_look import chosen, look_of, parse, renames_of, rendered
from _git_patch import mode_summary, patch_of, print_patch, print_stat, shortstat, worktree_changes  # noqa: F401

DIFF = """
--cached --staged
--no-index
--merge-base
--cc
-c
-0 --base
-1 --ours
-2 --theirs
"""


def split_words(git, options):
    """Revisions and paths of a command line: words from the first that is a file (and no revision) on are paths."""
    words = list(options.words)
    if options.paths is not None:
        for word in words:
            if not is_revision(git, word):
                raise Failure(f"bad revision '{word}'")
        return words, options.paths
    revisions = []
    for at, word in enumerate(words):
        if is_revision(git, word):
            if git.root is not None and os.path.lexists(word) and word not in ("HEAD", "@"):
                raise Failure(
                    f"ambiguous argument '{word}': both revision and filename\n"
                    "Use '--' to separate paths from revisions, like this:\n"
                    "'git <command> [<revision>...] -- [<file>...]'"
                )
            revisions.append(word)
            continue
        for path in words[at:]:
            if not looks_like_path(path):
                if path != word and is_revision(git, path):
                    raise not_a_path(path)
                raise git.unknown(path)
        return revisions, words[at:]
    return revisions, []


def not_a_path(word):
    return Failure(
        f"{word}: no such path in the working tree.\nUse 'git <command> -- <path>...' to specify paths that do not exist locally."
    )


def looks_like_path(word):
    return (
        os.path.lexists(word)
        or word.startswith(":")
        and len(word) > 1
        and word[1] in "(!^/"
        or any(sign in word for sign in "*?[")
    )


def is_revision(git, word):
    names = [word]
    if ".." in word and not word.startswith(("../", "..\\")) and word != "..":
        names = [name or "HEAD" for name in word.replace("...", "..", 1).split("..", 1)]
    elif word.startswith("^"):
        names = [word[1:]]
    for suffix in ("^@", "^!", "^-"):
        if names[0].endswith(suffix) and len(names) == 1:
            names = [names[0].removesuffix(suffix)]
    if any(word.startswith("^--") for word in names) or word.startswith("^--"):
        return True
    return all(name and git.find(name) is not None for name in names)


def range_ends(git, word):
    """Both commits of A..B or A...B (the merge base first there), or None."""
    if "..." in word:
        one, two = (git.commit(name or "HEAD").id for name in word.split("...", 1))
        bases = git.merge_bases(one, two)
        if not bases:
            raise Failure(f"{word}: no merge base")
        return bases[0], two
    if ".." in word:
        one, two = word.split("..", 1)
        return git.resolve(one or "HEAD"), git.resolve(two or "HEAD")
    return None


def finish(git, changes, options, default, extra=b""):
    """Prints the changes and says how the command ends."""
    look, forms = look_of(options, git, default)
    look.raw_count = 40 if default == {"raw"} and options.abbrev is None else None
    changes = chosen(git, changes, options)
    if options.quiet:
        return 1 if changes or extra else 0
    text = rendered(git, changes, forms, look)
    core.out(text if not extra or "patch" not in forms else extra + text)
    differs = bool(changes or extra)
    if look.ignore or look.ignore_blank:
        differs = any(patch_of(git, change, look) for change in changes) or bool(extra)
    code = 1 if options.exit_code and differs else 0
    if "check" in forms and text:
        code |= 2
    return code


def cmd_diff(argv, call):
    options = parse("diff", argv, DIFF)
    if options.no_index:
        return _no_index(options, options.all_words())
    try:
        git = call.git()
    except Failure:
        if len(options.all_words()) == 2:
            return _no_index(options, options.all_words())
        core.say("warning: Not a git repository. Use --no-index to compare two paths outside a working tree\n")
        raise Failure("usage: git diff --no-index [<options>] <path> <path>", 129, "")
    if options.paths is None and len(options.words) == 2 and git.root is not None and not options.cached:
        top = git.root.rstrip("/") + "/"
        full = [os.path.abspath(word) + "/" for word in options.words]
        if any(not path.startswith(top) and os.path.lexists(path[:-1]) for path in full) and not all(
            map(git.find, options.words)
        ):
            return _no_index(options, options.words)
    revisions, words = split_words(git, options)
    revisions = [word for word in revisions]
    paths = as_matcher(git, Paths(git, words)) if words else None
    paths = paths or None
    renames = renames_of(options, git)
    default = {"patch"}
    if options.cached:
        if len(revisions) > 1:
            raise Failure("usage: git diff [<options>] [<commit>] [--] [<path>...]", 129, "")
        base = git.commit(revisions[0]).id if revisions else git.head()
        if options.merge_base:
            base = _base(git, base, git.head())
        return finish(git, _index_changes(git, base, renames, paths), options, default)
    if not revisions:
        git.need_worktree()
        return _worktree(git, options, renames, paths, default)
    if len(revisions) == 1 and revisions[0].endswith(("^!", "^-")):
        commit = git.commit(revisions[0][:-2])
        return finish(git, commit_changes(git, (commit.parents or [None])[0], commit.id, renames, paths), options, default)
    if len(revisions) == 1 and (ends := range_ends(git, revisions[0])) is None:
        sha = git.resolve(revisions[0])
        if _is_blob(git, sha):
            return _blobs(git, options, revisions, words, default)
        git.need_worktree()
        if options.merge_base:
            sha = _base(git, sha, git.head())
        return finish(git, against_worktree(git, sha, renames, paths), options, default)
    if len(revisions) == 1:
        one, two = ends
    elif len(revisions) == 2:
        excluded = [word for word in revisions if word.startswith("^")]
        if excluded:
            revisions = [excluded[0][1:]] + [word for word in revisions if word not in excluded]
        if any(range_ends(git, word) for word in revisions):
            raise Failure("usage: git diff [<options>] <commit> <commit> [--] [<path>...]", 129, "")
        one, two = git.resolve(revisions[0]), git.resolve(revisions[1])
    else:
        raise Failure("usage: git diff [<options>] <commit> <commit> [--] [<path>...]", 129, "")
    if _is_blob(git, one) and _is_blob(git, two):
        return _blobs(git, options, revisions if len(revisions) == 2 else revisions[0].split("..", 1), words, default)
    if options.merge_base:
        one = _base(git, one, two)
    return finish(git, commit_changes(git, one, two, renames, paths), options, default)


def _base(git, one, two):
    bases = git.merge_bases(git.commit(one).id, git.commit(two).id)
    if not bases:
        raise Failure("no merge base found")
    return bases[0]


def _is_blob(git, sha):
    return git.store[sha].type_name == b"blob"


def _blobs(git, options, names, words, default):
    """Two files by their names in trees, or one of a tree and one of the working tree."""
    sides = []
    for name in names:
        sha = git.resolve(name)
        path = os.fsencode(name.partition(":")[2]) if ":" in name else sha
        sides.append((path, (0o100644, sha), None))
    if len(sides) == 1:
        if len(words) != 1:
            raise Failure("usage: git diff [<options>] <blob> <path>", 129, "")
        with open(words[0], "rb") as file:
            data = file.read()
        sides.append((git.tree_path(words[0]), (0o100644, hash_blob(data)), data))
    (old_path, old, old_data), (new_path, new, new_data) = sides
    if old[1] == new[1]:
        return 0
    return finish(git, [Change(old_path, new_path, old, new, "M", None, old_data, new_data)], options, default)


def _index_changes(git, base, renames, paths):
    entries = git.index()
    changes = tree_changes(git, git.tree(base), _whole_index(git, entries, base), renames, paths)
    conflicts = [path for path, entry in entries.items() if not hasattr(entry, "sha") and (paths is None or paths.match(path))]
    return sorted(changes + [Change(path, path, None, None, "U") for path in conflicts], key=lambda change: change.path)


def _whole_index(git, entries, base):
    """The index as a tree has it; a path in conflict is as it was."""
    files = index_files(entries)
    conflicts = [path for path, entry in entries.items() if not hasattr(entry, "sha")]
    if conflicts:
        old = git.tree(base)
        files |= {path: old[path] for path in conflicts if path in old}
    return files


def against_worktree(git, base, renames=True, paths=None):
    """Changes from a commit or tree to the files of the index as they are in the working tree."""
    entries = git.index()
    old = git.tree(base)
    files = index_files(entries)
    gone, now, data, conflicts = worktree_files(git, entries, paths)
    for path in gone.keys() - now.keys():
        files.pop(path, None)
    files |= now
    from _git_changes import read_worktree

    for path in conflicts:
        text = read_worktree(git, path)
        if text is not None:
            side = entries[path].this or entries[path].other
            files[path], data[path] = (side.mode, hash_blob(text)), text
    changes = tree_changes(git, old, files, renames, paths, data)
    for change in changes:
        change.unstored = change.path in data
    return changes


def _worktree(git, options, renames, paths, default):
    entries = git.index()
    changes = worktree_changes(git, entries, paths, renames)
    conflicts = [change for change in changes if change.kind == "U"]
    if not conflicts:
        return finish(git, changes, options, default)
    look, forms = look_of(options, git, default)
    stage = "this" if options.ours else "other" if options.theirs else "ancestor" if options.base else None
    from _git_combined import combined_patch, conflict

    if "patch" not in forms and stage is None or options.diff_filter or options.quiet:
        return finish(git, changes + ([] if stage else _beside(git, entries, conflicts, "this")), options, default)
    if stage:
        more = _beside(git, entries, conflicts, stage)
        return finish(git, sorted(changes + more, key=lambda c: (c.path, c.kind != "U")), options, default)
    text = b""
    for change in changes:
        if change.kind != "U":
            text += patch_of(git, change, look)
            continue
        file = conflict(git, change.path, entries[change.path])
        text += combined_patch(git, file, look) if file else patch_of(git, change, look)
    core.out(rendered(git, changes, forms - {"patch"}, look) + text)
    return 1 if options.exit_code else 0


def _beside(git, entries, conflicts, stage):
    """Changes from one side of a conflict to the file of the working tree."""
    from _git_changes import read_worktree

    found = []
    for change in conflicts:
        side = getattr(entries[change.path], stage)
        data = read_worktree(git, change.path)
        if side is None or data is None:
            continue
        new = (side.mode, hash_blob(data))
        if new[1] != side.sha:
            item = Change(change.path, change.path, (side.mode, side.sha), new, "M", None, None, data)
            item.unstored = True
            found.append(item)
    return found


# Files outside of a repository.


def _outside(word):
    if word == "/dev/null":
        return None
    if word == "-":
        import sys

        data = sys.stdin.buffer.read()
        return 0o100644, hash_blob(data), data
    info = os.lstat(word)
    if stat.S_ISLNK(info.st_mode):
        data = os.fsencode(os.readlink(word))
        return 0o120000, hash_blob(data), data
    with open(word, "rb") as file:
        data = file.read()
    return 0o100755 if info.st_mode & 0o100 else 0o100644, hash_blob(data), data


def _below(top):
    found = {}
    for directory, directories, names in os.walk(top):
        directories[:] = [name for name in directories if name != ".git"]
        for name in names + [name for name in directories if os.path.islink(os.path.join(directory, name))]:
            path = os.path.join(directory, name)
            found[os.path.relpath(path, top)] = path
    return found


def _no_index(options, words):
    if len(words) != 2:
        raise Failure("usage: git diff --no-index [<options>] <path> <path>", 129, "")
    options.exit_code = True
    one, two = words
    for word in words:
        if word not in ("-", "/dev/null") and not os.path.lexists(word):
            raise Failure(f"Could not access '{word}'", 1, "error: ")
    one_dir, two_dir = os.path.isdir(one), os.path.isdir(two)
    if one_dir and two_dir:
        olds, news = _below(one), _below(two)
        pairs = [(olds.get(name), news.get(name)) for name in sorted(olds.keys() | news.keys())]
    else:
        if one_dir:
            one = os.path.join(one, os.path.basename(two))
        elif two_dir:
            two = os.path.join(two, os.path.basename(one))
        for word in (one, two):
            if word not in ("-", "/dev/null") and not os.path.lexists(word):
                raise Failure(f"Could not access '{word}'", 1, "error: ")
        pairs = [(one, two)]
    changes = []
    for old_name, new_name in pairs:
        old = _outside(old_name) if old_name else None
        new = _outside(new_name) if new_name else None
        if old == new:
            continue
        shown = [
            os.fsencode(name or other)
            for name, other in ((old_name if old else new_name, new_name), (new_name if new else old_name, old_name))
        ]
        shown = [name.removeprefix(b"./").lstrip(b"/") for name in shown]
        kind = "A" if old is None else "D" if new is None else "M" if old[0] & 0o170000 == new[0] & 0o170000 else "T"
        change = Change(*shown, old and old[:2], new and new[:2], kind, None, old and old[2], new and new[2])
        change.stat_names = [(b"/dev/null" if side is None else name) for side, name in ((old, shown[0]), (new, shown[1]))]
        changes.append(change)
    return finish(None, changes, options, {"patch"})


# The plumbing.

TREE_WALK = """
-r
--root
-m
-c
--cc
--no-commit-id
--cached
--merge-base
"""


def cmd_diff_tree(argv, call):
    from _git_log import print_commit_of_diff_tree

    git, options = call.git(), parse("diff-tree", argv, TREE_WALK)
    revisions, words = split_words(git, options)
    paths = Paths(git, words) if words else None
    look, forms = look_of(options, git, {"raw"})
    renames = renames_of(options, git, False)
    deep = options.r or forms & {"patch", "stat", "numstat", "shortstat", "summary", "check"}
    if len(revisions) == 1 and (ends := range_ends(git, revisions[0])):
        revisions = [name.decode() for name in ends]
    if len(revisions) == 2:
        from dulwich.objects import Tree

        sides = [git.resolve(word) for word in revisions]
        if deep:
            return finish(git, commit_changes(git, *sides, renames, paths), options, {"raw"})
        return finish(git, _shallow(git, *(git.peel(side, Tree) for side in sides), paths), options, {"raw"})
    if len(revisions) != 1:
        raise Failure("usage: git diff-tree [<options>] <tree-ish> [<tree-ish>] [<path>...]", 129, "")
    commit = git.commit(revisions[0])
    if len(commit.parents) > 1 and not options.m:
        return print_commit_of_diff_tree(git, commit, options, look, forms, paths)
    if not commit.parents and not options.root:
        return 0
    code = 0
    for parent in commit.parents or [None]:
        old = git.store[parent].tree if parent else None
        changes = commit_changes(git, old, commit.tree, renames, paths) if deep else _shallow(git, old, commit.tree, paths)
        if not changes:
            continue
        if not options.no_commit_id and not options.quiet:
            core.out(commit.id + b"\n")
            if "patch" in forms:
                core.out("")
        code |= finish(git, changes, options, {"raw"})
    return code


def _shallow(git, old, new, paths):
    """The entries of two trees that differ, directories among them as such."""
    sides = [{name: (mode, sha) for name, mode, sha in git.store[tree].iteritems()} if tree else {} for tree in (old, new)]
    changes = []
    for name in sorted(sides[0].keys() | sides[1].keys()):
        one, two = sides[0].get(name), sides[1].get(name)
        wanted = paths is None or paths.match(name) or paths.below(name + b"/") and (one or two)[0] & 0o170000 == 0o040000
        if one != two and wanted:
            changes.append(Change(name, name, one, two, "A" if not one else "D" if not two else "M"))
    return changes


def cmd_diff_index(argv, call):
    git, options = call.git(), parse("diff-index", argv, TREE_WALK)
    revisions, words = split_words(git, options)
    if len(revisions) != 1:
        raise Failure(
            "usage: git diff-index [-m] [--cached] [--merge-base] [<common-diff-options>] <tree-ish> [<path>...]", 129, ""
        )
    paths, renames = Paths(git, words) if words else None, renames_of(options, git, False)
    base = git.resolve(revisions[0])
    if options.merge_base:
        base = _base(git, base, git.head())
    changes = _index_changes(git, base, renames, paths) if options.cached else against_worktree(git, base, renames, paths)
    return finish(git, changes, options, {"raw"})


def cmd_diff_files(argv, call):
    git, options = call.git(), parse("diff-files", argv, TREE_WALK + "-0 --base\n-1 --ours\n-2 --theirs\n-q\n")
    paths = Paths(git, options.all_words()) if options.all_words() else None
    git.need_worktree()
    return _worktree(git, options, renames_of(options, git, False), paths, {"raw"})
