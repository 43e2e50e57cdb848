# Python on WASI knows neither where it was started nor how to start another program. This makes up for both, and lets asyncio run in
# one process. It is imported before every program, so it imports nothing that the interpreter has not imported itself.
import os
import sys

NO_PACKAGES = "`pip install NAME` installs packages for this conversation; there are no virtual environments"
NO_AIOHTTP = "it has native code, or sockets of its own; use httpx, requests or urllib.request"
NO_PROCESSES = "Python cannot copy itself into another process here; start a command with subprocess, or use asyncio"
NO_SCREEN = "Python has no screen here; write text, HTML or pictures to files"

_IN_PYTHON_SCI = frozenset(
    "PIL bs4 jinja2 lxml matplotlib networkx numpy openpyxl pandas pypdf regex reportlab scipy seaborn sklearn statsmodels sympy "
    "xlsxwriter yaml".split()
)

# Alternatives to modules that programs look for.
_INSTEAD = {
    NO_AIOHTTP: "aiohttp websocket websockets",
    NO_PACKAGES: "ensurepip pip venv virtualenv",
    NO_PROCESSES: "joblib multiprocess multiprocessing pathos",
    NO_SCREEN: "curses pygame tkinter turtle",
    "`pip install pytest` installs it": "pytest",
    "use `python3 -m unittest`, or `pip install pytest`": "nose",
    "`pip install` installs it": "httpx requests urllib3",
}


# Where packages are installed for a conversation.
SITE = "/work/.python/site-packages"

# pip itself, where the package has it.
WHEEL = "/usr/local/lib/pip/pip.whl"


def _add_site():
    if SITE not in sys.path and os.path.isdir(SITE):
        sys.path.append(SITE)


def _keep_code_of_site():
    """Keeps compiled code of packages that are installed, and of nothing else."""
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader
    get_code = loader.get_code

    def get_code_of_site(self, fullname):
        if not self.path.startswith(SITE):
            return get_code(self, fullname)
        before, sys.dont_write_bytecode = sys.dont_write_bytecode, False
        try:
            return get_code(self, fullname)
        finally:
            sys.dont_write_bytecode = before

    loader.get_code = get_code_of_site


def _start_here():
    # The C library begins at "/" whatever the directory; the host says in PWD which one it is.
    here = os.environ.get("PWD")
    if here:
        try:
            os.chdir(here)
        except OSError:
            pass
    # The host made the program's path absolute, because it is opened before this runs.
    written = os.environ.pop("KISO_ARGV0", None)
    if written is not None and sys.argv:
        sys.argv[0] = written


def _over_what_is_mounted(make):
    def makedirs(name, mode=0o777, exist_ok=False):
        # A mounted directory, such as /work or /tmp, has no directory above it here, which `make` would look for.
        if not os.path.isdir(name):
            make(name, mode, exist_ok)
        elif not exist_ok:
            os.mkdir(name, mode)

    return makedirs


def _kill(pid, sig):
    import _kiso_host

    _kiso_host.kill(pid, sig)


# Functions that a build for WASI leaves out of `os`: the user, as `id` prints it, and those that read the result of `os.system`.
_LEFT_OUT = {
    "getuid": lambda: 1000,
    "geteuid": lambda: 1000,
    "getgid": lambda: 1000,
    "getegid": lambda: 1000,
    "getlogin": lambda: "kiso",
    # It has no effect: nothing here is another user's.
    "umask": lambda mask: 0o22,
    "kill": _kill,
    "WIFEXITED": lambda status: status & 0x7F == 0,
    "WIFSIGNALED": lambda status: status & 0x7F != 0,
    "WEXITSTATUS": lambda status: status >> 8 & 0xFF,
    "WTERMSIG": lambda status: status & 0x7F,
    "waitstatus_to_exitcode": lambda status: -(status & 0x7F) if status & 0x7F else status >> 8,
}


def _system(command):
    import _kiso_subprocess

    return _kiso_subprocess.system(command)


def _instead_of(module):
    missing = (module or "").split(".")[0]
    if missing in _IN_PYTHON_SCI:
        return f"{missing} comes with python-sci: `python3.15` has it where that is installed; an administrator adds it with `kiso skill add python-sci`"
    return next((instead for instead, names in _INSTEAD.items() if missing in names.split()), None)


def _say_what_there_is(show):
    def excepthook(kind, error, trace):
        show(kind, error, trace)
        instead = issubclass(kind, ModuleNotFoundError) and _instead_of(getattr(error, "name", None))
        if instead:
            print(instead, file=sys.stderr)

    return excepthook


def _patch_runpy(module):
    details = module._get_module_details

    def get_module_details(mod_name, error=ImportError):
        try:
            return details(mod_name, error)
        except error as why:
            instead = _instead_of(mod_name)
            if not instead or instead in str(why):
                raise
            raise error(f"{why}; {instead}") from None

    module._get_module_details = get_module_details


def _patch_subprocess(module):
    import _kiso_subprocess

    _kiso_subprocess.patch(module)


def _patch_asyncio_subprocess(module):
    import _kiso_asyncio

    _kiso_asyncio.patch(module)


def _patch_shutil(module):
    import _kiso_subprocess

    _kiso_subprocess.patch_shutil(module)


def _patch_selector_events(module):
    # A loop wakes itself up through a pair of sockets when another thread or a signal asks for it. There are neither.
    loop = module.BaseSelectorEventLoop
    loop._make_self_pipe = lambda self: None
    loop._close_self_pipe = lambda self: None
    loop._write_to_self = lambda self: None
    module.BaseSelectorEventLoop = loop


def _patch_base_events(module):
    def run_in_executor(self, executor, func, *args):
        # Without threads the call is made at once; what waits for it sees no difference but the order.
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            future.set_exception(error)
        return future

    module.BaseEventLoop.run_in_executor = run_in_executor


def _patch_selectors(module):
    import time

    class Selector(module.SelectSelector):
        def _select(self, *files):
            # As it is now: sockets are known to it once there are any.
            return module.select.select(*files)

        def select(self, timeout=None):
            if self.get_map():
                return super().select(timeout)
            # `select` with nothing to look at is an error on WASI.
            if timeout is None:
                raise OSError(58, "the event loop waits for something that cannot come: nothing is scheduled")
            if timeout > 0:
                time.sleep(timeout)
            return []

    module.DefaultSelector = Selector


def _patch_threading(module):
    import _kiso_threads

    _kiso_threads.patch(module)


def _patch_queue(module):
    import _kiso_threads

    _kiso_threads.patch_queue(module)


def _in_pip(patch):
    def patch_pip(module):
        import _kiso_pip

        getattr(_kiso_pip, patch)(module)

    return patch_pip


def _in_pytest(patch):
    def patch_pytest(module):
        import _kiso_pytest

        getattr(_kiso_pytest, patch)(module)

    return patch_pytest


def _patch_socket(module):
    import _kiso_socket

    _kiso_socket.patch(module)


def _patch_traceback(module):
    # The interpreter starts without `site`, which has nothing to add here; no program has forgotten that.
    init = module.TracebackException.__init__

    def __init__(self, *args, **kwargs):
        init(self, *args, **kwargs)
        if isinstance(getattr(self, "_str", None), str):
            self._str = self._str.partition(". Site initialization is disabled, ")[0]

    module.TracebackException.__init__ = __init__


def _patch_multiprocessing(module):
    def start(self):
        raise OSError(58, NO_PROCESSES)

    module.BaseProcess.start = start


def _patch_futures(module):
    # The build leaves out the modules that start threads and processes.
    import _thread_pool

    _thread_pool.__name__ = "concurrent.futures.thread"
    sys.modules["concurrent.futures.thread"] = module.thread = _thread_pool
    sys.modules["concurrent.futures.process"] = module.process = _thread_pool


_PATCHES = {
    "_pytest.capture": _in_pytest("patch_capture"),
    "_pytest.faulthandler": _in_pytest("patch_faulthandler"),
    "_pytest.logging": _in_pytest("patch_logging"),
    "_pytest.tmpdir": _in_pytest("patch_tmpdir"),
    "asyncio.base_events": _patch_base_events,
    "asyncio.subprocess": _patch_asyncio_subprocess,
    "asyncio.selector_events": _patch_selector_events,
    "concurrent.futures": _patch_futures,
    "multiprocessing.process": _patch_multiprocessing,
    "pip._internal.cli.main": _in_pip("patch_main"),
    "pip._internal.commands.install": _in_pip("patch_install"),
    "pip._internal.index.package_finder": _in_pip("patch_finder"),
    "pip._internal.metadata.importlib._dists": _in_pip("patch_dists"),
    "pip._internal.network.session": _in_pip("patch_session"),
    "pip._internal.utils.compat": _in_pip("patch_compat"),
    "pip._vendor.requests.adapters": _in_pip("patch_adapters"),
    "pip._vendor.distlib.scripts": _in_pip("patch_scripts"),
    "queue": _patch_queue,
    "runpy": _patch_runpy,
    "selectors": _patch_selectors,
    "shutil": _patch_shutil,
    "socket": _patch_socket,
    "subprocess": _patch_subprocess,
    "threading": _patch_threading,
    "traceback": _patch_traceback,
}


class _Loader:
    """Loads as another loader does, and changes the module then. One loader serves a whole archive, so it is not touched."""

    def __init__(self, loader, patch):
        self._loader, self._patch = loader, patch

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._patch(module)


class _Finder:
    """Changes the modules above when they are imported, and not before: most programs import none of them."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        patch = _PATCHES.get(name)
        if patch is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is cls else finder.find_spec(name, path, target)
            if spec is not None:
                spec.loader = _Loader(spec.loader, patch)
                return spec
        return None


_start_here()
os.system = _system
os.makedirs = _over_what_is_mounted(os.makedirs)
# Programs start themselves with it; there is no such file.
sys.executable = "/usr/bin/python3"
for _name, _function in _LEFT_OUT.items():
    if not hasattr(os, _name):
        setattr(os, _name, _function)
sys.excepthook = _say_what_there_is(sys.excepthook)
sys.meta_path.insert(0, _Finder)
_keep_code_of_site()
if WHEEL not in sys.path and os.path.exists(WHEEL):
    sys.path.append(WHEEL)
if not sys.flags.isolated:
    _add_site()
