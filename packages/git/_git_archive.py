# `git archive`: the files of a tree in a tar or a zip archive.
import io
import os
import sys

import _git_core as core
from _git_core import Failure, out
from dulwich.objects import Commit, Tree

OPTIONS = """
--format =
--prefix =
-o --output =
-l --list
-v --verbose
"""

FORMATS = {"tar": "", "tgz": "gz", "tar.gz": "gz", "zip": None}


def cmd_archive(argv, call):
    options = core.parse("archive", argv, OPTIONS)
    if options.list:
        out("".join(name + "\n" for name in FORMATS))
        return 0
    words = options.all_words()
    if not words:
        raise Failure("must specify tree-ish", 128)
    kind = format_of(options)
    git = call.git()
    sha = git.find(words[0])
    if sha is None:
        raise Failure(f"not a valid object name: {words[0]}")
    commit, tree = git.peel(sha, Commit), git.peel(sha, Tree)
    if tree is None:
        raise Failure(f"not a tree object: {sha.decode()}")
    files = chosen(git, git.tree(tree), words[1:])
    for path, (_mode, blob) in files.items():
        if path.split(b"/")[-1] == b".gitattributes" and b"export-" in git.blob(blob):
            raise Failure("the attributes export-ignore and export-subst are not supported here")
    if git.prefix:
        start = git.prefix.rstrip(b"/") + b"/"
        files = {path[len(start) :]: entry for path, entry in files.items() if path.startswith(start)}
    entries = with_directories(files, os.fsencode(options.prefix or ""))
    import time

    moment = git.store[commit].commit_time if commit else int(time.time())
    made = zipped if kind is None else tarred
    data = made(git, entries, moment, commit, kind)
    if options.verbose:
        core.say("".join(os.fsdecode(path) + "\n" for path, _mode, _sha in entries))
    if options.output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return 0
    try:
        with open(options.output, "wb") as file:
            file.write(data)
    except OSError as why:
        raise Failure(f"could not create archive file '{options.output}': {why.strerror}")
    return 0


def format_of(options):
    """How the archive is compressed; None for a zip."""
    name = options.format
    if name is None:
        output = options.output or ""
        name = next((known for known in ("zip", "tgz", "tar.gz") if output.endswith("." + known)), "tar")
    if name not in FORMATS:
        raise Failure(f"Unknown archive format '{name}'")
    return FORMATS[name]


def chosen(git, files, words):
    """The files below the paths that are named."""
    if not words:
        return files
    kept = {}
    for word in words:
        named = git.tree_path(word)
        found = {path: entry for path, entry in files.items() if not named or path == named or path.startswith(named + b"/")}
        if not found:
            raise Failure(f"pathspec '{word}' did not match any files")
        kept.update(found)
    return kept


def with_directories(files, prefix):
    """Each file and each directory above one, below the prefix, in the order of trees."""
    entries = {}
    for path, (mode, sha) in files.items():
        if mode & 0o170000 == 0o160000:
            entries[path + b"/"] = (0o040000, None)
        else:
            entries[path] = (mode, sha)
        parts = path.split(b"/")[:-1]
        for end in range(1, len(parts) + 1):
            entries[b"/".join(parts[:end]) + b"/"] = (0o040000, None)
    listed = [(prefix + path, *entries[path]) for path in sorted(entries)]
    return [(prefix, 0o040000, None), *listed] if prefix.endswith(b"/") else listed


def tarred(git, entries, moment, _commit, compression):
    import tarfile

    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, mode, sha in entries:
            info = tarfile.TarInfo(os.fsdecode(path))
            info.mtime, info.uname, info.gname = moment, "root", "root"
            content = b""
            if sha is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o775
            elif mode & 0o170000 == 0o120000:
                info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, os.fsdecode(git.blob(sha))
            else:
                content = git.blob(sha)
                info.mode, info.size = 0o775 if mode & 0o100 else 0o664, len(content)
            archive.addfile(info, io.BytesIO(content))
    if not compression:
        return data.getvalue()
    import gzip

    return gzip.compress(data.getvalue(), mtime=0)


def zipped(git, entries, moment, commit, _compression):
    import time
    import zipfile

    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = commit or b""
        for path, mode, sha in entries:
            info = zipfile.ZipInfo(os.fsdecode(path), time.gmtime(max(moment, 315532800))[:6])
            info.create_system, info.compress_type = 3, zipfile.ZIP_DEFLATED
            kept = 0o040775 if sha is None else 0o120777 if mode & 0o170000 == 0o120000 else 0o100775 if mode & 0o100 else 0o100664
            info.external_attr = kept << 16 | (0x10 if sha is None else 0)
            archive.writestr(info, b"" if sha is None else git.blob(sha))
    return data.getvalue()
