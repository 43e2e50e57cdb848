# Commits as text: the named formats, the placeholders of --format, dates, and the names that decorate them.
import os
import re
import time

import _git_core as core
from _git_core import Failure

DAYS = "Sun Mon Tue Wed Thu Fri Sat".split()
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
KINDS = ("oneline", "short", "medium", "full", "fuller", "reference", "raw")
COLOUR_NAMES = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "white": "37",
    "black": "30",
    "bold": "1",
    "dim": "2",
    "ul": "4",
    "reverse": "7",
    "normal": "",
    "reset": "",
}


def zone(offset):
    return core.zone_text(offset).decode()


def relative(when, now=None):
    past = int(now if now is not None else time.time()) - when
    if past < 0:
        return "in the future"

    def some(count, unit):
        return f"{count} {unit}{'' if count == 1 else 's'} ago"

    if past < 90:
        return some(past, "second")
    minutes = (past + 30) // 60
    if minutes < 90:
        return some(minutes, "minute")
    hours = (minutes + 30) // 60
    if hours < 36:
        return some(hours, "hour")
    days = (hours + 12) // 24
    if days < 14:
        return some(days, "day")
    if days < 70:
        return some((days + 3) // 7, "week")
    if days < 365:
        return some((days + 15) // 30, "month")
    if days < 1825:
        months = (days * 24 + 365) // 730
        years, months = divmod(months, 12)
        if months:
            return f"{years} year{'' if years == 1 else 's'}, {some(months, 'month')}"
        return some(years, "year")
    return some((days + 183) // 365, "year")


def date_text(when, offset, form="default"):
    """A date in one of the forms of --date."""
    local = form.endswith("-local") or form == "local"
    if local:
        form = form.removesuffix("-local") if form != "local" else "default"
        offset = core.local_zone(when)
    if form == "relative":
        return relative(when)
    if form == "unix":
        return str(when)
    if form == "raw":
        return f"{when} {zone(offset)}"
    if not -62_000_000_000 < when + offset < 250_000_000_000:
        when, offset = 0, 0
    at = time.gmtime(when + offset)
    name, month = DAYS[(at.tm_wday + 1) % 7], MONTHS[at.tm_mon - 1]
    clock = f"{at.tm_hour:02d}:{at.tm_min:02d}:{at.tm_sec:02d}"
    day = f"{at.tm_year:04d}-{at.tm_mon:02d}-{at.tm_mday:02d}"
    if form == "short":
        return day
    if form in ("iso", "iso8601"):
        return f"{day} {clock} {zone(offset)}"
    if form in ("iso-strict", "iso8601-strict"):
        return f"{day}T{clock}" + ("Z" if not offset else zone(offset)[:3] + ":" + zone(offset)[3:])
    if form in ("rfc", "rfc2822"):
        return f"{name}, {at.tm_mday} {month} {at.tm_year} {clock} {zone(offset)}"
    if form.startswith(("format:", "format-local:")):
        shape = form.partition(":")[2].replace("%z", zone(offset)).replace("%s", str(when))
        return time.strftime(shape, at) if shape else ""
    if form == "human":
        now = time.time()
        today = time.gmtime(now + offset)
        if int(now) - when < 86400 and today.tm_yday == at.tm_yday and today.tm_year == at.tm_year:
            return relative(when)
        if today.tm_year == at.tm_year and 0 <= today.tm_yday - at.tm_yday < 5:
            return f"{name} {at.tm_hour:02d}:{at.tm_min:02d}"
        if today.tm_year == at.tm_year:
            return f"{name} {month} {at.tm_mday} {at.tm_hour:02d}:{at.tm_min:02d}"
        return f"{month} {at.tm_mday} {at.tm_year}"
    if form != "default":
        raise Failure(f"unknown date format {form}")
    return f"{name} {month} {at.tm_mday} {clock} {at.tm_year}" + ("" if local else f" {zone(offset)}")


def person(raw):
    name, _, rest = raw.partition(b"<")
    return name.strip(), rest.rpartition(b">")[0]


class Mailmap:
    def __init__(self, git):
        self.map = None
        path = os.path.join(git.root, ".mailmap") if git.root else ""
        if path and os.path.isfile(path):
            from dulwich.mailmap import Mailmap as Reader

            try:
                self.map = Reader.from_path(path)
            except (OSError, ValueError):
                pass

    def lookup(self, raw):
        if self.map is None:
            return raw
        try:
            return self.map.lookup(raw)
        except (ValueError, KeyError):
            return raw


def decorations(git, form="short"):
    """For each commit the names of references that lead to it, as `log --decorate` shows them."""
    found = {}
    for ref in sorted(git.refs.allkeys(), reverse=True):
        if ref == b"HEAD" or not ref.startswith((b"refs/heads/", b"refs/remotes/", b"refs/tags/", b"refs/stash")):
            continue
        try:
            sha = git.refs[ref]
        except KeyError:
            continue
        shown = os.fsdecode(ref)
        if form != "full":
            shown = re.sub(r"^refs/(heads|remotes|tags)/", "", shown)
        if ref.startswith(b"refs/tags/"):
            shown = "tag: " + shown
            from dulwich.objects import Commit

            sha = git.peel(sha, Commit) or sha
        found.setdefault(sha, []).append((shown, ref))
    head = git.head()
    if head:
        names = found.setdefault(head, [])
        ref = git.head_ref()
        own = next((entry for entry in names if entry[1] == ref), None)
        if own:
            names.remove(own)
            names.insert(0, (f"HEAD -> {own[0]}", b"HEAD"))
        else:
            names.insert(0, ("HEAD", b"HEAD"))
    return {sha: [(name, ref) for name, ref in names] for sha, names in found.items()}


class Pretty:
    """How commits are shown: `form` is the name of a format, or `user` with `template`; `ends` says that each one ends a line of its own."""

    def __init__(self, git, text="medium", date=None, abbreviate=False, colour=False, encode=None):
        self.git, self.abbreviated, self.colour = git, abbreviate, colour
        self.date = date or git.config.get("log.date") or "default"
        self.template, self.ends, self.decorate, self.form = "", False, None, text
        self._decorations, self.mailmap, self.least, self.patches = None, None, None, None
        self.choose(text)

    def choose(self, text, depth=0):
        alias = self.git.config.get(f"pretty.{text}") if depth < 5 and re.fullmatch(r"[A-Za-z0-9-]+", text) else None
        if text in KINDS:
            self.form = text
        elif text.startswith("format:"):
            self.form, self.template = "user", text[7:]
        elif text.startswith("tformat:"):
            self.form, self.template, self.ends = "user", text[8:], True
        elif "%" in text or not text:
            self.form, self.template, self.ends = "user", text, True
        elif alias:
            return self.choose(alias, depth + 1)
        else:
            near = [kind for kind in KINDS if kind.startswith(text)]
            if not near or not text:
                raise Failure(f"invalid --pretty format: {text}")
            self.form = near[0]
        if self.form in ("oneline", "reference"):
            self.ends = True
        if self.form == "reference":
            self.form, self.template, self.date, self.abbreviated = "user", "%h (%s, %as)", "short", True

    def names(self, commit):
        if self._decorations is None:
            self._decorations = decorations(self.git, self.decorate if self.decorate == "full" else "short")
        return self._decorations.get(commit.id, [])

    def decoration(self, commit, always=False):
        if not always and not self.decorate:
            return ""
        names = self.names(commit)
        if not names:
            return ""
        if not self.colour:
            return " (" + ", ".join(name for name, _ in names) + ")"
        yellow, reset, parts = "\x1b[33m", "\x1b[m", []
        for name, ref in names:
            head = name.startswith("HEAD")
            colour = (
                "1;33"
                if ref.startswith(b"refs/tags/")
                else "1;31"
                if ref.startswith(b"refs/remotes/")
                else ("1;35" if ref == b"refs/stash" else "1;32")
            )
            if head:
                base, _, branch = name.partition(" -> ")
                text = f"\x1b[1;36m{base}" + (f"{reset}{yellow} -> {reset}\x1b[1;32m{branch}" if branch else "")
            elif name.startswith("tag: "):
                text = f"\x1b[1;33mtag: {reset}\x1b[1;33m{name[5:]}"
            else:
                text = f"\x1b[{colour}m{name}"
            parts.append(text + reset)
        return f"{yellow} ({reset}" + f"{yellow}, {reset}".join(parts) + f"{yellow}){reset}"

    def digits(self, sha, short=None):
        if short if short is not None else self.abbreviated:
            return self.git.abbreviate(sha, self.least)
        return sha.decode()

    def message(self, commit):
        """The message as text in UTF-8."""
        raw = commit.message
        code = (commit.encoding or b"utf-8").decode("ascii", "replace").lower()
        if code not in ("utf-8", "utf8"):
            try:
                raw = raw.decode(code).encode()
            except (LookupError, UnicodeDecodeError):
                pass
        return os.fsdecode(raw)

    def subject(self, commit):
        return subject_of(self.message(commit))

    def shown_person(self, raw):
        if self.mailmap is None:
            self.mailmap = Mailmap(self.git)
        return self.mailmap.lookup(raw)

    def text(self, commit, mark="", entry=None, parents=None):
        """The commit without its changes: the text ends without an end of line where the format is one of the user's."""
        if self.form == "user":
            from _git_template import expand

            return expand(self, commit, self.template, mark, entry)
        parents = commit.parents if parents is None else parents
        yellow, reset = ("\x1b[33m", "\x1b[m") if self.colour else ("", "")
        shown, mark = self.digits(commit.id), mark and mark + " "
        more = "".join(" " + self.digits(sha) for sha in parents) if self.patches == "parents" else ""
        if self.form == "oneline":
            head = f"{yellow}{mark}{shown}{more}{reset}{self.decoration(commit)} "
            if entry:
                return head + f"{entry.name}: {entry.message}"
            return head + self.subject(commit)
        lines = [f"{yellow}commit {mark}{shown}{more}{reset}{self.decoration(commit)}"]
        indented = self.indented(commit)
        if self.form == "raw":
            lines += [f"tree {commit.tree.decode()}"] + [f"parent {sha.decode()}" for sha in commit.parents]
            lines += [
                f"{role} {os.fsdecode(raw)} {when} {zone(offset)}"
                for role, raw, when, offset in (
                    ("author", commit.author, commit.author_time, commit.author_timezone),
                    ("committer", commit.committer, commit.commit_time, commit.commit_timezone),
                )
            ]
            return "\n".join(lines + ["", *indented]) + "\n"
        if len(parents) > 1:
            lines.append("Merge: " + " ".join(self.git.abbreviate(sha) for sha in parents))
        if entry:
            lines += [f"Reflog: {entry.name} ({entry.by})", f"Reflog message: {entry.message}"]
        author, committer = (os.fsdecode(self.shown_person(raw)) for raw in (commit.author, commit.committer))
        written = date_text(commit.author_time, commit.author_timezone, self.date)
        committed = date_text(commit.commit_time, commit.commit_timezone, self.date)
        if self.form == "fuller":
            lines += [f"Author:     {author}", f"AuthorDate: {written}", f"Commit:     {committer}", f"CommitDate: {committed}"]
        else:
            lines.append(f"Author: {author}")
            if self.form == "full":
                lines.append(f"Commit: {committer}")
            if self.form == "medium":
                lines.append(f"Date:   {written}")
        if self.form == "short":
            indented = ["    " + self.subject(commit), ""] if self.subject(commit) else []
            return "\n".join([*lines, "", *indented]) + ("\n" if not indented else "")
        return "\n".join([*lines, "", *indented]) + "\n"

    def indented(self, commit):
        lines = self.message(commit).rstrip().split("\n")
        while lines and not lines[0].strip():
            lines.pop(0)
        return ["    " + line.rstrip().expandtabs(8) for line in lines]


def subject_of(message):
    """The first paragraph of a message in one line."""
    lines = message.lstrip("\n").split("\n")
    first = []
    for line in lines:
        if not line.strip():
            if first:
                break
            continue
        first.append(line.rstrip())
    return " ".join(first)


def body_of(message):
    lines = message.lstrip("\n").split("\n")
    at = 0
    while at < len(lines) and not lines[at].strip():
        at += 1
    while at < len(lines) and lines[at].strip():
        at += 1
    while at < len(lines) and not lines[at].strip():
        at += 1
    return "\n".join(lines[at:])
