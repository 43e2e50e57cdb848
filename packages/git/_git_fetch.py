# `git fetch` and `git pull`.
import os
import re

import _git_core as core
from _git_core import Failure, error, say
from _git_merge import write_state
from _git_remote import address, bring, has_server, is_http, open_remote, peeled, positive, remote_refs
from dulwich.objects import Commit

OPTIONS = """
-q --quiet
-v --verbose
-p --prune
-t --tags
-a --append
-n
-f --force
--all
--depth =
--unshallow
--filter =
--dry-run
--progress
-j --jobs =
-u --update-head-ok
"""


def default_remote(git):
    branch = git.branch()
    named = branch and git.config.get(f"branch.{branch}.remote")
    if named:
        return named
    from _git_remotes import names

    known = sorted(names(git))
    return known[0] if len(known) == 1 else "origin"


def url_of(git, name, push=False):
    from _git_remotes import names

    keys = names(git).get(name, {})
    found = keys.get("pushurl") if push else None
    return (found or keys.get("url") or [name])[0]


class Spec:
    """`+refs/heads/*:refs/remotes/origin/*`"""

    def __init__(self, text):
        self.force = text.startswith("+")
        self.source, colon, self.target = text.lstrip("+").partition(":")
        self.target = self.target if colon else None
        self.text = text

    def match(self, ref):
        """The name that a full name becomes, or None."""
        ref = os.fsdecode(ref)
        if "*" in self.source:
            before, _, after = self.source.partition("*")
            if ref.startswith(before) and ref.endswith(after) and len(ref) >= len(before) + len(after):
                return (self.target or "").replace("*", ref[len(before) : len(ref) - len(after)], 1)
            return None
        return self.target or "" if ref == self.source else None


def find_ref(refs, head_sha, name):
    """A name of the command line among the other's references."""
    if name in ("HEAD", ""):
        return b"HEAD" if head_sha else None
    for form in ("%s", "refs/%s", "refs/tags/%s", "refs/heads/%s", "refs/remotes/%s"):
        full = os.fsencode(form % name)
        if full in refs:
            return full
    return None


def cmd_fetch(argv, call):
    options = core.parse("fetch", argv, OPTIONS)
    git, words = call.git(), options.all_words()
    if options.all:
        from _git_remotes import names

        code = 0
        for name in sorted(names(git)):
            code = fetch(git, name, [], options) and 1 or code
        return code
    name = words[0] if words else default_remote(git)
    return 1 if fetch(git, name, words[1:], options) else 0


def fetch(git, name, specs, options, merging=None):
    """Fetches, writes FETCH_HEAD, and says whether something was refused."""
    url = url_of(git, name)
    other = open_remote(git, url, **({"prefixes": prefixes(git, name, specs)} if is_http(url) else {}))
    how = deepened(git, name, other, options)
    refs, head = remote_refs(other)
    try:
        head_sha = other.refs[b"HEAD"]
    except KeyError:
        head_sha = None
    configured = [Spec(text) for text in configured_specs(git, name)]
    branch = git.branch()
    own = branch and git.config.get(f"branch.{branch}.remote") == name
    merge = git.config.get(f"branch.{branch}.merge") if own else None
    wanted = []  # source, digits, target or None, force, whether it is to be merged, whether a line is shown for it
    if specs:
        if specs[:1] == ["tag"] and len(specs) > 1:
            specs = [f"refs/tags/{specs[1]}:refs/tags/{specs[1]}", *specs[2:]]
        for text in specs:
            spec = Spec(text)
            if "*" in spec.source:
                for ref in refs:
                    target = spec.match(ref)
                    if target is not None:
                        wanted.append([ref, refs[ref], os.fsencode(target) or None, spec.force, True])
                continue
            ref = find_ref(refs, head_sha, spec.source)
            if ref is None:
                raise Failure(f"couldn't find remote ref {spec.source}")
            target = spec.target
            if target and not target.startswith("refs/"):
                target = ("refs/tags/" if ref.startswith(b"refs/tags/") else "refs/heads/") + target
            wanted.append(
                [ref, head_sha if ref == b"HEAD" else refs[ref], os.fsencode(target) if target else None, spec.force, True]
            )
        for ref, sha, *_ in list(wanted):
            for spec in configured:
                target = spec.match(ref)
                if target:
                    wanted.append([ref, sha, os.fsencode(target), spec.force, None])
    elif configured:
        for spec in configured:
            for ref in refs:
                target = spec.match(ref)
                if target:
                    wanted.append(
                        [ref, refs[ref], os.fsencode(target), spec.force, os.fsencode(merge) == ref if merge else False]
                    )
        # References to merge come first.
        wanted.sort(key=lambda row: not row[4])
    elif head_sha:
        wanted.append([b"HEAD", head_sha, None, False, True])
    before = {ref for ref in git.refs.allkeys()}
    tag_option = git.config.get(f"remote.{name}.tagOpt")
    tags = options.tags if options.tags is not None else {"--tags": True, "--no-tags": False}.get(tag_option)
    if getattr(options, "n", None):
        tags = False
    if not options.dry_run:
        bring(other, git, {row[1] for row in wanted}, **how)
    stored = any(row[2] for row in wanted)
    for ref, sha in refs.items():
        if not ref.startswith(b"refs/tags/") or any(row[2] == ref for row in wanted):
            continue
        if tags:
            wanted.append([ref, sha, ref, bool(options.force), None])
        elif tags is None and stored and ref not in before:
            if peeled(other, ref, sha) in git.store.object_store:
                wanted.append([ref, sha, ref, False, None])
    missing = {row[1] for row in wanted} - {row[1] for row in wanted if row[1] in git.store.object_store}
    if missing and not options.dry_run:
        bring(other, git, missing)
    lines, refused = [], False
    if options.prune or options.prune is None and git.config.truth("fetch.prune"):
        lines += pruned(git, configured, refs, options)
    shown = address(url)
    records = []
    for ref, sha, target, force, merged in wanted:
        line, bad = update(
            git,
            ref,
            sha,
            target,
            force or bool(options.force),
            options,
            git.refs[target] if target and target in git.refs else None,
            name,
        )
        refused = refused or bad
        if line:
            lines.append(line)
        if merged is not None:
            records.append((sha, merged, ref, shown))
    if not options.dry_run:
        kept = []
        for sha, merged, ref, where in sorted(records, key=lambda record: not record[1]):
            kind = described(ref)
            note = "" if merged else "not-for-merge"
            kept.append(f"{sha.decode()}\t{note}\t{kind}{where}\n")
        write_state(git, "FETCH_HEAD", "".join(kept))
    if lines and not options.quiet:
        say(f"From {shown}\n")
        width = max(10, *(len(line[2]) for line in lines))
        for mark, summary, source, target, note in lines:
            say(f" {mark} {summary:<17} {source:<{width}} -> {target}{note}\n")
    if merging is not None:
        merging += [(sha, ref, shown) for sha, merged, ref, _ in records if merged]
    return refused


def prefixes(git, name, specs):
    """Beginnings of the references that a server is to list."""
    sources = [Spec(text).source for text in (*specs, *configured_specs(git, name))]
    named = [source.partition("*")[0] for source in sources if source.startswith("refs/")]
    return [b"HEAD", b"refs/heads/", b"refs/tags/", *map(os.fsencode, named)]


def deepened(git, name, other, options):
    """How much of the history is fetched, where a server has it."""
    depth = positive(options.depth)
    if not has_server(other):
        if depth or options.unshallow:
            raise error("--depth and --unshallow are not there for a fetch from a directory", 129)
        return {}
    if options.unshallow and not git.store.get_shallow():
        raise Failure("--unshallow on a complete repository does not make sense")
    filter = options.filter or git.config.get(f"remote.{name}.partialclonefilter")
    return {"depth": depth, "unshallow": bool(options.unshallow), "filter": filter}


def configured_specs(git, name):
    from _git_remotes import names

    return names(git).get(name, {}).get("fetch", [])


def described(ref):
    text = os.fsdecode(ref)
    for prefix, kind in (("refs/heads/", "branch"), ("refs/tags/", "tag"), ("refs/remotes/", "remote-tracking branch")):
        if text.startswith(prefix):
            return f"{kind} '{text[len(prefix) :]}' of "
    return "" if ref == b"HEAD" else f"'{text}' of "


def short_name(ref):
    return re.sub(r"^refs/(heads|tags|remotes)/", "", os.fsdecode(ref))


def pruned(git, configured, refs, options):
    from _git_refbase import delete_ref

    lines = []
    for spec in configured:
        back = Spec(f"{spec.target}:{spec.source}")
        for ref in sorted(git.refs.allkeys()):
            source = back.match(ref) if spec.target else None
            value = git.refs.read_ref(ref) or b""
            if source and os.fsencode(source) not in refs and not value.startswith(b"ref: "):
                if not options.dry_run:
                    delete_ref(git, ref)
                lines.append(("-", "[deleted]", "(none)", short_name(ref), ""))
    return lines


def update(git, ref, sha, target, force, options, before, name):
    """Sets what a fetched reference is kept as; the line to show, or None, and whether it was refused."""
    source = short_name(ref)
    if target is None:
        kind = "branch" if ref.startswith(b"refs/heads/") else "tag" if ref.startswith(b"refs/tags/") else "branch"
        return ("*", kind, source, "FETCH_HEAD", ""), False
    shown = short_name(target)
    if before == sha:
        return (("=", "[up to date]", source, shown, "") if options.verbose else None), False
    if target == git.head_ref() and not git.bare and not options.update_head_ok:
        raise Failure(f"refusing to fetch into branch '{os.fsdecode(target)}' checked out at '{git.root}'")

    def store(message):
        if not options.dry_run:
            git.update_ref(target, sha, message)

    what = "fetch" + (f" {name}" if name else "")
    if before is None:
        kind = "tag" if ref.startswith(b"refs/tags/") else "branch" if ref.startswith(b"refs/heads/") else "ref"
        store(f"{what}: storing {'head' if kind == 'branch' else kind}")
        return ("*", f"[new {kind}]", source, shown, ""), False
    if target.startswith(b"refs/tags/"):
        if not force:
            return ("!", "[rejected]", source, shown, "  (would clobber existing tag)"), True
        store(f"{what}: updating tag")
        return ("t", "[tag update]", source, shown, ""), False
    old, new = git.peel(before, Commit), git.peel(sha, Commit)
    span = lambda dots: f"{git.abbreviate(before)}{dots}{git.abbreviate(sha)}"
    if options.dry_run and new is None:
        return (" ", span(".."), source, shown, ""), False
    if old and new and git.is_ancestor(old, new):
        store(f"{what}: fast-forward")
        return (" ", span(".."), source, shown, ""), False
    if force:
        store(f"{what}: forced-update")
        return ("+", span("..."), source, shown, "  (forced update)"), False
    return ("!", "[rejected]", source, shown, "  (non-fast-forward)"), True


# pull

PULL = (
    OPTIONS
    + """-r --rebase [=]
--ff
--ff-only
--no-stat
--stat
--commit
-e --edit
--squash
-s --strategy =*
-X --strategy-option =*
--allow-unrelated-histories
--autostash
"""
)
DIVERGENT = """hint: You have divergent branches and need to specify how to reconcile them.
hint: You can do so by running one of the following commands sometime before
hint: your next pull:
hint:
hint:   git config pull.rebase false  # merge
hint:   git config pull.rebase true   # rebase
hint:   git config pull.ff only       # fast-forward only
hint:
hint: You can replace "git config" with "git config --global" to set a default
hint: preference for all repositories. You can also pass --rebase, --no-rebase,
hint: or --ff-only on the command line to override the configured default per
hint: invocation.
fatal: Need to specify how to reconcile divergent branches."""


def cmd_pull(argv, call):
    options = core.parse("pull", argv, PULL)
    git, words = call.git(), options.all_words()
    git.need_worktree()
    check_unfinished(git)
    branch = git.branch()
    name = words[0] if words else default_remote(git)
    if not words and branch and not git.config.get(f"branch.{branch}.merge"):
        url_known = git.config.get(f"remote.{name}.url")
        if url_known:
            fetch(git, name, [], options)
        raise Failure(no_tracking(branch, name if url_known else "<remote>"), 1, "")
    merging = []
    refused = fetch(git, name, words[1:], options, merging)
    if refused:
        return 1
    if not merging:
        if words[1:]:
            return 1
        merge = git.config.get(f"branch.{branch}.merge") if branch else None
        if merge:
            raise Failure(
                f"Your configuration specifies to merge with the ref '{merge}'\nfrom the remote, but no such ref was fetched.",
                1,
                "",
            )
        raise Failure("You are not currently on a branch.\nPlease specify which branch you want to merge with.\n"
                      "See git-pull(1) for details.\n\n    git pull <remote> <branch>\n", 1, "")  # fmt: skip
    rebase = options.rebase
    if rebase is None and options.ff_only is None and options.ff is None:
        setting = git.config.get(f"branch.{branch}.rebase") or git.config.get("pull.rebase")
        rebase = None if setting is None else core.truth(setting) is not False
    elif rebase not in (None, True, False):
        rebase = core.truth(rebase) is not False
    head, sha = git.head(), git.peel(merging[0][0], Commit)
    ff = git.config.get("pull.ff")
    if options.ff is None and not options.ff_only and ff is not None and not rebase:
        options.ff_only = True if ff == "only" else options.ff_only
        options.ff = None if ff == "only" else core.truth(ff)
    diverged = head is not None and not git.is_ancestor(head, sha) and not git.is_ancestor(sha, head)
    if diverged and rebase is None and options.ff is None and not options.ff_only:
        raise Failure(DIVERGENT, 128, "")
    if rebase:
        if git.head() is not None and git.is_ancestor(head, sha):
            return _merge(git, options, call, merging, words, True)
        extra = (["--autostash"] if options.autostash else []) + (["-q"] if options.quiet else [])
        return call.run(["rebase", *extra, sha.decode()])
    return _merge(git, options, call, merging, words, False)


def check_unfinished(git):
    import _git_merge

    if _git_merge.has_unmerged(git):
        raise Failure(
            "error: Pulling is not possible because you have unmerged files.\n" + _git_merge.UNMERGED_HINT
            + "fatal: Exiting because of an unresolved conflict.", 128, "",
        )  # fmt: skip
    if _git_merge.read_state(git, "MERGE_HEAD") is not None:
        raise Failure("error: You have not concluded your merge (MERGE_HEAD exists).\nhint: Please, commit your changes "
            "before merging.\n"
                      "fatal: Exiting because of unfinished merge.", 128, "")  # fmt: skip


def _merge(git, options, call, merging, words, forward):
    import _git_merge

    merge_options = core.parse("merge", [], _git_merge.OPTIONS)
    for key in (
        "quiet",
        "stat",
        "commit",
        "edit",
        "squash",
        "strategy",
        "strategy_option",
        "allow_unrelated_histories",
        "ff",
        "ff_only",
    ):
        setattr(merge_options, key, getattr(options, key))
    if options.no_stat:
        merge_options.stat = False
    merge_options.n = None
    heads, parts = [], []
    for sha, ref, where in merging:
        head = _git_merge.Head(git, git.peel(sha, Commit).decode())
        heads.append(head)
        parts.append(described(ref) + where)
    runner = _git_merge.Merge(git, merge_options, call, reflog=" ".join(["pull", *words]))
    branch = git.branch()
    into = "" if branch in ("master", git.config.get("init.defaultBranch") or "main") else f" into {branch or 'HEAD'}"
    message = "Merge " + ", ".join(parts) + into + "\n"
    return runner.merge(heads, [head.name for head in heads], message)


def no_tracking(branch, remote):
    return f"""There is no tracking information for the current branch.
Please specify which branch you want to merge with.
See git-pull(1) for details.

    git pull <remote> <branch>

If you wish to set tracking information for this branch you can do so with:

    git branch --set-upstream-to={remote}/<branch> {branch}
"""
