//! `column`: lines in columns, or fields in a table.

use std::io::{self, Write};

use lexopt::Arg::{Long, Short, Value};

use crate::cli;

const USAGE: &str = "Usage: column [-t] [-s CHARS] [-o TEXT] [-c WIDTH] [-x] [FILE]...
Put lines into columns, or with -t the fields of lines into a table.
";

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let (mut table, mut separators, mut between, mut width, mut rows_first) =
            (false, None, "  ".to_owned(), 80, false);
        let mut names: Vec<String> = Vec::new();
        let mut files = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('t') | Long("table") => table = true,
                Short('s') | Long("separator") => separators = Some(cli::value(&mut parser)?.replace("\\t", "\t")),
                Short('o') | Long("output-separator") => between = cli::value(&mut parser)?,
                Short('c') | Long("output-width" | "columns") => width = cli::number(&mut parser)?,
                Short('x') | Long("fillrows") => rows_first = true,
                Short('N') | Long("table-columns") => {
                    names = cli::value(&mut parser)?.split(',').map(String::from).collect();
                }
                Short('n' | 'e' | 'L') => {}
                Value(file) => files.push(file.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        let mut text = String::new();
        for file in cli::files_or_stdin(files) {
            text.push_str(&String::from_utf8_lossy(&cli::read(&file)?));
        }
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let mut out = io::stdout().lock();
        if table {
            let mut rows: Vec<Vec<String>> = Vec::new();
            if !names.is_empty() {
                rows.push(names);
            }
            rows.extend(lines.iter().map(|line| fields(line, separators.as_deref())));
            out.write_all(aligned(&rows, &between).as_bytes())?;
        } else {
            out.write_all(columns(&lines, width, rows_first).as_bytes())?;
        }
        Ok(0)
    })
}

/// With separators each of them ends a field; without, blanks in any number do.
fn fields(line: &str, separators: Option<&str>) -> Vec<String> {
    match separators {
        Some(chars) => line.split(|c| chars.contains(c)).map(String::from).collect(),
        None => line.split_whitespace().map(String::from).collect(),
    }
}

fn aligned(rows: &[Vec<String>], between: &str) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column| rows.iter().filter_map(|row| row.get(column)).map(|field: &String| wide(field)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        // Missing fields are filled too, as in util-linux.
        for (column, width) in widths.iter().enumerate() {
            let field = row.get(column).map_or("", String::as_str);
            text.push_str(field);
            if column + 1 < count {
                text.push_str(&" ".repeat(width - wide(field)));
                text.push_str(between);
            }
        }
        text.push('\n');
    }
    text
}

fn wide(text: &str) -> usize {
    text.chars().count()
}

fn columns(lines: &[&str], width: usize, rows_first: bool) -> String {
    let cell = (lines.iter().map(|line| wide(line)).max().unwrap_or(0) + 1).next_multiple_of(8);
    let count = (width / cell).max(1);
    let rows = lines.len().div_ceil(count);
    let mut text = String::new();
    for row in 0..rows {
        let at = |column: usize| if rows_first { row * count + column } else { column * rows + row };
        let cells: Vec<&str> = (0..count).filter_map(|column| lines.get(at(column)).copied()).collect();
        for (index, line) in cells.iter().enumerate() {
            text.push_str(line);
            if index + 1 < cells.len() {
                let tabs = (cell - wide(line)).div_ceil(8);
                text.push_str(&"\t".repeat(tabs));
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned() {
        let rows: Vec<_> = ["a,bb,c", "dddd,,e"].iter().map(|line| fields(line, Some(","))).collect();
        assert_eq!(aligned(&rows, "  "), "a     bb  c\ndddd      e\n");
        let rows: Vec<_> = ["a b c d", "e"].iter().map(|line| fields(line, None)).collect();
        assert_eq!(aligned(&rows, "  "), "a  b  c  d\ne        \n");
        assert_eq!(fields(" a  b\tc ", None), ["a", "b", "c"]);
    }

    #[test]
    fn lines_go_down_or_across() {
        assert_eq!(columns(&["a", "b", "c"], 16, false), "a\tc\nb\n");
        assert_eq!(columns(&["a", "b", "c"], 16, true), "a\tb\nc\n");
    }
}
