# The dot commands of `sqlite3`, by their names.
import os
import sqlite3

import _sqlite_files as files
import _sqlite_modes as modes
from _sqlite_shell import COMMANDS, MODES, Bad, Quit, Usage, boolean

_MODE_HELP = """\
   MODE is one of:
     ascii       Columns/rows delimited by 0x1F and 0x1E
     box         Tables using unicode box-drawing characters
     csv         Comma-separated values
     column      Output in columns.  (See .width)
     html        HTML <table> code
     insert      SQL insert statements for TABLE
     json        Results in a JSON array
     line        One value per line
     list        Values delimited by "|"
     markdown    Markdown table format
     qbox        Shorthand for "box --wrap 60 --quote"
     quote       Escape answers as for SQL
     table       ASCII-art table
     tabs        Tab-separated values
     tcl         TCL list elements
   OPTIONS: (for columnar modes or insert mode):
     --wrap N       Wrap output lines to no longer than N characters
     --wordwrap B   Wrap or not at word boundaries per B (on/off)
     --ww           Shorthand for "--wordwrap 1"
     --quote        Quote output text as SQL literals
     --noquote      Do not quote output text
     TABLE          The name of SQL table used for "insert" mode
"""
_IMPORT_HELP = """\
   Options:
     --ascii               Use \\037 and \\036 as column and row separators
     --csv                 Use , and \\n as column and row separators
     --skip N              Skip the first N rows of input
     --schema S            Target table to be S.TABLE
     -v                    "Verbose" - increase auxiliary output
   Notes:
     *  If TABLE does not exist, it is created.  The first row of input
        determines the column names.
     *  If neither --csv or --ascii are used, the input mode is derived
        from the ".mode" output mode
"""
_MORE = {"mode": _MODE_HELP, "import": _IMPORT_HELP}


def run(shell, command, args):
    """Runs one; its exit code, if it failed."""
    return _RUN[command](shell, args)


def _wrong(text):
    raise Usage(text)


def _switch(setting, usage):
    def run(shell, args):
        if len(args) != 1:
            _wrong(usage)
        setattr(shell, setting, boolean(shell, args[0]))
        if setting == "header":
            shell.header_given = True

    return run


def _help_of(command):
    line = next(line for line in COMMANDS.splitlines(True) if line.startswith(f".{command} "))
    return line + _MORE.get(command, "")


def _help(shell, args):
    if not args:
        shell.out.write(COMMANDS)
        return
    wanted = args[0].lstrip(".").lower()
    lines = COMMANDS.splitlines(True)
    found = [line for line in lines if line[1:].startswith(wanted)] or [line for line in lines if wanted in line.lower()]
    if not found:
        shell.out.write(f"Nothing matches '{args[0]}'\n")
    for line in found:
        shell.out.write(line + (_MORE.get(line[1:].split()[0], "") if len(found) == 1 else ""))


def _mode(shell, args):
    rest, wrap, by_words, quoted, args = [], None, None, None, iter(args)
    for arg in args:
        option = arg[1:] if arg.startswith("--") else arg
        if option in ("-wrap", "-wordwrap"):
            value = next(args, None)
            if value is None:
                raise Bad(f"missing argument to {arg}")
            if option == "-wordwrap":
                by_words = boolean(shell, value)
            else:
                wrap = _number(value)
        elif option == "-ww":
            by_words = True
        elif option in ("-quote", "-noquote"):
            quoted = option == "-quote"
        elif option.startswith("-"):
            raise Bad(f"unknown option: {arg}")
        else:
            rest.append(arg)
    if not rest and wrap is None and by_words is None and quoted is None:
        shown = shell.mode
        if shown in ("box", "column", "markdown", "table"):
            shown += f" --wrap {shell.wrap} --wordwrap {'on' if shell.by_words else 'off'} --{'' if shell.quoted else 'no'}quote"
        shell.out.write(f"current output mode: {shown}\n")
        return
    if rest:
        mode = next((mode for mode in MODES if mode.startswith(rest[0])), rest[0])
        shell.wrap, shell.by_words = 60, False
        shell.set_mode(mode)
        shell.table = rest[1] if len(rest) > 1 else "table"
    shell.wrap = shell.wrap if wrap is None else wrap
    shell.by_words = shell.by_words if by_words is None else by_words
    shell.quoted = shell.quoted if quoted is None else quoted


def _number(text):
    try:
        return int(text, 0)
    except ValueError:
        return 0


def _separator(shell, args):
    if not 1 <= len(args) <= 2:
        _wrong("Usage: .separator COL ?ROW?")
    shell.colsep = args[0]
    if len(args) > 1:
        shell.rowsep = args[1]


def _nullvalue(shell, args):
    if len(args) != 1:
        _wrong("Usage: .nullvalue STRING")
    shell.nullvalue = args[0]


def _names(shell, kinds, like, of_table):
    found = []
    for _, of, _ in files.databases(shell.db):
        table = "sqlite_temp_schema" if of == "temp" else f"{modes.name(of)}.sqlite_schema"
        prefix = "" if of in ("main", "temp") else of + "."
        column = "tbl_name" if of_table else "name"
        hidden = "" if of_table else " AND name NOT LIKE 'sqlite_%'"
        query = f"SELECT name FROM {table} WHERE type IN ({kinds}){hidden} AND {column} LIKE ?1 ESCAPE '\\'"
        found += [prefix + row[0] for row in shell.db.execute(query, (like,))]
    modes.list_names(shell.out.write, sorted(found, key=lambda name: name.encode("utf-8", "surrogateescape")))


def _tables(shell, args):
    _names(shell, "'table', 'view'", args[0] if args else "%", False)


def _indexes(shell, args):
    if len(args) > 1:
        _wrong("Usage: .indexes ?LIKE-PATTERN?")
    _names(shell, "'index'", args[0] if args else "%", True)


def _schema(shell, args):
    usage = files.schema(shell, args)
    if usage:
        _wrong(usage)


def _dump(shell, args):
    wanted = [arg for arg in args if not arg.startswith("-")]
    unknown = [arg for arg in args if arg.startswith("-") and arg.lstrip("-") not in ("preserve-rowids", "newlines", "data-only", "nosys")]
    if unknown:
        raise Bad(f'Unknown option "{unknown[0]}" on ".dump"')
    files.dump(shell, wanted)


def _databases(shell, _args):
    for _, of, path in files.databases(shell.db):
        if of != "temp":
            access = "r/o" if shell.readonly and of == "main" else "r/w"
            shell.out.write(f"{of}: {path or chr(34) * 2} {access}\n")


def _show(shell, _args):
    said = lambda on: "on" if on else "off"
    quoted = lambda text: modes.json_text(text).replace("\\u001f", "\\037").replace("\\u001e", "\\036")
    mode = shell.mode
    if mode in ("box", "column", "markdown", "table"):
        mode += f" --wrap {shell.wrap} --wordwrap {said(shell.by_words)} --{'' if shell.quoted else 'no'}quote"
    for key, value in (
        ("echo", said(shell.echo)), ("eqp", "off"), ("explain", "auto"), ("headers", said(shell.header)), ("mode", mode),
        ("nullvalue", quoted(shell.nullvalue)), ("output", shell.output), ("colseparator", quoted(shell.colsep)),
        ("rowseparator", quoted(shell.rowsep)), ("stats", "off"),
        ("width", "".join(f"{width} " for width in shell.widths)), ("filename", shell.path),
    ):
        shell.out.write(f"{key:>12}: {value}\n")


def _import(shell, args):
    paths, args, skip, of, verbose = [], iter(args), 0, None, False
    colsep, rowsep = (shell.colsep, "\x1e") if shell.mode == "ascii" else (shell.colsep, "\n")
    wrong = lambda why: _wrong(f"ERROR: {why} Usage:\n" + _help_of("import").rstrip("\n"))
    for arg in args:
        option = arg[1:] if arg.startswith("--") else arg
        if not arg.startswith("-"):
            paths.append(arg)
        elif option == "-csv":
            colsep, rowsep = ",", "\n"
        elif option == "-ascii":
            colsep, rowsep = "\x1f", "\x1e"
        elif option == "-v":
            verbose = True
        elif option in ("-skip", "-schema"):
            value = next(args, None)
            if value is None:
                wrong(f'missing argument to "{arg}".')
            if option == "-skip":
                skip = _number(value)
            else:
                of = value
        else:
            wrong(f'unknown option: "{option}". ')
    if len(paths) < 2:
        wrong(f"missing {'TABLE' if paths else 'FILE'} argument.")
    if len(paths) > 2:
        wrong(f'extra argument: "{paths[2]}". ')
    if paths[0].startswith("|"):
        raise Bad("programs are started in the command line around it, as in `… | sqlite3 FILE '.import --csv /dev/stdin TABLE'`")
    if len(colsep) != 1:
        raise Bad("multi-character column separators not allowed for import" if colsep else "non-null column separator required for import")
    if shell.mode == "csv" and shell.rowsep == "\r\n":
        shell.rowsep = "\n"
    path, table = paths
    return files.take_in(shell, path, table, of=of, skip=skip, verbose=verbose, colsep=colsep, rowsep=rowsep)


def _read(shell, args):
    if len(args) != 1:
        _wrong("Usage: .read FILE")
    return shell.read(args[0])


def _output(once):
    def run(shell, args):
        command = "once" if once else "output"
        paths = [arg for arg in args if not arg.startswith("-")]
        unknown = next((arg for arg in args if arg.startswith("-") and arg.lstrip("-") != "bom"), None)
        if unknown:
            raise Bad(f'unknown option: "{unknown}"')
        if len(paths) > 1:
            raise Bad(f'extra parameter: "{paths[1]}".  Usage:\n{_help_of(command).rstrip()}')
        shell.close_output()
        if not paths or paths[0] == "stdout":
            return
        if paths[0].startswith("|"):
            raise Bad("programs are started in the command line around it, as in `sqlite3 FILE SQL | sort`")
        try:
            file = files.made(paths[0])
        except OSError:
            raise Bad(f'cannot write to "{paths[0]}"') from None
        shell.out, shell.output, shell.once = file, paths[0], once

    return run


def _print(shell, args):
    shell.out.write(" ".join(args) + "\n")


def _cd(shell, args):
    if len(args) != 1:
        _wrong("Usage: .cd DIRECTORY")
    try:
        os.chdir(args[0])
    except OSError:
        _wrong(f'Cannot change to directory "{args[0]}"')


def _quit(shell, _args):
    raise Quit(0)


def _exit(shell, args):
    raise Quit(_number(args[0]) if args else 0)


def _timeout(shell, args):
    shell.busy = _number(args[0]) if args else 0
    shell.db.execute(f"PRAGMA busy_timeout = {shell.busy}")


def _version(shell, _args):
    shell.out.write(f"SQLite {files.version()}\n")


def _width(shell, args):
    shell.widths = [_number(arg) for arg in args]


def _open(shell, args):
    readonly, fresh, paths = False, False, []
    for arg in args:
        option = arg.lstrip("-") if arg.startswith("-") else None
        if option is None:
            paths.append(arg)
        elif option == "readonly":
            readonly = True
        elif option == "new":
            fresh = True
        elif option != "nofollow":
            raise Bad(f"unknown option: {arg}")
    if len(paths) > 1:
        raise Bad(f'extra argument: "{paths[1]}"')
    if shell._db is not None:
        shell._db.close()
    shell._db, shell.readonly, shell.path = None, readonly, paths[0] if paths else ":memory:"
    if fresh and paths and os.path.exists(paths[0]):
        os.remove(paths[0])
    # Whoever opens a file wants to hear whether it can be opened.
    shell.db


def _copy(shell, args, command, into):
    args = [arg for arg in args if not arg.startswith("-")]
    if not 1 <= len(args) <= 2:
        _wrong(f"Usage: .{command} ?DB? {'FILE' if command == 'restore' else '?OPTIONS? FILENAME'}")
    of, path = args if len(args) == 2 else ("main", args[0])
    try:
        other = sqlite3.connect(path)
    except sqlite3.Error:
        raise Bad(f'cannot open "{path}"') from None
    try:
        shell.db.backup(other, name=of) if into else other.backup(shell.db, name=of)
    finally:
        other.close()


def _parameter(shell, args):
    kind = args[0] if args else ""
    if kind == "clear" and len(args) == 1:
        shell.parameters.clear()
    elif kind == "list" and len(args) == 1:
        width = max(map(len, shell.parameters), default=0)
        for key, value in shell.parameters.items():
            shell.out.write(f"{shell.marks[key]}{key:<{width}} {modes.literal(value)}\n")
    elif kind == "set" and len(args) == 3 and args[1][:1] in tuple(":@$"):
        try:
            value = shell.db.execute(f"SELECT {args[2]}").fetchone()[0]
        except sqlite3.Error:
            value = args[2]
        shell.parameters[args[1][1:]], shell.marks[args[1][1:]] = value, args[1][0]
    elif kind == "unset" and len(args) == 2:
        shell.parameters.pop(args[1][1:], None)
    else:
        _wrong("Usage: .parameter set :NAME VALUE | unset :NAME | list | clear")


_RUN = {
    "backup": lambda shell, args: _copy(shell, args, "backup", True),
    "bail": _switch("bail", "Usage: .bail on|off"),
    "cd": _cd,
    "changes": _switch("changes", "Usage: .changes on|off"),
    "databases": _databases,
    "dump": _dump,
    "echo": _switch("echo", "Usage: .echo on|off"),
    "exit": _exit,
    "headers": _switch("header", "Usage: .headers on|off"),
    "help": _help,
    "import": _import,
    "indexes": _indexes,
    "indices": _indexes,
    "mode": _mode,
    "nullvalue": _nullvalue,
    "once": _output(True),
    "open": _open,
    "output": _output(False),
    "parameter": _parameter,
    "print": _print,
    "quit": _quit,
    "read": _read,
    "restore": lambda shell, args: _copy(shell, args, "restore", False),
    "save": lambda shell, args: _copy(shell, args, "save", True),
    "schema": _schema,
    "separator": _separator,
    "show": _show,
    "tables": _tables,
    "timeout": _timeout,
    "timer": _switch("timer", "Usage: .timer on|off"),
    "version": _version,
    "width": _width,
}
