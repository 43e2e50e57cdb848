# How `sqlite3` prints rows: one class for each way of its `.mode`.
import re

# Names that need no quotes in SQL.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Characters that need quotes in `csv`: blanks, control characters, quotes, and all that are not ASCII.
_CSV = re.compile("[\0- \"'\x7f-\U0010ffff]")
_KEYWORDS = frozenset(
    "add all alter and as autoincrement between by case check collate commit constraint create default deferrable "
    "delete distinct drop else escape except exists foreign from group having in index insert intersect into is isnull "
    "join limit not notnull null on or order primary references select set table then to transaction union unique "
    "update using values when where".split()
)
_BOX = ("┌─┬┐", "├─┼┤", "└─┴┘", "│")


def name(text):
    """A name as SQL writes it."""
    if _PLAIN.match(text) and text.lower() not in _KEYWORDS:
        return text
    return '"' + text.replace('"', '""') + '"'


def literal(value, in_one_line=False):
    """A value as SQL writes it, so that it is read back as it is."""
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value, "1e999")
    if isinstance(value, bytes):
        return "X'" + value.hex() + "'"
    text = "'" + value.replace("'", "''") + "'"
    if in_one_line:
        for char, code, marks in (("\r", 13, ("\\r", "\\015")), ("\n", 10, ("\\n", "\\012"))):
            if char in text:
                mark = next((mark for mark in marks if mark not in text), f"\\{code}$")
                text = f"replace({text.replace(char, mark)},'{mark}',char({code}))"
    return text


def number(value, infinite):
    """A number in as few digits as say which one it is."""
    if value in (float("inf"), float("-inf")):
        return infinite if value > 0 else "-" + infinite
    return _with_point(repr(value)) if value else "0.0"


def _with_point(digits):
    digits, e, exponent = digits.partition("e")
    return digits + ("" if "." in digits else ".0") + e + exponent


def text(value):
    """A value as SQLite makes a text of it."""
    if isinstance(value, str):
        return value.partition("\0")[0]
    if isinstance(value, bytes):
        return value.partition(b"\0")[0].decode("utf-8", "surrogateescape")
    if isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            return "Inf" if value > 0 else "-Inf"
        return _with_point("%.15g" % value if value else "0")
    return str(value)


def json_text(value):
    out = ['"']
    for char in value:
        if char in '"\\':
            out.append("\\" + char)
        elif char < " ":
            out.append({"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char, f"\\u{ord(char):04x}"))
        else:
            out.append(char)
    return "".join(out) + '"'


def _json(value):
    if value is None:
        return "null"
    if isinstance(value, float):
        return number(value, "1e999")
    if isinstance(value, bytes):
        # Bytes that are not text pass unchanged, as a text with them would.
        value = value.decode("utf-8", "surrogateescape")
    return json_text(value) if isinstance(value, str) else str(value)


def _html(value):
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;")):
        value = value.replace(char, entity)
    return value


def _tcl(value):
    return json_text(value).replace("\\b", "\\010").replace("\\f", "\\014")


def rows(s, names, cursor):
    """Prints what a query answers. `s` is the shell with its settings."""
    if s.mode in ("box", "column", "markdown", "table"):
        return _columns(s, names, cursor.fetchall())
    write, shown = s.out.write, lambda value: s.nullvalue if value is None else text(value)
    if s.mode == "json":
        keys, before = [json_text(key) for key in names], "[{"
        for row in cursor:
            write(before + ",".join(f"{key}:{_json(value)}" for key, value in zip(keys, row)))
            before = "},\n{"
        if before != "[{":
            write("}]\n")
        return
    if s.mode == "line":
        width, first = max([5, *map(len, names)]), True
        for row in cursor:
            write("" if first else "\n")
            first = False
            for key, value in zip(names, row):
                write(f"{key:>{width}} = {shown(value)}\n")
        return
    if s.mode == "insert":
        into = "INSERT INTO " + name(s.table)
        into += "(" + ",".join(map(name, names)) + ")" if s.header else ""
        for row in cursor:
            write(f"{into} VALUES({','.join(literal(value, True) for value in row)});\n")
        return
    if s.mode == "html":
        first = s.header
        for row in cursor:
            if first:
                write("<TR>" + "\n".join(f"<TH>{_html(key)}</TH>" for key in names) + "\n</TR>\n")
                first = False
            write("<TR>" + "\n".join(f"<TD>{_html(shown(value))}</TD>" for value in row) + "\n</TR>\n")
        return
    if s.mode == "csv":
        quote = lambda value: '"' + value.replace('"', '""') + '"' if not value or s.colsep in value or _CSV.search(value) else value
        head, cell = quote, lambda value: s.nullvalue if value is None else quote(text(value))
    elif s.mode == "quote":
        head = cell = literal
    elif s.mode == "tcl":
        head, cell = _tcl, lambda value: _tcl(shown(value))
    else:
        head, cell = str, shown
    first = s.header
    for row in cursor:
        if first:
            write(s.colsep.join(map(head, names)) + s.rowsep)
            first = False
        write(s.colsep.join(map(cell, row)) + s.rowsep)


def _lines(value, width, by_words):
    """A text as the lines of a cell: tabs as blanks, a new line at each control character, none longer than `width`."""
    lines, at = [], 0
    while True:
        line, start = "", at
        while at < len(value) and len(line) < width:
            char = value[at]
            if char == "\t":
                line += " " * min(8 - len(line) % 8, width - len(line))
            elif char < " ":
                break
            else:
                line += char
            at += 1
        if at >= len(value):
            return lines + [line]
        if value[at] < " ":
            at += 2 if value[at : at + 2] == "\r\n" else 1
        elif by_words and "\t" not in line:
            half = start + (at - start) // 2
            end = next((k for k in range(at, half, -1) if value[k - 1].isspace()), None)
            if end is None:
                end = next((k for k in range(at, half, -1) if value[k - 1].isalnum() != value[k].isalnum()), at)
            line, at = value[start:end], end
            while at < len(value) and value[at] == " ":
                at += 1
        lines.append(line)
        if at >= len(value):
            return lines


def _columns(s, names, table):
    if not table:
        return
    given = [s.widths[i] if i < len(s.widths) else 0 for i in range(len(names))]
    limit = [abs(width) or s.wrap or 1 << 30 for width in given]
    quoted = lambda value: literal(value) if value is not None else "NULL"
    shown = quoted if s.quoted else lambda value: s.nullvalue if value is None else text(value)
    cells = [[_lines(shown(value), most, s.by_words) for value, most in zip(row, limit)] for row in table]
    heads = [_lines(key, most, s.by_words) for key, most in zip(names, limit)]
    widths = [max([abs(width), *map(len, head)]) for width, head in zip(given, heads)]
    for row in cells:
        widths = [max([width, *map(len, cell)]) for width, cell in zip(widths, row)]
    several = any(len(cell) > 1 for row in cells for cell in row)
    write = s.out.write

    def line(row, before, between, after, center=False):
        for at in range(max(map(len, row))):
            out = []
            for cell, width, wanted in zip(row, widths, given):
                cell = cell[at] if at < len(cell) else ""
                left = (width - len(cell)) // 2 if center else (width - len(cell)) * (wanted < 0)
                out.append(" " * left + cell + " " * (width - len(cell) - left))
            write(before + between.join(out) + after + "\n")

    def rule(left, dash, cross, right, more=2):
        write(left + cross.join(dash * (width + more) for width in widths) + right + "\n")

    if s.mode == "column":
        if s.header:
            line(heads, "", "  ", "")
            rule("", "-", "  ", "", 0)
        for at, row in enumerate(cells):
            line(row, "", "  ", "")
            if several and at + 1 < len(cells):
                write("\n")
        return
    if s.mode == "box":
        top, middle, bottom, bar = _BOX
    else:
        top = middle = bottom = "|-||" if s.mode == "markdown" else "+-++"
        bar = "|"
    edges = (bar + " ", f" {bar} ", " " + bar)
    if s.mode != "markdown":
        rule(*top)
    line(heads, *edges, center=True)
    rule(*middle)
    for at, row in enumerate(cells):
        line(row, *edges)
        if several and at + 1 < len(cells) and s.mode != "markdown":
            rule(*middle)
    if s.mode != "markdown":
        rule(*bottom)


def plan(write, answer):
    """EXPLAIN QUERY PLAN as a tree."""
    steps = [(row[0], row[1], row[3]) for row in answer]
    write("QUERY PLAN\n")

    def below(parent, before):
        own = [step for step in steps if step[1] == parent]
        for at, (step, _, detail) in enumerate(own):
            last = at + 1 == len(own)
            write(before + ("`--" if last else "|--") + text(detail) + "\n")
            below(step, before + ("   " if last else "|  "))

    below(0, "")


def opcodes(write, names, answer):
    """EXPLAIN as a list."""
    widths = (4, 13, 4, 4, 4, 13, 2, 13)
    write("  ".join(f"{key:<{width}}" for key, width in zip(names, widths)) + "\n")
    write("  ".join("-" * width for width in widths) + "\n")
    for row in answer:
        cells = ["" if value is None else text(value) for value in row]
        write("  ".join([f"{cell:<{width}}" for cell, width in zip(cells[:-1], widths)] + cells[-1:]) + "\n")


def list_names(write, names):
    """Names in columns, as many as fit a line of 80 characters."""
    if not names:
        return
    longest = max(map(len, names))
    across = max(1, 80 // (longest + 2))
    down = -(-len(names) // across)
    for at in range(down):
        write("  ".join(f"{item:<{longest}}" for item in names[at::down]) + "\n")
