# The placeholders of --format.
import os
import re

from _git_pretty import COLOUR_NAMES, body_of, date_text, person

TOKEN = re.compile(
    r"%(?:(?P<hex>x[0-9a-fA-F]{2})|(?P<colour>C\([^)]*\)|C(?:red|green|blue|reset))|(?P<pad>(?:<\||>\||>><|>>|<|>|><)\([^)]*\))"
    r"|(?P<wrap>w\([^)]*\))|(?P<long>\((?:trailers|decorate)(?::[^)]*(?:%x29[^)]*)*)?\))"
    r"|(?P<sign>[-+ ]?)(?P<name>a[nNeElLdDrtiIshS]|c[nNeElLdDrtiIshS]|g[DdnNeEs]|G[?SKFPGTA]|[HhTtPpsfbBdDnNmeC%]))"
)


def colour_code(words):
    codes = []
    for word in words.replace(",", " ").split():
        if word in ("reset", "normal"):
            return "\x1b[m"
        if word in COLOUR_NAMES:
            codes.append(COLOUR_NAMES[word])
        elif word.startswith("bright") and word[6:] in COLOUR_NAMES:
            codes.append("9" + COLOUR_NAMES[word[6:]][1:])
        elif word.isdigit():
            codes.append(f"38;5;{word}")
    return f"\x1b[{';'.join(codes)}m"


def expand(pretty, commit, template, mark="", entry=None):
    parts, pad, at, auto = [], None, 0, False
    wraps = []
    for token in TOKEN.finditer(template):
        parts.append(template[at : token.start()])
        at = token.end()
        if token["pad"]:
            pad = _padding(token["pad"])
            continue
        if token["wrap"]:
            numbers = [int(n) if n.strip().isdigit() else 0 for n in token["wrap"][2:-1].split(",")]
            wraps.append((len(parts), (numbers + [0, 0, 0])[:3]))
            continue
        if token["colour"]:
            words = token["colour"][1:].strip("()")
            if words.startswith("always,"):
                parts.append(colour_code(words[7:]))
            elif words.startswith("auto"):
                auto = auto or words == "auto"
                if pretty.colour and words.startswith("auto,"):
                    parts.append(colour_code(words[5:]))
            elif pretty.colour:
                parts.append(colour_code(words))
            continue
        if token["hex"]:
            parts.append(os.fsdecode(bytes([int(token["hex"][1:], 16)])))
            continue
        value = (
            _long(pretty, commit, token["long"]) if token["long"] else _value(pretty, commit, token["name"], mark, entry, auto)
        )
        sign = token["sign"]
        if sign == "+" and value:
            value = "\n" + value
        elif sign == " " and value:
            value = " " + value
        elif sign == "-" and not value:
            text = "".join(parts).rstrip("\n")
            parts = [text]
        if pad:
            value = _padded(value, pad, "".join(parts))
            pad = None
        parts.append(value)
    parts.append(template[at:])
    if wraps:
        import textwrap

        wraps.append((len(parts), None))
        whole = "".join(parts[: wraps[0][0]])
        for (start, numbers), (end, _) in zip(wraps, wraps[1:]):
            text = "".join(parts[start:end])
            width, first, rest = numbers
            lines = []
            for number, line in enumerate(text.split("\n")):
                before = " " * (first if number == 0 else rest)
                if width and line.strip():
                    lines += textwrap.wrap(
                        line, width, initial_indent=before, subsequent_indent=" " * rest, break_long_words=False
                    )
                else:
                    lines.append(before + line if line.strip() else line)
            whole += "\n".join(lines) if any(numbers) else text
        return whole
    return "".join(parts)


def _padding(text):
    kind, _, rest = text.partition("(")
    numbers = [part.strip() for part in rest[:-1].split(",")]
    try:
        width = int(numbers[0])
    except ValueError:
        return None
    return kind, width, numbers[1] if len(numbers) > 1 else ""


def _padded(value, pad, before):
    kind, width, cut = pad
    if "|" in kind:
        width, kind = width - len(before.rpartition("\n")[2]), kind[0]
    if len(value) > width:
        if cut == "trunc":
            return value[: max(width - 2, 0)] + ".."
        if cut == "ltrunc":
            return ".." + value[len(value) - max(width - 2, 0) :]
        if cut == "mtrunc":
            half = (width - 2) // 2
            return value[:half] + ".." + value[len(value) - (width - 2 - half) :]
        return value
    return value.ljust(width) if kind == "<" else value.center(width) if kind == "><" else value.rjust(width)


def _value(pretty, commit, name, mark, entry, auto):
    git = pretty.git
    if name[0] in "ac" and len(name) == 2:
        raw, when, offset = (
            (commit.author, commit.author_time, commit.author_timezone)
            if name[0] == "a"
            else (commit.committer, commit.commit_time, commit.commit_timezone)
        )
        kind = name[1]
        if kind in "nNeElL":
            who, address = person(pretty.shown_person(raw) if kind.isupper() else raw)
            return os.fsdecode(who if kind in "nN" else address if kind in "eE" else address.partition(b"@")[0])
        forms = {
            "d": pretty.date,
            "D": "rfc",
            "r": "relative",
            "t": "unix",
            "i": "iso",
            "I": "iso-strict",
            "s": "short",
            "h": "human",
        }
        return date_text(when, offset, forms[kind]) if kind in forms else "%" + name
    if name[0] == "g" and len(name) == 2:
        if entry is None:
            return ""
        who, _, address = entry.by.partition(" <")
        return {"d": entry.name, "D": entry.full, "s": entry.message, "n": who, "N": who, "e": address[:-1], "E": address[:-1]}[
            name[1]
        ]
    if name[0] == "G" and len(name) == 2:
        return {"?": "N", "T": "undefined"}.get(name[1], "")
    if name in ("H", "h"):
        text = pretty.digits(commit.id, name == "h")
        return f"\x1b[33m{text}\x1b[m" if auto and pretty.colour else text
    if name in ("T", "t"):
        return pretty.digits(commit.tree, name == "t")
    if name in ("P", "p"):
        return " ".join(pretty.digits(sha, name == "p") for sha in commit.parents)
    if name == "s":
        return pretty.subject(commit)
    if name == "f":
        return file_name(pretty.subject(commit))
    if name == "b":
        return body_of(pretty.message(commit))
    if name == "B":
        return pretty.message(commit).lstrip("\n")
    if name == "d":
        colour, pretty.colour = pretty.colour, pretty.colour and auto
        text = pretty.decoration(commit, True)
        pretty.colour = colour
        return text
    if name == "D":
        return ", ".join(shown for shown, _ in pretty.names(commit))
    if name == "N":
        return _note(git, commit)
    return {"n": "\n", "%": "%", "m": mark or ">", "e": os.fsdecode(commit.encoding or b""), "C": "%C"}[name]


def _note(git, commit):
    try:
        return os.fsdecode(git.store.notes.get_note(commit.id) or b"")
    except Exception:
        return ""


def file_name(subject):
    """The subject as a part of a file's name."""
    text = re.sub(r"[^A-Za-z0-9._]+", "-", subject)
    text = re.sub(r"\.\.+", ".", text).strip("-")
    return text.rstrip(".-")


def trailers_of(message):
    """The last paragraph of a message as (key, value), where it is one of trailers."""
    paragraphs = re.split(r"\n\s*\n", message.strip())
    if len(paragraphs) < 2:
        return []
    found = []
    for line in paragraphs[-1].split("\n"):
        pair = re.match(r"([A-Za-z0-9-]+)\s*:\s*(.*)", line)
        if pair:
            found.append([pair[1], pair[2].rstrip()])
        elif line[:1].isspace() and found:
            found[-1][1] += "\n" + line
        elif line.startswith("(cherry picked from commit"):
            found.append(["", line])
        else:
            return []
    return found


def _long(pretty, commit, text):
    name, _, given = text[1:-1].partition(":")
    unescaped = lambda value: re.sub(r"%x([0-9a-fA-F]{2})", lambda m: chr(int(m[1], 16)), value.replace("%n", "\n"))
    options = [part.partition("=") for part in given.split(",")] if given else []
    settings = {key: unescaped(value) if equals else True for key, equals, value in options}
    if name == "decorate":
        names = pretty.names(commit)
        if not names:
            return ""
        arrow, tag = settings.get("pointer", " -> "), settings.get("tag", "tag: ")
        shown = [re.sub("^tag: ", lambda _: tag, n).replace(" -> ", arrow) for n, _ in names]
        return settings.get("prefix", " (") + settings.get("separator", ", ").join(shown) + settings.get("suffix", ")")
    pairs = trailers_of(pretty.message(commit))
    keys = [value.rstrip(":").lower() for key, _, value in options if key == "key"]
    if keys:
        pairs = [pair for pair in pairs if pair[0].lower() in keys]
    if settings.get("unfold"):
        pairs = [(key, re.sub(r"\s*\n\s*", " ", value)) for key, value in pairs]
    joint = settings.get("key_value_separator", ": ")
    if settings.get("valueonly"):
        lines = [value for _, value in pairs]
    elif settings.get("keyonly"):
        lines = [key for key, _ in pairs]
    else:
        lines = [key + joint + value if key else value for key, value in pairs]
    if "separator" in settings:
        return settings["separator"].join(lines)
    return "".join(line + "\n" for line in lines)
