# Other repositories, in directories and at addresses: opening them, copying objects, and clone, ls-remote, gc and submodule.
import os
import re
import shutil

import _git_core as core
from _git_core import Failure, error, out, say
from dulwich.objects import Commit, Tag, Tree


def elsewhere(module, name):
    def command(argv, call):
        import importlib

        return getattr(importlib.import_module(module), name)(argv, call)

    return command


cmd_fetch = elsewhere("_git_fetch", "cmd_fetch")
cmd_pull = elsewhere("_git_fetch", "cmd_pull")
cmd_push = elsewhere("_git_push", "cmd_push")

UNREADABLE = """fatal: Could not read from remote repository.

Please make sure you have the correct access rights
and the repository exists."""


def is_http(url):
    return bool(re.match(r"https?://", url, re.I))


def refuse_network(url):
    """HTTP is spoken here, and nothing else."""
    other = re.match(r"(ssh|git|ftps?|git\+ssh)://", url) or re.match(r"([\w.-]+@)?[\w.-]{2,}:(?!//)", url)
    if other and not os.path.exists(url):
        raise Failure(f"unable to access '{url}': command lines speak https only; use an address that begins with https://")


def directory_of(url, base):
    """The directory of a repository, or None."""
    path = url[7:] if url.startswith("file://") else url
    path = os.path.join(base, os.path.expanduser(path))
    for candidate in (os.path.join(path, ".git"), path, path + ".git", path + ".git/.git"):
        if os.path.isfile(candidate):
            with open(candidate, encoding="utf-8", errors="replace") as file:
                candidate = os.path.join(path, file.read().removeprefix("gitdir:").strip())
        if os.path.isdir(os.path.join(candidate, "objects")) and os.path.exists(os.path.join(candidate, "HEAD")):
            return candidate
    return None


def open_remote(git, url, settings=None, **how):
    """dulwich's repository of a directory, or one that a server has."""
    from dulwich.repo import Repo

    if is_http(url):
        from _git_wire import HttpRemote

        return HttpRemote(url, settings or git.config, **how)
    refuse_network(url)
    base = (git.root or git.gitdir) if git else os.getcwd()
    found = directory_of(url, base)
    if found is None:
        raise Failure(f"fatal: '{url}' does not appear to be a git repository\n{UNREADABLE}", 128, "")
    try:
        return Repo(found if os.path.basename(found) != ".git" else os.path.dirname(found))
    except Exception as why:
        raise Failure(f"'{url}' cannot be read: {why}")


def has_server(other):
    return getattr(other, "is_http", False)


def peeled(other, ref, sha):
    """The object that a tag of another repository leads to."""
    if has_server(other):
        return other.peel(ref, sha)
    found = other.object_store[sha]
    while isinstance(found, Tag):
        found = other.object_store[found.object[1]]
    return found.id


def bring(other, git, wants, depth=None, **how):
    """Brings what the wanted objects need; returns the commits at which a history was cut and that are not noted yet."""
    if has_server(other):
        other.fetch_into(git, wants, depth, **how)
        return set()
    return copy_objects(other.object_store, git.store.object_store, wants, depth)


def remote_refs(other):
    """References with their digits, without HEAD; and the full name of HEAD's branch, or None."""
    if has_server(other):
        return dict(sorted(other.listed.items())), other.head_target if other.head_target in other.listed else None
    refs = {}
    for ref in sorted(other.refs.allkeys()):
        try:
            refs[ref] = other.refs[ref]
        except KeyError:
            continue
    refs.pop(b"HEAD", None)
    value = other.refs.read_ref(b"HEAD") or b""
    head = value[5:].strip() if value.startswith(b"ref: ") else None
    return refs, head if head in refs else None


def missing(source, target, wants, depth=None):
    """Digits of what the target has not, in an order in which nothing comes before what it needs; and where a history is cut."""
    commits, others, cut, seen = [], [], set(), set()
    waiting = [(sha, 1) for sha in wants]
    trees = []
    while waiting:
        sha, level = waiting.pop()
        if sha in seen or sha in target:
            continue
        seen.add(sha)
        try:
            item = source[sha]
        except KeyError:
            raise Failure(f"bad object {sha.decode()} in the other repository")
        if isinstance(item, Tag):
            commits.append(sha)
            waiting.append((item.object[1], level))
        elif isinstance(item, Commit):
            commits.append(sha)
            trees.append(item.tree)
            if depth is not None and level >= depth:
                if item.parents:
                    cut.add(sha)
            else:
                waiting += [(parent, level + 1) for parent in item.parents]
        elif isinstance(item, Tree):
            trees.append(sha)
            seen.discard(sha)
        else:
            others.append(sha)
    folders = []
    while trees:
        sha = trees.pop()
        if sha in seen or sha in target:
            continue
        seen.add(sha)
        folders.append(sha)
        for _, mode, inner in source[sha].iteritems():
            kind = mode & 0o170000
            if kind == 0o040000:
                trees.append(inner)
            elif kind != 0o160000 and inner not in seen and inner not in target:
                seen.add(inner)
                others.append(inner)
    return others + folders[::-1] + commits[::-1], cut


def copy_objects(source, target, wants, depth=None):
    """Copies what the wanted objects need; returns the commits at which a history was cut."""
    shas, cut = missing(source, target, wants, depth)
    if len(shas) > 200:
        target.add_objects([(source[sha], None) for sha in shas])
    else:
        for sha in shas:
            target.add_object(source[sha])
    return cut


def address(url):
    """How an address is shown behind `From`."""
    if is_http(url):
        from _git_http import without_password

        url = without_password(url)
    return re.sub(r"(/|\.git)$", "", url.rstrip("/"))


# clone

CLONE = """
-q --quiet
-v --verbose
-b --branch =
-o --origin =
--bare
--mirror
-n --no-checkout
--depth =
--filter =
--single-branch
--sparse
-l --local
--no-local
--no-hardlinks
--tags
--progress
-c --config =*
"""


def cmd_clone(argv, call):
    from _git_init import make

    options = core.parse("clone", argv, CLONE)
    words = options.all_words()
    if not words:
        raise Failure(
            "You must specify a repository to clone.\n\nusage: git clone [<options>] [--] <repo> [<dir>]", 129, "fatal: "
        )
    if len(words) > 2:
        raise Failure("Too many arguments.\n\nusage: git clone [<options>] [--] <repo> [<dir>]", 129)
    url = words[0]
    bare = bool(options.bare or options.mirror)
    name = re.sub(r"(/?\.git)?/*$", "", url.rstrip("/")).rpartition("/")[2].rpartition(":")[2]
    directory = words[1] if len(words) > 1 else name + (".git" if bare else "")
    if is_http(url):
        return _clone_http(call, options, url, directory, bare)
    refuse_network(url)
    if directory_of(url, os.getcwd()) is None:
        raise Failure(f"repository '{url}' does not exist")
    there = _free_directory(directory)
    depth = positive(options.depth)
    if options.filter:
        say("warning: --filter is ignored in local clones; use file:// instead.\n")
    if depth is not None:
        if not url.startswith("file://"):
            say("warning: --depth is ignored in local clones; use file:// instead.\n")
            depth = None
    other = open_remote(None, url)
    refs, head = remote_refs(other)
    if not options.quiet:
        say(f"Cloning into {'bare repository ' if bare else ''}'{directory}'...\n")
    branch = _branch_of(options, refs, head)
    source = url if url.startswith("file://") else os.path.abspath(url)
    whole = os.path.abspath(directory)
    value = other.refs.read_ref(b"HEAD") or b""
    default = os.fsdecode(value[5:].strip())[11:] if value.startswith(b"ref: refs/heads/") else "master"
    start = os.fsdecode(branch)[11:] if branch and branch.startswith(b"refs/heads/") else default
    try:
        os.makedirs(whole, exist_ok=True)
        gitdir, _ = make(whole, bare, start)
        _clone_into(call, options, other, refs, head, branch, gitdir, whole, source, bare, depth, url)
    except BaseException:
        if not there:
            shutil.rmtree(whole, ignore_errors=True)
        raise
    if not options.quiet:
        if not refs and other.refs.read_ref(b"HEAD") is not None:
            say("warning: You appear to have cloned an empty repository.\n")
        say("done.\n")


def _free_directory(directory):
    """Whether the directory for a clone is there already; one with something in it is an error."""
    if not directory:
        raise Failure("The repository's address has no name; name a directory.")
    there = os.path.isdir(directory)
    if os.path.exists(directory) and (not there or os.listdir(directory)):
        raise Failure(f"destination path '{directory}' already exists and is not an empty directory.")
    return there


def positive(depth):
    if depth is not None and (not depth.isdigit() or not int(depth)):
        raise Failure(f"depth {depth} is not a positive number")
    return None if depth is None else int(depth)


def _branch_of(options, refs, head):
    """The reference that a clone begins with, by its full name."""
    if not options.branch:
        return head
    named = [b"refs/heads/" + os.fsencode(options.branch), b"refs/tags/" + os.fsencode(options.branch)]
    branch = next((ref for ref in named if ref in refs), None)
    if branch is None:
        raise Failure(f"Remote branch {options.branch} not found in upstream {options.origin or 'origin'}")
    return branch


def _clone_http(call, options, url, directory, bare):
    from _git_init import make

    there, depth = _free_directory(directory), positive(options.depth)
    if not options.quiet:
        say(f"Cloning into {'bare repository ' if bare else ''}'{directory}'...\n")
    prefixes = [b"HEAD", b"refs/"] if options.mirror else [b"HEAD", b"refs/heads/", b"refs/tags/"]
    other = open_remote(None, url, core.Settings(call.given), prefixes=prefixes)
    refs, head = remote_refs(other)
    branch, whole = _branch_of(options, refs, head), os.path.abspath(directory)
    named = branch if branch and branch.startswith(b"refs/heads/") else other.head_target or b"refs/heads/master"
    try:
        os.makedirs(whole, exist_ok=True)
        gitdir, _ = make(whole, bare, os.fsdecode(named)[11:])
        _clone_into(call, options, other, refs, head, branch, gitdir, whole, url, bare, depth, url)
    except BaseException:
        if not there:
            shutil.rmtree(whole, ignore_errors=True)
        raise
    if not refs:
        say("warning: You appear to have cloned an empty repository.\n")


def _clone_into(call, options, other, refs, head, branch, gitdir, whole, source, bare, depth, url):
    import _git_work
    from _git_config import File

    remote = options.origin or "origin"
    file = File(os.path.join(gitdir, "config"))
    file.set(f"remote.{remote}.url", source)
    single = options.single_branch or depth is not None and options.single_branch is not False
    short = os.fsdecode(branch)[11:] if branch and branch.startswith(b"refs/heads/") else None
    if options.mirror:
        file.add(f"remote.{remote}.fetch", "+refs/*:refs/*")
        file.set(f"remote.{remote}.mirror", "true")
    elif not bare:
        what = short if single and short else "*"
        file.add(f"remote.{remote}.fetch", f"+refs/heads/{what}:refs/remotes/{remote}/{what}")
    if short and not bare:
        file.set(f"branch.{short}.remote", remote)
        file.set(f"branch.{short}.merge", f"refs/heads/{short}")
    network = has_server(other)
    if options.filter and network:
        file.set(f"remote.{remote}.promisor", "true")
        file.set(f"remote.{remote}.partialclonefilter", options.filter)
    for setting in options.config:
        key, _, text = setting.partition("=")
        file.add(key, text)
    file.write()
    git = core.Git(call.given, gitdir, None if bare else whole)
    if single and branch:
        refs = {ref: sha for ref, sha in refs.items() if ref == branch or ref.startswith(b"refs/tags/") and depth is None}
    # Of one branch, only the tags that come with it are brought.
    wants = {refs[branch]} if network and single and branch else set(refs.values())
    detached = None
    if head is None and not options.branch:
        try:
            detached = other.refs[b"HEAD"]
            wants.add(detached)
        except KeyError:
            pass
    if not network and not any(True for _ in other.object_store.alternates) and depth is None and not single and _copy_files(other, git):
        git = core.Git(call.given, gitdir, None if bare else whole)
    cut = bring(other, git, wants, depth, **({"filter": options.filter} if network else {}))
    if network and single:
        refs = {ref: sha for ref, sha in refs.items() if ref == branch or sha in git.store.object_store}
    if cut:
        with open(os.path.join(gitdir, "shallow"), "wb") as file:
            file.write(b"".join(sha + b"\n" for sha in sorted(cut)))
    packed = {}
    for ref, sha in refs.items():
        if bare and (ref.startswith((b"refs/heads/", b"refs/tags/")) or options.mirror):
            packed[ref] = sha
        elif not bare and ref.startswith(b"refs/heads/"):
            packed[b"refs/remotes/%s/" % os.fsencode(remote) + ref[11:]] = sha
        elif ref.startswith(b"refs/tags/") and options.tags is not False:
            packed[ref] = sha
    if packed:
        git.refs.add_packed_refs(packed)
    if bare:
        if branch and branch.startswith(b"refs/heads/"):
            _head_file(git, b"ref: " + branch)
        elif detached or branch:
            _head_file(git, git.peel(detached or refs[branch], Commit))
        return
    if head and (not single or head == branch):
        os.makedirs(os.path.join(gitdir, "refs", "remotes", remote), exist_ok=True)
        git.refs.set_symbolic_ref(
            b"refs/remotes/%s/HEAD" % os.fsencode(remote), b"refs/remotes/%s/" % os.fsencode(remote) + head[11:]
        )
    target = git.peel(refs[branch] if branch else detached, Commit) if branch or detached else None
    if target is None:
        return
    if branch and branch.startswith(b"refs/heads/"):
        git.update_ref(branch, target, f"clone: from {source}")
    else:
        git.detach(target, f"clone: from {source}")
        if git.config.truth("advice.detachedHead", True):
            from _git_go import DETACHED

            say(DETACHED.format(name=target.decode()))
    if options.filter and network:
        from _git_wire import promise

        git.fetch_missing = promise(git)
    if options.sparse:
        import _git_sparse

        _git_sparse.switch_on(git)
        git = core.Git(call.given, gitdir, whole)
        _git_sparse.Sparse(git).write(set())
    if not options.no_checkout:
        _git_work.move(git, {}, git.tree(target), force=True)


def _head_file(git, text):
    with open(os.path.join(git.gitdir, "HEAD"), "wb") as file:
        file.write(text + b"\n")


def _copy_files(other, git):
    """Copies the files of the object store as they are; True where there were some."""
    base, target = os.path.join(os.fsdecode(other.commondir()), "objects"), os.path.join(git.commondir, "objects")
    copied = False
    for name in os.listdir(base):
        if re.fullmatch("[0-9a-f]{2}", name) or name == "pack":
            os.makedirs(os.path.join(target, name), exist_ok=True)
            for inner in os.listdir(os.path.join(base, name)):
                if re.fullmatch(r"[0-9a-f]{38}|pack-[0-9a-f]+\.(pack|idx)", inner):
                    shutil.copyfile(os.path.join(base, name, inner), os.path.join(target, name, inner))
                    copied = True
    return copied


# ls-remote, gc, submodule


def cmd_ls_remote(argv, call):
    options = core.parse(
        "ls-remote", argv, "-h --heads --branches\n-t --tags\n--refs\n-q --quiet\n--get-url\n--exit-code\n--symref\n--sort =*"
    )
    words = options.all_words()
    try:
        git = call.git()
    except Failure:
        git = None
    url = words[0] if words else None
    if git is not None:
        from _git_fetch import default_remote, url_of

        named = url or default_remote(git)
        url = url_of(git, named)
        if not words and not options.quiet and not options.get_url:
            say(f"From {url}\n")
    elif url is None:
        raise Failure("No remote configured to list refs from.")
    if options.get_url:
        out(url + "\n")
        return 0
    other = open_remote(git, url, core.Settings(call.given))
    refs, head = remote_refs(other)
    rows = []
    if not (options.branches or options.tags or options.refs):
        try:
            rows.append((b"HEAD", other.refs[b"HEAD"]))
        except KeyError:
            pass
    for ref, sha in refs.items():
        if (options.branches or options.tags) and not (
            options.branches and ref.startswith(b"refs/heads/") or options.tags and ref.startswith(b"refs/tags/")
        ):
            continue
        rows.append((ref, sha))
        target = sha if options.refs else peeled(other, ref, sha)
        if target != sha:
            rows.append((ref + b"^{}", target))
    import fnmatch

    shown = 0
    for ref, sha in rows:
        text = os.fsdecode(ref)
        if words[1:] and not any(fnmatch.fnmatchcase("/" + text, "*/" + word) for word in words[1:]):
            continue
        if options.symref and ref == b"HEAD" and head:
            out(f"ref: {os.fsdecode(head)}\tHEAD\n")
        out(f"{sha.decode()}\t{text}\n")
        shown += 1
    return 2 if options.exit_code and not shown else 0


def cmd_gc(argv, call):
    options = core.parse("gc", argv, "-q --quiet\n--aggressive\n--auto\n--prune [=]\n--force")
    store = call.git().store.object_store
    if options.auto and sum(1 for _ in zip(store._iter_loose_objects(), range(6701))) < 6700:
        return 0
    store.pack_loose_objects()


def cmd_submodule(argv, call):
    git = call.git()
    git.need_worktree()
    words = [word for word in argv if word not in ("-q", "--quiet")]
    action = words[0] if words else "status"
    if action not in ("status", "init", "update", "sync", "summary", "foreach", "add", "deinit"):
        raise Failure("usage: git submodule [--quiet] [--cached]\n   or: git submodule [--quiet] status", 1, "")
    if action in ("add", "deinit") or any(entry.mode == 0o160000 for entry in git.index().values() if hasattr(entry, "sha")):
        raise error("submodules are not supported here")
