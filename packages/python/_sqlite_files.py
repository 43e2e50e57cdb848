# Databases and files of `sqlite3`: opening them, finding the place of an error, `.import`, `.dump` and `.schema`.
import csv
import os
import re
import sqlite3
import time

from _sqlite_modes import literal, name


class _Nowhere:
    def write(self, _text):
        pass

    flush = close = lambda self: None


def opened(path, encoding="utf-8", newline="\n"):
    """A file to read. There is no /dev here, and lines name it all the same."""
    how = {"encoding": encoding, "errors": "surrogateescape", "newline": newline}
    return open(0, closefd=False, **how) if path == "/dev/stdin" else open(path, **how)


def made(path):
    how = {"encoding": "utf-8", "errors": "surrogateescape", "newline": ""}
    if path in ("off", "/dev/null"):
        return _Nowhere()
    if path in ("/dev/stdout", "/dev/stderr"):
        return open(1 if path == "/dev/stdout" else 2, "w", closefd=False, **how)
    return open(path, "w", **how)


def clock():
    return time.perf_counter(), time.process_time()


def spent(began):
    return time.perf_counter() - began[0], time.process_time() - began[1]


def version():
    return sqlite3.connect(":memory:").execute("SELECT sqlite_version() || ' ' || sqlite_source_id()").fetchone()[0]


def _regexp(pattern, value):
    return None if pattern is None or value is None else re.search(pattern, str(value)) is not None


def _readfile(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _writefile(path, data):
    try:
        with open(path, "wb") as file:
            return file.write(data.encode() if isinstance(data, str) else data or b"")
    except OSError:
        return None


def open_database(shell):
    from _sqlite_shell import Quit

    try:
        if shell.readonly and shell.path not in ("", ":memory:"):
            path = re.sub(r"[%?#]", lambda found: f"%{ord(found[0]):02x}", os.path.abspath(shell.path))
            db = sqlite3.connect(f"file:{path}?mode=ro", isolation_level=None, uri=True)
        else:
            db = sqlite3.connect(shell.path, isolation_level=None)
    except sqlite3.Error as error:
        shell.say(f'Error: unable to open database "{shell.path}": {error}\n')
        raise Quit(1) from None
    db.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    db.create_function("regexp", 2, _regexp, deterministic=True)
    db.create_function("readfile", 1, _readfile)
    db.create_function("writefile", 2, _writefile)
    db.execute(f"PRAGMA busy_timeout = {shell.busy}")
    shell._db = db


def fails_alike(db, statement, message):
    """Whether a statement fails so before it runs."""
    explained = statement if re.match(r"explain\b", statement, re.I) else "EXPLAIN " + statement
    try:
        db.execute(explained).close()
    except sqlite3.ProgrammingError:
        return False
    except sqlite3.Error as error:
        return str(error) == message
    return False


# SQLite's messages for errors whose place it knows; Python's module does not pass the place on.
_PLACES = re.compile(
    r'near "(?P<token>.*)": syntax error|unrecognized token: "(?P<raw>.*)"|(?:no such column: |no such function: |'
    r"ambiguous column name: |wrong number of arguments to function )(?P<name>.+?)(?:\(\))?\Z|"
    r"(?:table|view|index) (?P<twice>.+) already exists",
    re.S,
)


def place(db, statement, message):
    """Where a statement is wrong; none where that is not known."""
    found = _PLACES.match(message)
    if found is None:
        return None
    if found["token"]:
        token, at = found["token"], statement.find(found["token"])
        # The first place where what stands before it could still become a statement.
        for _ in range(50):
            if at < 0:
                return None
            if fails_alike(db, statement[: at + len(token)], message):
                return at
            at = statement.find(token, at + 1)
        return None
    if found["raw"]:
        at = statement.find(found["raw"])
        return at if at >= 0 else None
    wanted = re.escape(found["name"] or found["twice"].strip('"'))
    at = re.search(rf"(?<![\w.'\"]){wanted}(?![\w'\"])", statement, re.I)
    return at.start() if at else None


def databases(db):
    return db.execute("PRAGMA database_list").fetchall()


def _with_guard(sql):
    # A quoted name may come from SQLite itself, as those of its shadow tables do.
    return re.sub(r"""\ACREATE TABLE (?=['"])""", "CREATE TABLE IF NOT EXISTS ", sql)


def _indented(sql):
    if re.match(r"CREATE (VIEW|TRIG)", sql):
        return sql
    flat = re.sub(r"\s+", " ", sql).replace("( ", "(").replace(" )", ")").strip()
    if len(flat) < 79:
        return flat
    out, depth, end, at, lines = "", 0, None, 0, 0
    while at < len(flat):
        char = flat[at]
        if char == end:
            end = None
        elif end is None and char in "\"'`[":
            end = "]" if char == "[" else char
        elif end is None and char == "(":
            depth += 1
        elif end is None and char == ")":
            depth -= 1
            if lines and depth == 0:
                out += "\n"
        out += char
        if depth == 1 and end is None and char in "(,":
            out += "\n  "
            lines += 1
            while flat[at + 1 : at + 2] == " ":
                at += 1
        at += 1
    return out


def schema(shell, args):
    """`.schema`: the statements that make what matches."""
    indent, system, pattern = False, True, None
    for arg in args:
        if arg.lstrip("-") == "indent" and arg.startswith("-"):
            indent = True
        elif arg.lstrip("-") == "nosys" and arg.startswith("-"):
            system = False
        elif pattern is None and not arg.startswith("-"):
            pattern = arg.lower()
        else:
            return "Usage: .schema ?--indent? ?--nosys? ?LIKE-PATTERN?"
    matches = "GLOB ?1" if pattern and re.search(r"[*?\[]", pattern) else "LIKE ?1 ESCAPE '\\'"
    for _, of, _ in databases(shell.db):
        table = "sqlite_temp_schema" if of == "temp" else f"{name(of)}.sqlite_schema"
        what = f"lower('{of}.' || tbl_name)" if pattern and "." in pattern else "lower(tbl_name)"
        where = f" AND {what} {matches}" if pattern else ""
        where += "" if system else " AND name NOT LIKE 'sqlite_%'"
        query = f"SELECT type, name, sql FROM {table} WHERE sql IS NOT NULL{where} ORDER BY rowid"
        for kind, of_name, sql in shell.db.execute(query, (pattern,) if pattern else ()).fetchall():
            sql = _indented(sql) if indent else sql
            shown = of_name if of == "main" else f"{of}.{of_name}"
            if of not in ("main", "temp"):
                sql = re.sub(r"\ACREATE (TABLE|VIEW|INDEX|UNIQUE INDEX|TRIGGER|VIRTUAL TABLE) (?!IF NOT)", rf"\g<0>{of}.", sql, flags=re.I)
            if kind == "view" or re.match(r"CREATE VIRTUAL", sql, re.I):
                try:
                    columns = [row[1] for row in shell.db.execute(f"PRAGMA {name(of)}.table_info({name(of_name)})")]
                    sql += f"\n/* {shown}({','.join(map(name, columns))}) */"
                except sqlite3.Error:
                    # The view selects from something that was dropped.
                    pass
            shell.out.write(_with_guard(sql) + ";\n")
    return None


def dump(shell, patterns):
    """`.dump`: SQL that makes the database again."""
    db, write = shell.db, shell.out.write
    where = " OR ".join(["name LIKE ? ESCAPE '\\'"] * len(patterns)) or "1"
    write("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n")
    tables = db.execute(
        f"SELECT name, sql FROM sqlite_schema WHERE ({where}) AND type = 'table' AND sql NOT NULL "
        "ORDER BY name = 'sqlite_sequence', rowid",
        patterns,
    ).fetchall()
    virtual = False
    for table, sql in tables:
        if table == "sqlite_sequence":
            write("DELETE FROM sqlite_sequence;\n")
        elif re.match(r"sqlite_stat\d\Z", table):
            write("ANALYZE sqlite_schema;\n")
        elif table.startswith("sqlite_"):
            continue
        elif re.match(r"CREATE VIRTUAL TABLE", sql, re.I):
            write("" if virtual else "PRAGMA writable_schema=ON;\n")
            virtual, of = True, literal(table)
            values = f"'table',{of},{of},0,{literal(sql)}"
            write(f"INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES({values});\n")
            continue
        else:
            write(_with_guard(sql) + ";\n")
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({name(table)})")]
        query = f"SELECT {','.join(map(name, columns))} FROM {name(table)}"
        for row in db.execute(query):
            write(f"INSERT INTO {name(table)} VALUES({','.join(literal(value, True) for value in row)});\n")
    others = f"SELECT sql FROM sqlite_schema WHERE ({where}) AND sql NOT NULL AND type IN ('index','trigger','view')"
    for (sql,) in db.execute(others, patterns).fetchall():
        write(sql + ";\n")
    write("PRAGMA writable_schema=OFF;\n" if virtual else "")
    write("COMMIT;\n")


def _distinct(columns):
    """Names for columns of which no two are the same."""
    lower = [column.lower() for column in columns]
    if len(set(lower)) == len(lower):
        return columns
    seen, out = {}, []
    for column in columns:
        if lower.count(column.lower()) == 1:
            out.append(column)
            continue
        seen[column.lower()] = seen.get(column.lower(), 0) + 1
        out.append(f"{column}_{seen[column.lower()]}")
    return out


def take_in(shell, path, table, *, of, skip, verbose, colsep, rowsep):
    """`.import`: the exit code."""
    try:
        source = opened(path, "utf-8-sig", "")
    except OSError:
        return shell.say(f'Error: cannot open "{path}"\n') or 1
    db, target = shell.db, (f"{name(of)}." if of else "") + name(table)
    csv.field_size_limit(1 << 30)
    with source:
        if rowsep == "\x1e":
            rows = (row.split(colsep) for row in source.read().removesuffix(rowsep).split(rowsep))
            rows = ((at, row) for at, row in enumerate(rows, 1))
        else:
            reader = csv.reader(source, delimiter=colsep)
            rows = ((at + 1, row or [""]) for at, row in _numbered(reader))
        for _ in range(skip):
            next(rows, None)
        code, failed, added, begun = 0, 0, 0, not db.in_transaction
        columns = db.execute(f"SELECT count(*) FROM pragma_table_info(?1{', ?2' if of else ''})", (table, of) if of else (table,)).fetchone()[0]
        if not columns:
            heads = next(rows, (0, []))[1]
            if not heads:
                return shell.say(f"{path}: empty file\n") or 1
            names = _distinct(heads)
            if names is not heads:
                changed = ",\n".join(f'"{old}" to "{new}"' for old, new in zip(heads, names) if old != new)
                shell.say(f"Columns renamed during .import {path} due to duplicates:\n{changed}\n")
            quoted = ['"' + column.replace('"', '""') + '" TEXT' for column in names]
            sql = f"CREATE TABLE {(name(of) + '.') if of else ''}" + '"' + table.replace('"', '""') + '"'
            sql += "(\n" + ", ".join(quoted) + ")"
            if verbose:
                shell.out.write(sql + "\n\n")
            db.execute(sql)
            columns = len(names)
        if begun:
            db.execute("BEGIN")
        values = lambda each: f"INSERT INTO {target} VALUES({','.join([each] * columns)})"
        insert, line = values("?"), 0
        for line, row in rows:
            if len(row) < columns:
                shell.say(f"{path}:{line}: expected {columns} columns but found {len(row)} - filling the rest with NULL\n")
                row += [None] * (columns - len(row))
            elif len(row) > columns:
                shell.say(f"{path}:{line}: expected {columns} columns but found {len(row)} - extras ignored\n")
                del row[columns:]
            try:
                try:
                    db.execute(insert, row)
                except UnicodeEncodeError:
                    # Bytes that are not text are inserted unchanged.
                    raw = [value and value.encode("utf-8", "surrogateescape") for value in row]
                    db.execute(values("CAST(? AS TEXT)"), raw)
                added += 1
            except sqlite3.Error as error:
                shell.say(f"{path}:{line}: INSERT failed: {error}\n")
                code, failed = getattr(error, "sqlite_errorcode", 1) & 255, failed + 1
        if begun and db.in_transaction:
            db.execute("COMMIT")
        if verbose:
            line = line if rowsep == "\x1e" else reader.line_num
            shell.out.write(f"Added {added} rows with {failed} errors using {line} lines of input\n")
    return code


def _numbered(reader):
    """Rows of a CSV reader, each with the number of lines before it."""
    before = 0
    for row in reader:
        yield before, row
        before = reader.line_num
