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


def record():
    sys.path.append(LIBRARY)
    names = sorted(os.listdir(os.path.dirname(__file__)))
    own = [name.removesuffix(".py") for name in names if name.startswith("_git_") and name != os.path.basename(__file__)]
    _kiso_started._AHEAD[:] = MODULES + own
    _kiso_started.record()
