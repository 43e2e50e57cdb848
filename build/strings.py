"""Lists every sentence that a person may read, with file and line, so that one person can read them all in one go.

    python3 build/strings.py [WORD ...]

Sentences are string literals of three words or more, outside of tests, and the help texts of the command line. With
words, only the sentences that contain one of them, whatever its case.
"""

import pathlib
import re
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LITERAL = {
    ".rs": r'"((?:[^"\\]|\\.)*)"',
    ".js": r'"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'|`((?:[^`\\]|\\.)*)`',
    ".html": r">([^<>]+)<",
}
SQL = re.compile(r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER TABLE|PRAGMA)\b")


def sentences(path):
    """Yields line numbers and texts of one file."""
    text = path.read_text()
    if path.suffix == ".rs":
        text = re.split(r"\n#\[cfg\(test\)\]\nmod \w+ \{", text)[0]
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped.startswith("//"):
            # The doc comments of a command's arguments are its help.
            if stripped.startswith("/// ") and "cli" in path.parts and not stripped.endswith("."):
                yield number, stripped[4:]
            continue
        for found in re.finditer(LITERAL[path.suffix], line):
            said = next(part for part in found.groups() if part is not None).strip()
            if len(re.findall(r"[A-Za-z]{2,}", said)) >= 3 and " " in said and not SQL.search(said):
                yield number, said


def main():
    words = [word.lower() for word in sys.argv[1:]]
    for path in sorted((ROOT / "host").rglob("*")):
        if path.suffix not in LITERAL or {"tests", "vendor"} & set(path.parts) or path.name == "tests.rs":
            continue
        for number, said in sentences(path):
            if not words or any(word in said.lower() for word in words):
                print(f"{path.relative_to(ROOT)}:{number}: {said}")


# `| head` closes the pipe early, which is not an error.
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
main()
