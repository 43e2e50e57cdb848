# Objects and trees from the command line: cat-file, hash-object, ls-tree, write-tree, commit-tree, read-tree; the others of the
# plumbing stand in modules of their own and are looked up from here.
import os
import re
import sys

import _git_core as core
from _git_core import Failure, error, out, say
from dulwich.objects import Blob, Commit, ShaFile, Tag, Tree


def elsewhere(module, name):
    def command(argv, call):
        import importlib

        return getattr(importlib.import_module(module), name)(argv, call)

    return command


cmd_init = elsewhere("_git_init", "cmd_init")
cmd_help = elsewhere("_git_init", "cmd_help")
cmd_version = elsewhere("_git_init", "cmd_version")
cmd_var = elsewhere("_git_init", "cmd_var")
cmd_config = elsewhere("_git_config", "cmd_config")
cmd_rev_parse = elsewhere("_git_revparse", "cmd_rev_parse")
cmd_grep = elsewhere("_git_grep", "cmd_grep")
cmd_blame = elsewhere("_git_blame", "cmd_blame")

KINDS = {"blob": Blob, "tree": Tree, "commit": Commit, "tag": Tag}


def kind_of(item):
    return item.type_name.decode()


def mode_kind(mode):
    return {0o040000: "tree", 0o160000: "commit"}.get(mode & 0o170000, "blob")


def named(git, name):
    sha = git.find(name)
    if sha is None or sha not in git.store.object_store:
        raise Failure(f"Not a valid object name {name}")
    return git.store[sha]


def tree_text(item):
    return b"".join(
        b"%06o %s %s\t%s\n" % (mode, mode_kind(mode).encode(), sha, os.fsencode(core.quoted(name)))
        for name, mode, sha in item.iteritems()
    )


# cat-file.


def cmd_cat_file(argv, call):
    options = core.parse(
        "cat-file", argv, "-t\n-s\n-p\n-e\n--batch [=]\n--batch-check [=]\n--batch-all-objects\n--buffer\n--textconv\n--filters"
    )
    git, words = call.git(), options.all_words()
    if options.batch or options.batch_check:
        return batch(git, options)
    if not (options.t or options.s or options.p or options.e):
        if len(words) != 2:
            raise Failure("usage: git cat-file <type> <object>\n   or: git cat-file (-e | -p | -t | -s) <object>", 129, "")
        if words[0] not in KINDS:
            raise Failure(f'invalid object type "{words[0]}"')
        item = named(git, words[1])
        peeled = git.peel(item.id, KINDS[words[0]])
        if peeled is None:
            raise Failure(f"git cat-file {words[1]}: bad file")
        out(git.store[peeled].as_raw_string())
        return 0
    if len(words) != 1:
        raise Failure("<object> required with '-%s'" % next(key for key in "tspe" if getattr(options, key)), 129)
    if options.e:
        sha = git.find(words[0])
        if sha is None:
            if re.fullmatch("[0-9a-f]{40}", words[0]):
                return 1
            raise Failure(f"Not a valid object name {words[0]}")
        return 0 if sha in git.store.object_store else 1
    if re.fullmatch("[0-9a-f]{40}", words[0]) and words[0].encode() not in git.store.object_store:
        raise Failure(
            "git cat-file: could not get object info" if options.t or options.s else f"Not a valid object name {words[0]}"
        )
    item = named(git, words[0])
    if options.t:
        out(kind_of(item) + "\n")
    elif options.s:
        out(f"{item.raw_length()}\n")
    else:
        out(tree_text(item) if isinstance(item, Tree) else item.as_raw_string())


def batch(git, options):
    form = options.batch or options.batch_check
    form = "%(objectname) %(objecttype) %(objectsize)" if form is True else form
    if options.batch_all_objects:
        names = sorted(sha.decode() for sha in set(git.store.object_store))
    else:
        names = (line.rstrip("\n") for line in sys.stdin)
    for line in names:
        name, rest = line, ""
        if "%(rest)" in form:
            name, _, rest = line.partition(" ")
        try:
            sha = git.find(name)
        except Failure:
            sha = None
        if sha is None or sha not in git.store.object_store:
            out(f"{name} missing\n")
            continue
        item = git.store[sha]
        values = {
            "objectname": sha.decode(),
            "objecttype": kind_of(item),
            "objectsize": str(item.raw_length()),
            "rest": rest.strip(),
        }

        def atom(found):
            if found[1] not in values:
                raise Failure(f"unknown format element: {found[1]}")
            return values[found[1]]

        out(re.sub(r"%\(([^)]*)\)", atom, form) + "\n")
        if options.batch:
            out(item.as_raw_string() + b"\n")


def cmd_hash_object(argv, call):
    options = core.parse("hash-object", argv, "-w\n--stdin\n--stdin-paths\n-t =\n--path =\n--no-filters\n--literally")
    kind = options.t or "blob"
    if kind not in KINDS:
        raise Failure(f'invalid object type "{kind}"')
    names = options.all_words()
    contents = []
    if options.stdin:
        contents.append(sys.stdin.buffer.read())
    if options.stdin_paths:
        names = sys.stdin.read().splitlines()
    store = call.git().store.object_store if options.w else None
    for name in [*contents, *names]:
        data = name
        if isinstance(name, str):
            try:
                with open(name, "rb") as file:
                    data = file.read()
            except OSError as why:
                verb = "read" if isinstance(why, IsADirectoryError) else "open"
                what = f"Unable to hash {name}" if verb == "read" else f"could not open '{name}' for reading: {why.strerror}"
                raise Failure(what)
        try:
            item = ShaFile.from_raw_string(KINDS[kind].type_num, data)
            if kind != "blob":
                item.check()
        except Exception:
            raise Failure("refusing to create malformed object")
        if store is not None:
            store.add_object(item)
        out(item.id + b"\n")


# Trees.


def cmd_ls_tree(argv, call):
    options = core.parse(
        "ls-tree",
        argv,
        "-r\n-t\n-d\n-l --long\n--name-only\n--name-status\n--object-only\n--full-tree\n--full-name\n--abbrev "
        "[=]\n-z\n--format =",
    )
    git = call.git()
    words = options.all_words()
    if not words:
        raise Failure("usage: git ls-tree [<options>] <tree-ish> [<path>...]", 129, "")
    sha = git.find(words[0])
    if sha is None:
        raise Failure(f"Not a valid object name {words[0]}")
    tree = git.peel(sha, Tree)
    if tree is None:
        raise Failure("not a tree object")
    base = b"" if options.full_tree else git.prefix
    asked = []
    for word in words[1:]:
        slash = b"/" if word.endswith("/") else b""
        joined = os.path.normpath(os.path.join(os.fsdecode(base) or ".", word))
        path = os.fsencode(joined)
        if path.startswith(b"../") or path == b".." or path.startswith(b"/"):
            raise Failure(f"{word}: '{word}' is outside repository at '{git.root}'")
        asked.append(b"" if path == b"." else path + slash)
    if not asked and base:
        asked = [base]
    for path, mode, sha in listed(git, tree, b"", asked, options):
        show_entry(git, path, mode, sha, options)


def listed(git, tree, base, asked, options):
    """The entries to print, by the rules of ls-tree: a directory is opened where -r says so or where a path leads into it."""
    for name, mode, sha in git.store[tree].iteritems():
        path = base + name
        folder = mode & 0o170000 == 0o040000
        exact = not asked or any(
            not want or path == want.rstrip(b"/") or path.startswith(want.rstrip(b"/") + b"/") for want in asked
        )
        leads = folder and any(want.startswith(path + b"/") for want in asked)
        if not exact and not leads:
            continue
        opened = folder and (options.r or leads)
        shown = exact and not (
            leads and any(want.rstrip(b"/") != path or want.endswith(b"/") for want in asked if want.startswith(path))
        )
        if folder and opened:
            if options.t or options.d and shown:
                yield path, mode, sha
            yield from listed(git, sha, path + b"/", asked, options)
        elif shown and (folder or not options.d):
            yield path, mode, sha


def show_entry(git, path, mode, sha, options):
    kind = mode_kind(mode)
    shown = os.fsdecode(path) if options.full_name or options.full_tree else git.shown(path)
    name = os.fsencode(shown) if options.z else os.fsencode(core.quoted(shown))
    digits = sha
    if options.abbrev:
        digits = git.abbreviate(sha, None if options.abbrev is True else int(options.abbrev)).encode()
    end = b"\0" if options.z else b"\n"

    def size():
        return str(git.store[sha].raw_length()) if kind == "blob" else "-"

    if options.format is not None:
        values = {
            "objectmode": lambda: f"{mode:06o}",
            "objecttype": lambda: kind,
            "objectname": lambda: digits.decode(),
            "objectsize": size,
            "objectsize:padded": lambda: f"{size():>7}",
            "path": lambda: os.fsdecode(name),
        }

        def atom(found):
            if found[1] not in values:
                raise Failure(f"bad ls-tree format: element '{found[1]}' does not start with '('")
            return values[found[1]]()

        text = re.sub(r"%\(([^)]*)\)", atom, options.format)
        text = re.sub(r"%x([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text)
        out(os.fsencode(text) + end)
    elif options.name_only or options.name_status:
        out(name + end)
    elif options.object_only:
        out(digits + end)
    else:
        long = f" {size():>7}".encode() if options.long else b""
        out(b"%06o %s %s%s\t%s%s" % (mode, kind.encode(), digits, long, name, end))


def cmd_write_tree(argv, call):
    core.parse("write-tree", argv, "--missing-ok")
    import _git_work

    git = call.git()
    unmerged = [(path, entry) for path, entry in sorted(git.index().items()) if not hasattr(entry, "sha")]
    for path, entry in unmerged:
        for stage in (entry.ancestor, entry.this, entry.other):
            if stage is not None:
                say(f"{os.fsdecode(path)}: unmerged ({stage.sha.decode()})\n")
    if unmerged:
        raise Failure("git-write-tree: error building trees")
    out(_git_work.write_tree(git) + b"\n")


def cmd_commit_tree(argv, call):
    options = core.parse("commit-tree", argv, "-p =*\n-m =*\n-F =*")
    git, words = call.git(), options.all_words()
    if len(words) != 1:
        raise Failure("must give exactly one tree")
    tree = git.find(words[0])
    if tree is None:
        raise Failure(f"not a valid object name {words[0]}")
    if not isinstance(git.store[tree], Tree):
        raise Failure(f"{tree.decode()} is not a valid 'tree' object")
    parents = []
    for name in options.p:
        sha = git.find(name)
        if sha is None:
            raise Failure(f"not a valid object name {name}")
        peeled = git.peel(sha, Commit)
        if peeled is None:
            raise Failure(f"{sha.decode()} is not a valid 'commit' object")
        if peeled in parents:
            say(f"error: duplicate parent {peeled.decode()} ignored\n")
            continue
        parents.append(peeled)
    texts = [text if text.endswith("\n") else text + "\n" for text in options.m]
    for name in options.F:
        try:
            with sys.stdin if name == "-" else open(name, encoding="utf-8", errors="surrogateescape") as file:
                texts.append(file.read())
        except OSError as why:
            raise Failure(f"git commit-tree: failed to open '{name}': {why.strerror}")
    if options.m or options.F:
        message = os.fsencode("\n".join(texts))
    else:
        message = sys.stdin.buffer.read()
    import _git_work

    out(_git_work.create_commit(git, tree, parents, message) + b"\n")


def cmd_read_tree(argv, call):
    options = core.parse("read-tree", argv, "-m\n-u\n--reset\n--empty\n--prefix =\n-q --quiet\n-i")
    git, words = call.git(), options.all_words()
    if options.empty:
        if words:
            raise Failure("passing trees as arguments contradicts --empty")
        index = git.open_index()
        index.clear()
        index.write()
        return 0
    if len(words) != 1:
        raise Failure("read-tree here takes one tree")
    sha = git.find(words[0])
    if sha is None:
        raise Failure(f"Not a valid object name {words[0]}")
    tree = git.peel(sha, Tree)
    if tree is None:
        raise Failure(f"failed to unpack tree object {words[0]}")
    if options.u and not (options.m or options.reset or options.prefix):
        raise Failure("-u is meaningless without -m, --reset, or --prefix")
    import _git_work

    files = git.tree(tree)
    index = git.open_index()
    known = dict(index.items())
    if options.prefix is not None:
        prefix = os.fsencode(options.prefix.rstrip("/")) + b"/" if options.prefix.strip("/") else b""
        files = {prefix + path: entry for path, entry in files.items()}
        for path in files:
            if path in known:
                raise error(f"Entry '{os.fsdecode(path)}' overlaps with '{os.fsdecode(path)}'.  Cannot bind.", 128)
    elif options.u:
        old = {path: (entry.mode, entry.sha) for path, entry in known.items() if hasattr(entry, "sha")}
        _git_work.move(git, old, files, force=bool(options.reset))
        return 0
    else:
        for path in known:
            if path not in files:
                del index[path]
    for path, (mode, sha) in files.items():
        entry = known.get(path)
        if (
            entry is not None
            and hasattr(entry, "sha")
            and (entry.mode, entry.sha) == (mode, sha)
            and (options.m or options.reset)
        ):
            continue
        _git_work.check_path(path)
        if options.u:
            _git_work.write_file(git, path, mode, sha)
        index[path] = _git_work.index_entry(git, path, mode, sha)
    index.write()
