# git in command lines: its options before the command, and the commands by their names.
import importlib
import os
import sys

import _git_core as core
from _git_core import Failure

# The module of each command, in which `cmd_NAME(argv, call)` runs it and returns its exit code (None is 0).
COMMANDS = {
    "_git_diff": "diff diff-tree diff-index diff-files",
    "_git_log": "log show shortlog rev-list format-patch whatchanged reflog",
    "_git_status": "status add rm mv commit clean ls-files check-ignore update-index",
    "_git_refs": "branch tag show-ref symbolic-ref update-ref for-each-ref remote describe",
    "_git_switch": "checkout switch restore reset stash worktree",
    "_git_merge": "merge cherry-pick revert rebase merge-base apply",
    "_git_plumbing": "init config rev-parse cat-file hash-object ls-tree write-tree commit-tree read-tree var grep blame help version",
    "_git_archive": "archive",
    "_git_fsck": "fsck",
    "_git_sparse": "sparse-checkout",
    "_git_remote": "clone fetch pull push ls-remote submodule gc",
}
MODULES = {command: module for module, commands in COMMANDS.items() for command in commands.split()}

# There is no pager, no lock that is optional, and nothing is replaced.
WITHOUT_EFFECT = ("-p", "-P", "--paginate", "--no-pager", "--no-optional-locks", "--no-replace-objects")

OVERVIEW = (
    "usage: git [-v | --version] [-C <path>] [-c <name>=<value>] [--git-dir=<path>] [--work-tree=<path>] <command> [<args>]"
)


class Call:
    """The options before the command. `git()` is the repository, opened once; `settings()` works without one, too."""

    def __init__(self):
        self.given, self.gitdir, self.worktree, self._git = [], None, None, None

    def git(self):
        if self._git is None:
            self._git = core.Git(self.given, self.gitdir, self.worktree)
        return self._git

    def settings(self):
        try:
            return self.git().config
        except Failure:
            return core.Settings(self.given)

    def run(self, words):
        """Runs another command of git in the same repository."""
        return run(self, words)


def run(call, words):
    command, argv = words[0], words[1:]
    if command in MODULES:
        module = importlib.import_module(MODULES[command])
        return getattr(module, "cmd_" + command.replace("-", "_"))(argv, call) or 0
    alias = call.settings().get(f"alias.{command}")
    if alias is None:
        known = sorted(MODULES)
        import difflib

        near = difflib.get_close_matches(command, known, 3, 0.7)
        hint = "".join(f"\n\t{name}" for name in near)
        similar = f"\n\nThe most similar command{'s are' if len(near) > 1 else ' is'}{hint}" if near else ""
        raise Failure(f"git: '{command}' is not a git command. See 'git --help'.{similar}", 1, "")
    if alias.startswith("!"):
        import subprocess

        return subprocess.run(["sh", "-c", alias[1:] + ' "$@"', command, *argv]).returncode
    import shlex

    expanded = shlex.split(alias)
    if expanded[:1] == [command]:
        raise Failure(f"alias loop detected: expansion of '{command}' does not terminate")
    return run(call, expanded + argv)


def main(words):
    call = Call()
    while words and words[0].startswith("-"):
        word = words.pop(0)
        name, has_value, value = word.partition("=")

        def operand():
            if has_value:
                return value
            if not words:
                raise Failure(f"no value given for {word}\n{OVERVIEW}", 129, "error: ")
            return words.pop(0)

        if word == "-C":
            path = operand()
            try:
                # As the kernel would have it: a sandbox keeps `a/..` as it was written.
                os.chdir(os.path.realpath(path or "."))
            except OSError as why:
                raise Failure(f"cannot change to '{path}': {why.strerror}")
        elif word == "-c":
            key, _, setting = operand().partition("=")
            call.given.append((key, setting if _ else "true"))
        elif name == "--git-dir":
            call.gitdir = operand()
        elif name == "--work-tree":
            call.worktree = operand()
        elif word in ("-v", "--version"):
            return run(call, ["version"])
        elif word in ("-h", "--help"):
            return run(call, ["help"])
        elif word in WITHOUT_EFFECT:
            pass
        else:
            raise Failure(f"unknown option: {word}\n{OVERVIEW}", 129, "")
    if not words:
        run(call, ["help"])
        return 1
    return run(call, words)


def report(failure):
    sys.stdout.flush()
    core.say(f"{failure.prefix}{failure.text}\n")
    return failure.code


def start():
    """Runs the program and ends it with its exit code."""
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except Failure as failure:
        code = report(failure)
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        code = 141
    except Exception as problem:
        # A damaged repository can make a library fail like this.
        if os.environ.get("GIT_TRACE"):
            raise
        code = report(Failure(f"{type(problem).__name__}: {problem}"))
    sys.exit(code)
