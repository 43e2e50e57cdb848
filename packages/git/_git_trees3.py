# Merging of trees: three dicts of files become one, with renames followed, and what is in conflict goes to the index in stages.
import os

import _git_core as core
from _git_core import Failure, out

LINK, MODULE = 0o120000, 0o160000


class Merged:
    """`files` is what the working tree gets; `conflicts` has base, ours and theirs (mode, digits; or None) by path; `texts` are
    the messages by path."""

    def __init__(self):
        self.files, self.conflicts, self.texts = {}, {}, {}

    def tell(self, path, text):
        self.texts.setdefault(path, []).append(text)

    def messages(self):
        return "".join(text + "\n" for path in sorted(self.texts) for text in self.texts[path])


class Labels:
    def __init__(self, ours, theirs, base="merged common ancestors"):
        self.ours, self.theirs, self.base = ours, theirs, base

    def marks(self):
        return [os.fsencode(name) for name in (self.ours, self.base, self.theirs)]


def shown(path):
    return os.fsdecode(path)


def renames(git, old, new):
    """Old paths with the new ones of files that moved; nothing is read where no file is gone or none is new."""
    gone = {path: entry for path, entry in old.items() if path not in new}
    come = {path: entry for path, entry in new.items() if path not in old}
    if not gone or not come:
        return {}
    from _git_changes import tree_changes

    return {change.old_path: change.new_path for change in tree_changes(git, gone, come, True) if change.kind == "R"}


def merge_trees(git, base, ours, theirs, labels, favour=None, depth=0, find_renames=True):
    merged = Merged()
    base, ours, theirs = dict(base), dict(ours), dict(theirs)
    own_renames, their_renames = ({}, {}) if not find_renames else (renames(git, base, ours), renames(git, base, theirs))
    for old in sorted(own_renames.keys() | their_renames.keys()):
        one, other = own_renames.get(old), their_renames.get(old)
        if one is not None and other is not None and one != other:
            rename_twice(git, merged, base, ours, theirs, old, one, other, labels, favour, depth)
        elif one is not None:
            follow(merged, base, ours, theirs, old, one, labels.ours, labels.theirs, 1)
        else:
            follow(merged, base, theirs, ours, old, other, labels.theirs, labels.ours, 2)
    for path in base.keys() | ours.keys() | theirs.keys():
        one, mine, other = base.get(path), ours.get(path), theirs.get(path)
        if mine == other or one == other:
            chosen = mine
        elif one == mine:
            chosen = other
        else:
            one_path(git, merged, path, one, mine, other, labels, favour, depth)
            continue
        if chosen is not None:
            merged.files[path] = chosen
    directories(merged, ours, theirs, labels)
    return merged


def follow(merged, base, renamed, other, old, new, label, other_label, side):
    """One side renamed a file: what the other did to it belongs to the new name."""
    entry = base.pop(old)
    if old not in other:
        if renamed.get(new) is None or new in base:
            return
        if new in other:
            return
        # It is gone on the other side.
        merged.tell(
            new, f"CONFLICT (rename/delete): {shown(old)} renamed to {shown(new)} in {label}, but deleted in {other_label}."
        )
        moved = renamed.pop(new)
        merged.files[new] = moved
        merged.conflicts[new] = (entry, moved, None) if side == 1 else (entry, None, moved)
        if moved != entry:
            merged.tell(
                new,
                f"CONFLICT (modify/delete): {shown(new)} deleted in {other_label} and modified in {label}.  "
                f"Version {label} of {shown(new)} left in tree.",
            )
        return
    changed = other.pop(old)
    if new in other:
        # A file of that name was added there: both have it, without a common origin.
        if new not in base:
            base.pop(new, None)
        return
    base[new] = entry
    other[new] = changed


def rename_twice(git, merged, base, ours, theirs, old, one, other, labels, favour, depth):
    entry = base.pop(old)
    mine, their = ours.pop(one), theirs.pop(other)
    merged.tell(
        old,
        f"CONFLICT (rename/rename): {shown(old)} renamed to {shown(one)} in {labels.ours} and to {shown(other)} in "
        f"{labels.theirs}.",
    )
    content, _ = merge_blobs(git, merged, old, entry, mine, their, labels, favour, depth)
    merged.conflicts[old] = (entry, None, None)
    merged.conflicts[one] = (None, mine, None)
    merged.conflicts[other] = (None, None, their)
    merged.files[one] = merged.files[other] = content


def regular(entry):
    return entry is not None and entry[0] & 0o170000 not in (LINK, MODULE)


def merge_blobs(git, merged, path, one, mine, other, labels, favour, depth):
    """Mode and digits of the merged file, and whether it has no conflict."""
    import _git_patch
    from _git_merge3 import merge_text
    from _git_work import add_blob

    mode = other[0] if one and one[0] == mine[0] else mine[0]
    clean = one is None or mine[0] == other[0] or one[0] in (mine[0], other[0])
    if mine[1] == other[1] or one is not None and one[1] == other[1]:
        return (mode, mine[1]), clean
    if one is not None and one[1] == mine[1]:
        return (mode, other[1]), clean
    if not regular(mine) or not regular(other) or one is not None and not regular(one):
        if favour == "theirs":
            return other, True
        return mine, favour == "ours"
    datas = [git.blob(one[1]) if one else b"", git.blob(mine[1]), git.blob(other[1])]
    if any(_git_patch.is_binary(data) for data in datas):
        if favour in ("ours", "theirs"):
            return ((mode, mine[1]) if favour == "ours" else (mode, other[1])), True
        if not depth:
            merged.tell(path, f"warning: Cannot merge binary files: {shown(path)} ({labels.ours} vs. {labels.theirs})")
        return (mode, mine[1]), False
    style = git.config.get("merge.conflictStyle") or "merge"
    if style not in ("merge", "diff3", "zdiff3"):
        raise Failure(f"unknown style '{style}' given for 'merge.conflictstyle'")
    data, count = merge_text(*datas, labels.marks(), favour, style, 7 + 2 * depth)
    return (mode, add_blob(git, data)), clean and not count


def one_path(git, merged, path, one, mine, other, labels, favour, depth):
    """A path that both sides changed, each in its own way."""
    if mine is not None and other is not None:
        merged.tell(path, f"Auto-merging {shown(path)}")
        content, clean = merge_blobs(git, merged, path, one, mine, other, labels, favour, depth)
        merged.texts[path].sort(key=lambda text: not text.startswith("warning: "))
        merged.files[path] = content
        if not clean:
            kind = "content" if one is not None else "add/add"
            if content[0] & 0o170000 == MODULE:
                kind = "submodule"
            merged.conflicts[path] = (one, mine, other)
            merged.tell(path, f"CONFLICT ({kind}): Merge conflict in {shown(path)}")
        return
    left, gone = (labels.ours, labels.theirs) if mine is not None else (labels.theirs, labels.ours)
    merged.files[path] = mine if mine is not None else other
    merged.conflicts[path] = (one, mine, other)
    if depth:
        merged.files[path] = one
    merged.tell(
        path,
        f"CONFLICT (modify/delete): {shown(path)} deleted in {gone} and modified in {left}.  "
        f"Version {left} of {shown(path)} left in tree.",
    )


def directories(merged, ours, theirs, labels):
    """A file in the place of a directory moves away."""
    names = set()
    for path in merged.files:
        while b"/" in path:
            path = path.rpartition(b"/")[0]
            if path in names:
                break
            names.add(path)
    for path in sorted(names & merged.files.keys()):
        label = labels.ours if merged.files[path] == ours.get(path) else labels.theirs
        entry = merged.files.pop(path)
        moved = path + b"~" + os.fsencode(label.replace("/", "_"))
        while moved in merged.files:
            moved += b"_0"
        merged.files[moved] = entry
        stages = merged.conflicts.pop(path, None)
        merged.conflicts[moved] = stages or ((None, entry, None) if label == labels.ours else (None, None, entry))
        merged.tell(
            path,
            f"CONFLICT (file/directory): directory in the way of {shown(path)} from {label}; moving it to {shown(moved)} "
            f"instead.",
        )


# Commits.


def common_files(git, one, other, bases=None, depth=0):
    """The files of the common origin of two commits: of one base, or of the bases merged with each other."""
    bases = merge_bases(git, one, other) if bases is None else bases
    if not bases:
        return {}, "empty tree"
    if len(bases) == 1:
        return git.tree(bases[0]), git.abbreviate(bases[0])
    bases = sorted(bases, key=lambda sha: (git.store[sha].commit_time, sha))
    files, current = git.tree(bases[0]), bases[0]
    for following in bases[1:]:
        if depth > 20:
            break
        below, _ = common_files(git, current, following, None, depth + 1)
        labels = Labels("Temporary merge branch 1", "Temporary merge branch 2")
        files = merge_trees(git, below, files, git.tree(following), labels, None, depth + 1).files
        current = following
    return files, "merged common ancestors"


def merge_bases(git, one, other):
    return [one] if one == other else list(git.merge_bases(one, other))


def apply_merged(git, ours, merged, action="merge"):
    """Brings a merge into the working tree and the index; `ours` are the files of HEAD."""
    import _git_work

    for path, (mode, _) in merged.files.items():
        if ours.get(path) is None or path in merged.conflicts:
            _git_work.check_path(path, mode)
    _git_work.move(git, ours, merged.files, action=action)
    if not merged.conflicts:
        return
    from dulwich.index import ConflictedIndexEntry

    index = git.open_index()
    for path, stages in merged.conflicts.items():
        if path in index:
            del index[path]
        entries = [bare_entry(entry) for entry in stages]
        index[path] = ConflictedIndexEntry(*entries)
    _git_work.save_index(git, index)


def bare_entry(entry):
    from dulwich.index import IndexEntry

    return entry and IndexEntry((0, 0), (0, 0), 0, 0, entry[0], 0, 0, 0, entry[1])


def conflict_note(merged):
    """The list of conflicts at the end of a message."""
    lines = "".join(f"#\t{shown(path)}\n" for path in sorted(merged.conflicts))
    return f"# Conflicts:\n{lines}" if lines else ""


def print_messages(merged):
    out(merged.messages())


def reset_merge(git, files):
    """Back to the files of a commit, where the index differs from it; changes of other files in the working tree stay."""
    import _git_work

    index = git.open_index()
    places, written = _git_work.Places(git), _git_work.index_time(git)
    entries = dict(index.items())
    for path in sorted(entries.keys() | files.keys(), reverse=True):
        entry, wanted = entries.get(path), files.get(path)
        if entry is not None and hasattr(entry, "sha") and wanted == (entry.mode, entry.sha):
            continue
        if entry is not None and hasattr(entry, "sha"):
            found = places.lstat(path)
            if found is not None and _git_work.changed_file(git, path, entry, found, written):
                raise core.error(f"Entry '{shown(path)}' not uptodate. Cannot merge.", 128)
        if path in index:
            del index[path]
        if wanted is None:
            _git_work.remove_file(git, path)
    for path in sorted(files):
        entry, wanted = entries.get(path), files[path]
        if entry is not None and hasattr(entry, "sha") and wanted == (entry.mode, entry.sha):
            continue
        mode, sha = wanted
        _git_work.write_file(git, path, mode, b"" if mode == MODULE else git.blob(sha))
        index[path] = _git_work.index_entry(git, path, mode, sha)
    _git_work.save_index(git, index)
