# The hooks of a repository that receives a push.
import os
import subprocess

import _git_core as core
from _git_core import Failure, say
from _git_record import hook_program

# Hooks by which a repository takes the work over from git, which nothing here does.
NOT_RUN = ("proc-receive", "reference-transaction", "push-to-checkout")


class Receiver:
    """The hooks of a repository (dulwich's) that is pushed to."""

    def __init__(self, other):
        self.gitdir = os.path.abspath(os.fsdecode(other.controldir()))
        common = os.path.abspath(os.fsdecode(other.commondir()))
        try:
            path = os.fsdecode(other.get_config().get((b"core",), b"hookspath"))
            self.directory = os.path.join(self.gitdir, os.path.expanduser(path))
        except KeyError:
            self.directory = os.path.join(common, "hooks")

    def refuse_unknown(self, url):
        for name in NOT_RUN:
            if os.path.exists(os.path.join(self.directory, name)):
                raise Failure(
                    f"'{url}' has the hook {name}, which is not run here; nothing was pushed. Push with another git, or "
                    "remove the hook"
                )

    def run(self, name, words=(), lines=b""):
        """The exit code of a hook, 0 where there is none. What it prints is shown as the other side's."""
        program = hook_program(os.path.join(self.directory, name))
        if program is None:
            return 0
        environment = {key: value for key, value in os.environ.items() if key not in ("GIT_WORK_TREE", "GIT_PREFIX", "GIT_INDEX_FILE")}
        environment["GIT_DIR"] = "."
        try:
            done = subprocess.run(
                [*program, *words], input=lines, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.gitdir, env=environment
            )
        except OSError as why:
            raise Failure(f"cannot run {name}: {why.strerror}")
        if done.stdout:
            say_remote(done.stdout.decode(errors="surrogateescape"))
        return done.returncode

    def before(self, updates, atomic):
        """Asks the hooks about updates, of which all or none are done where they are atomic; returns those that are declined, with why."""
        if not updates:
            return {}
        if self.run("pre-receive", lines=as_lines(updates)):
            return {one: "pre-receive hook declined" for one in updates}
        declined = {}
        for one in updates:
            old, new = (sha.decode() for sha in (one.before or core.ZERO, one.sha or core.ZERO))
            if self.run("update", (os.fsdecode(one.target), old, new)):
                say_remote(f"error: hook declined to update {os.fsdecode(one.target)}\n")
                declined[one] = "hook declined"
                if atomic:
                    return {other: declined.get(other, "atomic push failure") for other in updates}
        return declined

    def after(self, updates):
        if updates:
            self.run("post-receive", lines=as_lines(updates))
            self.run("post-update", [os.fsdecode(one.target) for one in updates])


def as_lines(updates):
    return b"".join(b"%s %s %s\n" % (one.before or core.ZERO, one.sha or core.ZERO, one.target) for one in updates)


def say_remote(text):
    lines = text.removesuffix("\n").split("\n")
    say("".join(f"remote: {line}        \n" if line else "remote: \n" for line in lines))
