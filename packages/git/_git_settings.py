# The configuration of git, and values that depend on it: who commits, and when.
import os
import re
import time

from dulwich.config import ConfigFile, StackedConfig

from _git_words import Failure, error


def split_key(key):
    section, _, rest = key.partition(".")
    subsection, dot, name = rest.rpartition(".")
    if not section or not (name if dot else rest):
        raise error(f"key does not contain a section: {key}")
    if dot:
        return (section.lower().encode(), os.fsencode(subsection)), name.lower().encode()
    return (section.lower().encode(),), rest.lower().encode()


def truth(value):
    """A setting as yes or no; None if it is neither."""
    return {
        "true": True,
        "yes": True,
        "on": True,
        "1": True,
        "": False,
        "false": False,
        "no": False,
        "off": False,
        "0": False,
    }.get(value.lower())


def global_config_path():
    return os.environ.get("GIT_CONFIG_GLOBAL") or os.path.join(os.environ.get("HOME") or "/", ".gitconfig")


class Settings:
    """Settings of the command, of the repository, and of the user; the first that has a value counts."""

    def __init__(self, given, gitdir=None):
        self._given = ConfigFile()
        for key, value in given:
            section, name = split_key(key)
            self._given.set(section, name, value.encode())
        paths = [os.path.join(gitdir, "config")] if gitdir else []
        self._files = [self._read(path) for path in [*paths, global_config_path()]]
        self.stack = StackedConfig([self._given, *self._files])

    @staticmethod
    def _read(path):
        try:
            return ConfigFile.from_path(path)
        except FileNotFoundError:
            return ConfigFile()
        except (OSError, ValueError) as why:
            raise Failure(f"bad config file {path}: {why}")

    def get(self, key, default=None):
        section, name = split_key(key)
        try:
            return os.fsdecode(self.stack.get(section, name))
        except KeyError:
            return default

    def has(self, section, name):
        """Whether a name is set in any section of a kind."""
        return any(found[0] == section.encode() and name in file[found] for file in self._files for found in file.sections())

    def truth(self, key, default=None):
        value = self.get(key)
        if value is None:
            return default
        found = truth(value)
        if found is None:
            raise Failure(f"bad boolean config value '{value}' for '{key.lower()}'")
        return found

    def identity(self, role, date=None):
        """Name and address, seconds, and the offset of the zone in seconds; `role` is author or committer."""
        upper = role.upper()
        name = os.environ.get(f"GIT_{upper}_NAME") or self.get("user.name")
        email = os.environ.get(f"GIT_{upper}_EMAIL") or self.get("user.email") or os.environ.get("EMAIL")
        if not name or not email:
            raise Failure(
                f"{role.capitalize()} identity unknown\n\n*** Please tell me who you are.\n\nRun\n\n"
                '  git config --global user.email "you@example.com"\n  git config --global user.name "Your Name"\n\n'
                "to set your account's default identity.\nOmit --global to set the identity only in this repository.\n\n"
                "fatal: no name and email are set",
                128,
                "",
            )
        when, zone = parse_date(date or os.environ.get(f"GIT_{upper}_DATE"))
        clean = lambda text: re.sub(r"[<>\n]", "", text).strip(" .,:;\"\\'")
        return f"{clean(name)} <{clean(email)}>".encode(), when, zone


def local_zone(when):
    return time.localtime(when).tm_gmtoff or 0


def parse_date(text):
    """Seconds and the zone's offset from what GIT_AUTHOR_DATE and --date take; now, where there is no text."""
    if not text or text == "now":
        now = int(time.time())
        return now, local_zone(now)
    text = text.strip()
    raw = re.fullmatch(r"@?(\d{5,}|@\d+)(?: ([+-])(\d\d)(\d\d))?", text)
    if raw:
        offset = (int(raw[3]) * 3600 + int(raw[4]) * 60) * (-1 if raw[2] == "-" else 1) if raw[2] else 0
        return int(raw[1].lstrip("@")), offset
    from datetime import datetime
    from email.utils import parsedate_to_datetime

    iso = re.sub(r"^(\d{4})[.-](\d\d)[.-](\d\d)", r"\1-\2-\3", text)
    iso = re.sub(r" ?([+-]\d\d):?(\d\d)$", r"\1:\2", iso.replace("Z", "+00:00"))
    for read in (datetime.fromisoformat, lambda _: parsedate_to_datetime(text)):
        try:
            when = read(iso)
        except (ValueError, TypeError):
            continue
        if when.tzinfo is None:
            seconds = int(time.mktime(when.timetuple()))
            return seconds, local_zone(seconds)
        return int(when.timestamp()), int(when.utcoffset().total_seconds())
    from dulwich.approxidate import parse_approxidate

    try:
        seconds = int(parse_approxidate(text))
    except ValueError:
        raise Failure(f"invalid date format: {text}")
    return seconds, local_zone(seconds)


def zone_text(offset):
    sign, offset = (b"-", -offset) if offset < 0 else (b"+", offset)
    return b"%s%02d%02d" % (sign, offset // 3600, offset // 60 % 60)
