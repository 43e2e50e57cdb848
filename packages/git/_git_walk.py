# Which commits a command line names, and in which order: ranges, limits, filters, and paths.
import heapq
import os
import re

import _git_core as core
from _git_changes import Paths, commit_changes, differing
from _git_core import Failure

OPTIONS = """
-n --max-count =
--skip =
--all
--branches [=]
--tags [=]
--remotes [=]
--since --after =
--until --before =
--author =*
--committer =*
--grep =*
-i --regexp-ignore-case
-E --extended-regexp
-F --fixed-strings
-P --perl-regexp
--all-match
--invert-grep
--merges
--no-merges
--min-parents =
--max-parents =
--first-parent
--reverse
--topo-order
--date-order
--author-date-order
--left-right
--left-only
--right-only
--cherry-pick
--cherry-mark
--follow
--full-history
--simplify-by-decoration
-g --walk-reflogs
"""


def arguments(argv):
    """Words with what `--not` turns around written as `^word`."""
    words, turned, rest = [], False, list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return words + ["--"] + rest
        if word == "--not":
            turned = not turned
        elif turned and re.match(r"--(all|branches|tags|remotes)(=|\Z)", word):
            words.append("^" + word)
        elif turned and not word.startswith("-"):
            words.append(word[1:] if word.startswith("^") else "^" + word)
        else:
            words.append(word)
    return words


def _pattern(value):
    if value is True:
        return lambda name: True
    from _git_changes import _glob

    text = os.fsencode(value if any(sign in value for sign in "*?[") else value.rstrip("/") + "/*")
    compiled = _glob(text, 0, False)
    return lambda name: compiled.match(name) is not None


def refs_of(git, space, value=True):
    """The commits of a kind of references."""
    wanted, found = _pattern(value), []
    for ref in sorted(git.refs.allkeys()):
        if ref.startswith(space) and (value is True or wanted(ref.removeprefix(space))):
            try:
                sha = git.refs[ref]
            except KeyError:
                continue
            from dulwich.objects import Commit

            sha = git.peel(sha, Commit)
            if sha:
                found.append(sha)
    return found


SPACES = {"all": b"refs/", "branches": b"refs/heads/", "tags": b"refs/tags/", "remotes": b"refs/remotes/"}


class Walk:
    """The commits of one command line."""

    def __init__(self, git, options, revisions, paths=None, default="HEAD", graph=False):
        self.git, self.options, self.paths = git, options, paths or None
        self.graph, self.commits = graph, {}
        self.starts, self.hidden_starts, self.sides = [], [], None
        self._read(revisions, default)
        self.since = self._date(options.since) if options.since else None
        self.until = self._date(options.before) if options.before else None
        self._expressions()
        self.limit = self._number(options.max_count, "max-count")
        self.jump = self._number(options.skip, "skip") or 0
        self.least = self._number(options.min_parents, "min-parents") or 0
        self.most = self._number(options.max_parents, "max-parents")
        if options.merges:
            self.least = 2
        if options.no_merges:
            self.most = 1
        self.rewritten, self.same, self.marks = {}, {}, {}
        self.follow = paths.wanted[0][0] if options.follow and paths else None
        self.follow_names = {}

    @staticmethod
    def _number(text, option):
        if text is None:
            return None
        if not re.fullmatch(r"-?\d+", text):
            raise Failure(f"'{text}': not an integer")
        return int(text) if int(text) >= 0 else None

    @staticmethod
    def _date(text):
        from dulwich.approxidate import parse_approxidate

        try:
            return core.parse_date(text)[0]
        except Failure:
            try:
                return int(parse_approxidate(text))
            except ValueError:
                import time

                return int(time.time())

    def _expressions(self):
        options = self.options
        flags = re.I if options.regexp_ignore_case else 0

        def compiled(texts):
            found = []
            for text in texts:
                if options.fixed_strings:
                    text = re.escape(text)
                elif not options.extended_regexp and not options.perl_regexp:
                    text = basic(text)
                try:
                    found.append(re.compile(os.fsencode(text), flags | re.M))
                except re.error as why:
                    raise Failure(f"command line, '{text}': {why}")
            return found

        self.authors, self.committers, self.words = map(compiled, (options.author, options.committer, options.grep))

    def _read(self, revisions, default):
        git, options = self.git, self.options
        for key, space in SPACES.items():
            value = getattr(options, key)
            if value:
                self.starts += refs_of(git, space, value)
                if key == "all" and git.head():
                    self.starts.append(git.head())
        named = any(getattr(options, key) for key in SPACES)
        for word in revisions:
            if word.startswith("^--"):
                key, _, value = word[3:].partition("=")
                self.hidden_starts += refs_of(git, SPACES[key], value or True)
            elif word.startswith("^"):
                self.hidden_starts.append(self._commit(word[1:]))
            elif "..." in word:
                one, two = (self._commit(name or "HEAD") for name in word.split("...", 1))
                self.sides = (one, two)
                self.starts += [one, two]
                self.hidden_starts += git.merge_bases(one, two)
                named = True
            elif ".." in word:
                one, two = word.split("..", 1)
                self.hidden_starts.append(self._commit(one or "HEAD"))
                self.starts.append(self._commit(two or "HEAD"))
                named = True
            elif word.endswith("^@"):
                self.starts += self.get(self._commit(word[:-2])).parents
                named = True
            elif word.endswith(("^!", "^-")):
                sha = self._commit(word[:-2])
                parents = self.get(sha).parents
                self.starts.append(sha)
                self.hidden_starts += parents if word.endswith("^!") else parents[:1]
                named = True
            else:
                self.starts.append(self._commit(word))
                named = True
        if not named and default and (not revisions or all(word.startswith("^") for word in revisions)):
            head = git.head()
            if default == "HEAD" and head is None:
                branch = git.branch()
                raise Failure(
                    f"your current branch '{branch}' does not have any commits yet"
                    if branch
                    else "your current branch appears to be broken"
                )
            self.starts.append(head)

    def _commit(self, name):
        try:
            return self.git.commit(name).id
        except core.Failure as failure:
            if "ambiguous argument" in failure.text:
                raise Failure(f"bad revision '{name}'") from None
            raise

    def get(self, sha):
        """A commit, read once."""
        if sha not in self.commits:
            try:
                self.commits[sha] = self.git.store[sha]
            except KeyError:
                raise Failure(f"unable to read commit {sha.decode()}") from None
        return self.commits[sha]

    def parents(self, sha):
        """The parents that the walk follows."""
        if sha in self.rewritten:
            return self.rewritten[sha]
        parents = list(self.git.store.get_parents(sha, self.get(sha)))
        if self.options.first_parent:
            parents = parents[:1]
        if self.paths and not self.follow:
            parents = self._simplified(sha, parents)
        self.rewritten[sha] = parents
        return parents

    def _tree_differs(self, old, new):
        gone, come = differing(self.git, old, new, self.paths)
        return bool(gone or come)

    def _simplified(self, sha, parents):
        tree = self.get(sha).tree
        if not parents:
            self.same[sha] = not self._tree_differs(None, tree)
            return parents
        equal = [parent for parent in parents if not self._tree_differs(self.get(parent).tree, tree)]
        if self.options.full_history:
            self.same[sha] = len(equal) == len(parents)
            return parents
        self.same[sha] = bool(equal)
        return equal[:1] if equal else parents

    def _hidden(self):
        hidden, waiting = set(), list(self.hidden_starts)
        while waiting:
            sha = waiting.pop()
            if sha not in hidden:
                hidden.add(sha)
                waiting += self.git.store.get_parents(sha, self.get(sha))
        return hidden

    def _by_date(self):
        """Commits by date, the youngest first, each before its parents as far as the dates allow."""
        hidden = self._hidden() if self.hidden_starts else set()
        self.hidden = hidden
        heap, seen, number = [], set(), 0
        for sha in self.starts:
            if sha not in seen and sha not in hidden:
                seen.add(sha)
                heapq.heappush(heap, (-self.get(sha).commit_time, number, sha))
                number += 1
        while heap:
            sha = heapq.heappop(heap)[2]
            if self.since is not None and self.get(sha).commit_time < self.since:
                continue
            for parent in self.parents(sha):
                if parent not in seen and parent not in hidden:
                    seen.add(parent)
                    heapq.heappush(heap, (-self.get(parent).commit_time, number, parent))
                    number += 1
            yield sha

    def _topological(self, shas):
        """Each commit after all of its children; lines of history stay together unless dates are asked for."""
        options, listed = self.options, set(shas)
        children = dict.fromkeys(shas, 0)
        for sha in shas:
            for parent in self.parents(sha):
                if parent in listed:
                    children[parent] += 1
        tips = [sha for sha in shas if not children[sha]]
        by_date = options.date_order or options.author_date_order
        key = lambda sha: -(self.get(sha).author_time if options.author_date_order else self.get(sha).commit_time)
        number, result = len(tips), []
        waiting = [(key(sha), at, sha) for at, sha in enumerate(tips)] if by_date else tips[::-1]
        if by_date:
            heapq.heapify(waiting)
        while waiting:
            sha = heapq.heappop(waiting)[2] if by_date else waiting.pop()
            result.append(sha)
            for parent in self.parents(sha):
                if parent in listed:
                    children[parent] -= 1
                    if not children[parent]:
                        if by_date:
                            heapq.heappush(waiting, (key(parent), number, parent))
                            number += 1
                        else:
                            waiting.append(parent)
        return result

    def wanted(self, sha):
        """Whether a commit is one to show, by the filters."""
        commit, options = self.get(sha), self.options
        count = len(commit.parents)
        if count < self.least or self.most is not None and count > self.most:
            return False
        if self.until is not None and commit.commit_time > self.until:
            return False
        if self.same.get(sha):
            return False
        if self.authors and not any(e.search(commit.author) for e in self.authors):
            return False
        if self.committers and not any(e.search(commit.committer) for e in self.committers):
            return False
        if self.words:
            test = all if options.all_match else any
            if test(e.search(commit.message) is not None for e in self.words) == bool(options.invert_grep):
                return False
        if options.simplify_by_decoration:
            if not hasattr(self, "named"):
                from _git_pretty import decorations

                self.named = decorations(self.git)
            if sha not in self.named and count:
                return False
        if options.S is not None or options.G is not None:
            from _git_look import pickaxe

            if count > 1:
                return False
            changes = commit_changes(self.git, commit.parents[0] if count else None, commit.id, True, self.paths)
            return any(pickaxe(self.git, change, options) for change in changes)
        return True

    def wanted_quietly(self, commit):
        """As `wanted`, for a commit that the walk did not find itself."""
        self.commits[commit.id] = commit
        return self.wanted(commit.id)

    def _left_right(self, shas):
        """Which side of A...B each commit is on."""
        left, waiting = set(), [self.sides[0]]
        while waiting:
            sha = waiting.pop()
            if sha not in left and sha not in self.hidden:
                left.add(sha)
                waiting += self.parents(sha)
        self.marks = {sha: "<" if sha in left else ">" for sha in shas}
        if self.options.cherry_pick or self.options.cherry_mark:
            ids = {sha: self._patch_id(sha) for sha in shas if len(self.get(sha).parents) == 1}
            both = {ids[sha] for sha in ids if sha in left} & {ids[sha] for sha in ids if sha not in left}
            twins = {sha for sha in ids if ids[sha] in both}
            if self.options.cherry_mark:
                self.marks |= {sha: "=" for sha in twins}
            else:
                shas = [sha for sha in shas if sha not in twins]
        if self.options.left_only:
            shas = [sha for sha in shas if sha in left]
        if self.options.right_only:
            shas = [sha for sha in shas if sha not in left]
        return shas

    def _patch_id(self, sha):
        import hashlib

        from _git_patch import Look, patch

        changes = commit_changes(self.git, self.get(sha).parents[0], sha, False)
        text = re.sub(rb"(?m)^(index|@@) .*\n", b"", patch(self.git, changes, Look()))
        return hashlib.sha1(re.sub(rb"[ \t]+", b"", text)).digest()

    def all(self):
        """The commits to show (digits), in order."""
        options, shas = self.options, self._by_date()
        if self.follow:
            shas = self._followed(shas)
        if self.graph or options.topo_order or options.date_order or options.author_date_order or self.sides:
            shas = list(shas)
            if self.sides:
                shas = self._left_right(shas)
            if self.graph or options.topo_order or options.date_order or options.author_date_order:
                shas = self._topological(shas)
        shown = (sha for sha in shas if self.wanted(sha))
        if self.graph:
            self.listed = None
            shown = list(shown)
            self.listed = set(shown)

        def limited():
            count = skipped = 0
            for sha in shown:
                if self.limit is not None and count >= self.limit:
                    return
                if skipped < self.jump:
                    skipped += 1
                    continue
                count += 1
                yield sha

        return reversed(list(limited())) if options.reverse else limited()

    def shown_parents(self, sha):
        """The parents of a commit in the graph: the nearest ancestors that are shown."""
        found = []
        for parent in self.parents(sha):
            seen = set()
            while parent not in self.listed and self.same.get(parent) and parent not in seen:
                seen.add(parent)
                above = self.parents(parent)
                parent = above[0] if above else None
                if parent is None:
                    break
            if parent in self.listed and parent not in found:
                found.append(parent)
        return found

    def _followed(self, shas):
        """The commits that change one file, under the names it had before renames."""
        path = self.follow
        for sha in shas:
            commit = self.get(sha)
            if len(commit.parents) > 1:
                continue
            parent = commit.parents[0] if commit.parents else None
            base = Paths(self.git, ())
            base.wanted = [(path, None, False)]
            changes = commit_changes(self.git, parent, sha, False, base)
            if not changes:
                continue
            if changes[0].kind == "A" and parent:
                whole = commit_changes(self.git, parent, sha, {"copies": 1})
                own = next((change for change in whole if change.path == path and change.kind in "RC"), None)
                if own:
                    changes, path = [own], own.old_path
            self.follow_names[sha] = changes
            yield sha


def basic(text):
    """A basic regular expression in the words of Python's: `\\(` groups, `(` does not."""
    return re.sub(r"\\([(){}|+?])|([(){}|+?])", lambda m: m[1] if m[1] else "\\" + m[2], text)
