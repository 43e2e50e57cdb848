# Making repositories, and what git says of itself: init, help, version, var.
import os
import sys

import _git_core as core
from _git_core import Failure, out, say

USAGE = """usage: git init [-q | --quiet] [--bare] [--template=<template-directory>]
         [-b <branch-name> | --initial-branch=<branch-name>] [<directory>]"""

HINT = """Using 'master' as the name for the initial branch. This default branch name
is subject to change. To configure the initial branch name to use in all
of your new repositories, which will suppress this warning, call:

\tgit config --global init.defaultBranch <name>

Names commonly chosen instead of 'master' are 'main', 'trunk' and
'development'. The just-created branch can be renamed via this command:

\tgit branch -m <name>"""

EXCLUDE = """# git ls-files --others --exclude-from=.git/info/exclude
# Lines that start with '#' are comments.
# For a project mostly in C, the following would be a good set of
# exclude patterns (uncomment them if you want to use them):
# *.[oa]
# *~
"""


def hint(text):
    say("".join(f"hint: {line}\n" if line else "hint:\n" for line in text.split("\n")))


def has_modes(directory):
    """Whether the system keeps the bit that makes a file executable."""
    if sys.platform == "wasi" or not hasattr(os, "chmod"):
        return False
    path = os.path.join(directory, "config")
    try:
        before = os.stat(path).st_mode
        os.chmod(path, before ^ 0o100)
        changed = os.stat(path).st_mode != before
        os.chmod(path, before)
        return changed
    except OSError:
        return False


def write_new(path, text):
    if not os.path.lexists(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def make(directory, bare, branch):
    """Makes the files of a repository and says its git directory, and whether it was there before."""
    gitdir = directory if bare else os.path.join(directory, ".git")
    try:
        if os.path.isfile(gitdir) and not bare:
            with open(gitdir, encoding="utf-8", errors="surrogateescape") as file:
                gitdir = os.path.join(directory, file.read().removeprefix("gitdir:").strip())
        known = os.path.exists(os.path.join(gitdir, "HEAD"))
        for name in ("branches", "hooks", "info", "objects/info", "objects/pack", "refs/heads", "refs/tags"):
            os.makedirs(os.path.join(gitdir, name), exist_ok=True)
        write_new(os.path.join(gitdir, "HEAD"), f"ref: refs/heads/{branch}\n")
        write_new(
            os.path.join(gitdir, "description"), "Unnamed repository; edit this file 'description' to name the repository.\n"
        )
        write_new(os.path.join(gitdir, "info", "exclude"), EXCLUDE)
        config = os.path.join(gitdir, "config")
        if not os.path.exists(config):
            write_new(config, "")
            modes = "true" if has_modes(gitdir) else "false"
            text = f"[core]\n\trepositoryformatversion = 0\n\tfilemode = {modes}\n\tbare = {'true' if bare else 'false'}\n"
            with open(config, "w", encoding="utf-8") as file:
                file.write(text if bare else text + "\tlogallrefupdates = true\n")
    except OSError as why:
        raise Failure(f"cannot mkdir {directory}: {why.strerror}")
    return gitdir, known


def cmd_init(argv, call):
    options = core.parse(
        "init", argv, "-q --quiet\n--bare\n-b --initial-branch =\n--template =\n--object-format =\n--ref-format ="
    )
    words = options.all_words()
    if len(words) > 1:
        raise Failure(USAGE, 129, "")
    if options.object_format not in (None, "sha1"):
        raise Failure(f"unknown hash algorithm '{options.object_format}'")
    if options.ref_format not in (None, "files"):
        raise Failure(f"unknown ref storage format '{options.ref_format}'")
    directory = os.path.abspath(words[0] if words else ".")
    named = os.environ.get("GIT_DIR") or call.gitdir
    branch, quiet = options.initial_branch, options.quiet
    bare = bool(options.bare)
    if branch is not None:
        from dulwich.refs import check_ref_format

        if not check_ref_format(b"refs/heads/" + os.fsencode(branch)) or branch.startswith("-"):
            raise Failure(f"invalid initial branch name: '{branch}'")
    name = branch or core.Settings(call.given).get("init.defaultBranch")
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as why:
        raise Failure(f"cannot mkdir {words[0]}: {why.strerror}")
    if named and not words:
        directory, bare = os.path.abspath(named), True
    known = os.path.exists(os.path.join(directory, "HEAD" if bare else ".git/HEAD"))
    if name is None and not known and not quiet:
        hint(HINT)
    gitdir, known = make(directory, bare, name or "master")
    if known and branch:
        say(f"warning: re-init: ignored --initial-branch={branch}\n")
    if options.template:
        import shutil

        shutil.copytree(options.template, gitdir, dirs_exist_ok=True)
    if not quiet:
        shown = os.path.realpath(gitdir) + "/"
        out(f"{'Reinitialized existing' if known else 'Initialized empty'} Git repository in {shown}\n")


def cmd_version(argv, call):
    core.parse("version", argv, "")
    out("git version 2.47.0\n")


GROUPS = (
    (
        "start a working area",
        "clone:Clone a repository into a new directory|init:Create an empty Git repository or reinitialize an existing one",
    ),
    (
        "work on the current change",
        "add:Add file contents to the index|mv:Move or rename a file, a directory, or a symlink|"
        "restore:Restore working tree files|rm:Remove files from the working tree and from the index|"
        "clean:Remove untracked files from the working tree|stash:Stash the changes in a dirty working directory away",
    ),
    (
        "examine the history and state",
        "blame:Show what revision and author last modified each line of a file|"
        "diff:Show changes between commits, commit and working tree, etc|grep:Print lines matching a pattern|log:Show "
        "commit logs|"
        "show:Show various types of objects|shortlog:Summarize 'git log' output|status:Show the working tree status|"
        "describe:Give an object a human readable name based on an available ref",
    ),
    (
        "grow, mark and tweak your common history",
        "branch:List, create, or delete branches|commit:Record changes to the repository|"
        "checkout:Switch branches or restore working tree files|cherry-pick:Apply the changes introduced by some existing "
        "commits|"
        "merge:Join two or more development histories together|rebase:Reapply commits on top of another base tip|"
        "reset:Reset current HEAD to the specified state|revert:Revert some existing commits|switch:Switch branches|"
        "tag:Create, list, delete or verify a tag object signed with GPG|worktree:Manage multiple working trees",
    ),
    (
        "collaborate",
        "apply:Apply a patch to files and/or to the index|fetch:Download objects and refs from another repository|"
        "format-patch:Prepare patches for e-mail submission|"
        "pull:Fetch from and integrate with another repository or a local branch|"
        "push:Update remote refs along with associated objects|remote:Manage set of tracked repositories",
    ),
)


def cmd_help(argv, call):
    import _git_main as _git

    options = core.parse("help", argv, "-a --all\n-g --guides")
    if options.words:
        name = options.words[0]
        if name not in _git.MODULES:
            raise Failure(f"No manual entry for git-{name}", 16, "")
        raise Failure(f"there are no manual pages here; an unknown option, as in `git {name} --what`, gives the usage", 16, "")
    out(_git.OVERVIEW + "\n\nThese are common Git commands used in various situations:\n")
    shown = set()
    for title, entries in GROUPS:
        out(f"\n{title}\n")
        for entry in entries.split("|"):
            name, _, text = entry.partition(":")
            shown.add(name)
            out(f"   {name:<13} {text}\n")
    if options.all:
        out("\nother commands\n" + "".join(f"   {name}\n" for name in sorted(_git.MODULES) if name not in shown))


def editor(settings, sequence=False):
    if sequence:
        named = os.environ.get("GIT_SEQUENCE_EDITOR") or settings.get("sequence.editor")
        if named:
            return named
    return (
        os.environ.get("GIT_EDITOR")
        or settings.get("core.editor")
        or os.environ.get("VISUAL")
        or os.environ.get("EDITOR")
        or "vi"
    )


def cmd_var(argv, call):
    settings = call.settings()

    def ident(role):
        name, when, zone = settings.identity(role)
        return os.fsdecode(b"%s %d %s" % (name, when, core.zone_text(zone)))

    known = {
        "GIT_COMMITTER_IDENT": lambda: ident("committer"),
        "GIT_AUTHOR_IDENT": lambda: ident("author"),
        "GIT_EDITOR": lambda: editor(settings),
        "GIT_SEQUENCE_EDITOR": lambda: editor(settings, True),
        "GIT_PAGER": lambda: os.environ.get("GIT_PAGER") or settings.get("core.pager") or os.environ.get("PAGER") or "cat",
        "GIT_DEFAULT_BRANCH": lambda: settings.get("init.defaultBranch") or "master",
        "GIT_SHELL_PATH": lambda: "/bin/sh",
        "GIT_CONFIG_GLOBAL": core.global_config_path,
    }
    if argv == ["-l"]:
        import _git_config_cmd

        _git_config_cmd.cmd_config(["-l"], call)
        out("".join(f"{name}={value()}\n" for name, value in known.items()))
        return 0
    if len(argv) != 1 or argv[0] not in known:
        raise Failure("usage: git var (-l | <variable>)", 129, "")
    out(known[argv[0]]() + "\n")
