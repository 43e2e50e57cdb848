//! `read` and `mapfile`.

use super::{failure, misuse};
use crate::bindings::kiso::exec::spawn::Errno;
use crate::expand::{Env, Stop};
use crate::shell::{Outcome, Shell};
use crate::table;
use crate::variable::is_name;

/// One piece of a line; the host gives no more at a time.
const PIECE: u32 = 1 << 20;

struct ReadOptions {
    raw: bool,
    array: Option<String>,
    delimiter: u8,
    /// At most so many characters, and whether a delimiter among them is one of them (`-N`).
    characters: Option<(usize, bool)>,
    channel: u32,
    prompt: String,
}

pub fn read(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut wanted =
        ReadOptions { raw: false, array: None, delimiter: b'\n', characters: None, channel: 0, prompt: String::new() };
    let names = match options(&mut wanted, &args[1..]) {
        Ok(names) => names,
        Err(message) if message.contains("invalid number") => return failure(shell, "read", &message),
        Err(message) => return misuse(shell, "read", &message),
    };
    if let Some(name) = names.iter().chain(&wanted.array).find(|name| !is_name(name)) {
        return failure(shell, "read", &format!("`{name}': not a valid identifier"));
    }
    if !wanted.prompt.is_empty() && shell.table.is_terminal(wanted.channel) {
        let _ = shell.table.write(2, wanted.prompt.as_bytes());
    }
    let (bytes, ended) = match take(shell, &wanted) {
        Ok(taken) => taken,
        Err(error) => {
            return failure(shell, "read", &format!("read error: {}: {}", wanted.channel, table::explain(error)));
        }
    };
    let text = String::from_utf8(bytes).unwrap_or_else(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into_owned());
    match assign(shell, &wanted, names, &text) {
        Ok(()) => Ok(u8::from(ended)),
        Err(stop) => {
            shell.complain(format_args!("read: {}", stop.message));
            Ok(1)
        }
    }
}

fn options<'a>(wanted: &mut ReadOptions, args: &'a [String]) -> Result<&'a [String], String> {
    let mut words = args;
    while let Some(flags) = words.first().and_then(|word| word.strip_prefix('-')) {
        words = &words[1..];
        if flags == "-" {
            break;
        }
        for (at, flag) in flags.char_indices() {
            if "rse".contains(flag) {
                wanted.raw |= flag == 'r';
                continue;
            }
            if !"adnNptui".contains(flag) {
                return Err(format!("-{flag}: invalid option"));
            }
            let attached = &flags[at + 1..];
            let value = if attached.is_empty() {
                let (first, rest) = words.split_first().ok_or(format!("-{flag}: option requires an argument"))?;
                words = rest;
                first
            } else {
                attached
            };
            let number = || value.parse::<usize>().map_err(|_| format!("{value}: invalid number"));
            match flag {
                'a' => wanted.array = Some(value.to_owned()),
                'd' => wanted.delimiter = value.bytes().next().unwrap_or(0),
                'n' => wanted.characters = Some((number()?, false)),
                'N' => wanted.characters = Some((number()?, true)),
                'p' => wanted.prompt = value.to_owned(),
                'u' => wanted.channel = number()? as u32,
                // The host waits without a limit, so `-t` is accepted and the task's deadline ends what never comes.
                _ => {}
            }
            break;
        }
    }
    Ok(words)
}

/// The bytes of one line without its delimiter, and whether the input ended before one came.
fn take(shell: &Shell, wanted: &ReadOptions) -> Result<(Vec<u8>, bool), Errno> {
    let mut line = Vec::new();
    if wanted.delimiter == b'\n' && wanted.characters.is_none() {
        loop {
            let piece = shell.table.read_line(wanted.channel, PIECE)?;
            if piece.is_empty() {
                return Ok((line, true));
            }
            line.extend_from_slice(&piece);
            if line.last() != Some(&b'\n') {
                continue;
            }
            let slashes = line[..line.len() - 1].iter().rev().take_while(|&&byte| byte == b'\\').count();
            line.pop();
            if wanted.raw || slashes % 2 == 0 {
                return Ok((line, false));
            }
            // A backslash at the end of a line joins it with the next.
            line.pop();
        }
    }
    let most = wanted.characters.map_or(usize::MAX, |(most, _)| most);
    let exactly = wanted.characters.is_some_and(|(_, exactly)| exactly);
    let mut characters = 0;
    let mut escaped = false;
    // Bytes that the present character still needs.
    let mut missing = 0_u32;
    while characters < most {
        let piece = shell.table.read(wanted.channel, 1)?;
        let Some(&byte) = piece.first() else { return Ok((line, true)) };
        if byte == wanted.delimiter && !exactly && !escaped {
            return Ok((line, false));
        }
        line.push(byte);
        let protected = std::mem::take(&mut escaped);
        escaped = byte == b'\\' && !protected && !wanted.raw;
        missing = match byte {
            0x80..=0xbf => missing.saturating_sub(1),
            byte => byte.leading_ones().saturating_sub(1),
        };
        // Neither a backslash nor a newline that it removes counts as a character.
        characters += usize::from(missing == 0 && !escaped && !(protected && byte == b'\n'));
    }
    Ok((line, false))
}

fn assign(shell: &mut Shell, wanted: &ReadOptions, names: &[String], text: &str) -> Result<(), Stop> {
    let characters = unescaped(text, wanted.raw);
    let plain = |part: &[(char, bool)]| part.iter().map(|(c, _)| *c).collect::<String>();
    if wanted.characters.is_some_and(|(_, exactly)| exactly) && wanted.array.is_none() {
        let (first, rest) = names.split_first().map_or(("REPLY", &[][..]), |(first, rest)| (first.as_str(), rest));
        shell.set(first, plain(&characters))?;
        return rest.iter().try_for_each(|name| shell.set(name, String::new()));
    }
    if wanted.array.is_none() && names.is_empty() {
        return shell.set("REPLY", plain(&characters));
    }
    let ifs = shell.scalar("IFS").unwrap_or_else(|| " \t\n".to_owned());
    if let Some(array) = &wanted.array {
        let fields = fields(&characters, &ifs, usize::MAX);
        return shell.set_array(array, fields);
    }
    let mut fields = fields(&characters, &ifs, names.len()).into_iter();
    names.iter().try_for_each(|name| shell.set(name, fields.next().unwrap_or_default()))
}

/// The characters of a line, each with whether a backslash protects it.
fn unescaped(text: &str, raw: bool) -> Vec<(char, bool)> {
    let mut characters = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\0' => {}
            '\\' if !raw => characters.extend(rest.next().filter(|&c| c != '\n').map(|c| (c, true))),
            c => characters.push((c, false)),
        }
    }
    characters
}

/// Splits at `IFS`. The last field gets what is left, with the delimiters in it.
fn fields(characters: &[(char, bool)], ifs: &str, most: usize) -> Vec<String> {
    let is_blank = |&(c, protected): &(char, bool)| !protected && c.is_ascii_whitespace() && ifs.contains(c);
    let is_delimiter = |&(c, protected): &(char, bool)| !protected && ifs.contains(c);
    let skip = |from: usize| from + characters[from..].iter().take_while(|c| is_blank(c)).count();
    let text = |part: &[(char, bool)]| part.iter().map(|(c, _)| *c).collect::<String>();
    let mut fields = Vec::new();
    let mut at = skip(0);
    while at < characters.len() {
        let end = at + characters[at..].iter().take_while(|c| !is_delimiter(c)).count();
        let mut next = skip(end);
        if next < characters.len() && is_delimiter(&characters[next]) {
            next = skip(next + 1);
        }
        if fields.len() + 1 == most && next < characters.len() {
            let blanks = characters[at..].iter().rev().take_while(|c| is_blank(c)).count();
            fields.push(text(&characters[at..characters.len() - blanks]));
            break;
        }
        fields.push(text(&characters[at..end]));
        at = next;
    }
    fields
}

pub fn mapfile(shell: &mut Shell, args: &[String]) -> Outcome {
    let (mut strip, mut delimiter, mut most, mut skip, mut channel, mut origin) = (false, b'\n', 0, 0, 0_u32, None);
    let mut words = &args[1..];
    while let Some(flags) = words.first().and_then(|word| word.strip_prefix('-')) {
        words = &words[1..];
        if flags == "-" {
            break;
        }
        for (at, flag) in flags.char_indices() {
            if flag == 't' {
                strip = true;
                continue;
            }
            if !"dnsuOcC".contains(flag) {
                return misuse(shell, &args[0], &format!("-{flag}: invalid option"));
            }
            let attached = &flags[at + 1..];
            let value = if attached.is_empty() {
                let Some((first, rest)) = words.split_first() else {
                    return misuse(shell, &args[0], &format!("-{flag}: option requires an argument"));
                };
                words = rest;
                first.as_str()
            } else {
                attached
            };
            let number = value.parse::<usize>();
            match (flag, number) {
                ('d', _) => delimiter = value.bytes().next().unwrap_or(0),
                ('n', Ok(number)) => most = number,
                ('s', Ok(number)) => skip = number,
                ('u', Ok(number)) => channel = number as u32,
                ('O', Ok(number)) => origin = Some(number),
                ('c' | 'C', _) => return misuse(shell, &args[0], &format!("-{flag} is not supported")),
                _ => return failure(shell, &args[0], &format!("{value}: invalid number")),
            }
            break;
        }
    }
    let name = words.first().map_or("MAPFILE", String::as_str).to_owned();
    if !is_name(&name) {
        return failure(shell, &args[0], &format!("`{name}': not a valid identifier"));
    }
    let lines = match lines(shell, channel, delimiter, if most == 0 { usize::MAX } else { most.saturating_add(skip) }) {
        Ok(lines) => lines,
        Err(error) => return failure(shell, &args[0], table::explain(error)),
    };
    let text = lines.into_iter().skip(skip).map(|mut line| {
        if strip && line.last() == Some(&delimiter) {
            line.pop();
        }
        String::from_utf8_lossy(&line).into_owned()
    });
    let text: Vec<String> = text.collect();
    let set = match origin {
        None => shell.set_array(&name, text),
        Some(origin) => (origin..).zip(text).try_for_each(|(at, line)| shell.set_element(&name, &at.to_string(), line)),
    };
    match set {
        Ok(()) => Ok(0),
        Err(stop) => shell.stopped(stop),
    }
}

fn lines(shell: &Shell, channel: u32, delimiter: u8, most: usize) -> Result<Vec<Vec<u8>>, Errno> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let mut line = Vec::new();
    while lines.len() < most {
        // With a limit the rest must stay unread.
        let piece = match (most, delimiter) {
            (usize::MAX, _) => shell.table.read(channel, PIECE)?,
            (_, b'\n') => shell.table.read_line(channel, PIECE)?,
            _ => shell.table.read(channel, 1)?,
        };
        if piece.is_empty() {
            break;
        }
        for part in piece.split_inclusive(|&byte| byte == delimiter) {
            line.extend_from_slice(part);
            if part.ends_with(&[delimiter]) {
                lines.push(std::mem::take(&mut line));
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, ifs: &str, most: usize, expected: &[&str]) {
        assert_eq!(fields(&unescaped(line, false), ifs, most), expected);
    }

    #[test]
    fn splits_a_line() {
        check("  a  b c  ", " \t\n", 2, &["a", "b c"]);
        check("a:b::c", ":", 9, &["a", "b", "", "c"]);
        check("a:b:", ":", 2, &["a", "b"]);
        check("a:b:c:", ":", 2, &["a", "b:c:"]);
        check("x, y ,z", ", ", 9, &["x", "y", "z"]);
        check("a\\ b c", " ", 9, &["a b", "c"]);
        check(" a b ", "", 1, &[" a b "]);
        check("", " ", 3, &[]);
    }
}
