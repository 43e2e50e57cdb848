# git update-index: changes entries of the index one by one, in the order of the words.
import os
import re
import sys

import _git_core as core
import _git_work
from _git_core import Failure, out, say
from _git_work import FILE, GITLINK, LINK, PROGRAM, Places, changed_file, file_mode, index_entry, index_time, is_conflict

USAGE = "usage: git update-index [<options>] [--] [<file>...]\n"

ASSUME_UNCHANGED, SKIP_WORKTREE, EXTENDED = 0x8000, 0x4000, 0x4000

# Options that stay for the paths behind them: what they set, and to what.
STATES = {
    "--add": ("add", True),
    "--no-add": ("add", False),
    "--remove": ("remove", True),
    "--no-remove": ("remove", False),
    "--force-remove": ("force_remove", True),
    "--no-force-remove": ("force_remove", False),
    "--replace": ("replace", True),
    "--no-replace": ("replace", False),
    "--info-only": ("info_only", True),
    "--verbose": ("verbose", True),
    "--assume-unchanged": ("mark", (ASSUME_UNCHANGED, True)),
    "--no-assume-unchanged": ("mark", (ASSUME_UNCHANGED, False)),
    "--skip-worktree": ("mark", (SKIP_WORKTREE, True)),
    "--no-skip-worktree": ("mark", (SKIP_WORKTREE, False)),
    "--chmod=+x": ("chmod", "+x"),
    "--chmod=-x": ("chmod", "-x"),
    "-q": ("quiet", True),
    "--ignore-missing": ("ignore_missing", True),
    "--unmerged": ("unmerged", True),
    "--ignore-submodules": ("ignore_submodules", True),
    "-z": ("z", True),
}


class Work:
    def __init__(self, git):
        self.git, self.index, self.code = git, git.open_index(), 0
        self.add = self.remove = self.force_remove = self.replace = self.info_only = self.verbose = self.quiet = False
        self.ignore_missing = self.unmerged = self.ignore_submodules = self.z = False
        self.mark = self.chmod = None

    def tell(self, text):
        if self.verbose:
            out(text + "\n")

    def path(self, word):
        """One path of the command line."""
        git, index = self.git, self.index
        path = git.tree_path(word)
        shown = os.fsdecode(path)
        try:
            _git_work.check_path(path + b"/" if word.endswith("/") else path)
        except Failure:
            say(f"Ignoring path {word}\n")
            return
        if self.mark is not None:
            return self.set_mark(path, word)
        if self.force_remove:
            if path in index:
                del index[path]
            return self.tell(f"remove '{shown}'")
        found = Places(git).lstat(path)
        entry = index[path] if path in index else None
        if found is None:
            if self.remove:
                if entry is not None:
                    del index[path]
                return self.tell(f"remove '{shown}'")
            raise core.Failure(
                f"error: {shown}: does not exist and --remove not passed\nfatal: Unable to process path {shown}", 128, ""
            )
        if entry is None and not self.add:
            raise core.Failure(
                f"error: {shown}: cannot add to the index - missing --add option?\nfatal: Unable to process path {shown}", 128, ""
            )
        if os.path.isdir(git.path(path)) and not os.path.islink(git.path(path)) and not os.path.exists(git.path(path + b"/.git")):
            raise core.Failure(
                f"error: {shown}: is a directory - add files inside instead\nfatal: Unable to process path {shown}", 128, ""
            )
        known = entry if entry is None or not is_conflict(entry) else entry.this or entry.other or entry.ancestor
        mode = file_mode(git, found, known.mode if known is not None else None)
        if mode == GITLINK:
            from dulwich.index import read_submodule_head

            sha = read_submodule_head(os.fsencode(git.path(path)))
        else:
            data = _git_work.read_file(git, path, mode)
            sha = _git_work.blob_id(data) if self.info_only else _git_work.add_blob(git, data)
        self.put(path, index_entry(git, path, mode, sha))
        self.tell(f"add '{shown}'")
        if self.chmod:
            self.set_mode(path, word)

    def put(self, path, entry):
        """Puts an entry in its place, and takes away what cannot be beside it."""
        index = self.index
        clash = [other for other in index if other.startswith(path + b"/") or path.startswith(other + b"/")]
        if clash and not self.replace:
            raise core.Failure(
                f"error: '{os.fsdecode(path)}' appears as both a file and as a directory\n"
                f"error: {os.fsdecode(path)}: cannot add to the index - missing --add option?\n"
                f"fatal: Unable to process path {os.fsdecode(path)}",
                128,
                "",
            )
        for other in clash:
            del index[other]
        index[path] = entry

    def set_mode(self, path, word):
        entry = self.index[path]
        if is_conflict(entry) or entry.mode not in (FILE, PROGRAM):
            raise core.Failure(f"git update-index: cannot chmod {self.chmod} '{word}'")
        entry.mode = PROGRAM if self.chmod == "+x" else FILE
        self.tell(f"chmod {self.chmod} '{word}'")

    def set_mark(self, path, word):
        bit, on = self.mark
        entry = self.index[path] if path in self.index else None
        if entry is None or is_conflict(entry):
            raise core.Failure(f"Unable to mark file {word}")
        if bit == ASSUME_UNCHANGED:
            entry.flags = entry.flags | bit if on else entry.flags & ~bit
        else:
            entry.extended_flags = entry.extended_flags | bit if on else entry.extended_flags & ~bit
            entry.flags = entry.flags | EXTENDED if entry.extended_flags else entry.flags & ~EXTENDED

    def cacheinfo(self, mode, sha, path):
        git = self.git
        modes = {"100644": FILE, "100755": PROGRAM, "120000": LINK, "160000": GITLINK}
        digits = git.find(sha) if not re.fullmatch(r"[0-9a-f]{40}", sha) else sha.encode()
        tree_path = os.fsencode(os.path.normpath(path))
        if mode not in modes or digits is None:
            raise core.Failure(f"git update-index: --cacheinfo cannot add {path}")
        _git_work.check_path(tree_path, modes[mode])
        if tree_path not in self.index and not self.add:
            raise core.Failure(
                f"error: {path}: cannot add to the index - missing --add option?\n"
                f"fatal: git update-index: --cacheinfo cannot add {path}",
                128,
                "",
            )
        from dulwich.index import IndexEntry

        self.put(tree_path, IndexEntry((0, 0), (0, 0), 0, 0, modes[mode], 0, 0, 0, digits))

    def index_info(self, lines):
        """Entries as `ls-files -s` and `ls-tree` print them; a mode of 0 removes one."""
        from dulwich.index import ConflictedIndexEntry, IndexEntry

        for line in lines:
            found = re.fullmatch(rb"([0-7]+) (?:\w+ )?([0-9a-f]{40})(?: ([0-3]))?\t(.+)", line, re.S)
            if not found:
                raise core.Failure(f"malformed index info {os.fsdecode(line)}")
            mode, sha, stage, path = int(found[1], 8), found[2], int(found[3] or 0), found[4]
            if path.startswith(b'"'):
                from _git_apply_read import unquoted

                path = unquoted(path)
            if mode == 0:
                if path in self.index:
                    del self.index[path]
                continue
            _git_work.check_path(path, mode)
            entry = IndexEntry((0, 0), (0, 0), 0, 0, mode, 0, 0, 0, sha)
            if stage:
                there = self.index[path] if path in self.index else None
                sides = [there.ancestor, there.this, there.other] if there is not None and is_conflict(there) else [None] * 3
                sides[stage - 1] = entry
                entry = ConflictedIndexEntry(*sides)
            self.index[path] = entry

    def refresh(self, really=False):
        """Notes what the files show now; names those that differ."""
        git, places, written = self.git, Places(self.git), index_time(self.git)
        for path, entry in sorted(self.index.items()):
            if is_conflict(entry):
                if not self.unmerged:
                    self.needs(path, "merge")
                continue
            if not really and entry.flags & ASSUME_UNCHANGED or entry.extended_flags & SKIP_WORKTREE:
                continue
            if entry.mode == GITLINK and self.ignore_submodules:
                continue
            found = places.lstat(path)
            if found is None and self.ignore_missing:
                continue
            if changed_file(git, path, entry, found, written):
                self.needs(path, "update")
            elif entry.mode != GITLINK:
                flags, extended = entry.flags & 0xF000, entry.extended_flags
                self.index[path] = fresh = index_entry(git, path, entry.mode, entry.sha)
                fresh.flags, fresh.extended_flags = flags & ~ASSUME_UNCHANGED if really else flags, extended

    def needs(self, path, what):
        if not self.quiet:
            self.code = 1
            out(f"{os.fsdecode(path)}: needs {what}\n")

    def again(self, words):
        from _git_paths import Pathspec

        head, spec = self.git.tree(self.git.head()), Pathspec(self.git, words) if words else None
        for path, entry in list(self.index.items()):
            differs = is_conflict(entry) or head.get(path) != (entry.mode, entry.sha)
            if differs and (spec is None or spec.match(path)):
                self.remove = True
                self.path(os.path.relpath(self.git.path(path)))


def lines_of_input(z):
    data = sys.stdin.buffer.read()
    return [line for line in data.split(b"\0" if z else b"\n") if line]


def cmd_update_index(argv, call):
    git = call.git()
    work, rest, only_paths = Work(git), list(argv), False
    while rest:
        word = rest.pop(0)
        if only_paths or not word.startswith("-") or word == "-":
            git.need_worktree()
            work.path(word)
        elif word == "--":
            only_paths = True
        elif word in STATES:
            name, value = STATES[word]
            setattr(work, name, value)
        elif word == "--chmod" and rest and rest[0] in ("+x", "-x"):
            work.chmod = rest.pop(0)
        elif word in ("--refresh", "--really-refresh"):
            git.need_worktree()
            work.refresh(word == "--really-refresh")
        elif word == "--cacheinfo":
            parts = rest[0].split(",", 2) if rest else []
            if len(parts) == 3:
                rest.pop(0)
            else:
                parts, rest = rest[:3], rest[3:]
            if len(parts) < 3:
                raise core.error("option 'cacheinfo' expects <mode>,<sha1>,<path>", 129)
            work.cacheinfo(*parts)
        elif word == "--index-info":
            if rest:
                raise core.error("option 'index-info' must be the last argument", 129)
            work.index_info(lines_of_input(work.z))
        elif word == "--stdin":
            for line in lines_of_input(work.z):
                path = os.fsdecode(line)
                if not work.z and path.startswith('"'):
                    from _git_apply_read import unquoted

                    path = os.fsdecode(unquoted(line))
                work.path(path)
        elif word in ("-g", "--again"):
            work.again(rest)
            rest = []
        else:
            dashes = len(word) - len(word.lstrip("-"))
            kind = "option" if dashes == 2 else "switch"
            raise core.error(f"unknown {kind} '{word.lstrip('-')[: None if dashes == 2 else 1]}'\n{USAGE}", 129)
    _git_work.save_index(git, work.index)
    return work.code
