# Lists of references: their atoms (`%(refname:short)`), sorting, patterns, and `git for-each-ref`.
import fnmatch
import os
import re

import _git_core as core
from _git_core import Failure, error, out
from dulwich.objects import Commit, Tag


class Item:
    """One reference: its full name (bytes) and its object."""

    def __init__(self, git, ref, sha):
        self.git, self.ref, self.sha, self._object = git, ref, sha, None

    @property
    def object(self):
        if self._object is None:
            try:
                self._object = self.git.store[self.sha]
            except KeyError:
                raise Failure(f"missing object {self.sha.decode()} for {os.fsdecode(self.ref)}")
        return self._object

    def peeled(self):
        """The target of a tag, or None if it is not a tag object."""
        if not isinstance(self.object, Tag):
            return None
        found = self.object
        while isinstance(found, Tag):
            found = self.git.store[found.object[1]]
        return found


def all_refs(git, *bases):
    """Items below these names, by name."""
    items = []
    for ref in sorted(git.refs.allkeys()):
        if ref == b"HEAD" or bases and not ref.startswith(bases):
            continue
        try:
            sha = git.refs[ref]
        except KeyError:
            continue
        items.append(Item(git, ref, sha))
    return items


def person(line):
    name, _, email = line.partition(b" <")
    return os.fsdecode(name), "<" + os.fsdecode(email)


def date(when, zone, kind):
    import time

    if kind.startswith("format:"):
        return time.strftime(kind[7:], time.gmtime(when + zone)).replace("%z", "+0000")
    from _git_merge import date_text

    moment, sign = time.gmtime(when + zone), core.zone_text(zone).decode()
    clock = time.strftime("%H:%M:%S", moment)
    if kind in ("iso", "iso8601"):
        return time.strftime("%Y-%m-%d ", moment) + f"{clock} {sign}"
    if kind in ("iso-strict", "iso8601-strict"):
        return time.strftime("%Y-%m-%dT", moment) + clock + ("Z" if zone == 0 else f"{sign[:3]}:{sign[3:]}")
    if kind == "short":
        return time.strftime("%Y-%m-%d", moment)
    if kind == "unix":
        return str(when)
    if kind == "raw":
        return f"{when} {sign}"
    if kind == "relative":
        return relative(when)
    if kind == "local":
        return date_text(when, core.local_zone(when)).rsplit(" ", 1)[0]
    if kind in ("rfc", "rfc2822"):
        return re.sub(r"^(\w+) (\w+) (\d+) (\S+) (\d+) (\S+)$", r"\1, \3 \2 \5 \4 \6", date_text(when, zone))
    if kind in ("", "default"):
        return date_text(when, zone)
    raise Failure(f"unknown date format {kind}")


def relative(when):
    import time

    ago = int(time.time()) - when
    if ago < 0:
        return "in the future"
    for limit, size, name in ((90, 1, "second"), (90 * 60, 60, "minute"), (36 * 3600, 3600, "hour"), (14 * 86400, 86400, "day"),
                              (70 * 86400, 7 * 86400, "week"), (365 * 86400, 30 * 86400, "month")):  # fmt: skip
        if ago < limit:
            count = (ago + size // 2) // size if size > 1 else ago
            return f"{count} {name}{'' if count == 1 else 's'} ago"
    years = ago // (365 * 86400)
    months = ago % (365 * 86400) // (30 * 86400)
    if ago < 5 * 365 * 86400 and months:
        return f"{years} year{'' if years == 1 else 's'}, {months} month{'' if months == 1 else 's'} ago"
    return f"{years} year{'' if years == 1 else 's'} ago"


def split_message(message):
    """Subject and body."""
    text = os.fsdecode(message or b"").lstrip("\n")
    head, _, body = text.partition("\n\n")
    return " ".join(line.strip() for line in head.strip().split("\n")), body.lstrip("\n")


def ahead_behind(git, one, other):
    """How many commits each has that the other has not."""
    if one == other:
        return 0, 0
    from dulwich.walk import Walker

    count = lambda left, right: sum(1 for _ in Walker(git.store.object_store, [left], exclude=[right]))
    return count(one, other), count(other, one)


def tracking(git, ref, kind, upstream):
    if upstream not in git.refs:
        return {"track": "[gone]", "trackshort": ""}.get(kind, "")
    ahead, behind = ahead_behind(git, git.refs[ref], git.refs[upstream])
    if kind == "trackshort":
        return "<>" if ahead and behind else ">" if ahead else "<" if behind else "="
    parts = [f"{word} {count}" for word, count in (("ahead", ahead), ("behind", behind)) if count]
    return "[" + ", ".join(parts) + "]" if parts else ""


def stripped(ref, kind):
    side, _, count = kind.partition("=")
    parts, count = ref.split("/"), int(count)
    if side in ("lstrip", "strip"):
        return "/".join(parts[count:] if count >= 0 else parts[count:])
    return "/".join(parts[: len(parts) - count] if count >= 0 else parts[:-count])


def name_as(git, ref, kind):
    from _git_revparse import shorten

    if kind == "short":
        return shorten(git, ref)
    if re.fullmatch(r"(l|r)?strip=-?\d+", kind):
        return stripped(os.fsdecode(ref), kind)
    if kind:
        raise Failure(f"unrecognized %(refname) argument: {kind}")
    return os.fsdecode(ref)


def atom_value(item, atom, quiet=False):
    """The value of an atom."""
    git = item.git
    name, _, kind = atom.partition(":")
    if name.startswith("*"):
        peeled = item.peeled()
        if peeled is None:
            return ""
        inner = Item(git, item.ref, peeled.id)
        return atom_value(inner, atom[1:])
    if name == "refname":
        return name_as(git, item.ref, kind)
    if name == "symref":
        value = git.refs.read_ref(item.ref) or b""
        return name_as(git, value[5:].strip(), kind) if value.startswith(b"ref: ") else ""
    if name == "HEAD":
        return "*" if item.ref == git.head_ref() else " "
    if name in ("upstream", "push"):
        if not item.ref.startswith(b"refs/heads/"):
            return ""
        upstream = git.upstream(os.fsdecode(item.ref[11:]))
        if upstream is None:
            return ""
        wanted = kind.split(",")
        if wanted[0] in ("track", "trackshort", "nobracket"):
            text = tracking(git, item.ref, next(word for word in wanted if word != "nobracket"), upstream)
            return text.strip("[]") if "nobracket" in wanted else text
        if kind == "remotename":
            return git.config.get(f"branch.{os.fsdecode(item.ref[11:])}.remote") or ""
        return name_as(git, upstream, kind)
    if name == "objectname":
        if kind == "short":
            return git.abbreviate(item.sha)
        if kind.startswith("short="):
            return git.abbreviate(item.sha, int(kind[6:]))
        return item.sha.decode()
    if name == "worktreepath":
        return git.root if item.ref == git.head_ref() and git.root else ""
    thing = item.object
    if name == "objecttype":
        return thing.type_name.decode()
    if name == "objectsize":
        return str(thing.raw_length())
    if name == "tree":
        return thing.tree.decode() if isinstance(thing, Commit) else ""
    if name in ("parent", "numparent"):
        parents = thing.parents if isinstance(thing, Commit) else []
        return str(len(parents)) if name == "numparent" else " ".join(parent.decode() for parent in parents)
    if name in ("object", "type", "tag"):
        if not isinstance(thing, Tag):
            return ""
        return {"object": thing.object[1].decode(), "type": thing.object[0].type_name.decode(), "tag": os.fsdecode(thing.name)}[
            name
        ]
    if name in ("subject", "body", "contents"):
        if not isinstance(thing, (Commit, Tag)):
            return ""
        subject, body = split_message(thing.message)
        if name == "subject" or kind == "subject":
            return re.sub(r"[^A-Za-z0-9._]+", "-", subject).strip("-.") if kind == "sanitize" else subject
        if name == "body" or kind == "body":
            return body
        if kind.startswith("lines="):
            return "\n    ".join(os.fsdecode(thing.message or b"").split("\n")[: int(kind[6:])])
        return os.fsdecode(thing.message or b"")
    for role in ("author", "committer", "tagger", "creator"):
        if name.startswith(role) and name[len(role) :] in ("", "name", "email", "date"):
            return signature(thing, role, name[len(role) :], kind)
    raise Failure(f"unknown field name: {name}")


def signature(thing, role, part, kind):
    if role == "creator":
        role = "committer" if isinstance(thing, Commit) else "tagger"
    if isinstance(thing, Commit) and role != "tagger":
        line = thing.author if role == "author" else thing.committer
        when, zone = (
            (thing.author_time, thing.author_timezone) if role == "author" else (thing.commit_time, thing.commit_timezone)
        )
    elif isinstance(thing, Tag) and role == "tagger" and thing.tagger:
        line, when, zone = thing.tagger, thing.tag_time, thing.tag_timezone
    else:
        return ""
    name, email = person(line)
    if part == "name":
        return name
    if part == "email":
        return email.strip("<>") if kind == "trim" else email.strip("<>").partition("@")[0] if kind == "localpart" else email
    if part == "date":
        return date(when, zone, kind)
    return f"{name} {email} {when} {core.zone_text(zone).decode()}"


def formatted(item, form):
    """A format with its atoms, `%00`, `%%`, and %(if)...%(then)...%(else)...%(end)."""
    stack = [["", None]]

    def put(text):
        stack[-1][0] += text

    for token in re.findall(r"%\([^)]*\)|%%|%[0-9a-fA-F]{2}|[^%]+|%", form):
        if token == "%%":
            put("%")
        elif re.fullmatch(r"%[0-9a-fA-F]{2}", token):
            put(chr(int(token[1:], 16)))
        elif not token.startswith("%("):
            put(token)
        else:
            atom = token[2:-1]
            if atom.partition(":")[0] == "if":
                stack.append(["", atom.partition(":")[2]])
            elif atom == "then":
                if len(stack) < 2:
                    raise Failure("format: %(then) atom used without a %(if) atom")
                text, test = stack.pop()
                kind, _, wanted = test.partition("=")
                truth = text == wanted if kind == "equals" else text != wanted if kind == "notequals" else bool(text.strip())
                stack.append(["", truth])
            elif atom == "else":
                text, truth = stack.pop()
                stack.append([text if truth else "", ("else", truth)])
                stack.append(["", "else"])
            elif atom == "end":
                text, state = stack.pop()
                if state == "else":
                    kept, (_, truth) = stack.pop()
                    put(kept if truth else text)
                else:
                    put(text if state else "")
            elif atom.startswith(("align:", "color:")) or atom == "color":
                continue
            else:
                put(atom_value(item, atom))
    return "".join(part[0] for part in stack)


VERSION = re.compile(r"(\d+)")


def version_key(text):
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in VERSION.split(text) if part]


def sort_value(item, key):
    name, _, kind = key.partition(":")
    if name in ("version", "v"):
        return version_key(os.fsdecode(item.ref) if kind == "refname" else atom_value(item, kind))
    if name.lstrip("*").endswith("date"):
        return int(atom_value(item, name + ":unix") or 0)
    if name in ("objectsize", "numparent"):
        return int(atom_value(item, key) or 0)
    return atom_value(item, key)


def sort_items(items, keys, ignore_case=False):
    """Sorts by the keys of --sort; the last one given counts first, and names decide at the end."""
    items = sorted(items, key=lambda item: item.ref)
    for key in keys:
        down, key = (True, key[1:]) if key.startswith("-") else (False, key)
        value = lambda item, key=key: sort_value(item, key)
        if down:
            items = sorted(items[::-1], key=value)[::-1]
        else:
            items = sorted(items, key=value)
    return items


def reaches(git, sha, wanted):
    """Whether a commit has one of the commits `wanted` in its history."""
    commit = git.peel(sha, Commit)
    return commit is not None and any(git.is_ancestor(other, commit) for other in wanted)


def filtered(git, items, options):
    """Keeps what --contains, --merged and --points-at ask for."""

    def named(name):
        sha = git.find("HEAD" if name is True else name)
        if sha is None:
            raise Failure(f"malformed object name {name}", 129, "error: ")
        return sha

    for name, keep in (("contains", True), ("no_contains", False)):
        for value in getattr(options, name, None) or []:
            wanted = git.peel(named(value), Commit)
            if wanted is None:
                raise Failure(f"no such commit {value}", 129, "error: ")
            items = [item for item in items if reaches(git, item.sha, [wanted]) == keep]
    for name, keep in (("merged", True), ("no_merged", False)):
        value = getattr(options, name, None)
        if value:
            top = git.peel(named(value), Commit)
            known = history(git, top)
            items = [item for item in items if (git.peel(item.sha, Commit) in known) == keep]
    if getattr(options, "points_at", None):
        wanted = named(options.points_at)
        items = [item for item in items if wanted == item.sha or isinstance(item.object, Tag) and item.object.object[1] == wanted]
    return items


def history(git, sha):
    known, waiting = set(), [sha]
    while waiting:
        current = waiting.pop()
        if current in known:
            continue
        known.add(current)
        waiting += git.store[current].parents
    return known


def cmd_for_each_ref(argv, call):
    options = core.parse(
        "for-each-ref",
        argv,
        "--format =\n--sort =*\n--count =\n--contains =*\n--no-contains =*\n--merged =\n--no-merged =\n--points-at =\n"
        "--ignore-case\n-s --shell\n--omit-empty\n--exclude =*\n--color [=]",
    )
    git, words = call.git(), options.all_words()
    items = all_refs(git)
    if words:
        items = [item for item in items if any(matches(os.fsdecode(item.ref), word) for word in words)]
    if options.exclude:
        items = [item for item in items if not any(matches(os.fsdecode(item.ref), word) for word in options.exclude)]
    items = sort_items(filtered(git, items, options), options.sort)
    if options.count is not None:
        if not options.count.isdigit():
            raise error(f"invalid --count argument: `{options.count}'", 129)
        items = items[: int(options.count)] if int(options.count) else items
    form = options.format or "%(objectname) %(objecttype)\t%(refname)"
    for item in items:
        text = formatted(item, form)
        if text or not options.omit_empty:
            out(text + "\n")


def matches(ref, pattern):
    """A whole name, a directory of names, or a pattern."""
    pattern = pattern.rstrip("/") if pattern.endswith("/") else pattern
    if ref == pattern or ref.startswith(pattern + "/"):
        return True
    return bool(re.search(r"[*?\[]", pattern)) and glob(ref, pattern)


def glob(text, pattern):
    """As a shell does it for paths: `*` stops at a slash."""
    parts, names = pattern.split("/"), text.split("/")
    if "**" in parts:
        return fnmatch.fnmatchcase(text, pattern)
    return len(parts) == len(names) and all(fnmatch.fnmatchcase(name, part) for name, part in zip(names, parts))
