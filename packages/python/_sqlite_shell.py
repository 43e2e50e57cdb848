# The command `sqlite3`: SQLite's own shell is a program in C, and this one does what people use of it, on Python's module. What it
# prints and says was compared with the shell of SQLite 3.40.
import os
import re
import sqlite3
import sys

import _sqlite_files as files
import _sqlite_modes as modes

OPTIONS = """\
Usage: sqlite3 [OPTIONS] FILENAME [SQL]
FILENAME is the name of an SQLite database. A new database is created
if the file does not previously exist. Without FILENAME it is in memory.
OPTIONS include:
   -ascii               set output mode to 'ascii'
   -bail                stop after hitting an error
   -batch               force batch I/O, which is always so here
   -box                 set output mode to 'box'
   -cmd COMMAND         run "COMMAND" before reading stdin
   -column              set output mode to 'column'
   -csv                 set output mode to 'csv'
   -echo                print inputs before execution
   -help                show this message
   -html                set output mode to HTML
   -init FILENAME       read/process named file
   -json                set output mode to 'json'
   -line                set output mode to 'line'
   -list                set output mode to 'list'
   -markdown            set output mode to 'markdown'
   -newline SEP         set output row separator. Default: '\\n'
   -[no]header          turn headers on or off
   -nullvalue TEXT      set text string for NULL values. Default ''
   -quote               set output mode to 'quote'
   -readonly            open the database read-only
   -separator SEP       set output column separator. Default: '|'
   -table               set output mode to 'table'
   -tabs                set output mode to 'tabs'
   -version             show SQLite version
"""
COMMANDS = """\
.backup ?DB? FILE        Backup DB (default "main") to FILE
.bail on|off             Stop after hitting an error.  Default OFF
.cd DIRECTORY            Change the working directory to DIRECTORY
.changes on|off          Show number of rows changed by SQL
.databases               List names and files of attached databases
.dump ?OBJECTS?          Render database content as SQL
.echo on|off             Turn command echo on or off
.exit ?CODE?             Exit this program with return-code CODE
.headers on|off          Turn display of headers on or off
.help ?PATTERN?          Show help text for PATTERN
.import FILE TABLE       Import data from FILE into TABLE
.indexes ?TABLE?         Show names of indexes
.mode MODE ?OPTIONS?     Set output mode
.nullvalue STRING        Use STRING in place of NULL values
.once ?FILE?             Output for the next SQL command only to FILE
.open ?OPTIONS? ?FILE?   Close existing database and reopen FILE
.output ?FILE?           Send output to FILE or stdout if FILE is omitted
.parameter CMD ...       Manage SQL parameter bindings: set, unset, list, clear
.print STRING...         Print literal STRING
.quit                    Exit this program
.read FILE               Read input from FILE
.restore ?DB? FILE       Restore content of DB (default "main") from FILE
.save ?OPTIONS? FILE     Write database to FILE (an alias for .backup ...)
.schema ?PATTERN?        Show the CREATE statements matching PATTERN
.separator COL ?ROW?     Change the column and row separators
.show                    Show the current values for various settings
.tables ?TABLE?          List names of tables matching LIKE pattern TABLE
.timeout MS              Try opening locked tables for MS milliseconds
.timer on|off            Turn SQL timer on or off
.version                 Show the version of SQLite
.width NUM1 NUM2 ...     Set minimum column widths for columnar output
"""
MODES = "ascii box column csv html insert json line list markdown qbox quote table tabs tcl".split()
# By the mode: what stands between columns and after rows, where it says so.
SEPARATORS = {
    "ascii": ("\x1f", "\x1e"), "csv": (",", "\r\n"), "line": (None, "\n"), "list": ("|", "\n"), "quote": (",", "\n"),
    "tabs": ("\t", "\n"), "tcl": (" ", "\n"),
}
# Features of the shell in C, and what to do here instead.
ELSEWHERE = {
    "archive": "use `tar` or `zip`", "excel": "write a file with `.mode csv` and `.once FILE`",
    "load": "extensions cannot be loaded here", "recover": "use `.dump`",
    "shell": "programs are started in the command line around it", "system": "programs are started in the command line around it",
}
_PIECE = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|\Z)|;", re.S)
_BLANK = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))*\Z", re.S)
# A line of nothing, and not the beginning of a comment.
_BLANK_LINE = re.compile(r"(?:\s|--.*|/\*.*?\*/)*\Z")
_PARTS = re.compile(r"\A(?:\s|--[^\n]*\n|/\*.*?\*/)*(explain\s+query\s+plan|explain)\b", re.S | re.I)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Quit(Exception):
    """Ends the program."""


class Bad(Exception):
    """An error of a dot command."""


class Usage(Bad):
    """The same, in its own words."""


class Parameters(dict):
    def __missing__(self, _name):
        return None


def unescape(text):
    decode = lambda found: chr(int(found[1], 8) & 255) if found[1][0].isdigit() else _ESCAPES.get(found[1], found[1])
    return re.sub(r"\\([0-7]{1,3}|.)", decode, text, flags=re.S)


def words(line):
    """The words of a dot command."""
    found = re.findall(r"""'([^']*)'?|"((?:\\.|[^"\\])*)"?|([^\s]+)""", line)
    return [single or unescape(double or bare) for single, double, bare in found]


def boolean(shell, word):
    if word.lower() in ("on", "yes", "true", "1"):
        return True
    if word.lower() not in ("off", "no", "false", "0"):
        shell.say(f'ERROR: Not a boolean value: "{word}". Assuming "no".\n')
    return False


def complete(sql):
    try:
        return sqlite3.complete_statement(sql)
    except ValueError:
        # Bytes that are not text; SQLite itself reports them.
        return sqlite3.complete_statement(sql.encode("utf-8", "replace").decode().replace("\0", " "))


def statements(sql):
    """Where each statement begins and ends. What has no semicolon at its end is the last."""
    start = 0
    for piece in _PIECE.finditer(sql):
        if piece[0] == ";" and complete(sql[start : piece.end()]):
            yield start, piece.end()
            start = piece.end()
    if not _BLANK.match(sql, start):
        yield start, len(sql)


class Shell:
    def __init__(self):
        self.stdout = self.out = open(1, "w", encoding="utf-8", errors="surrogateescape", newline="", closefd=False)
        self.mode, self.colsep, self.rowsep, self.nullvalue, self.table = "list", "|", "\n", "", "table"
        self.header = self.header_given = self.echo = self.bail = self.changes = self.timer = False
        self.wrap, self.by_words, self.quoted, self.widths = 0, False, False, []
        self.path, self.readonly, self._db, self.once = ":memory:", False, None, False
        self.output, self.depth, self.busy, self.parameters, self.marks = "stdout", 0, 0, Parameters(), {}

    @property
    def db(self):
        if self._db is None:
            files.open_database(self)
        return self._db

    def say(self, text):
        """On standard error, in the order in which it came."""
        self.out.flush()
        sys.stderr.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stderr.buffer.flush()

    def close_output(self):
        if self.out is not self.stdout:
            self.out.close()
        self.out, self.output, self.once = self.stdout, "stdout", False

    def run_sql(self, sql, line=None):
        """Runs statements; the code of the error that ended them, or 0."""
        db = self.db
        for start, end in statements(sql):
            statement = sql[start:end]
            began = files.clock()
            try:
                changes = self.run_one(db, statement)
            except UnicodeEncodeError:
                self.say("Error: the SQL has bytes that are no UTF-8\n")
                return 1
            except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
                return self.failed(error, sql[start:].lstrip(), statement.lstrip(), line)
            if self.timer:
                self.out.write("Run Time: real %.3f user %.6f sys 0.000000\n" % files.spent(began))
        if self.changes and line is not None:
            changes = db.execute("SELECT changes(), total_changes()").fetchone()
            self.out.write("changes: %d   total_changes: %d\n" % changes)
        return 0

    def run_one(self, db, statement):
        try:
            cursor = db.execute(statement, self.parameters)
        except sqlite3.ProgrammingError as error:
            # Parameters that are only a question mark.
            if "has no name" not in str(error):
                raise
            count = 1
            while True:
                try:
                    cursor = db.execute(statement, (None,) * count)
                    break
                except sqlite3.ProgrammingError as error:
                    wanted = re.search(r"uses (\d+)", str(error))
                    if wanted is None or int(wanted[1]) == count:
                        raise
                    count = int(wanted[1])
        if cursor.description is None:
            return
        names, kind = [column[0] for column in cursor.description], _PARTS.match(statement)
        try:
            if kind and " " in kind[1].replace("\n", " "):
                modes.plan(self.out.write, cursor)
            elif kind and self.mode == "list":
                modes.opcodes(self.out.write, names, cursor)
            else:
                modes.rows(self, names, cursor)
        finally:
            cursor.close()

    def failed(self, error, rest, statement, line):
        """Says what is wrong with a statement, and where if that can be found."""
        code, message = getattr(error, "sqlite_errorcode", 1) & 255, str(error)
        prepared = code == 26 or files.fails_alike(self.db, statement, message)
        if line is None:
            text = f"Error: {'in prepare' if prepared else 'stepping'}, {message}"
        else:
            text = f"{'Parse' if prepared else 'Runtime'} error near line {line}: {message}"
        if code > 1:
            text += f" ({code})"
        at = files.place(self.db, statement, message) if prepared else None
        if at is not None:
            if at > 50:
                rest, at = rest[at - 50 :], 50
            text += "\n  " + re.sub(r"\s", " ", rest[:78]) + "\n  "
            text += " " * at + "^--- error here" if at < 25 else " " * (at - 14) + "error here ---^"
        self.say(text + "\n")
        return code

    def run_words(self, text):
        """A line that is an argument: a dot command, or SQL."""
        if text.startswith("."):
            return self.dot(text)
        code = self.run_sql(text)
        if self.once:
            self.close_output()
        return code

    def process(self, lines):
        """Reads lines to their end; how many errors there were."""
        pending, first, errors = [], 0, 0
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n").removesuffix("\r")
            whole = not pending
            if line.strip().lower() in ("/", "go") and complete("\n".join(pending) + ";"):
                line = ";"
            if whole and (_BLANK_LINE.match(line) or line.startswith("#")):
                if self.echo:
                    self.out.write(line + "\n")
                continue
            if whole and line.startswith("."):
                if self.echo:
                    self.out.write(line + "\n")
                errors += self.dot(line) != 0
            else:
                first = first if pending else number
                pending.append(line)
                if ";" not in line or not complete("\n".join(pending)):
                    continue
                errors += self.run_pending(pending, first)
                pending = []
            if errors and self.bail:
                return errors
        if pending and not _BLANK.match("\n".join(pending)):
            errors += self.run_pending(pending, first)
        return errors

    def run_pending(self, pending, first):
        sql = "\n".join(pending)
        if self.echo:
            self.out.write(sql + "\n")
        failed = self.run_sql(sql, first) != 0
        if self.once:
            self.close_output()
        return failed

    def read(self, path):
        if self.depth > 20:
            raise Bad("Input nesting limit (25) reached")
        if path.startswith("|"):
            raise Bad("programs are started in the command line around it, as in `seq 3 | sqlite3 FILE`")
        try:
            source = files.opened(path)
        except OSError:
            raise Bad(f'cannot open "{path}"') from None
        self.depth += 1
        with source:
            errors = self.process(source)
        self.depth -= 1
        return 1 if errors else 0

    def dot(self, line):
        """Runs a dot command; its exit code."""
        name, *args = words(line[1:]) or [""]
        try:
            known = re.findall(r"^\.(\w+)", COMMANDS, re.M) + ["indices"]
            found = next((command for command in known if name and command.startswith(name)), None)
            if found is None:
                if name in ELSEWHERE:
                    raise Bad(f".{name} is not here: {ELSEWHERE[name]}")
                raise Bad(f'unknown command or invalid arguments:  "{name}". Enter ".help" for help')
            from _sqlite_commands import run

            return run(self, found, args) or 0
        except Usage as error:
            self.say(f"{error}\n")
            return 1
        except Bad as error:
            self.say(f"Error: {error}\n")
            return 1
        except sqlite3.Error as error:
            self.say(f"Error: {error}\n")
            return 1

    def set_mode(self, mode):
        if mode not in MODES:
            raise Bad("mode should be one of: " + " ".join(MODES))
        self.quoted = mode == "qbox"
        self.mode = {"qbox": "box", "tabs": "list"}.get(mode, mode)
        colsep, rowsep = SEPARATORS.get(mode, (None, None))
        self.colsep, self.rowsep = colsep or self.colsep, rowsep or self.rowsep
        if mode == "column" and not self.header_given:
            self.header = True


def options(shell, argv):
    """Reads the options of the command line: the file, and what is run."""
    rest, before, init = [], [], []
    words = iter(argv)

    def value(option):
        found = next(words, None)
        if found is None:
            shell.say(f"sqlite3: Error: missing argument to {option}\n")
            raise Quit(1)
        return found

    later = []
    for word in words:
        option = word[1:] if word.startswith("--") else word
        if not word.startswith("-") or word == "-":
            rest.append(word)
        elif option[1:] in MODES and option != "-insert" and option != "-qbox":
            shell.set_mode(option[1:])
            shell.header = shell.header and shell.header_given
            # The option leaves the ends of lines as they are.
            shell.rowsep = "\n" if option == "-csv" else shell.rowsep
        elif option in ("-header", "-noheader"):
            shell.header, shell.header_given = option == "-header", True
        elif option == "-separator":
            later.append(("colsep", value(option)))
        elif option == "-newline":
            later.append(("rowsep", value(option)))
        elif option == "-nullvalue":
            shell.nullvalue = value(option)
        elif option == "-cmd":
            before.append(value(option))
        elif option == "-init":
            init.append(value(option))
        elif option in ("-readonly", "-bail", "-echo"):
            setattr(shell, option[1:], True)
        elif option == "-version":
            shell.out.write(files.version() + "\n")
            raise Quit(0)
        elif option in ("-help", "-h", "-?"):
            shell.out.write(OPTIONS)
            raise Quit(0)
        elif option not in ("-batch", "-interactive", "-nofollow", "-safe", "-stats"):
            shell.say(f"sqlite3: Error: unknown option: {word}\nUse -help for a list of options.\n")
            raise Quit(1)
    for setting, text in later:
        setattr(shell, setting, text)
    return rest, before, init


def main(shell, argv):
    rest, before, init = options(shell, argv)
    if rest:
        shell.path = rest.pop(0)
    for path in init:
        try:
            shell.read(path)
        except Bad:
            shell.say(f'cannot open: "{path}"\n')
    for text in before:
        code = shell.run_words(text)
        if code and shell.bail:
            return code
    for text in rest:
        code = shell.run_words(text)
        if code:
            return code
    if rest:
        return 0
    return 1 if shell.process(files.opened("/dev/stdin")) else 0


def begin():
    shell = Shell()
    try:
        code = main(shell, sys.argv[1:])
    except Quit as quit:
        code = quit.args[0]
    except MemoryError:
        shell.say("Error: out of memory\n")
        code = 7
    try:
        shell.close_output()
        shell.stdout.flush()
        if shell._db is not None:
            shell._db.close()
    except OSError as error:
        shell.say(f"Error: {error}\n")
        code = code or 1
    sys.stderr.flush()
    os._exit(code & 255)


if __name__ == "__main__":
    # The other files import this one by its name.
    sys.modules["_sqlite_shell"] = sys.modules["__main__"]
    begin()
