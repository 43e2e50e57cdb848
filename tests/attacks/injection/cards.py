"""Checks that a card has shown a call: all of its arguments, as the host must write them."""

import hashlib
import json
import unicodedata

# Characters that are invisible or change the direction of others, in addition to those with such a Unicode category.
HIDDEN = [(0x34f, 0x34f), (0x115f, 0x1160), (0x17b4, 0x17b5), (0x180b, 0x180f), (0x2028, 0x2029), (0x2800, 0x2800), (0x3164, 0x3164),
          (0xfe00, 0xfe0f), (0xffa0, 0xffa0), (0xfff0, 0xfffb), (0xe000, 0xf8ff), (0xe0000, 0x10ffff)]


def covers(effect, call, server):
    """Whether a person who accepted the effect has accepted this call. Arguments that a card leaves out are compared by the
    card's digest of all arguments, so the comparison is complete."""
    tool, args = f"{server}.{call.function}", dict(call.args)
    shown = effect.get("args", [])
    return (effect["tool"] == tool and len(shown) + effect.get("more_args", 0) == len(args)
            and all(arg["name"] in args and _is_shown(arg, args[arg["name"]]) for arg in shown)
            and effect["digest"] == _digest(tool, args))


def _is_shown(arg, value):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return arg["shown"] == "".join(map(_visible, text[:len(text) - arg.get("left_out", 0)]))


def _visible(char):
    if char in "\n\t":
        return {"\n": "\\n", "\t": "\\t"}[char]
    hidden = unicodedata.category(char) in ("Cc", "Cf") or any(first <= ord(char) <= last for first, last in HIDDEN)
    return f"\\u{{{ord(char):x}}}" if hidden else char


def _digest(tool, args):
    text = json.dumps(args, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{tool}\0{text}".encode()).hexdigest()
