# `git rev-parse`: names of objects and places of the repository.
import os
import re

from _git_core import Failure, error, out
from dulwich.objects import Commit


class RevParse:
    def __init__(self, call):
        self.call = call
        self.verify = self.quiet = self.symbolic = self.abbrev_ref = self.revs_only = self.no_revs = False
        self.flags = self.no_flags = self.inverted = self.absolute = False
        self.short = None
        self.default = None
        self.verified = []
        self.seen = False

    @property
    def git(self):
        return self.call.git()

    # Printing of objects.

    def show(self, sha, name=None, negative=False):
        negative = negative != self.inverted
        self.seen = True
        if self.no_revs:
            return
        if (self.symbolic or self.abbrev_ref) and name is not None:
            ref = self.ref_of(name)
            if ref is None:
                return
            text = os.fsdecode(ref)
            if self.abbrev_ref:
                text = shorten(self.git, ref)
        elif self.short is not None:
            text = self.git.abbreviate(sha, None if self.short is True else self.short)
        else:
            text = sha.decode()
        text = ("^" if negative else "") + text
        if self.verify:
            self.verified.append(text)
        else:
            out(text + "\n")

    def ref_of(self, name):
        git = self.git
        found = re.fullmatch(r"(.*)@\{(u|upstream|push)\}", name, re.I)
        if found:
            branch = found[1] or git.branch()
            return git.upstream(branch) if branch else None
        if name in ("@{0}",):
            return None
        found = re.fullmatch(r"@\{-(\d+)\}", name)
        if found:
            return git.ref(git.previous_branch(int(found[1])))
        ref = git.ref(name)
        if ref == b"HEAD":
            return git.head_ref() or ref
        if ref is not None:
            value = git.refs.read_ref(ref)
            if value and value.startswith(b"ref: "):
                return value[5:].strip()
        return ref

    def revision(self, word):
        """Shows what a word stands for; False where it stands for nothing."""
        git = self.git
        if ".." in word and not word.startswith(":"):
            three = "..." in word
            left, right = word.split("..." if three else "..", 1)
            if left or right:
                one, other = git.find(left or "HEAD"), git.find(right or "HEAD")
                if one is None or other is None:
                    return self.single(word)
                if three:
                    one, other = git.peel(one, Commit), git.peel(other, Commit)
                    if not one or not other:
                        return False
                self.show(other, right or "HEAD")
                self.show(one, left or "HEAD", not three)
                if three:
                    for base in git.merge_bases(one, other):
                        self.show(base, None, True)
                return True
        found = re.fullmatch(r"(.+)\^([@!]|-\d*)", word)
        if found:
            sha = git.find(found[1])
            sha = sha and git.peel(sha, Commit)
            if not sha:
                return False
            parents = git.store[sha].parents
            if found[2] == "@":
                for parent in parents:
                    self.show(parent)
                return True
            if found[2].startswith("-"):
                at = int(found[2][1:] or 1)
                if not 1 <= at <= len(parents):
                    return False
                parents = [parents[at - 1]]
            self.show(sha, found[1])
            for parent in parents:
                self.show(parent, None, True)
            return True
        return self.single(word)

    def single(self, word):
        negative = word.startswith("^")
        name = word[1:] if negative else word
        if not name:
            return False
        sha = self.git.find(name)
        if sha is None:
            return False
        self.show(sha, name, negative)
        return True

    def failed(self):
        if self.quiet:
            raise SystemExit(1)
        return Failure("Needed a single revision")

    def word(self, word):
        try:
            if self.revision(word):
                return
        except Failure:
            if self.verify and self.quiet:
                raise SystemExit(1)
            raise
        if self.verify:
            raise self.failed()
        if self.no_revs or not self.revs_only:
            if self.files_begin or not os.path.lexists(word):
                if not self.revs_only:
                    out(word + "\n")
                    raise self.git.unknown(word)
            else:
                self.files_begin = True
                out(word + "\n")

    files_begin = False

    def place(self, option):
        """Options that ask for places of the repository; None where the option is another."""
        git = self.git
        if option == "--show-toplevel":
            if git.root is None or not git.inside_worktree and not os.environ.get("GIT_WORK_TREE"):
                raise Failure("this operation must be run in a work tree")
            return git.root
        if option in ("--git-dir", "--absolute-git-dir"):
            if option == "--git-dir" and os.environ.get("GIT_DIR") and not self.absolute:
                return os.environ["GIT_DIR"]
            if option == "--git-dir" and not self.absolute:
                if os.getcwd() == git.gitdir:
                    return "."
                if os.path.dirname(git.gitdir) == os.getcwd() == git.root:
                    return os.path.basename(git.gitdir)
            return git.gitdir
        if option == "--git-common-dir":
            if self.absolute or not git.commondir.startswith((git.root or git.commondir) + "/"):
                return "." if os.getcwd() == git.commondir and not self.absolute else git.commondir
            return os.path.relpath(git.commondir)
        if option == "--is-inside-work-tree":
            return "true" if git.inside_worktree else "false"
        if option == "--is-inside-git-dir":
            return "true" if (os.getcwd() + "/").startswith(git.gitdir + "/") else "false"
        if option == "--is-bare-repository":
            return "true" if git.bare else "false"
        if option == "--is-shallow-repository":
            return "true" if os.path.exists(os.path.join(git.commondir, "shallow")) else "false"
        if option == "--show-prefix":
            return os.fsdecode(git.prefix)
        if option == "--show-cdup":
            return "../" * git.prefix.count(b"/")
        if option in ("--show-object-format", "--show-object-format=storage"):
            return "sha1"
        if option == "--show-ref-format":
            return "files"
        return None

    def refs_below(self, option):
        git = self.git
        name, has_pattern, pattern = option.partition("=")
        bases = {
            "--all": (b"refs/",),
            "--branches": (b"refs/heads/",),
            "--tags": (b"refs/tags/",),
            "--remotes": (b"refs/remotes/",),
        }
        if name not in bases:
            return False
        import fnmatch

        for ref in sorted(git.refs.allkeys()):
            if not ref.startswith(bases[name]) or ref not in git.refs:
                continue
            short = os.fsdecode(ref[len(bases[name][0]) :])
            if has_pattern and not fnmatch.fnmatchcase(short, pattern if re.search(r"[*?\[]", pattern) else pattern + "/*"):
                continue
            self.show(git.refs[ref], os.fsdecode(ref))
        return True

    def run(self, argv):
        words = list(argv)
        plain = False
        while words:
            word = words.pop(0)
            name, has_value, value = word.partition("=")
            if plain:
                out(word + "\n")
            elif word == "--":
                plain = True
                if not self.revs_only:
                    out("--\n")
            elif word == "--verify":
                self.verify = True
            elif word in ("-q", "--quiet"):
                self.quiet = True
            elif name == "--short":
                self.verify = True
                self.short = max(int(value), 4) if has_value and value.isdigit() else True
            elif name == "--abbrev-ref":
                self.abbrev_ref = True
            elif word == "--symbolic-full-name":
                self.symbolic = True
            elif word == "--revs-only":
                self.revs_only = True
            elif word == "--no-revs":
                self.no_revs = True
            elif word == "--not":
                self.inverted = not self.inverted
            elif name == "--default" and (has_value or words):
                self.default = value if has_value else words.pop(0)
            elif name == "--path-format":
                self.absolute = value == "absolute"
            elif word == "--git-path":
                if not words:
                    raise Failure("--git-path requires an argument")
                out(self.git_path(words.pop(0)) + "\n")
            elif word == "--show-superproject-working-tree":
                self.git
            elif word == "--local-env-vars":
                out("GIT_CONFIG\nGIT_DIR\nGIT_WORK_TREE\nGIT_INDEX_FILE\nGIT_PREFIX\nGIT_COMMON_DIR\n")
            elif word.startswith("-") and word != "-":
                text = self.place(word)
                if text is not None:
                    out(text + "\n")
                elif not self.refs_below(word):
                    if self.verify:
                        raise self.failed()
                    if not self.revs_only:
                        out(word + "\n")
            else:
                self.word(word)
        if self.default is not None and not self.seen:
            self.word(self.default)
        if self.verify:
            if len(self.verified) != 1:
                raise self.failed()
            out("".join(text + "\n" for text in self.verified))

    def git_path(self, name):
        git = self.git
        own = (
            name.split("/")[0]
            in (
                "HEAD",
                "index",
                "MERGE_HEAD",
                "MERGE_MSG",
                "ORIG_HEAD",
                "FETCH_HEAD",
                "CHERRY_PICK_HEAD",
                "REVERT_HEAD",
                "rebase-merge",
                "rebase-apply",
                "COMMIT_EDITMSG",
            )
            or name == "logs/HEAD"
        )
        whole = os.path.join(git.gitdir if own else git.commondir, name)
        if name == "hooks" or name.startswith("hooks/"):
            hooks = git.config.get("core.hooksPath")
            if hooks:
                return os.path.join(hooks, name[6:]) if name != "hooks" else hooks
        if self.absolute or not whole.startswith((git.root or git.gitdir) + "/"):
            return whole
        return os.path.relpath(whole)


def shorten(git, ref):
    """A reference's name without what is clear: `main`, `origin/main`, `heads/v1` where a tag has the same name."""
    text = os.fsdecode(ref)
    for prefix in ("refs/heads/", "refs/tags/", "refs/remotes/", "refs/"):
        if text.startswith(prefix):
            short = text[len(prefix) :]
            if prefix == "refs/remotes/" and short.endswith("/HEAD"):
                short = short[:-5]
            return short if prefix == "refs/" or git.ref(short) in (ref, None) else text[5:]
    return text


def cmd_rev_parse(argv, call):
    if argv[:1] == ["--parseopt"] or argv[:1] == ["--sq-quote"]:
        raise error(f"{argv[0]} is not there", 129)
    try:
        RevParse(call).run(argv)
    except SystemExit as end:
        return end.code
