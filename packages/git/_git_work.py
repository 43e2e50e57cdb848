# The working tree and the index: how they differ from HEAD, writing files, and the way from one tree's files to another's.
import hashlib
import os
import stat

import _git_core as core
from _git_core import Failure
from _git_record import clean_message, create_commit, edit_message, run_hook, write_tree  # noqa: F401

LINK, FILE, PROGRAM, GITLINK = 0o120000, 0o100644, 0o100755, 0o160000
INTENT_TO_ADD = 0x2000


# Paths.


def check_path(path, mode=FILE):
    """Refuses a path that must not be in a working tree."""
    for name in path.split(b"/"):
        plain = name.partition(b":")[0].rstrip(b" .").lower()
        bad = name in (b"", b".", b"..") or plain in (b".git", b"git~1") or b"\0" in name
        if bad or (mode == LINK and plain == b".gitmodules"):
            raise Failure(f"invalid path '{os.fsdecode(path)}'", 128, "error: ")


def parents(path):
    """The directories above a path, the nearest first."""
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


def lstat(path):
    """The attributes of the file at a path, or None if there is none."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as why:
        raise core.error(f"{os.fsdecode(path)}: {why.strerror}", 128)


class Places:
    """Looks at files of the working tree by their tree paths, and never through a link in a directory above them."""

    def __init__(self, git):
        self.root, self._real = os.fsencode(git.root), {b"": True}

    def real(self, directory):
        known = self._real.get(directory)
        if known is None:
            above = directory.rpartition(b"/")[0]
            found = lstat(os.path.join(self.root, directory)) if self.real(above) else None
            known = self._real[directory] = found is not None and stat.S_ISDIR(found.st_mode)
        return known

    def lstat(self, path):
        if not self.real(path.rpartition(b"/")[0]):
            return None
        return lstat(os.path.join(self.root, path))


# Files.


def write_file(git, path, mode, data):
    """Writes a file, a link or the directory of a submodule into the working tree, and replaces what exists there."""
    check_path(path, mode)
    whole = os.fsencode(git.path(path))
    try:
        for directory in reversed(list(parents(path))):
            place = os.fsencode(git.path(directory))
            found = lstat(place)
            if found is not None and not stat.S_ISDIR(found.st_mode):
                os.unlink(place)
                found = None
            if found is None:
                os.mkdir(place)
        found = lstat(whole)
        if mode == GITLINK:
            if found is None:
                os.mkdir(whole)
            return
        if found is not None:
            if stat.S_ISDIR(found.st_mode):
                remove_empty(whole)
            else:
                os.unlink(whole)
        if mode == LINK and git.config.truth("core.symlinks", True):
            os.symlink(data, whole)
            return
        with open(whole, "wb") as file:
            file.write(data)
        if mode == PROGRAM and git.config.truth("core.fileMode", True) and hasattr(os, "chmod"):
            os.chmod(whole, os.stat(whole).st_mode | 0o111)
    except OSError as why:
        raise core.error(f"unable to create file {os.fsdecode(path)}: {why.strerror}", 128)


def remove_empty(place):
    """Removes a directory in which there are only empty directories."""
    for base, _, _ in os.walk(place, topdown=False):
        os.rmdir(base)


def remove_file(git, path):
    """Removes a file and the directories that are empty then; neither the top nor the directory that git runs in."""
    check_path(path)
    if not Places(git).real(path.rpartition(b"/")[0]):
        return
    whole = os.fsencode(git.path(path))
    try:
        found = lstat(whole)
        if found is not None:
            if stat.S_ISDIR(found.st_mode):
                os.rmdir(whole)
            else:
                os.unlink(whole)
    except OSError:
        return
    here = os.fsencode(os.getcwd())
    for directory in parents(path):
        place = os.fsencode(git.path(directory))
        if (here + b"/").startswith(place + b"/"):
            break
        try:
            os.rmdir(place)
        except OSError:
            break


def read_file(git, path, mode):
    """The bytes of a file or of a link as the repository keeps them."""
    whole = os.fsencode(git.path(path))
    try:
        if mode == LINK and os.path.islink(whole):
            return os.readlink(whole)
        with open(whole, "rb") as file:
            return file.read()
    except OSError as why:
        raise core.error(f'open("{os.fsdecode(path)}"): {why.strerror}', 128)


def blob_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest().encode()


def add_blob(git, data):
    """Stores the bytes of a file and returns their digits."""
    sha = blob_id(data)
    if sha not in git.store.object_store:
        from dulwich.objects import Blob

        git.store.object_store.add_object(Blob.from_string(data))
    return sha


def file_mode(git, found, before=None):
    """The mode for a file of the working tree. `before` is that of the index, which counts where there are no executable bits."""
    if stat.S_ISLNK(found.st_mode):
        return LINK
    if stat.S_ISDIR(found.st_mode):
        return GITLINK
    if before == LINK and not git.config.truth("core.symlinks", True):
        return LINK
    if not git.config.truth("core.fileMode", True):
        return before if before in (FILE, PROGRAM) else FILE
    return PROGRAM if found.st_mode & 0o100 else FILE


# The index.


def index_entry(git, path, mode, sha):
    """An entry with what the file in the working tree shows now; one that says nothing of it where there is none."""
    from dulwich.index import IndexEntry

    found = lstat(os.fsencode(git.path(path))) if git.root else None
    if found is None or mode == GITLINK:
        return IndexEntry((0, 0), (0, 0), 0, 0, mode, 0, 0, 0, sha)
    changed, made = found.st_mtime_ns, found.st_ctime_ns
    split = lambda time: (max(time // 10**9, 0) & 0xFFFFFFFF, time % 10**9)
    entry = IndexEntry(
        split(made), split(changed), found.st_dev, found.st_ino, mode, found.st_uid & 0xFFFFFFFF, found.st_gid & 0xFFFFFFFF,
        found.st_size & 0xFFFFFFFF, sha,
    )  # fmt: skip
    entry.fresh = True
    return entry


def is_conflict(entry):
    return not hasattr(entry, "sha")


def index_time(git):
    """When the index was written, in nanoseconds; 0 where there is none."""
    found = lstat(git.store.index_path())
    return found.st_mtime_ns if found else 0


def entry_time(entry):
    when = entry.mtime
    return when[0] * 10**9 + when[1] if isinstance(when, tuple) else int(when * 10**9)


def same_stat(entry, found, written):
    """Whether the file can be taken as that of the entry without reading it: same size and time, from before the index."""
    if entry.size != found.st_size & 0xFFFFFFFF:
        return False
    when = found.st_mtime_ns
    return when < written and (max(when // 10**9, 0) & 0xFFFFFFFF) * 10**9 + when % 10**9 == entry_time(entry)


def save_index(git, index):
    """Writes the index. An entry from the moment in which the index was written before is looked at again: the new index is
    younger and would hide a change of the file that left its size and time as they were."""
    from dulwich.file import FileLocked

    written, places = index_time(git), Places(git)
    for path, entry in index.items():
        if is_conflict(entry) or entry.mode == GITLINK or not entry.size or getattr(entry, "fresh", False):
            continue
        if entry_time(entry) >= written:
            found = places.lstat(path)
            if found is not None and entry_time(entry) == found.st_mtime_ns and changed_file(git, path, entry, found, 0):
                entry.size = 0
    # Extensions of other programs describe the old entries and not the new ones.
    index._extensions = []
    if any(not is_conflict(entry) and entry.extended_flags for _, entry in index.items()):
        index._version = max(index._version or 0, 3)
    try:
        index.write()
    except FileLocked:
        raise Failure(
            f"Unable to create '{index.path}.lock': File exists.\n\n"
            "Another git process seems to be running in this repository, e.g.\n"
            "an editor opened by 'git commit'. Please make sure all processes\n"
            "are terminated then try again. If it still fails, a git process\n"
            "may have crashed in this repository earlier:\nremove the file manually to continue."
        ) from None
    except OSError as why:
        raise Failure(f"unable to write new index file: {why.strerror}")


def changed_file(git, path, entry, found, written):
    """How the file (its `lstat`, or None) differs from the entry: D, T, M or nothing."""
    if found is None:
        return "D"
    if entry.mode == GITLINK:
        if not stat.S_ISDIR(found.st_mode):
            return "T"
        from dulwich.index import read_submodule_head

        head = read_submodule_head(os.fsencode(git.path(path)))
        return "M" if head is not None and head != entry.sha else ""
    if stat.S_ISDIR(found.st_mode):
        return "D"
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        return "T"
    mode = file_mode(git, found, entry.mode)
    if (mode == LINK) != (entry.mode == LINK):
        return "T"
    if mode != entry.mode:
        return "M"
    if same_stat(entry, found, written):
        return ""
    # A size that the entry knows and that differs says enough; entries of unknown files have 0.
    if entry.size and entry.size != found.st_size & 0xFFFFFFFF and entry_time(entry):
        return "M"
    return "M" if blob_id(read_file(git, path, mode)) != entry.sha else ""


UNMERGED = {
    (1, 0, 0): "DD", (0, 1, 0): "AU", (1, 0, 1): "DU", (0, 0, 1): "UA", (1, 1, 0): "UD", (0, 1, 1): "AA", (1, 1, 1): "UU",
}  # fmt: skip


def unmerged_letters(entry):
    return UNMERGED[(int(entry.ancestor is not None), int(entry.this is not None), int(entry.other is not None))]


class Changes:
    """`staged`, `unstaged` and `unmerged` have letters by paths; `untracked` and `ignored` are lists. `index` has the entries
    and `head` the files of HEAD that they were compared with."""

    def __init__(self):
        self.staged, self.unstaged, self.unmerged, self.untracked, self.ignored = {}, {}, {}, [], []
        self.index = self.head = None

    def any(self):
        return bool(self.staged or self.unstaged or self.unmerged)


def staged_changes(index, head):
    """Letters of the paths that differ between a tree's files and the index."""
    letters = {}
    for path, entry in index.items():
        if is_conflict(entry) or entry.extended_flags & INTENT_TO_ADD:
            continue
        before = head.get(path)
        if before is None:
            letters[path] = "A"
        elif before != (entry.mode, entry.sha):
            letters[path] = "T" if before[0] & 0o170000 != entry.mode & 0o170000 else "M"
    for path in head:
        if path not in index:
            letters[path] = "D"
    return letters


def files_changed(git, paths=None, untracked="normal", ignored=False, staged=True, head=None, index=None):
    """Files that differ between HEAD, the index and the working tree.

    `paths` is None for all, a list of tree paths (files or directories), or a Pathspec of _git_paths. `untracked` is normal,
    all or no. `head` and `index` are taken instead of the repository's where they are given.
    """
    from _git_paths import Pathspec, untracked_files

    spec = paths if paths is None or isinstance(paths, Pathspec) else Pathspec.of_paths(git, paths)
    result = Changes()
    other, index, written = index, git.open_index() if index is None else index, index_time(git)
    result.index = dict(index.items())
    if staged:
        result.head = git.tree(git.head()) if head is None else head
        for path, letter in staged_changes(result.index, result.head).items():
            if spec is None or spec.match(path):
                result.staged[path] = letter
    places, refreshed = Places(git), False
    for path, entry in result.index.items():
        if spec is not None and not spec.match(path):
            continue
        if is_conflict(entry):
            result.unmerged[path] = unmerged_letters(entry)
            continue
        if entry.skip_worktree or entry.flags & 0x8000:
            continue
        found = places.lstat(path)
        letter = changed_file(git, path, entry, found, written)
        if entry.extended_flags & INTENT_TO_ADD:
            letter = letter if letter == "D" else "A"
        if letter:
            result.unstaged[path] = letter
        elif entry.mode != GITLINK and not same_stat(entry, found, written):
            index[path] = fresh = index_entry(git, path, entry.mode, entry.sha)
            fresh.flags, fresh.extended_flags = entry.flags & 0xF000, entry.extended_flags
            refreshed = True
    if refreshed and other is None:
        try:
            save_index(git, index)
        except Failure:
            pass  # It only would have made the next command faster.
    if untracked != "no" or ignored:
        result.untracked, result.ignored = untracked_files(git, result.index, spec, untracked, ignored)
    return result


# From one tree to another.

ADVICE = {"checkout": "switch branches", "merge": "merge"}


def blocked(local, lost, untracked, action):
    """The failure for files that are in the way."""
    advice, texts = ADVICE.get(action, action), []
    for files, what, rest in (
        (local, "Your local changes to the following files", "Please commit your changes or stash them before you"),
        (untracked, "The following untracked working tree files", "Please move or remove them before you"),
    ):
        if files:
            listed = "".join(f"\t{os.fsdecode(path)}\n" for path in sorted(files))
            texts.append(f"error: {what} would be overwritten by {action}:\n{listed}{rest} {advice}.\n")
    if lost:
        listed = "".join(f"\t{os.fsdecode(path)}\n" for path in sorted(lost))
        texts.append(f"error: Updating the following directories would lose untracked files in them:\n{listed}\n")
    return Failure("".join(texts) + "Aborting", 1, "")


def move(git, old, new, force=False, action="checkout"):
    """Brings the working tree and the index from the files of one tree to those of another (`git.tree()`)."""
    from _git_paths import Ignores
    from _git_sparse import Sparse, skipped

    index, sparse = git.open_index(), Sparse(git)
    entries, places, written = dict(index.items()), Places(git), index_time(git)
    unmerged = sorted(path for path, entry in entries.items() if is_conflict(entry))
    if unmerged and not force:
        listed = "".join(f"{os.fsdecode(path)}: needs merge\n" for path in unmerged)
        core.out(listed)
        raise core.error("you need to resolve your current index first")
    if force:
        # Whatever the index has and the new tree has not goes, and every file of the new tree is looked at.
        differing = set(new) | set(entries) | set(old)
    else:
        differing = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    if git.fetch_missing:
        wanted = [path for path in differing if path in new and sparse.has(path)]
        git.fetch_missing(new[path][1] for path in wanted if new[path][0] & 0o170000 != 0o160000)
    removed, put, local, untracked, lost = [], [], set(), set(), set()
    ignores = Ignores(git)
    for path in sorted(differing):
        entry, wanted = entries.get(path), new.get(path)
        if wanted is not None:
            check_path(path, wanted[0])
        if force:
            found = places.lstat(path)
            same = entry is not None and not is_conflict(entry) and wanted == (entry.mode, entry.sha)
            if wanted is None:
                if entry is not None:
                    removed.append(path)
            elif not same or changed_file(git, path, entry, found, written):
                put.append(path)
            continue
        before = old.get(path)
        current = (entry.mode, entry.sha) if entry is not None else None
        if current == wanted:
            continue
        if current != before:
            local.add(path)
            continue
        found = places.lstat(path)
        if entry is not None:
            if found is not None and changed_file(git, path, entry, found, written) not in ("", "D"):
                local.add(path)
                continue
        if wanted is None:
            removed.append(path)
            continue
        put.append(path)
        if found is None:
            # A file where a directory has to be; tracked ones are looked at by themselves.
            for directory in parents(path):
                above = places.lstat(directory)
                if above is not None:
                    if not stat.S_ISDIR(above.st_mode) and directory not in entries and not ignores.ignored(directory, False):
                        untracked.add(directory)
                    break
        elif stat.S_ISDIR(found.st_mode):
            if wanted[0] == GITLINK:
                continue
            if holds_untracked(git, path, entries, ignores):
                lost.add(path)
        elif entry is None and not ignores.ignored(path, False):
            untracked.add(path)
    if local or untracked or lost:
        raise blocked(local, lost, untracked, action)
    store = git.store
    for path in reversed(removed):
        remove_file(git, path)
        if path in index:
            del index[path]
    for path in put:
        mode, sha = new[path]
        if not sparse.has(path) and (path not in entries or getattr(entries[path], "skip_worktree", False)):
            index[path] = skipped(git, path, mode, sha)
            continue
        if force:
            place = os.fsencode(git.path(path))
            if mode != GITLINK and os.path.isdir(place) and not os.path.islink(place):
                import shutil

                shutil.rmtree(place, ignore_errors=True)
        write_file(git, path, mode, b"" if mode == GITLINK else store[sha].data)
        # A file in place of a directory, or the other way round: the index cannot have both.
        for directory in parents(path):
            if directory in index and directory not in new:
                del index[directory]
        index[path] = index_entry(git, path, mode, sha)
    if removed or put or unmerged:
        save_index(git, index)


def holds_untracked(git, directory, entries, ignores):
    """Whether a directory has a file that is neither in the index nor ignored."""
    top = os.fsencode(git.root)
    for base, names, files in os.walk(os.path.join(top, directory)):
        below = os.path.relpath(base, top)
        for name in files:
            path = below + b"/" + name
            if path not in entries and not ignores.ignored(path, False):
                return True
        if b".git" in names:
            return True
    return False
