# `git remote`: the list of remotes in the configuration.
import os

import _git_core as core
from _git_core import Failure, error, out
from _git_refbase import delete_ref, settings_file


def names(git):
    """Remotes by name, in the order of the file; each has its keys and lists of values."""
    found = {}
    for entry in settings_file(git).entries:
        parts = entry.key.split(".")
        if parts[0] == "remote" and len(parts) > 2:
            name = entry.key[7:].rpartition(".")[0]
            found.setdefault(name, {}).setdefault(parts[-1], []).append(entry.value or "")
    return found


def cmd_remote(argv, call):
    options = core.parse("remote", argv, "-v --verbose", stop_at_word=True)
    git, words = call.git(), options.words + (options.paths or [])
    if not words or words == ["show"]:
        for name, keys in sorted(names(git).items()):
            if options.verbose and not words:
                url = keys.get("url", [name])[0]
                push = keys.get("pushurl", keys.get("url", [name]))
                out(f"{name}\t{url} (fetch)\n" + "".join(f"{name}\t{one} (push)\n" for one in push))
            else:
                out(name + "\n")
        return 0
    actions = {
        "add": add, "remove": remove, "rm": remove, "rename": rename, "get-url": get_url, "set-url": set_url, "show": show,
        "prune": prune, "update": update, "set-head": set_head, "set-branches": set_branches,
    }  # fmt: skip
    if words[0] not in actions:
        raise Failure(f"error: unknown subcommand: `{words[0]}'\nusage: git remote [-v | --verbose]", 129, "")
    return actions[words[0]](git, words[1:], call)


def missing(name, colon=""):
    return error(f"No such remote{colon} '{name}'", 2)


def add(git, argv, call):
    options = core.parse("remote add", argv, "-f --fetch\n-t --track =*\n-m --master =\n--tags\n--no-tags\n--mirror [=]")
    words = options.all_words()
    if len(words) != 2:
        raise Failure("usage: git remote add [<options>] <name> <url>", 129, "")
    name, url = words
    from dulwich.refs import check_ref_format

    if not check_ref_format(b"refs/remotes/" + os.fsencode(name) + b"/x") or name.startswith("-"):
        raise Failure(f"'{name}' is not a valid remote name")
    if name in names(git):
        raise error(f"remote {name} already exists.", 3)
    file = settings_file(git)
    file.set(f"remote.{name}.url", url)
    for branch in options.track or ["*"]:
        file.add(f"remote.{name}.fetch", f"+refs/heads/{branch}:refs/remotes/{name}/{branch}")
    if options.tags is not None:
        file.add(f"remote.{name}.tagOpt", "--tags" if options.tags else "--no-tags")
    file.write()
    if options.fetch:
        return call.run(["fetch", name])


def remove(git, argv, call):
    words = core.parse("remote remove", argv, "").all_words()
    if len(words) != 1:
        raise Failure("usage: git remote remove <name>", 129, "")
    name = words[0]
    if name not in names(git):
        raise missing(name, ":")
    file = settings_file(git)
    for branch in {entry.key[7:].rpartition(".")[0] for entry in file.entries if entry.key.startswith("branch.")}:
        if any(entry.key == f"branch.{branch}.remote" and entry.value == name for entry in file.entries):
            file.unset(f"branch.{branch}.remote")
            file.unset(f"branch.{branch}.merge")
    file.rename_section(f"remote.{name}", None)
    file.write()
    base = b"refs/remotes/" + os.fsencode(name) + b"/"
    for ref in sorted(ref for ref in git.refs.allkeys() if ref.startswith(base)):
        delete_ref(git, ref)


def rename(git, argv, call):
    words = core.parse("remote rename", argv, "--progress").all_words()
    if len(words) != 2:
        raise Failure("usage: git remote rename [--[no-]progress] <old> <new>", 129, "")
    old, new = words
    if old not in names(git):
        raise missing(old, ":")
    if new in names(git):
        raise error(f"remote {new} already exists.", 3)
    file = settings_file(git)
    file.rename_section(f"remote.{old}", f"remote.{new}")
    for entry in [entry for entry in file.entries if entry.key == f"remote.{new}.fetch"]:
        value = (entry.value or "").replace(f"refs/remotes/{old}/", f"refs/remotes/{new}/")
        now = next(one for one in file.entries if one.key == entry.key and one.value == entry.value)
        file.set_entry(now, "fetch", value)
    for key in [entry.key for entry in file.entries if entry.key.startswith("branch.") and entry.key.endswith(".remote")]:
        if any(entry.key == key and entry.value == old for entry in file.entries):
            file.set(key, new)
    file.write()
    base, target = b"refs/remotes/" + os.fsencode(old) + b"/", b"refs/remotes/" + os.fsencode(new) + b"/"
    for ref in sorted(ref for ref in git.refs.allkeys() if ref.startswith(base)):
        value = git.refs.read_ref(ref) or b""
        moved = target + ref[len(base) :]
        if value.startswith(b"ref: "):
            git.refs.set_symbolic_ref(moved, value[5:].strip().replace(base, target, 1))
        else:
            git.refs[moved] = value
        delete_ref(git, ref)


def urls(git, name, push=False):
    keys = names(git).get(name)
    if keys is None:
        raise missing(name)
    return keys.get("pushurl", keys.get("url", [name])) if push else keys.get("url", [name])


def get_url(git, argv, call):
    options = core.parse("remote get-url", argv, "--push\n--all")
    words = options.all_words()
    if len(words) != 1:
        raise Failure("usage: git remote get-url [--push] [--all] <name>", 129, "")
    found = urls(git, words[0], options.push)
    out("".join(url + "\n" for url in (found if options.all else found[:1])))


def set_url(git, argv, call):
    options = core.parse("remote set-url", argv, "--push\n--add\n--delete")
    words = options.all_words()
    if not 2 <= len(words) <= 3:
        raise Failure("usage: git remote set-url [--push] <name> <newurl> [<oldurl>]", 129, "")
    name, url = words[:2]
    if name not in names(git):
        raise missing(name)
    key = f"remote.{name}." + ("pushurl" if options.push else "url")
    file = settings_file(git)
    if options.add:
        file.add(key, url)
    elif options.delete:
        found = [entry for entry in file.entries if entry.key == key and entry.value == url]
        if not found:
            raise Failure(f"No such URL found: {url}")
        file.remove(found[-1])
    elif len(words) == 3:
        found = [entry for entry in file.entries if entry.key == key and entry.value == words[2]]
        if not found:
            raise Failure(f"No such URL found: {words[2]}")
        file.set_entry(found[-1], key.rpartition(".")[2], url)
    else:
        file.set(key, url)
    file.write()


def show(git, argv, call):
    options = core.parse("remote show", argv, "-n")
    from _git_remote import open_remote, remote_refs

    for name in options.all_words():
        if name not in names(git):
            raise Failure(f"'{name}' does not appear to be a git repository\nfatal: Could not read from remote repository.\n\n"
                          "Please make sure you have the correct access rights\nand the repository exists.")  # fmt: skip
        url, push = urls(git, name)[0], urls(git, name, True)[0]
        out(f"* remote {name}\n  Fetch URL: {url}\n  Push  URL: {push}\n")
        known = {
            os.fsdecode(ref).split("/", 3)[3]
            for ref in git.refs.allkeys()
            if ref.startswith(b"refs/remotes/%s/" % os.fsencode(name))
        }
        known.discard("HEAD")
        if options.n:
            theirs, head = None, None
            out("  HEAD branch: (not queried)\n")
        else:
            other = open_remote(git, url)
            refs, head = remote_refs(other)
            theirs = {os.fsdecode(ref[11:]): sha for ref, sha in refs.items() if ref.startswith(b"refs/heads/")}
            out(f"  HEAD branch: {os.fsdecode(head[11:]) if head else '(unknown)'}\n")
        listed = sorted(known | set(theirs or {}))
        if listed:
            out(f"  Remote branch{'es' if len(listed) > 1 else ''}:{' (status not queried)' if theirs is None else ''}\n")
            width = max(map(len, listed))
            for branch in listed:
                if theirs is None:
                    out(f"    {branch}\n")
                else:
                    state = (
                        "tracked"
                        if branch in known and branch in theirs
                        else (
                            "stale (use 'git remote prune' to remove)"
                            if branch in known
                            else "new (next fetch will store in remotes/%s)" % name
                        )
                    )
                    shown = f"refs/remotes/{name}/{branch}" if branch in known and branch not in theirs else branch
                    out(f"    {shown:<{width}} {state}\n")
        show_local(git, name, theirs)


def show_local(git, name, theirs):
    pulls = []
    for ref in sorted(ref for ref in git.refs.allkeys() if ref.startswith(b"refs/heads/")):
        branch = os.fsdecode(ref[11:])
        if git.config.get(f"branch.{branch}.remote") == name and git.config.get(f"branch.{branch}.merge"):
            pulls.append((branch, git.config.get(f"branch.{branch}.merge").removeprefix("refs/heads/")))
    if pulls:
        width = max(len(branch) for branch, _ in pulls)
        out(f"  Local branch{'es' if len(pulls) > 1 else ''} configured for 'git pull':\n")
        out("".join(f"    {branch:<{width}} merges with remote {merge}\n" for branch, merge in pulls))
    if theirs is None:
        return
    pushes = []
    for ref in sorted(ref for ref in git.refs.allkeys() if ref.startswith(b"refs/heads/")):
        branch = os.fsdecode(ref[11:])
        if branch not in theirs:
            continue
        mine, other = git.refs[ref], theirs[branch]
        known = other in git.store.object_store
        state = (
            "up to date"
            if mine == other
            else "fast-forwardable"
            if known and git.is_ancestor(other, mine)
            else "local out of date"
        )
        pushes.append((branch, state))
    if pushes:
        width = max(len(branch) for branch, _ in pushes)
        out(f"  Local ref{'s' if len(pushes) > 1 else ''} configured for 'git push':\n")
        out("".join(f"    {branch:<{width}} pushes to {branch:<{width}} ({state})\n" for branch, state in pushes))


def prune(git, argv, call):
    options = core.parse("remote prune", argv, "-n --dry-run")
    from _git_remote import open_remote, remote_refs

    for name in options.all_words():
        url = urls(git, name)[0]
        refs, _ = remote_refs(open_remote(git, url))
        base = b"refs/remotes/%s/" % os.fsencode(name)
        stale = [ref for ref in sorted(git.refs.allkeys()) if ref.startswith(base) and ref != base + b"HEAD"
                 and b"refs/heads/" + ref[len(base) :] not in refs]  # fmt: skip
        if stale:
            out(f"Pruning {name}\nURL: {url}\n")
        for ref in stale:
            if not options.dry_run:
                delete_ref(git, ref)
            out(f" * [{'would prune' if options.dry_run else 'pruned'}] {os.fsdecode(ref)[13:]}\n")


def update(git, argv, call):
    words = core.parse("remote update", argv, "-p --prune")
    code = 0
    for name in words.all_words() or sorted(names(git)):
        out(f"Fetching {name}\n")
        code = call.run(["fetch", *(["--prune"] if words.prune else []), name]) or code
    return code


def set_head(git, argv, call):
    options = core.parse("remote set-head", argv, "-a --auto\n-d --delete")
    words = options.all_words()
    if not words:
        raise Failure("usage: git remote set-head <name> (-a | --auto | -d | --delete | <branch>)", 129, "")
    name, base = words[0], b"refs/remotes/%s/" % os.fsencode(words[0])
    if options.delete:
        git.refs.remove_if_equals(base + b"HEAD", None)
        return 0
    if options.auto:
        from _git_remote import open_remote, remote_refs

        _, head = remote_refs(open_remote(git, urls(git, name)[0]))
        if head is None:
            raise error("Cannot determine remote HEAD")
        branch = head[11:]
    else:
        branch = os.fsencode(words[1])
    if base + branch not in git.refs:
        raise error(f"Not a valid ref: {os.fsdecode(base + branch)}")
    git.refs.set_symbolic_ref(base + b"HEAD", base + branch)
    if options.auto:
        out(f"{name}/HEAD set to {os.fsdecode(branch)}\n")


def set_branches(git, argv, call):
    options = core.parse("remote set-branches", argv, "--add")
    name, *branches = options.all_words() or [""]
    if name not in names(git):
        raise missing(name)
    file = settings_file(git)
    if not options.add:
        file.unset(f"remote.{name}.fetch")
    for branch in branches:
        file.add(f"remote.{name}.fetch", f"+refs/heads/{branch}:refs/remotes/{name}/{branch}")
    file.write()
