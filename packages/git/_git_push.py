# `git push`.
import os

import _git_core as core
from _git_core import Failure, error, out, say
from _git_receive import Receiver, say_remote
from _git_fetch import Spec, configured_specs, default_remote, short_name, url_of
from _git_remote import copy_objects, has_server, is_http, open_remote, remote_refs
from dulwich.objects import Commit, Tag

OPTIONS = """
-q --quiet
-v --verbose
-u --set-upstream
-f --force
--force-with-lease [=]
-d --delete
--all --branches
--tags
--mirror
-n --dry-run
--progress
--atomic
--verify
--thin
"""
FETCH_FIRST = """hint: Updates were rejected because the remote contains work that you do not
hint: have locally. This is usually caused by another repository pushing to
hint: the same ref. If you want to integrate the remote changes, use
hint: 'git pull' before pushing again.
hint: See the 'Note about fast-forwards' in 'git push --help' for details.
"""
BEHIND = """hint: Updates were rejected because the tip of your current branch is behind
hint: its remote counterpart. If you want to integrate the remote changes,
hint: use 'git pull' before pushing again.
hint: See the 'Note about fast-forwards' in 'git push --help' for details.
"""
BEHIND_OTHER = """hint: Updates were rejected because a pushed branch tip is behind its remote
hint: counterpart. If you want to integrate the remote changes, use 'git pull'
hint: before pushing again.
hint: See the 'Note about fast-forwards' in 'git push --help' for details.
"""
TAG_THERE = """hint: Updates were rejected because the tag already exists in the remote.
"""
CHECKED_OUT = """error: refusing to update checked out branch: {ref}
error: By default, updating the current branch in a non-bare repository
is denied, because it will make the index and work tree inconsistent
with what you pushed, and will require 'git reset --hard' to match
the work tree to HEAD.

You can set the 'receive.denyCurrentBranch' configuration variable
to 'ignore' or 'warn' in the remote repository to allow pushing into
its current branch; however, this is not recommended unless you
arranged to update its work tree to match what you pushed in some
other way.

To squelch this message and still keep the default behaviour, set
'receive.denyCurrentBranch' configuration variable to 'refuse'."""
NO_UPSTREAM = """The current branch {branch} has no upstream branch.
To push the current branch and set the remote as upstream, use

    git push --set-upstream {remote} {branch}

To have this happen automatically for branches without a tracking
upstream, see 'push.autoSetupRemote' in 'git help config'.
"""


class Update:
    """One reference to change: `sha` is None to remove it."""

    def __init__(self, source, sha, target, force):
        self.source, self.sha, self.target, self.force = source, sha, target, force
        self.line = self.problem = self.shown = self.before = None


def cmd_push(argv, call):
    options = core.parse("push", argv, OPTIONS)
    git, words = call.git(), options.all_words()
    if not words:
        from _git_remotes import names

        if not names(git) and not git.config.get(f"branch.{git.branch()}.remote"):
            raise Failure(
                "No configured push destination.\nEither specify the URL from the command-line or configure a remote "
                "repository using\n\n"
                "    git remote add <name> <url>\n\nand then push using the remote name\n\n    git push <name>\n"
            )
    name = words[0] if words else push_remote(git)
    if options.delete and not words[1:]:
        raise Failure("--delete doesn't make sense without any refs")
    if not words[1:] and not (options.branches or options.tags or options.mirror):
        refuse_default(git, name, options, bool(words))
    url = url_of(git, name, True)
    other = open_remote(git, url, **({"service": "git-receive-pack"} if is_http(url) else {}))
    refs, head = remote_refs(other)
    try:
        updates = wanted(git, name, words[1:], options, refs)
    except Failure as failure:
        shown = other.server.shown if has_server(other) else url
        raise Failure(f"{failure.prefix}{failure.text}\nerror: failed to push some refs to '{shown}'", 1, "")
    return Push(git, options, name, url, other, refs, head).run(updates)


def push_remote(git):
    branch = git.branch()
    return (
        (branch and git.config.get(f"branch.{branch}.pushRemote")) or git.config.get("remote.pushDefault") or default_remote(git)
    )


def refuse_default(git, name, options, named):
    """Refuses a `git push` without references if the settings do not say what to push."""
    branch = git.branch()
    mode = git.config.get("push.default") or "simple"
    if branch is None:
        raise Failure(
            "You are not currently on a branch.\nTo push the history leading to the current (detached HEAD)\nstate now, use\n\n"
            f"    git push {name} HEAD:<name-of-remote-branch>\n"
        )
    upstream, remote = git.config.get(f"branch.{branch}.merge"), git.config.get(f"branch.{branch}.remote")
    if mode in ("current", "matching") or options.set_upstream or git.config.truth("push.autoSetupRemote"):
        return
    if mode == "nothing":
        raise Failure('You didn\'t specify any refspecs to push, and push.default is "nothing".')
    if remote is not None and remote != name and mode == "simple":
        return
    if not upstream or remote is None:
        if named and remote is None and name != default_remote(git):
            return
        raise Failure(NO_UPSTREAM.format(branch=branch, remote=name))
    if mode == "simple" and upstream != f"refs/heads/{branch}":
        other = upstream.removeprefix("refs/heads/")
        raise Failure(
            "The upstream branch of your current branch does not match\nthe name of your current branch.  To push to the "
            "upstream branch\n"
            f"on the remote, use\n\n    git push {name} HEAD:{other}\n\nTo push to the branch of the same name on the "
            f"remote, use\n\n"
            f"    git push {name} HEAD\n\nTo choose either option permanently, see push.default in 'git help config'.\n\n"
            "To avoid automatically configuring an upstream branch when its name\nwon't match the local branch, see option "
            "'simple' of branch.autoSetupMerge\n"
            "in 'git help config'.\n"
        )


def wanted(git, name, specs, options, refs):
    updates = []
    if options.mirror:
        mine = {ref for ref in git.refs.allkeys() if ref.startswith(b"refs/") and ref in git.refs}
        updates = [Update(ref, git.refs[ref], ref, True) for ref in sorted(mine)]
        return updates + [Update(None, None, ref, True) for ref in sorted(refs) if ref not in mine]
    if options.branches:
        updates += [
            Update(ref, git.refs[ref], ref, False) for ref in sorted(git.refs.allkeys()) if ref.startswith(b"refs/heads/")
        ]
    if options.tags:
        updates += [Update(ref, git.refs[ref], ref, False) for ref in sorted(git.refs.allkeys()) if ref.startswith(b"refs/tags/")]
    if specs[:1] == ["tag"] and len(specs) > 1:
        specs = [f"refs/tags/{specs[1]}", *specs[2:]]
    if not specs and not options.branches and not options.tags:
        branch = git.branch()
        mode = git.config.get("push.default") or "simple"
        target = git.config.get(f"branch.{branch}.merge") if mode == "upstream" else None
        source = b"refs/heads/" + os.fsencode(branch)
        if source not in git.refs:
            raise error(f"src refspec refs/heads/{branch} does not match any")
        updates.append(Update(source, git.refs[source], os.fsencode(target) if target else source, False))
    for text in specs:
        if options.delete:
            text = ":" + text
        spec = Spec(text)
        if spec.source and "*" in spec.source:
            for ref in sorted(git.refs.allkeys()):
                target = Spec(f"{spec.source}:{spec.target or spec.source}").match(ref)
                if target and ref in git.refs:
                    updates.append(Update(ref, git.refs[ref], os.fsencode(target), spec.force))
            continue
        if not spec.source and spec.target:
            target = existing(refs, spec.target)
            if target is None:
                raise error(f"unable to delete '{spec.target}': remote ref does not exist")
            updates.append(Update(None, None, target, True))
            continue
        ref = git.ref(spec.source)
        sha = git.find(spec.source)
        if sha is None:
            raise error(f"src refspec {spec.source} does not match any")
        if ref == b"HEAD":
            ref = git.head_ref() or ref
        if spec.target is None:
            if ref is None or ref == b"HEAD":
                raise error(f"The destination you provided is not a full refname: {spec.source}")
            target = ref
        elif spec.target.startswith("refs/"):
            target = os.fsencode(spec.target)
        else:
            target = existing(refs, spec.target)
            if target is None:
                if ref is not None and ref.startswith(b"refs/tags/"):
                    target = b"refs/tags/" + os.fsencode(spec.target)
                elif ref is not None and ref.startswith((b"refs/heads/", b"refs/remotes/")):
                    target = b"refs/heads/" + os.fsencode(spec.target)
                else:
                    raise error(
                        "The destination you provided is not a full refname (i.e.,\n"
                        'starting with "refs/"). We tried to guess what you meant by:\n\n'
                        f"- Looking for a ref that matches '{spec.target}' on the remote side.\n"
                        f"- Checking if the <src> being pushed ('{spec.source}')\n"
                        '  is a ref in "refs/{heads,tags}/". If so we add a corresponding\n'
                        "  refs/{heads,tags}/ prefix on the remote side.\n\nNeither worked, so we gave up. You must fully "
                        "qualify the ref." + _meant(git, sha, spec)
                    )
        updates.append(Update(ref or os.fsencode(spec.source), sha, target, spec.force))
        updates[-1].shown = "HEAD" if spec.source in ("HEAD", "@") else None
    return updates


def _meant(git, sha, spec):
    """The hint on what could be meant by a name that the other side does not know."""
    what, place = ("tag", "tags") if isinstance(git.store[sha], Tag) else ("branch", "heads")
    if not isinstance(git.store[sha], (Commit, Tag)):
        return ""
    kind = "tag" if what == "tag" else "commit"
    return (
        f"\nhint: The <src> part of the refspec is a {kind} object.\nhint: Did you mean to create a new {what} by pushing to\n"
        f"hint: '{spec.source}:refs/{place}/{spec.target}'?"
    )


def existing(refs, name):
    for form in ("%s", "refs/%s", "refs/tags/%s", "refs/heads/%s"):
        if os.fsencode(form % name) in refs:
            return os.fsencode(form % name)
    return None


class Push:
    def __init__(self, git, options, name, url, other, refs, head):
        self.git, self.options, self.name, self.url = git, options, name, url
        self.other, self.refs, self.head = other, refs, head
        self.hints = set()
        self.shown = other.server.shown if has_server(other) else url

    def run(self, updates):
        git, options = self.git, self.options
        import _git_work

        if options.verify is not False:
            lines = "".join(
                f"{os.fsdecode(one.source or b'(delete)')} {(one.sha or core.ZERO).decode()} "
                f"{os.fsdecode(one.target)} {self.refs.get(one.target, core.ZERO).decode()}\n"
                for one in updates if self.refs.get(one.target) != one.sha
            )  # fmt: skip
            if _git_work.run_hook(git, "pre-push", self.name, self.url, stdin=os.fsencode(lines)):
                raise Failure(f"failed to push some refs to '{self.url}'", 1, "error: ")
        for one in updates:
            self.judge(one)
        failed = [one for one in updates if one.problem]
        if options.atomic and failed:
            for one in updates:
                if not one.problem and one.line:
                    one.line = ("!", "[rejected]", "atomic push failed")
        elif not options.dry_run:
            good = [one for one in updates if not one.problem and self.refs.get(one.target) != one.sha]
            self.send(good)
            failed = [one for one in updates if one.problem]
        self.print(updates)
        if options.set_upstream and not options.dry_run:
            self.follow([one for one in updates if not one.problem])
        if failed:
            say(f"error: failed to push some refs to '{self.shown}'\n" + "".join(sorted(self.hints)))
            return 1
        return 0

    def send(self, updates):
        """Changes the other repository, as far as its hooks agree."""
        if has_server(self.other):
            self.send_to_server(updates)
            return
        receiver = Receiver(self.other)
        receiver.refuse_unknown(self.url)
        for one in updates:
            one.before = self.refs.get(one.target)
        copy_objects(self.git.store.object_store, self.other.object_store, {one.sha for one in updates if one.sha})
        declined = receiver.before(updates, bool(self.options.atomic))
        for one, why in declined.items():
            self.reject(one, "[remote rejected]", why)
        done = [one for one in updates if one not in declined]
        for one in done:
            self.store(one)
        receiver.after(done)

    def send_to_server(self, updates):
        for one in updates:
            one.before = self.refs.get(one.target)
        refused = self.other.push(self.git, updates, bool(self.options.atomic)) if updates else {}
        for one in updates:
            if one.target in refused:
                self.reject(one, "[remote rejected]", refused[one.target])
            else:
                self.track(one)

    def track(self, one):
        """Notes what was pushed in the reference that follows it."""
        tracked = self.tracked(one.target)
        if tracked and one.sha:
            self.git.update_ref(tracked, one.sha, "update by push")
        elif tracked and tracked in self.git.refs:
            from _git_refbase import delete_ref

            delete_ref(self.git, tracked)

    def judge(self, one):
        git = self.git
        before = self.refs.get(one.target)
        force = one.force or bool(self.options.force)
        if before == one.sha:
            return
        if one.sha is None:
            if one.target == self.head and not has_server(self.other) and not self.deletable():
                self.reject(one, "[remote rejected]", "deletion of the current branch prohibited")
            else:
                one.line = ("-", "[deleted]", None)
            return
        if one.target == self.head and not self.other.bare:
            denied = self.setting("denycurrentbranch")
            if denied not in (b"ignore", b"warn", b"updateinstead", b"false"):
                say_remote(CHECKED_OUT.format(ref=os.fsdecode(one.target)))
                self.reject(one, "[remote rejected]", "branch is currently checked out")
                return
        if before is None:
            kind = (
                "tag"
                if one.target.startswith(b"refs/tags/")
                else "branch"
                if one.target.startswith(b"refs/heads/")
                else "reference"
            )
            one.line = ("*", f"[new {kind}]", None)
            return
        lease = self.options.force_with_lease
        if lease:
            if not self.lease_holds(one, before, lease):
                self.reject(one, "[rejected]", "stale info")
                return
            force = True
        known = before in git.store.object_store
        forward = (
            known
            and one.target.startswith(b"refs/heads/")
            and git.peel(before, Commit)
            and git.is_ancestor(before, git.peel(one.sha, Commit))
        )
        span = f"{git.abbreviate(before)}{'..' if forward else '...'}{git.abbreviate(one.sha)}"
        if forward:
            one.line = (" ", span, None)
        elif force:
            one.line = ("+", span, "forced update")
        elif one.target.startswith(b"refs/tags/"):
            self.hints.add(TAG_THERE)
            self.reject(one, "[rejected]", "already exists")
        elif not known:
            self.hints.add(FETCH_FIRST)
            self.reject(one, "[rejected]", "fetch first")
        else:
            self.hints.add(BEHIND if one.source == git.head_ref() else BEHIND_OTHER)
            self.reject(one, "[rejected]", "non-fast-forward")

    def setting(self, key):
        try:
            return self.other.get_config().get((b"receive",), key.encode()).lower()
        except KeyError:
            return None

    def deletable(self):
        return self.setting("denydeletecurrent") in (b"ignore", b"warn", b"false")

    def lease_holds(self, one, before, lease):
        git = self.git
        if lease is not True:
            name, colon, value = lease.partition(":")
            if os.fsencode(name) not in (one.target, one.target.split(b"/", 2)[-1]):
                return False
            if colon:
                return (git.find(value) if value else None) == before
        for spec in configured_specs(git, self.name):
            tracked = Spec(spec).match(one.target)
            if tracked:
                ref = os.fsencode(tracked)
                return ref in git.refs and git.refs[ref] == before
        return False

    def reject(self, one, what, why):
        one.problem, one.line = why, ("!", what, why)

    def store(self, one):
        git, other = self.git, self.other
        if one.sha is None:
            other.refs.remove_if_equals(one.target, None)
            self.track(one)
            return
        from dulwich.refs import check_ref_format

        if not check_ref_format(one.target):
            raise error(f"remote ref '{os.fsdecode(one.target)}' is not a valid name")
        before = self.refs.get(one.target)
        other.refs[one.target] = one.sha
        if not other.bare:
            target = core.Git((), os.path.abspath(os.fsdecode(other.controldir())), os.path.abspath(os.fsdecode(other.path)))
            target.log(one.target, before, one.sha, "push")
            if self.setting("denycurrentbranch") == b"updateinstead" and one.target == self.head:
                import _git_work

                _git_work.move(target, target.tree(before), target.tree(one.sha))
        self.track(one)

    def tracked(self, ref):
        for spec in configured_specs(self.git, self.name):
            found = Spec(spec).match(ref)
            if found:
                return os.fsencode(found)
        return None

    def print(self, updates):
        shown = [one for one in updates if one.line]
        if not shown:
            if not self.options.quiet:
                say("Everything up-to-date\n")
            return
        if self.options.quiet and not any(one.problem for one in shown):
            return
        say(f"To {self.shown}\n")
        for one in sorted(shown, key=lambda one: bool(one.problem)):
            mark, summary, note = one.line
            note = f" ({note})" if note else ""
            target = short_name(one.target)
            if one.sha is None:
                say(f" {mark} {summary:<17} {target}{note}\n")
            else:
                say(f" {mark} {summary:<17} {one.shown or short_name(one.source)} -> {target}{note}\n")

    def follow(self, updates):
        from _git_refbase import settings_file

        for one in updates:
            if one.source and one.source.startswith(b"refs/heads/") and one.target.startswith(b"refs/heads/"):
                branch, target = os.fsdecode(one.source[11:]), os.fsdecode(one.target)
                file = settings_file(self.git)
                file.set(f"branch.{branch}.remote", self.name)
                file.set(f"branch.{branch}.merge", target)
                file.write()
                out(f"branch '{branch}' set up to track '{self.name}/{target[11:]}'.\n")
