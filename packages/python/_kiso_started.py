# An interpreter takes longer to start than most programs run. So it is started once, when the package is added, and kept in its module
# as it is in the middle of `record`. Each program begins there with `_run`, which is called with nothing but words and environment.
import atexit  # now, for the end: pip warns of modules that are imported behind an installation
import builtins
import gc
import importlib
import importlib.machinery
import os
import sys
import time
import types
import warnings

import sitecustomize

# Modules that programs often use, and what each of them needs: read and compiled once, and handed out when they are imported. None of
# them keeps a state from the moment of its import, except for those that `_run` sets again.
_AHEAD = """
argparse ast asyncio base64 bisect calendar collections collections.abc concurrent.futures configparser contextlib copy csv dataclasses
datetime decimal difflib enum fnmatch fractions functools glob graphlib hashlib heapq hmac html html.parser inspect io itertools json
keyword linecache logging math numbers operator pathlib pickle pkgutil pprint queue random re runpy secrets shlex shutil signal sqlite3
statistics string struct subprocess tempfile textwrap threading time traceback types typing unicodedata urllib.parse uuid weakref
xml.etree.ElementTree zipfile zlib
""".split()

# Libraries that are imported ahead, by the name of their package, in this order. A package fills it.
LIBRARIES = {}

# Functions to call when all of this is imported.
AHEAD_DONE = []

# Words and environment of a program: how many there are of each, and their bytes.
_GIVEN = bytearray(4 << 20)


class Library:
    """A library that is imported ahead. One import brings all of its modules into `sys.modules`, and those of the libraries that it needs:
    their code looks for each other there. `begin` makes up for what it took from the moment of the recording."""

    def __init__(self, modules, needs="", begin=None):
        self.names, self.needs, self.begin = modules.split(), needs.split(), begin
        self.modules, self.filters = set(), []

    def import_ahead(self, package):
        before = warnings.filters[:]
        for name in self.names:
            importlib.import_module(name)
        self.modules = {name for name in sys.modules if name.partition(".")[0] == package}
        self.filters = [entry for entry in warnings.filters if entry not in before]
        warnings.filters[:] = before

    def bring(self, waiting):
        """Brings it into `sys.modules`, once."""
        names, self.modules = self.modules, set()
        if not names:
            return
        for name in self.needs:
            LIBRARIES[name].bring(waiting)
        for name in names & waiting.keys():
            sys.modules.setdefault(name, waiting.pop(name))
        if self.filters:
            with warnings._lock:
                warnings.filters[:0] = self.filters
                warnings._filters_mutated_lock_held()
        if self.begin is not None:
            self.begin()


class _Taken:
    """The loader of a module that was imported ahead: hands it out instead of making it, and is otherwise the one that made it."""

    def __init__(self, modules, own):
        self._modules = modules
        self._own = own

    def __getattr__(self, name):
        return getattr(self._own.loader, name)

    def __repr__(self):
        return repr(self._own.loader)

    def create_module(self, spec):
        library = LIBRARIES.get(spec.name.partition(".")[0])
        if library is None:
            return self._modules.pop(spec.name)
        module = self._modules[spec.name]
        library.bring(self._modules)
        return module

    def exec_module(self, module):
        module.__spec__ = self._own


class _Ahead:
    """Finds a module that was imported ahead, once, where the path leads to it."""

    def __init__(self, modules):
        self._modules = modules
        self._specs = {name: module.__spec__ for name, module in modules.items()}
        self._parents = {name: sys.modules[name.rpartition(".")[0]] for name in modules if "." in name}
        self._library = frozenset(entry for entry in sys.path if entry)
        self._finder = importlib.machinery.PathFinder

    def _is_behind_another(self, name):
        if name in sys.builtin_module_names:
            return False
        for entry in sys.path:
            if entry in self._library:
                return False
            spec = self._finder.find_spec(name, [entry])
            # A directory without `__init__.py` comes last, wherever it is.
            if spec is not None and spec.loader is not None:
                return True
        return True

    def find_spec(self, name, path=None, target=None):
        if name not in self._modules:
            return None
        parent = self._parents.get(name)
        if self._is_behind_another(name) if parent is None else sys.modules.get(name.rpartition(".")[0]) is not parent:
            return None
        own = self._specs[name]
        if own is None:
            return None
        spec = importlib.machinery.ModuleSpec(name, _Taken(self._modules, own))
        spec.__dict__.update({key: value for key, value in own.__dict__.items() if key not in ("loader", "name")})
        return spec


def _with_pip():
    """The modules to import ahead, with those of pip if it is installed."""
    import _kiso_pip

    if not os.path.exists(_kiso_pip.WHEEL):
        return _AHEAD
    # It reads this when it is imported.
    os.environ.setdefault("HOME", "/work")
    return _AHEAD + _kiso_pip.AHEAD


def _import_ahead():
    there = dict(sys.modules)
    for name in _with_pip():
        importlib.import_module(name)
    for package, library in LIBRARIES.items():
        library.import_ahead(package)
    for done in AHEAD_DONE:
        done()
    # Some modules put other objects into `sys.modules`, or modules that others find there without an import.
    new = {name: module for name, module in sys.modules.items() if name not in there and isinstance(module, types.ModuleType)}
    ahead = {name: module for name, module in new.items() if module.__spec__ is not None or name.partition(".")[0] in LIBRARIES}
    finder = _Ahead(ahead)
    for name in ahead:
        del sys.modules[name]
    # Some know the program by a second name.
    for name in [name for name, module in new.items() if module is sys.modules["__main__"]]:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    return ahead


def record():
    # Held by this call, which never ends: nothing of it is taken apart when a program has ended.
    ahead = _import_ahead()
    gc.collect()
    gc.freeze()
    run = lambda: _run_to_end(ahead)
    print(id(run), id(_GIVEN), flush=True)
    # Here the module ends, and writes down what it is.
    time.clock_getres(time.CLOCK_MONOTONIC)


def _number(at):
    return int.from_bytes(_GIVEN[at : at + 4], "little")


def _strings(at, size):
    return bytes(_GIVEN[at : at + size]).split(b"\0")[:-1]


def _take_in():
    """Takes over the words and the environment from the host."""
    at = 16 + 4 * _number(0)
    words = [os.fsdecode(word) for word in _strings(at, _number(4))]
    at = (at + _number(4) + 3 & ~3) + 4 * _number(8)
    variables = dict(entry.split(b"=", 1) for entry in _strings(at, _number(12)) if b"=" in entry)
    _GIVEN.clear()
    for name in [name for name in os.environ if os.fsencode(name) not in variables]:
        del os.environ[name]
    for name, value in variables.items():
        os.environ[os.fsdecode(name)] = os.fsdecode(value)
    return words


def _unbuffer():
    import io

    for name, number in (("stdout", 1), ("stderr", 2)):
        old = getattr(sys, name)
        raw = io.FileIO(number, "w", closefd=False)
        new = io.TextIOWrapper(raw, old.encoding, old.errors, newline="\n", line_buffering=old.line_buffering, write_through=True)
        new.mode = "w"
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def _options(words):
    """Takes the options off the words. Their letters, as far as the host starts programs here that have them."""
    letters = ""
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        for place, letter in enumerate(word[1:], 2):
            if letter in "cm":
                # `-ucCODE` is `-u -c CODE`.
                words[:0] = ["-" + letter, *([word[place:]] if word[place:] else [])]
                return letters
            letters += letter
    return letters


def _report(error):
    """Says what ended a program, without the call here that it came through, and ends it."""
    trace = error.__traceback__.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)
    raise SystemExit(130 if isinstance(error, KeyboardInterrupt) else 1)


def _execute(source, name):
    """Runs a program as `__main__`, of which no variable here may know: what it still has is taken apart when it has ended."""
    try:
        code = compile(source, name, "exec", dont_inherit=True)
        if name == "<string>" and sys.version_info >= (3, 13):
            # Tracebacks show its lines.
            importlib.import_module("linecache")._register_code(code, source, name)
        exec(code, sys.modules["__main__"].__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        _report(error)


def _run_module(run, name, **how):
    try:
        run(name, **how)
    except SystemExit:
        raise
    except BaseException as error:
        _report(error)


def _run_file(path, ahead):
    if ahead["pkgutil"].get_importer(path) is not None:
        # A directory or an archive with a `__main__` in it.
        sys.path.insert(0, path)
        _run_module(ahead["runpy"]._run_module_as_main, "__main__", alter_argv=False)
        return
    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        print(f"{sys.orig_argv[0]}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        raise SystemExit(2)
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    sys.modules["__main__"].__dict__.update(__file__=path, __cached__=None, __loader__=loader)
    _execute(source, path)


def _clear(module):
    """Lets go of what a module has, in the order in which CPython does."""
    names = module.__dict__
    for private in (True, False):
        for name in [name for name in names if (name[:1] == "_" and name[1:2] != "_") is private and name != "__builtins__"]:
            names[name] = None


def _run_to_end(ahead):
    """Runs a program and ends as CPython does, but for taking apart the interpreter, which would touch everything that is kept."""
    try:
        _run(ahead)
    except SystemExit as error:
        code = error.code
    if not (code is None or isinstance(code, int)):
        sys.stdout.flush()
        print(code, file=sys.stderr)
        code = 1
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    atexit._run_exitfuncs()
    own = [module for name, module in sys.modules.items() if isinstance(module, types.ModuleType) and ahead.get(name) is not module]
    _clear(sys.modules["__main__"])
    gc.collect()
    for module in reversed(own):
        # Of those that the interpreter has itself, nothing is let go.
        if getattr(module, "__file__", None) and not module.__file__.startswith("/usr/local/lib/"):
            _clear(module)
    gc.collect()
    code = (code or 0) & 0xFF
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError) as error:
            if isinstance(error, OSError):
                code = 120
    os._exit(code)


def _run(ahead):
    sys.orig_argv = _take_in()
    # The first character is the host's mark.
    sys.orig_argv[0] = sys.orig_argv[0][1:]
    words = sys.orig_argv[1:]
    # These modules have a state from the moment of the recording.
    ahead["random"].seed()
    ahead["logging"]._startTime = time.time()
    if "zoneinfo" in ahead:
        ahead["zoneinfo"].reset_tzpath()
    letters = _options(words)
    if "u" in letters or os.environ.get("PYTHONUNBUFFERED"):
        _unbuffer()
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __loader__=importlib.machinery.BuiltinImporter)
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    del main
    sys.argv = list(words) or [""]
    sitecustomize._start_here()
    if "I" not in letters:
        sitecustomize._add_site()
    # Instead of the empty entry of the recording.
    first, own = sys.path[:1], "I" not in letters
    sys.path[:1] = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(":") if entry and own]
    if words and words[0] not in ("-", "-c", "-m"):
        # The host has made the path absolute.
        _run_file(words[0], ahead)
    elif words and words[0] == "-m":
        sys.argv = ["-m", *words[2:]]
        sys.path[:0] = [os.getcwd()] * own
        _run_module(ahead["runpy"]._run_module_as_main, words[1])
    else:
        sys.path[:0] = first * own
        if words and words[0] == "-c":
            sys.argv = ["-c", *words[2:]]
            _execute(words[1] + "\n", "<string>")
        else:
            sys.modules["__main__"].__dict__.update(__file__="<stdin>", __cached__=None)
            _execute(sys.stdin.buffer.read(), "<stdin>")
    raise SystemExit(0)
