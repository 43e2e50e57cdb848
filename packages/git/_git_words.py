# How commands of git read their words and print: options, failures, and paths in quotes.
import os
import sys


class Failure(Exception):
    """Ends the command. Its text stands on standard error, each line as it is."""

    def __init__(self, text, code=128, prefix="fatal: "):
        super().__init__(text)
        self.text, self.code, self.prefix = text, code, prefix


def error(text, code=1):
    return Failure(text, code, "error: ")


def out(text):
    """Prints text or bytes as they are."""
    sys.stdout.buffer.write(os.fsencode(text) if isinstance(text, str) else text)


def say(text):
    sys.stdout.flush()
    sys.stderr.buffer.write(os.fsencode(text) if isinstance(text, str) else text)
    sys.stderr.flush()


# Whether bytes above 127 are escaped in paths: `core.quotePath`, which a repository sets when it is opened.
quote_path = True


def quoted(path, always=False):
    """A path as git prints it: in quotes, with escapes, where it has bytes that are not plain."""
    raw = os.fsencode(path) if isinstance(path, str) else path
    plain = lambda byte: 32 <= byte < 127 or byte > 127 and not quote_path
    if not always and all(plain(byte) and byte not in b'"\\' for byte in raw):
        return os.fsdecode(raw)
    names = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}
    escape = lambda byte: b"\\" + names[byte] if byte in names else bytes([byte]) if plain(byte) else b"\\%03o" % byte
    return os.fsdecode(b'"' + b"".join(map(escape, raw)) + b'"')


class Options:
    """The options of one command line, each by its longest name with `_` for `-`; those that were not given are None (or [])."""

    def __init__(self, values, words, paths):
        self.__dict__.update(values)
        # Words that are not options; and those behind `--`, or None where there is no `--`.
        self.words, self.paths = words, paths

    def all_words(self):
        return self.words + (self.paths or [])


def parse(command, argv, declared, stop_at_word=False, numbers=None):
    """Reads the words of a command line.

    `declared` has a line for each option: its names, and behind them `=` where it takes a value, `[=]` where a value may be joined to
    it (`--color=always`; True without one), `+` where it is counted, `=*` where it may be given several times. Each long one can be taken
    back with `--no-`, which makes it False. `numbers` names the option that `-3` stands for.
    """
    names, kinds, values = {}, {}, {}
    for line in declared.strip().splitlines():
        *spelt, kind = line.split() if line.split()[-1] in ("=", "[=]", "+", "=*") else [*line.split(), ""]
        key = max((name for name in spelt), key=len).lstrip("-").replace("-", "_")
        kinds[key] = kind
        values[key] = [] if kind == "=*" else None
        for name in spelt:
            names[name] = key

    def take(key, value):
        if kinds[key] == "=*":
            values[key].append(value)
        elif kinds[key] == "+":
            values[key] = (values[key] or 0) + 1
        else:
            values[key] = value

    def unknown(kind, name):
        return Failure(f"unknown {kind} `{name}'\nusage: git {command} [<options>] ...", 129, "error: ")

    words, paths, rest = [], None, list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            paths = rest
            break
        if word.startswith("--"):
            name, has_value, value = word.partition("=")
            if name not in names:
                longer = [known for known in names if known.startswith(name) and known.startswith("--")]
                if len({names[known] for known in longer}) == 1:
                    name = longer[0]
                elif name.startswith("--no-") and "--" + name[5:] in names:
                    key = names["--" + name[5:]]
                    values[key] = [] if kinds[key] == "=*" else False
                    continue
                else:
                    raise unknown("option", word[2:])
            key = names[name]
            if kinds[key] in ("=", "=*"):
                if not has_value:
                    if not rest:
                        raise Failure(f"option `{name[2:]}' requires a value", 129, "error: ")
                    value = rest.pop(0)
                take(key, value)
            elif has_value and kinds[key] != "[=]":
                raise Failure(f"option `{name[2:]}' takes no value", 129, "error: ")
            else:
                take(key, value if has_value else True)
        elif word.startswith("-") and word != "-":
            if numbers and word[1:].isdigit():
                take(numbers, word[1:])
                continue
            letters = word[1:]
            while letters:
                name, letters = "-" + letters[0], letters[1:]
                if name not in names:
                    raise unknown("switch", name[1:])
                key = names[name]
                if kinds[key] in ("=", "=*"):
                    if not letters and not rest:
                        raise Failure(f"switch `{name[1:]}' requires a value", 129, "error: ")
                    take(key, letters or rest.pop(0))
                    break
                if kinds[key] == "[=]" and letters:
                    take(key, letters)
                    break
                take(key, True)
        else:
            words.append(word)
            if stop_at_word:
                words += rest
                break
    return Options(values, words, paths)
