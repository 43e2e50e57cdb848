# The interpreter lies in its module as it was after its start, so it has seen neither words nor environment. This makes up for it:
# it reads the options as CPython does, and makes the path that imports are looked for on.
import os
import sys

# The program's path as the line has it; `sitecustomize` takes it out of the environment.
_WRITTEN = os.environ.get("KISO_ARGV0")

import _reactor
import sitecustomize  # it goes to the directory, and explains what there is not

_BARE = "bBdEhiIOPqRsSuvVx?"
_WITH_VALUE = "WX"


def _options(words):
    """Takes the options off the words. Their letters; an unknown one is an error."""
    letters = ""
    while words and words[0].startswith("-") and words[0] not in ("-", "-c", "-m"):
        word = words.pop(0)
        if word == "--":
            break
        if word in ("--help", "--version"):
            return letters + ("h" if word == "--help" else "V")
        if word == "--check-hash-based-pycs":
            del words[:1]
            continue
        for place, letter in enumerate(word[1:], 2):
            value = [word[place:]] if word[place:] else []
            if letter in "cm":
                # `-ucCODE` is `-u -c CODE`.
                words[:0] = ["-" + letter, *value]
                return letters
            if letter in _WITH_VALUE:
                if not value:
                    del words[:1]
                break
            if letter not in _BARE:
                raise ValueError(word)
            letters += letter
    return letters


def _first_entry(words):
    """Where imports are looked for first: beside the program."""
    if not words or words[0] in ("-", "-c"):
        return ""
    return os.getcwd() if words[0] == "-m" else os.path.dirname(words[0])


def _keep_written(written):
    """The program sees the path of itself as it was written, and is opened by the absolute one."""
    run_file = _reactor._run_file

    def run_as_written(target, main):
        sys.argv[0] = written
        run_file(target, main)

    # Tracebacks leave out what is the interpreter's own.
    code = run_as_written.__code__
    run_as_written.__code__ = code.replace(co_filename=run_file.__code__.co_filename)
    _reactor._run_file = run_as_written


def _in_pillow(patch):
    def patch_plugin(module):
        import _kiso_pillow

        getattr(_kiso_pillow, patch)(module)

    return patch_plugin


sitecustomize._PATCHES.update({
    "PIL.JpegImagePlugin": _in_pillow("patch_jpeg"),
    "PIL.WebPImagePlugin": _in_pillow("patch_webp"),
})


def run():
    words = sys.argv[1:]
    try:
        letters = _options(words)
    except ValueError as unknown:
        print(f"unknown option {unknown}; `python3 --help` lists those that have an effect here", file=sys.stderr)
        return 2
    if set(letters) & set("h?"):
        print("usage: python3 [-u] [-I] [-E] [-P] [-V] [-c CODE | -m MODULE | FILE | -] [WORD]...")
        return 0
    if "V" in letters:
        print("Python", sys.version.split()[0])
        return 0
    own = {} if set(letters) & set("EI") else os.environ
    # The interpreter was started without what surrounds it, so `sitecustomize` has left this out.
    if not set(letters) & set("Is"):
        sitecustomize._add_site()
    if words and words[0] not in ("-", "-c", "-m"):
        _keep_written(_WRITTEN or words[0])
        words[0] = os.path.abspath(words[0])
    ahead = [entry for entry in own.get("PYTHONPATH", "").split(":") if entry]
    if not (set(letters) & set("IP") or own.get("PYTHONSAFEPATH")):
        ahead.insert(0, _first_entry(words))
    sys.path[:0] = ahead
    unbuffered = ["-u"] if "u" in letters or own.get("PYTHONUNBUFFERED") else []
    return _reactor.run(["python3", *unbuffered, *words], dict(os.environ))


def _seed_numpy():
    sys.modules["numpy.random"].seed()


def _set_up_matplotlib():
    """Reads the settings that it reads on import: the environment, and the file beside the program."""
    import matplotlib

    if os.path.exists("matplotlibrc") or {"MATPLOTLIBRC", "MPLCONFIGDIR"} & os.environ.keys():
        for settings in (matplotlib.rcParams, matplotlib.rcParamsOrig):
            settings.update(matplotlib.rc_params())
    if os.environ.get("MPLBACKEND"):
        matplotlib.rcParams["backend"] = matplotlib.rcParamsOrig["backend"] = os.environ["MPLBACKEND"]


def _forget_directories():
    """Where matplotlib keeps its settings is looked for when a program needs it."""
    import matplotlib

    del os.environ["MPLCONFIGDIR"]
    for name in ("get_configdir", "get_cachedir"):
        setattr(matplotlib, name, matplotlib._logged_cached(name + "=%s", getattr(matplotlib, name).__wrapped__))


# The libraries that programs often import, the modules of each, and the libraries that it needs.
_LIBRARIES = {
    "numpy": ("numpy numpy.fft numpy.linalg numpy.ma numpy.polynomial numpy.random", ""),
    "pandas": ("pandas", "numpy"),
    "scipy": (
        "scipy.cluster scipy.fft scipy.integrate scipy.interpolate scipy.linalg scipy.ndimage scipy.optimize scipy.signal "
        "scipy.sparse.linalg scipy.spatial scipy.special scipy.stats",
        "numpy",
    ),
    "sklearn": (
        "sklearn.cluster sklearn.compose sklearn.datasets sklearn.decomposition sklearn.ensemble sklearn.feature_extraction.text "
        "sklearn.impute sklearn.linear_model sklearn.metrics sklearn.model_selection sklearn.naive_bayes sklearn.neighbors "
        "sklearn.neural_network sklearn.pipeline sklearn.preprocessing sklearn.svm sklearn.tree",
        "numpy scipy",
    ),
    "matplotlib": ("matplotlib.pyplot matplotlib.backends.backend_agg matplotlib.backends.backend_svg matplotlib.dates", "numpy"),
    "PIL": ("PIL.Image PIL.ImageDraw PIL.ImageFilter PIL.ImageFont PIL.ImageOps", ""),
    "sympy": ("sympy", ""),
    "openpyxl": ("openpyxl", ""),
    "lxml": ("lxml.etree lxml.html", ""),
    "bs4": ("bs4", ""),
    "yaml": ("yaml", ""),
    "networkx": ("networkx", ""),
    "seaborn": ("seaborn", "numpy pandas scipy matplotlib"),
}
_BEGIN = {"numpy": _seed_numpy, "matplotlib": _set_up_matplotlib}


def record():
    """Keeps the interpreter with the libraries."""
    import _kiso_started

    os.environ["MPLCONFIGDIR"] = "/tmp"
    for name, (modules, needs) in _LIBRARIES.items():
        _kiso_started.LIBRARIES[name] = _kiso_started.Library(modules, needs, _BEGIN.get(name))
    _kiso_started.AHEAD_DONE.append(_forget_directories)
    # Instead of the directory of a program.
    sys.path.insert(0, "")
    _kiso_started.record()
