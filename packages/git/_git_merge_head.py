# The commits for `git merge`, and the message that names them.
import os
import re

from _git_core import Failure
from dulwich.objects import Commit, Tag


class Head:
    """One thing to merge: its name as given, its commit, and how the message calls it."""

    def __init__(self, git, name):
        self.name = name
        found = git.find(name)
        self.sha = found and git.peel(found, Commit)
        if not self.sha:
            raise Failure(f"{name} - not something we can merge", 1, "merge: ")
        self.tag = git.store[found] if isinstance(git.store[found], Tag) else None
        ref = git.ref(name) if not re.search(r"[~^@]", name) else None
        early = re.fullmatch(r"(.*?)((?:~\d*|\^0)+)", name)
        upstream = re.fullmatch(r"(.*)@\{(u|upstream)\}", name)
        self.kind, self.shown = "commit", name
        if upstream and (branch := upstream[1] or git.branch()):
            ref = git.upstream(branch)
            name = os.fsdecode(ref)
        elif name == "-" or name.startswith("@{-"):
            name = git.previous_branch(1 if name == "-" else int(name[3:-1]))
            ref = git.ref(name)
        if ref is None and early and (git.ref(early[1]) or b"").startswith(b"refs/heads/"):
            self.kind, self.shown = "branch", early[1]
            self.early = bool(re.search(r"~", name))
        elif ref is not None:
            for prefix, kind in (("refs/heads/", "branch"), ("refs/remotes/", "remote-tracking branch"), ("refs/tags/", "tag")):
                text = os.fsdecode(ref)
                if text.startswith(prefix):
                    self.kind, self.shown = kind, text[len(prefix) :]

    early = False


PLURALS = {"branch": "branches", "remote-tracking branch": "remote-tracking branches", "tag": "tags", "commit": "commits"}


def default_message(git, heads, into=None):
    parts = []
    for kind in ("branch", "remote-tracking branch", "tag", "commit"):
        names = [f"'{head.shown}'" + (" (early part)" if head.early else "") for head in heads if head.kind == kind]
        if len(names) == 1:
            parts.append(f"{kind} {names[0]}")
        elif names:
            parts.append(f"{PLURALS[kind]} {', '.join(names[:-1])} and {names[-1]}")
    text = "Merge " + ", ".join(parts)
    branch = into or git.branch()
    if branch is None:
        text += " into HEAD"
    elif branch not in ("master", git.config.get("init.defaultBranch") or "main"):
        text += f" into {branch}"
    text += "\n"
    for head in heads:
        if head.tag is not None:
            text += "\n" + os.fsdecode(head.tag.message or b"")
    return text
