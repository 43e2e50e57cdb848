# The interpreter is kept with everything that git needs read and compiled, as Python's own is with what programs often import.
import os
import sys

import _kiso_started

LIBRARY = "/usr/local/lib/dulwich/dulwich.zip"

# `_kiso_started` itself needs the first ones.
MODULES = """
logging pkgutil random runpy __future__
bisect datetime difflib email.utils fnmatch hashlib io itertools re shlex shutil stat struct subprocess tempfile time zlib
dulwich.approxidate dulwich.commit_graph dulwich.config dulwich.diff_tree dulwich.errors dulwich.file dulwich.graph dulwich.ignore
dulwich.index dulwich.merge dulwich.object_store dulwich.objects dulwich.pack dulwich.reflog dulwich.refs dulwich.repo
dulwich.trailers dulwich.walk dulwich.worktree
""".split()


# Code runs faster after its first time. So commands run once in a repository of their own before the interpreter is kept.
PRACTICE = """
init -q
add .
commit -q -m one
tag v1
switch -q -c other
add .
status
status --short
diff
diff --cached --stat
commit -q -a -m two
log -3
log --oneline -3
show
show --stat
branch
branch -a -v
rev-parse --abbrev-ref HEAD
ls-files
config --list
checkout -q -
merge -q other
stash list
remote -v
blame file
""".strip().splitlines()


def practise():
    import io
    import shlex
    import shutil

    import _git_main
    import _git_words

    here, there, streams = os.getcwd(), "/tmp/practice", (sys.stdout, sys.stderr)
    os.mkdir(there)
    os.chdir(there)
    try:
        sys.stdout, sys.stderr = [io.TextIOWrapper(io.BytesIO()) for _ in streams]
        for line in PRACTICE:
            if line == "add .":
                with open("file", "a") as file:
                    file.write("line\n")
            _git_main.main(["-c", "user.name=a", "-c", "user.email=a@b", *shlex.split(line)])
    finally:
        sys.stdout, sys.stderr = streams
        os.chdir(here)
        shutil.rmtree(there)
    # A repository sets it when it is opened.
    _git_words.quote_path = True


def record():
    _kiso_started.AHEAD_DONE.append(practise)
    sys.path.append(LIBRARY)
    names = sorted(os.listdir(os.path.dirname(__file__)))
    own = [name.removesuffix(".py") for name in names if name.startswith("_git_") and name != os.path.basename(__file__)]
    _kiso_started._AHEAD[:] = MODULES + own
    _kiso_started.record()
