# The configuration files of git: reading them with the places of their entries, editing them in place, and `git config`.
import os
import re

import _git_core as core
from _git_core import Failure, error

SECTION = re.compile(r'\[[ \t]*([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?[ \t]*\]')
NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


class Entry:
    """One setting: its whole key, its value (None where there is no `=`), and where it stands in the text."""

    def __init__(self, key, value, start, end):
        self.key, self.value, self.start, self.end = key, value, start, end


class File:
    """A configuration file's text. `sections` are (name, subsection or None, start, end of the header)."""

    def __init__(self, path, shown=None):
        self.path, self.shown = path, shown or path
        try:
            with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
                self.text, self.exists = file.read(), True
        except FileNotFoundError:
            self.text, self.exists = "", False
        except OSError as why:
            raise Failure(f"unable to read config file '{path}': {why.strerror}")
        self._parse()

    def _parse(self):
        text, at, section = self.text, 0, None
        if text.startswith("\ufeff"):
            at = 1
        self.entries, self.sections = [], []
        line_start = at
        while at < len(text):
            char = text[at]
            if char in " \t\r":
                at += 1
            elif char == "\n":
                at += 1
                line_start = at
            elif char in "#;":
                at = self._line_end(at)
            elif char == "[":
                found = SECTION.match(text, at)
                if not found:
                    raise self._bad(at)
                name, sub = found[1], found[2]
                if sub is None and "." in name:
                    name, sub = name.split(".", 1)
                    sub = sub.lower()
                elif sub is not None:
                    sub = re.sub(r"\\(.)", r"\1", sub)
                section = (name.lower(), sub)
                self.sections.append((*section, line_start, found.end()))
                at = line_start = found.end()
            else:
                found = NAME.match(text, at)
                if not found or section is None:
                    raise self._bad(at)
                value, end = self._value(found.end())
                self.entries.append(Entry(join_key(*section, found[0].lower()), value, line_start, end))
                at = line_start = end

    def _bad(self, at):
        return Failure(f"bad config line {self.text.count(chr(10), 0, at) + 1} in file {self.shown}")

    def _line_end(self, at):
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end

    def _value(self, at):
        text = self.text
        while at < len(text) and text[at] in " \t\r":
            at += 1
        if at >= len(text) or text[at] == "\n":
            return None, min(at + 1, len(text))
        if text[at] in "#;":
            return None, min(self._line_end(at) + 1, len(text))
        if text[at] != "=":
            raise self._bad(at)
        begin, at = at, at + 1
        value, kept, quote = [], 0, False
        while at < len(text) and text[at] != "\n":
            char = text[at]
            if char == "\\":
                following = text[at + 1 : at + 2]
                if text[at + 1 : at + 3] == "\r\n":
                    at += 3
                    continue
                if following == "\n":
                    at += 2
                    continue
                if following not in ("t", "b", "n", "\\", '"') or not following:
                    raise self._bad(begin)
                value.append({"t": "\t", "b": "\b", "n": "\n"}.get(following, following))
                kept, at = len(value), at + 2
                continue
            if char == '"':
                quote, at = not quote, at + 1
                kept = len(value)
                continue
            if not quote and char in "#;":
                at = self._line_end(at)
                break
            if quote or char not in " \t\r" or value:
                value.append(char)
                if quote or char not in " \t\r":
                    kept = len(value)
            at += 1
        if quote:
            raise self._bad(begin)
        return "".join(value[:kept]), min(at + 1, len(text))

    # Changes; each parses the text again, so that the places stay correct.

    def _replace(self, start, end, new):
        self.text = self.text[:start] + new + self.text[end:]
        self._parse()

    def set_entry(self, entry, name, value):
        lead = "" if entry.start == 0 or self.text[entry.start - 1] == "\n" else "\n"
        self._replace(entry.start, entry.end, f"{lead}\t{name} = {escaped(value)}\n")

    def add(self, key, value, comment=None):
        section, sub, name = parts_of(key)
        line = f"\t{name} = {escaped(value)}" + (f" {comment}" if comment else "") + "\n"
        places = [place for place in self.sections if place[:2] == (section.lower(), sub)]
        if not places:
            lead = "\n" if self.text and not self.text.endswith("\n") else ""
            self._replace(len(self.text), len(self.text), lead + header(section, sub) + "\n" + line)
            return
        # Behind the last entry of the last such section, or behind its header.
        begin = places[-1][3]
        later = [place[2] for place in self.sections if place[2] >= begin]
        stop = min(later, default=len(self.text))
        ends = [entry.end for entry in self.entries if begin <= entry.start < stop]
        at = max(ends, default=min(self._line_end(begin) + 1, len(self.text)))
        lead = "" if at == 0 or self.text[at - 1] == "\n" else "\n"
        self._replace(at, at, lead + line)

    def remove(self, entry):
        keep = "" if entry.start == 0 or self.text[entry.start - 1] == "\n" else "\n"
        at = entry.start
        self._replace(entry.start, entry.end, keep)
        # A section in which nothing is left goes, too.
        for place in self.sections:
            if place[2] <= at:
                found = place
        following = min((place[2] for place in self.sections if place[2] > found[2]), default=len(self.text))
        if not self.text[found[3] : following].strip():
            self._replace(found[2], following, "")

    def rename_section(self, old, new):
        """Renames sections (None removes them) and says how many there were."""
        places = [place for place in self.sections if join_key(*place[:2]) == old]
        for place in reversed(places):
            if new is None:
                end = min((other[2] for other in self.sections if other[2] > place[2]), default=len(self.text))
                self._replace(place[2], end, "")
            else:
                section, _, sub = new.partition(".")
                self._replace(place[2], place[3], header(section, sub if _ else None))
        return len(places)

    def set(self, key, value):
        """Sets what has one value or none; without regard to how many there were, the last is set."""
        found = [entry for entry in self.entries if entry.key == normal(key)]
        if found:
            self.set_entry(found[-1], parts_of(key)[2], value)
        else:
            self.add(key, value)

    def unset(self, key):
        while found := [entry for entry in self.entries if entry.key == normal(key)]:
            self.remove(found[-1])

    def write(self):
        try:
            os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
            target = os.path.realpath(self.path)
            with open(target + ".lock", "x", encoding="utf-8", errors="surrogateescape", newline="") as file:
                file.write(self.text)
            os.replace(target + ".lock", target)
        except FileExistsError:
            raise Failure(f"could not lock config file {self.shown}: File exists", 255, "error: ")
        except OSError as why:
            raise Failure(f"could not lock config file {self.shown}: {why.strerror}", 255, "error: ")


def join_key(section, sub, name=None):
    return ".".join(part for part in (section, sub, name) if part is not None)


def parts_of(key):
    """Section, subsection or None, and name of a key, as they are spelt; the section small."""
    section, _, rest = key.partition(".")
    sub, dot, name = rest.rpartition(".")
    return section, sub if dot else None, name


def checked(key):
    """The key with its section and name in small letters."""
    section, dot, rest = key.partition(".")
    if not dot or not section:
        raise error(f"key does not contain a section: {key}")
    section, sub, name = parts_of(key)
    if not name:
        raise error(f"key does not contain variable name: {key}")
    if not NAME.fullmatch(name) or not re.fullmatch(r"[A-Za-z0-9-]+", section):
        raise error(f"invalid key: {key}")
    if sub and "\n" in sub:
        raise error(f"invalid key (newline): {key}")
    return normal(key)


def normal(key):
    section, sub, name = parts_of(key)
    return join_key(section.lower(), sub, name.lower())


def header(section, sub):
    if sub is None:
        return f"[{section}]"
    return f'[{section} "%s"]' % sub.replace("\\", "\\\\").replace('"', '\\"')


def escaped(value):
    quote = '"' if value[:1] in (" ", "\t") or value[-1:] in (" ", "\t") or re.search(r"[;#\r]", value) else ""
    for char, text in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"), ("\b", "\\b")):
        value = value.replace(char, text)
    return quote + value + quote


def included(file, seen=0):
    """The entries of a file, with those of the files that it includes at their place: pairs of entry and file."""
    for entry in file.entries:
        yield entry, file
        if entry.key == "include.path" and entry.value and seen < 10:
            path = os.path.join(os.path.dirname(os.path.abspath(file.path)), os.path.expanduser(entry.value))
            if os.path.exists(path):
                yield from included(File(path), seen + 1)


# Kinds of values.

UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


def number(value):
    found = re.fullmatch(r"\s*([+-]?(?:0x[0-9a-fA-F]+|\d+))([kKmMgG]?)", value)
    if not found:
        return None
    base = int(found[1], 16) if "0x" in found[1] else int(found[1])
    return base * UNITS[found[2].lower()]


def boolean(value):
    if value is None:
        return True
    found = core.truth(value)
    if found is None and number(value) is not None:
        return number(value) != 0
    return found


def typed(kind, key, value, where=""):
    """A value as --type prints it."""
    if kind in ("bool", "bool-or-int", "bool-or-str"):
        if kind == "bool-or-int" and value is not None and number(value) is not None:
            return str(number(value))
        found = boolean(value)
        if found is None:
            if kind == "bool-or-str":
                return value
            raise Failure(f"bad boolean config value '{value}' for '{key}'")
        return "true" if found else "false"
    if kind == "int":
        found = number(value or "")
        if found is None:
            raise Failure(f"bad numeric config value '{value or ''}' for '{key}'{where}: invalid unit")
        return str(found)
    if kind == "path" and value is not None:
        home = os.environ.get("HOME") or "/"
        return home + value[1:] if value == "~" or value.startswith("~/") else value
    return value


def cmd_config(argv, call):
    import _git_config_cmd

    return _git_config_cmd.cmd_config(argv, call)
