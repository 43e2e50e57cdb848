//! Texts of files: numbered lines, and the replacement of a part.

use crate::tool::EXEC;
use kiso_plan::estimate::tokens;

/// Maximum number of positions in an error.
const MAX_PLACES: usize = 5;

/// Formats line numbers as "line 3", "lines 3, 9 and 3 more".
pub(super) fn list_lines(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(MAX_PLACES).map(ToString::to_string).collect();
    let more = match lines.len().saturating_sub(MAX_PLACES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} {}{more}", if lines.len() == 1 { "line" } else { "lines" }, shown.join(", "))
}

/// Replaces one text by another; returns the new text and the lines where the replaced parts began, or an error.
pub(super) fn replace(text: &str, (old, new, all): (&str, &str, bool)) -> Result<(String, Vec<usize>), String> {
    if old == new {
        return Err("old and new are the same text".to_owned());
    }
    // Models write line breaks as one character, whatever the file uses.
    let has_returns = !text.contains(old) && text.contains("\r\n") && !old.contains('\r');
    let (old, new) = match has_returns {
        true => (old.replace('\n', "\r\n"), new.replace("\r\n", "\n").replace('\n', "\r\n")),
        false => (old.to_owned(), new.to_owned()),
    };
    let places: Vec<usize> = text.match_indices(&old).map(|(at, _)| line_of(text, at)).collect();
    match places.len() {
        0 => Err(format!("old does not stand there{}", near(text, &old))),
        1 => Ok((text.replacen(&old, &new, 1), places)),
        _ if all => Ok((text.replace(&old, &new), places)),
        count => Err(format!(
            "old stands there {count} times, at {}; give more of the text around it, or all: true",
            list_lines(&places)
        )),
    }
}

/// Returns the position of a text that differs only in its spaces.
fn near(text: &str, old: &str) -> String {
    let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some(first) = old.lines().map(plain).find(|line| !line.is_empty()) else { return String::new() };
    match text.lines().position(|line| plain(line) == first) {
        Some(at) => format!(", but line {} is the same but for its spaces or what follows; read it again", at + 1),
        None => "; read the file again".to_owned(),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Returns the lines of a completely loaded text.
pub(super) fn numbered(text: &str, (from, to): (u64, Option<u64>), cut: bool, room: usize) -> String {
    let skipped = usize::try_from(from - 1).unwrap_or(usize::MAX);
    let start = match skipped {
        0 => 0,
        skipped => text.match_indices('\n').nth(skipped - 1).map_or(text.len(), |(at, _)| at + 1),
    };
    if start >= text.len() {
        return format!("there is no line {from}");
    }
    let of = text[start..].split_inclusive('\n').count() as u64;
    lines_from(&text[start..], from, to.unwrap_or(u64::MAX).min(from + of - 1), cut, room)
}

/// Returns numbered lines, starting with `from`, up to `to` and within `room` tokens, with a note about the rest.
pub(super) fn lines_from(text: &str, from: u64, to: u64, cut: bool, room: usize) -> String {
    let (mut out, mut next) = (String::new(), from);
    let mut lines = text.split_inclusive('\n').peekable();
    while next <= to
        && let Some(line) = lines.peek()
    {
        let line = format!("{next}\t{}\n", line.trim_end_matches(['\n', '\r']));
        if tokens(&out) + tokens(&line) > room {
            if out.is_empty() {
                let part: String = line.chars().take(room.max(1)).collect();
                out = format!("{part}\n[line {next} is longer; {EXEC} shows its parts, with cut -c]\n");
                next += 1;
                lines.next();
            }
            break;
        }
        out.push_str(&line);
        next += 1;
        lines.next();
    }
    if lines.peek().is_some() || cut {
        out.push_str(&format!("[more lines follow; go on with from: {next}]\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_replaced_where_it_is_clear_which_one_is_meant() {
        let text = "let a = 1;\nlet b = 1;\n";
        assert_eq!(replace(text, ("b = 1", "b = 2", false)).unwrap(), ("let a = 1;\nlet b = 2;\n".to_owned(), vec![2]));
        assert_eq!(replace(text, ("= 1", "= 2", true)).unwrap().1, [1, 2]);
        let twice = replace(text, ("= 1", "= 2", false)).unwrap_err();
        assert!(twice.contains("2 times, at lines 1, 2") && twice.contains("all: true"), "{twice}");
        let spaces = replace(text, ("let  b = 1;", "x", false)).unwrap_err();
        assert!(spaces.contains("line 2 is the same but for its spaces"), "{spaces}");
        assert!(replace(text, ("c", "d", false)).unwrap_err().contains("does not stand there"));
        assert!(replace(text, ("a", "a", true)).unwrap_err().contains("the same text"));
    }

    #[test]
    fn line_ends_stay_as_the_file_has_them() {
        let (changed, places) = replace("a\r\nb\r\nc\r\n", ("a\nb", "x\ny\nz", false)).unwrap();
        assert_eq!((changed.as_str(), places), ("x\r\ny\r\nz\r\nc\r\n", vec![1]));
    }

    #[test]
    fn lines_are_numbered_and_end_where_there_is_no_room() {
        let text = "one\ntwo\nthree\nfour";
        assert_eq!(numbered(text, (1, None), false, 100), "1\tone\n2\ttwo\n3\tthree\n4\tfour\n");
        assert_eq!(
            numbered(text, (2, Some(3)), false, 100),
            "2\ttwo\n3\tthree\n[more lines follow; go on with from: 4]\n"
        );
        assert_eq!(numbered(text, (1, None), false, 4), "1\tone\n2\ttwo\n[more lines follow; go on with from: 3]\n");
        assert_eq!(numbered(text, (9, None), false, 100), "there is no line 9");
        let long = numbered(&"x".repeat(500), (1, None), false, 20);
        assert!(long.starts_with("1\txxx") && long.contains("[line 1 is longer") && tokens(&long) < 40, "{long}");
    }
}
