# Paths of the working tree: those that a command line asks for, those that are ignored, and those that are not tracked.
import os
import stat

import _git_core as core
from _git_changes import Paths


class Pathspec(Paths):
    """The paths of a command line. `names` are its words, without those that exclude."""

    def __init__(self, git, words):
        super().__init__(git, words)
        self.names = [word for word in words or () if Paths(git, [word]).wanted]

    @classmethod
    def of_paths(cls, git, paths):
        spec = cls(git, [])
        spec.wanted = [(path.rstrip(b"/"), None, False) for path in paths]
        spec.names = [os.fsdecode(path) for path in paths]
        return spec

    def unmatched(self, paths):
        """The words that stand for none of these paths."""
        waiting = dict(enumerate(self.wanted))
        for path in paths:
            if not waiting:
                break
            for number in [number for number, entry in waiting.items() if self._one(entry, path)]:
                del waiting[number]
        return [self.names[number] for number in sorted(waiting)]

    def exactly(self):
        """The tree paths of the words that are not patterns."""
        return [path for path, pattern, _ in self.wanted if pattern is None]


# Ignored paths.


class Rule:
    """A line of an ignore file: `source` is its name, `number` that of the line."""

    def __init__(self, source, number, text, pattern):
        self.source, self.number, self.text, self.pattern = source, number, text, pattern
        self.excludes = pattern.is_exclude


def read_rules(lines, source, ignorecase):
    """The rules of an ignore file, the last one first."""
    from dulwich.ignore import Pattern, read_ignore_patterns

    rules = []
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        for text in read_ignore_patterns([line]):
            try:
                rules.append(Rule(source, number, text, Pattern(text, ignorecase)))
            except Exception:  # A pattern that is none never matches.
                continue
    return rules[::-1]


class Ignores:
    """The rules of .gitignore files, .git/info/exclude and core.excludesFile; `extra` are patterns of the command line."""

    def __init__(self, git, standard=True, extra=()):
        self.git, self.standard = git, standard
        self.ignorecase = bool(git.config.truth("core.ignoreCase", False))
        self.extra = read_rules([os.fsencode(text) for text in extra], "", self.ignorecase)
        self._chains, self._known = {}, {b"": None}
        self._common = []
        if standard:
            default = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git", "ignore")
            user = os.path.expanduser(git.config.get("core.excludesFile") or default)
            own = os.path.join(git.commondir, "info", "exclude")
            shown = os.path.relpath(own, git.root) if git.root and own.startswith(git.root.rstrip("/") + "/") else own
            for path, name in ((own, shown), (os.path.join(git.root or "/", user), user)):
                rules = self._read(path, name, False)
                if rules:
                    self._common.append((0, rules))

    def _read(self, path, source, no_link=True):
        try:
            if no_link and not stat.S_ISREG(os.lstat(path).st_mode):
                return []
            with open(path, "rb") as file:
                return read_rules(file, source, self.ignorecase)
        except OSError:
            return []

    def _chain(self, directory):
        """The rules that count in a directory, the strongest file first, each with the length of its directory's path."""
        chain = self._chains.get(directory)
        if chain is None:
            if not self.standard:
                chain = []
            else:
                above = self._common if directory == b"" else self._chain(directory.rpartition(b"/")[0])
                name = os.path.join(os.fsdecode(directory), ".gitignore")
                rules = self._read(os.path.join(self.git.root, name), name)
                chain = [(len(directory) + 1 if directory else 0, rules), *above] if rules else above
            self._chains[directory] = chain
        return chain

    def rule(self, path, is_dir):
        """The rule for an entry itself, of which the directories above are not ignored; or None."""
        for rule in self.extra:
            if rule.pattern.matches(path, is_dir):
                return rule
        for length, rules in self._chain(path.rpartition(b"/")[0]):
            name = path[length:]
            for rule in rules:
                if rule.pattern.matches(name, is_dir):
                    return rule
        return None

    def deciding(self, path, is_dir):
        """The rule that decides on a path, which may be one for a directory above it; or None."""
        above = path.rpartition(b"/")[0]
        if above not in self._known:
            self._known[above] = self.deciding(above, True)
        found = self._known[above]
        return found if found is not None and found.excludes else self.rule(path, is_dir)

    def ignored(self, path, is_dir):
        found = self.deciding(path, is_dir)
        return found is not None and found.excludes


# Files that are not tracked.


def tracked_directories(paths):
    """Every directory above these paths."""
    found = set()
    for path in paths:
        above = path.rpartition(b"/")[0]
        while above and above not in found:
            found.add(above)
            above = above.rpartition(b"/")[0]
    return found


def is_repository(place):
    """Whether a directory is the top of another repository."""
    inside = os.path.join(place, b".git")
    if os.path.isfile(inside):
        return True
    return os.path.exists(os.path.join(inside, b"HEAD"))


class Untracked:
    """A walk over the working tree for what is not in the index."""

    def __init__(self, git, index, ignores, spec=None, whole=True, want_ignored=False, empty=False):
        self.git, self.index, self.ignores, self.spec = git, index, ignores, spec
        self.whole, self.want_ignored = whole, want_ignored
        # `empty`: directories without files count, too.
        self.empty = empty
        self.top, self.directories = os.fsencode(git.root), tracked_directories(index)
        # In a sandbox, the home directory is the workspace.
        self.settings = os.fsencode(core.global_config_path())
        self.untracked, self.ignored = [], []

    def _entries(self, directory):
        """Path, whether it is a directory, for all entries of a directory that git looks at."""
        try:
            with os.scandir(os.path.join(self.top, directory)) as entries:
                found = list(entries)
        except OSError:
            return
        for entry in found:
            if entry.name == b".git":
                continue
            path = directory + b"/" + entry.name if directory else entry.name
            if os.path.join(self.top, path) == self.settings:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield path, True
            elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                yield path, False

    def walk(self):
        waiting = [(b"", False)]
        while waiting:
            directory, excluded = waiting.pop()
            for path, is_dir in self._entries(directory):
                entry = self.index.get(path)
                if entry is not None and (not is_dir or getattr(entry, "mode", 0) == 0o160000):
                    continue
                out = excluded or self.ignores.ignored(path, is_dir)
                asked = self.spec is None or self.spec.match(path + b"/" if is_dir else path)
                if not is_dir:
                    if asked and (self.want_ignored or not out):
                        (self.ignored if out else self.untracked).append(path)
                elif path in self.directories:
                    if self.spec is None or asked or self.spec.below(path + b"/"):
                        waiting.append((path, out))
                elif not asked:
                    if self.spec.below(path + b"/") and (self.want_ignored or not out):
                        waiting.append((path, out))
                elif is_repository(os.path.join(self.top, path)):
                    if self.want_ignored or not out:
                        (self.ignored if out else self.untracked).append(path + b"/")
                elif not self.whole:
                    if self.want_ignored or not out:
                        waiting.append((path, out))
                elif out:
                    if self.want_ignored and (self.empty or self._holds(path, True)[0]):
                        self.ignored.append(path + b"/")
                else:
                    self._directory(path)
        self.untracked.sort()
        self.ignored.sort()
        return self

    def _directory(self, path):
        """One in which nothing is tracked."""
        found, ignored = self._holds(path, False)
        if found or self.empty and not ignored:
            self.untracked.append(path + b"/")
            self.ignored += ignored if self.want_ignored else []
        elif ignored and self.want_ignored:
            self.ignored.append(path + b"/")

    def _holds(self, top, anything):
        """Whether there are files in a directory that are not ignored (with `anything`: any), and the ignored ones."""
        waiting, found, ignored = [top], False, []
        while waiting:
            for path, is_dir in self._entries(waiting.pop()):
                if anything:
                    if not is_dir:
                        return True, []
                    waiting.append(path)
                elif self.ignores.ignored(path, is_dir):
                    ignored.append(path + b"/" if is_dir else path)
                elif is_dir and not is_repository(os.path.join(self.top, path)):
                    waiting.append(path)
                else:
                    found = True
                    if not self.want_ignored:
                        return True, []
        return found, ignored


def untracked_files(git, index, spec, untracked="normal", ignored=False):
    """The untracked and the ignored paths; directories in which nothing is tracked with a slash, unless `untracked` is all."""
    found = Untracked(git, index, Ignores(git), spec, untracked != "all", bool(ignored)).walk()
    return ([] if untracked == "no" else found.untracked), found.ignored
