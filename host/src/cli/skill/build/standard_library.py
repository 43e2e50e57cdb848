"""Written by `kiso skill build`: the standard library, and the skill.

A component has no files of its own, so a module that is imported late, by a function or by another module, must have been
imported when the component was made.
"""

import encodings
import importlib
import pkgutil
import sys

# Programs, tests, and modules that need a screen, a network or threads.
LEFT_OUT = {
    "antigravity", "asyncio", "cProfile", "concurrent", "ctypes", "curses", "dbm", "ensurepip", "ftplib", "idlelib", "imaplib",
    "lib2to3", "lzma", "multiprocessing", "nntplib", "pdb", "poplib", "pydoc", "pydoc_data", "smtplib", "socketserver", "sqlite3",
    "ssl", "test", "this", "tkinter", "turtle", "turtledemo", "unittest", "venv", "webbrowser", "wsgiref", "xmlrpc",
}

# Parts of packages that are imported by their full names.
PARTS = (
    "_strptime", "_pydatetime", "_pydecimal", "collections.abc", "email.mime.multipart", "email.mime.text", "html.entities", "html.parser",
    "importlib.metadata", "importlib.resources", "json.tool", "os.path", "urllib.parse", "xml.dom.minidom", "xml.etree.ElementTree", "xml.sax",
    "zoneinfo",
)


def load(name):
    try:
        importlib.import_module(name)
    except Exception:  # Modules that this Python was built without fail where they are used.
        pass


for name in sorted(sys.stdlib_module_names):
    if name not in LEFT_OUT and not name.startswith("_"):
        load(name)
for name in PARTS:
    load(name)
for module in sorted(module.name for module in pkgutil.iter_modules(encodings.__path__)):
    load(f"encodings.{module}")

from skill import *  # noqa: E402, F403
