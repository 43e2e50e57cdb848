# pip where packages are installed beside the conversation, and nothing can be built. Wheels of pure Python are installed; for any other
# package, the wheel that it would take is named.
import os
import sys

import sitecustomize

WHEEL = sitecustomize.WHEEL

# Modules that pip imports for its commands, kept with the interpreter.
AHEAD = """
pip._internal.cli.main pip._internal.commands.install pip._internal.commands.list pip._internal.commands.freeze
pip._internal.commands.show pip._internal.commands.uninstall pip._internal.commands.download pip._internal.commands.check
pip._internal.metadata.importlib pip._internal.resolution.resolvelib.resolver pip._internal.operations.install.wheel
pip._internal.network.download pip._internal.cli.autocompletion pip._internal.cli.main_parser netrc encodings.ascii
pip._vendor.rich._emoji_codes pip._vendor.rich._unicode_data.unicode17-0-0 pip._vendor.pygments.lexers.python
pip._vendor.pygments.unistring pip._vendor.distlib.scripts
""".split()

# How pip is set: there is no terminal, no cache, no compiler, and a newer pip comes with kiso. Code is compiled when it is imported. Of
# options that say no, pip reads 0 as their effect.
_SETTINGS = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_NO_COMPILE": "0",
    "PIP_NO_INPUT": "1",
    "PIP_NO_WARN_SCRIPT_LOCATION": "0",
    "PIP_ONLY_BINARY": ":all:",
    "PIP_PROGRESS_BAR": "off",
    "PIP_RETRIES": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
    "PIP_USE_DEPRECATED": "legacy-certs",
}

_IN_SCI = {
    "PIL": "pillow", "bs4": "beautifulsoup4", "sklearn": "scikit-learn", "yaml": "pyyaml",
}  # fmt: skip

NOT_BUILT = "nothing can be built here; install a wheel, or put modules of pure Python beside the program"

_SOURCES = (".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tar")

# Of each project that was looked up: files that do not fit, and whether there is one that does.
_unfit, _fits = {}, set()


def _provided():
    """Packages that the other Python of kiso has, by their names, if it is there."""
    import _kiso_host

    names = {_IN_SCI.get(name, name) for name in sitecustomize._IN_PYTHON_SCI}
    try:
        return names, _kiso_host.exists("python3-sci")
    except OSError:
        return names, False


def _use_site():
    """Makes the conversation's directory the one that packages are installed into."""
    import sysconfig

    root = os.path.dirname(sitecustomize.SITE)
    if not os.path.isdir(sitecustomize.SITE):
        os.makedirs(sitecustomize.SITE)
        with open(root + "/pyvenv.cfg", "w") as file:
            file.write("home = /usr/bin\ninclude-system-site-packages = true\n")
    sys.prefix = sys.exec_prefix = root
    own = {"purelib": sitecustomize.SITE, "platlib": sitecustomize.SITE, "scripts": root + "/bin", "data": root}
    for scheme in ("posix_prefix", "posix_venv", "venv"):
        if scheme in sysconfig._INSTALL_SCHEMES:
            sysconfig._INSTALL_SCHEMES[scheme] = {**sysconfig._INSTALL_SCHEMES[scheme], **own}
    if sitecustomize.SITE not in sys.path:
        sys.path.append(sitecustomize.SITE)


def _checked(words):
    """The words without what is there already; an error where something would have to be built."""
    if words[:1] not in (["install"], ["download"]):
        if words[:1] == ["wheel"]:
            raise SystemExit(f"ERROR: {NOT_BUILT}")
        return words
    from pip._internal.commands import create_command
    from pip._internal.utils.misc import normalize_path
    from pip._vendor.packaging.requirements import InvalidRequirement, Requirement

    options, named = create_command(words[0]).parse_args(words[1:])
    provided, is_there = _provided()
    kept = list(words)
    if getattr(options, "editables", None):
        raise SystemExit(f"ERROR: {options.editables[0]} cannot be installed in place: {NOT_BUILT}")
    for word in named:
        is_source = "://" not in word and os.path.isdir(normalize_path(word)) and os.sep in os.path.join(word, "")
        if is_source and (os.sep in word or word == ".") or word.startswith(("git+", "hg+", "svn+", "bzr+")):
            raise SystemExit(f"ERROR: {word} is not a wheel: {NOT_BUILT}")
        if word.split("#")[0].endswith(_SOURCES):
            raise SystemExit(f"ERROR: {word} is not a wheel: {NOT_BUILT}")
        try:
            name = Requirement(word).name.lower().replace("_", "-")
        except InvalidRequirement:
            continue
        if is_there and name in provided and words[0] == "install":
            print(f"Requirement already satisfied: {word} (it is in the package python-sci of kiso)")
            kept.remove(word)
    if named and len(kept) == len(words) - len(named) and not options.requirements:
        raise SystemExit(0)
    return kept


def _explain():
    """Says of projects for which nothing fits what it would take."""
    provided, is_there = _provided()
    for name, files in _unfit.items():
        if name in _fits:
            continue
        wheels = [file for file in files if file.endswith(".whl")]
        if name in provided and not is_there:
            print(f"kiso: {name} comes with `kiso skill add python-sci`, which an administrator runs", file=sys.stderr)
        elif wheels:
            project = "-".join(wheels[-1].split("-")[:2])
            print(
                f"kiso: {name} has native code, so it would take a wheel {project}-py3-none-any.whl or one for WASI; there are only "
                f"others, such as {wheels[-1]}",
                file=sys.stderr,
            )
        else:
            print(f"kiso: {name} has no wheel, only {files[-1]}, and nothing can be built here", file=sys.stderr)


def patch_main(module):
    own = module._main

    def _main(args, *, cli):
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        _use_site()
        words = _checked(list(sys.argv[1:] if args is None else args))
        code = own(words, cli=cli)
        if code:
            sys.stdout.flush()
            _explain()
        return code

    module._main = _main


def patch_finder(module):
    finder = module.PackageFinder
    own = finder.get_install_candidate

    def get_install_candidate(self, link_evaluator, link):
        candidate = own(self, link_evaluator, link)
        name = str(link_evaluator.project_name).lower().replace("_", "-")
        if candidate is not None:
            _fits.add(name)
        elif link.filename.endswith((".whl", *_SOURCES)):
            _unfit.setdefault(name, []).append(link.filename)
        return candidate

    finder.get_install_candidate = get_install_candidate


def patch_dists(module):
    own = module.Distribution.iter_dependencies

    def iter_dependencies(self, extras=()):
        provided, is_there = _provided()
        for requirement in own(self, extras):
            if not is_there or requirement.name.lower().replace("_", "-") not in provided:
                yield requirement

    module.Distribution.iter_dependencies = iter_dependencies


def patch_session(module):
    # That of pip's own tells much about the machine, and starts programs to learn it.
    module.user_agent = lambda: f"pip/{module.__version__}"


def patch_scripts(module):
    # The interpreter has a name and no file.
    module.ScriptMaker._is_shell = lambda self, executable: False


def patch_compat(module):
    # It looks for a module of C.
    module.has_tls = lambda: True


def patch_adapters(module):
    # Out of the archive it would write certificates into a file, which the host has no use for: it verifies with its own.
    module.DEFAULT_CA_BUNDLE_PATH = WHEEL


def patch_install(module):
    own = module.installed_packages_summary

    def installed_packages_summary(installed, env):
        # The cache of a directory is dropped when its time has changed, but an installation may take less than a tick of that time.
        import importlib.metadata

        importlib.metadata.FastPath.__new__.cache_clear()
        return own(installed, env)

    module.installed_packages_summary = installed_packages_summary
