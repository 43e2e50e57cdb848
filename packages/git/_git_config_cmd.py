# `git config` in its two forms, with options (--get, --unset) and with words (get, set, unset, list).
import os
import re

import _git_core as core
from _git_config import Entry, File, checked, included, parts_of, typed
from _git_core import Failure, error, out, say

OPTIONS = """
--global
--system
--local
--worktree
-f --file =
-l --list
--get
--get-all
--get-regexp
--add
--replace-all
--unset
--unset-all
--rename-section
--remove-section
-e --edit
-z --null
--name-only
--show-origin
--show-scope
--show-names
--type =
-t =
--bool
--int
--bool-or-int
--bool-or-str
--path
--default =
--comment =
--fixed-value
--includes
--all
--regexp
--value =
--append
"""
ACTIONS = "list get get_all get_regexp add replace_all unset unset_all rename_section remove_section edit".split()
WORDS = ("list", "get", "set", "unset", "rename-section", "remove-section", "edit")


class Given:
    """The settings of `git -c`, in the form of a file."""

    shown, path = "", ""

    def __init__(self, pairs):
        self.entries = [Entry(checked(key), value, 0, 0) for key, value in pairs]


def system_path():
    return os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"


def cmd_config(argv, call):
    options = core.parse("config", argv, OPTIONS)
    words = options.all_words()
    actions = [name for name in ACTIONS if getattr(options, name)]
    if len(actions) > 1:
        raise error("only one action at a time", 129)
    action = actions[0] if actions else None
    new_form = False
    if action is None and words and words[0] in WORDS:
        new_form, action = True, words.pop(0).replace("-", "_")
    if action is None:
        if not words:
            raise error("no action specified", 129)
        action = "get" if len(words) == 1 else "set"
        if len(words) > 3:
            raise error("no action specified", 129)
    kind = options.type or options.t
    for name in ("bool", "int", "bool_or_int", "bool_or_str", "path"):
        if getattr(options, name):
            kind = name.replace("_", "-")
    if kind and kind not in ("bool", "int", "bool-or-int", "bool-or-str", "path"):
        raise Failure(f"unrecognized --type argument, {kind}")
    return Config(options, words, kind, call, new_form).run(action)


class Config:
    def __init__(self, options, words, kind, call, new_form):
        self.options, self.words, self.kind, self.new_form = options, words, kind, new_form
        self.call = call
        try:
            self.git = call.git()
        except Failure:
            self.git = None

    def local(self):
        path = os.path.join(self.git.commondir, "config")
        shown = ".git/config" if self.git.root and self.git.commondir == os.path.join(self.git.root, ".git") else path
        if self.git.root is None and os.getcwd() == self.git.commondir:
            shown = "config"
        return "local", path, shown

    def chosen(self):
        """The one file that the options name, or None."""
        options = self.options
        if options.file:
            return "command", options.file, options.file
        if getattr(options, "global"):
            return "global", core.global_config_path(), core.global_config_path()
        if options.system:
            return "system", system_path(), system_path()
        if options.local or options.worktree:
            if self.git is None:
                raise Failure("--local can only be used inside a git repository")
            return self.local()
        return None

    def read(self):
        """All entries that count, in the order of files: scope, file and entry."""
        chosen = self.chosen()
        if chosen:
            scope, path, shown = chosen
            file = File(path, shown)
            self.file = file
            pairs = included(file) if self.options.includes else ((entry, file) for entry in file.entries)
            return [(scope, where, entry) for entry, where in pairs]
        self.file = None
        places = [("global", core.global_config_path(), core.global_config_path())]
        if not os.environ.get("GIT_CONFIG_NOSYSTEM"):
            places.insert(0, ("system", system_path(), system_path()))
        if self.git is not None:
            places.append(self.local())
        found = []
        for scope, path, shown in places:
            found += [(scope, where, entry) for entry, where in included(File(path, shown))]
        given = Given(self.call.given)
        return found + [("command", given, entry) for entry in given.entries]

    def target(self):
        chosen = self.chosen()
        if chosen is None:
            if self.git is None:
                raise Failure("not in a git directory")
            chosen = self.local()
        return File(chosen[1], chosen[2])

    def show(self, scope, file, entry, with_name):
        options = self.options
        end, between = ("\0", "\n") if options.null else ("\n", " ")
        text = ""
        if options.show_scope:
            text += scope + ("\0" if options.null else "\t")
        if options.show_origin:
            origin = f"file:{file.shown}" if file.shown else "command line:"
            text += origin + ("\0" if options.null else "\t")
        where = f" in file {file.shown}" if file.shown else ""
        value = typed(self.kind, entry.key, entry.value, where)
        if options.name_only:
            out(text + entry.key + end)
            return
        if with_name:
            text += entry.key
            if value is not None:
                text += ("\n" if options.null else with_name) + value
        else:
            text += value or ""
        out(text + end)

    def value_test(self, at):
        """Whether an entry's value is one that the command line asks for (a pattern, or `!` and a pattern)."""
        pattern = self.options.value if self.options.value is not None else self.words[at] if len(self.words) > at else None
        if pattern is None:
            return lambda entry: True
        if self.options.fixed_value:
            return lambda entry: entry.value == pattern
        negated = pattern.startswith("!")
        try:
            compiled = re.compile(pattern[1:] if negated else pattern)
        except re.error:
            raise Failure(f"invalid pattern: {pattern}", 6, "error: ")
        return lambda entry: bool(compiled.search(entry.value or "")) != negated

    def count(self, least, most=None):
        most = least if most is None else most
        if not least <= len(self.words) <= most:
            number = f"{least}" if least == most else f"from {least} to {most}"
            raise error(f"wrong number of arguments, should be {number}", 129)

    def run(self, action):
        if action in ("get_all", "get_regexp"):
            return self.get(True, action == "get_regexp")
        if action == "get":
            return self.get(bool(self.options.all), bool(self.options.regexp))
        return getattr(self, action)()

    def list(self):
        self.count(0)
        entries = self.read()
        if self.file is not None and not self.file.exists:
            raise Failure(f"unable to read config file '{self.file.path}': No such file or directory")
        for scope, file, entry in entries:
            self.show(scope, file, entry, "=")

    def get(self, all_values, regexp):
        self.count(1, 1 if self.new_form else 2)
        key, test = self.words[0], self.value_test(1)
        if regexp:
            section, dot, name = key.rpartition(".")
            try:
                pattern = re.compile(key)
            except re.error:
                raise Failure(f"invalid key pattern: {key}", 6, "error: ")
            matches = lambda entry: pattern.search(entry.key)
        else:
            wanted = checked(key)
            matches = lambda entry: entry.key == wanted
        found = [item for item in self.read() if matches(item[2]) and test(item[2])]
        if not found:
            if self.options.default is not None:
                out((typed(self.kind, key, self.options.default) or "") + ("\0" if self.options.null else "\n"))
                return 0
            return 1
        names = " " if regexp and (not self.new_form or self.options.show_names) or self.options.show_names else ""
        for scope, file, entry in found if all_values or regexp and not self.new_form else found[-1:]:
            self.show(scope, file, entry, names)

    def set(self):
        if self.options.append:
            return self.add()
        self.count(2, 2 if self.new_form else 3)
        return self._set(bool(self.options.all))

    def replace_all(self):
        self.count(2, 3)
        return self._set(True)

    def _set(self, every):
        key, value = self.words[:2]
        wanted, test = checked(key), self.value_test(2)
        if self.kind:
            value = typed(self.kind, key, value)
        file = self.target()
        found = [entry for entry in file.entries if entry.key == wanted and test(entry)]
        if len(found) > 1 and not every:
            say(
                f"warning: {key} has multiple values\nerror: cannot overwrite multiple values with a single value\n"
                f"       Use a regexp, --add or --replace-all to change {key}.\n"
            )
            return 5
        if found:
            for entry in reversed(found[:-1]):
                file.remove(entry)
            found = [entry for entry in file.entries if entry.key == wanted and test(entry)]
            file.set_entry(found[-1], parts_of(key)[2], value)
        else:
            file.add(key, value, self.comment())
        file.write()

    def comment(self):
        text = self.options.comment
        return None if text is None else text if text.startswith("#") else "# " + text

    def add(self):
        self.count(2)
        key, value = self.words
        checked(key)
        file = self.target()
        file.add(key, typed(self.kind, key, value) if self.kind else value, self.comment())
        file.write()

    def unset(self):
        return self._unset(bool(self.options.all))

    def unset_all(self):
        return self._unset(True)

    def _unset(self, every):
        self.count(1, 1 if self.new_form else 2)
        key = self.words[0]
        wanted, test = checked(key), self.value_test(1)
        file = self.target()
        found = [entry for entry in file.entries if entry.key == wanted and test(entry)]
        if not found:
            return 5
        if len(found) > 1 and not every:
            say(f"warning: {key} has multiple values\n")
            return 5
        while found:
            file.remove(found[-1])
            found = [entry for entry in file.entries if entry.key == wanted and test(entry)]
        file.write()

    def rename_section(self):
        self.count(2)
        self._rename(*self.words)

    def remove_section(self):
        self.count(1)
        self._rename(self.words[0], None)

    def _rename(self, old, new):
        file = self.target()
        section, dot, sub = old.partition(".")
        if new is not None and not re.match(r"[A-Za-z0-9-]+(\.|$)", new):
            raise Failure(f"invalid section name: {new}", 128, "error: ")
        if not file.rename_section(section.lower() + dot + sub, new):
            raise Failure(f"no such section: {old}")
        file.write()

    def edit(self):
        self.count(0)
        import subprocess

        editor = os.environ.get("GIT_EDITOR") or self.call.settings().get("core.editor") or os.environ.get("EDITOR")
        if not editor:
            raise error("there is no editor here; set GIT_EDITOR")
        return subprocess.run(["sh", "-c", editor + ' "$@"', editor, self.target().path]).returncode
