//! Where a quoted or nested construct ends, without looking at what it means.
//!
//! All functions work on bytes (what they look for is ASCII), take the index behind the opening, and return the index of
//! the closing delimiter's first byte, or nothing if there is none or the nesting is too deep.

/// Deeper nesting is an error: each level costs several frames of a stack that a component has little of.
pub const MAX_DEPTH: usize = 64;

/// Behind `"`.
pub fn double(source: &[u8], mut at: usize, depth: usize) -> Option<usize> {
    loop {
        at = match source.get(at)? {
            b'"' => return Some(at),
            b'\\' => at + 2,
            b'`' => backquote(source, at + 1)? + 1,
            b'$' => dollar(source, at, true, depth)?,
            _ => at + 1,
        };
    }
}

/// Behind `'`.
pub fn single(source: &[u8], at: usize) -> Option<usize> {
    source.get(at..)?.iter().position(|&byte| byte == b'\'').map(|found| at + found)
}

/// Behind `$'`.
pub fn ansi(source: &[u8], at: usize) -> Option<usize> {
    escaped(source, at, b'\'')
}

/// Behind `` ` ``.
pub fn backquote(source: &[u8], at: usize) -> Option<usize> {
    escaped(source, at, b'`')
}

fn escaped(source: &[u8], mut at: usize, close: u8) -> Option<usize> {
    loop {
        at = match *source.get(at)? {
            b'\\' => at + 2,
            byte if byte == close => return Some(at),
            _ => at + 1,
        };
    }
}

/// At a `$`: the index behind what it begins, which may be nothing but the `$`.
pub fn dollar(source: &[u8], at: usize, quoted: bool, depth: usize) -> Option<usize> {
    let depth = depth.checked_sub(1)?;
    match source.get(at + 1) {
        Some(b'(') => Some(command(source, at + 2, depth)? + 1),
        Some(b'{') => Some(braced(source, at + 2, quoted, depth)? + 1),
        Some(b'\'') if !quoted => Some(ansi(source, at + 2)? + 1),
        _ => Some(at + 1),
    }
}

/// Behind `${`.
pub fn braced(source: &[u8], mut at: usize, quoted: bool, depth: usize) -> Option<usize> {
    loop {
        at = match source.get(at)? {
            b'}' => return Some(at),
            b'\\' => at + 2,
            b'"' => double(source, at + 1, depth.checked_sub(1)?)? + 1,
            b'\'' if !quoted => single(source, at + 1)? + 1,
            b'\'' => apostrophes(source, at + 1).map_or(at + 1, |end| end + 1),
            b'`' => backquote(source, at + 1)? + 1,
            b'$' => dollar(source, at, quoted, depth)?,
            _ => at + 1,
        };
    }
}

/// Behind a `'` in the operand of a `${…}` between double quotes: the index of the next one, if both are text that hides
/// a brace as in `"${a:-'}'}"`. One alone, as in `"${a:-it's}"`, is text that hides nothing.
pub fn apostrophes(source: &[u8], at: usize) -> Option<usize> {
    let length = source.get(at..)?.iter().position(|byte| matches!(byte, b'\'' | b'"' | b'\n'))?;
    (source[at + length] == b'\'').then_some(at + length)
}

/// Behind `$((`: the index of `))`. Nothing also if it is a command that starts with a subshell.
pub fn arithmetic(source: &[u8], mut at: usize, depth: usize) -> Option<usize> {
    let mut open = 0_usize;
    loop {
        match source.get(at)? {
            b'(' => open += 1,
            b')' if open > 0 => open -= 1,
            b')' => return (source.get(at + 1) == Some(&b')')).then_some(at),
            b'\\' => at += 1,
            b'\'' => at = single(source, at + 1)?,
            b'`' => at = backquote(source, at + 1)?,
            b'$' => at = dollar(source, at, true, depth)? - 1,
            _ => {}
        }
        at += 1;
    }
}

/// Behind `[`: of a subscript or of `$[`.
pub fn bracketed(source: &[u8], mut at: usize, depth: usize) -> Option<usize> {
    let mut open = 0_usize;
    loop {
        match source.get(at)? {
            b'[' => open += 1,
            b']' if open > 0 => open -= 1,
            b']' => return Some(at),
            b'\\' => at += 1,
            b'"' => at = double(source, at + 1, depth.checked_sub(1)?)?,
            b'\'' => at = single(source, at + 1)?,
            b'`' => at = backquote(source, at + 1)?,
            b'$' => at = dollar(source, at, false, depth)? - 1,
            _ => {}
        }
        at += 1;
    }
}

#[derive(PartialEq)]
enum Open {
    Paren,
    /// Inside `case … esac`, where a pattern ends with a `)` that opens nothing.
    Case,
}

/// A here-document that was announced on this line.
pub struct Announced {
    delimiter: Vec<u8>,
    tabs: bool,
}

/// Behind `$(`: the index of its `)`. Quotes, comments, here-documents and the patterns of `case` may hold parentheses
/// that do not count. It does for `$((…))` too: to try one and then the other at each level would take time without end.
pub fn command(source: &[u8], mut at: usize, depth: usize) -> Option<usize> {
    let depth = depth.checked_sub(1)?;
    let mut open = Vec::new();
    let mut announced = Vec::new();
    // The next word would be a command's name, so it may be a reserved word.
    let mut first = true;
    // In `$((1 << 2))` there is no here-document.
    let documents = source.get(at) != Some(&b'(');
    loop {
        let was_first = std::mem::replace(&mut first, false);
        match source.get(at)? {
            b' ' | b'\t' => (at, first) = (at + 1, was_first),
            b'\n' => (at, first) = (bodies(source, at + 1, &mut announced)?, true),
            b';' | b'&' | b'|' => (at, first) = (at + 1, true),
            b'#' => at += source[at..].iter().position(|&byte| byte == b'\n')?,
            b'(' => {
                open.push(Open::Paren);
                (at, first) = (at + 1, true);
            }
            b')' => {
                match open.last() {
                    None => return Some(at),
                    Some(Open::Paren) => drop(open.pop()),
                    Some(Open::Case) => {}
                }
                (at, first) = (at + 1, true);
            }
            b'<' if source[at..].starts_with(b"<<<") => at += 3,
            b'<' if documents && source[at..].starts_with(b"<<") => at = announce(source, at + 2, &mut announced)?,
            b'<' | b'>' => at += 1,
            _ => {
                let end = word(source, at, depth)?;
                first = match &source[at..end] {
                    b"case" if was_first => {
                        open.push(Open::Case);
                        false
                    }
                    b"esac" if was_first && open.last() == Some(&Open::Case) => {
                        open.pop();
                        false
                    }
                    b"in" => open.last() == Some(&Open::Case),
                    b"if" | b"then" | b"else" | b"elif" | b"do" | b"while" | b"until" | b"!" | b"{" | b"time" => {
                        was_first
                    }
                    _ => false,
                };
                at = end;
            }
        }
    }
}

/// The end of a word of a command.
fn word(source: &[u8], mut at: usize, depth: usize) -> Option<usize> {
    loop {
        at = match source.get(at)? {
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => return Some(at),
            b'\\' => at + 2,
            b'\'' => single(source, at + 1)? + 1,
            b'"' => double(source, at + 1, depth.checked_sub(1)?)? + 1,
            b'`' => backquote(source, at + 1)? + 1,
            b'$' => dollar(source, at, false, depth)?,
            _ => at + 1,
        };
    }
}

/// Behind `<<`: reads the delimiter.
pub fn announce(source: &[u8], mut at: usize, announced: &mut Vec<Announced>) -> Option<usize> {
    let tabs = source.get(at) == Some(&b'-');
    at += usize::from(tabs);
    at += source.get(at..)?.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
    let end = word(source, at, 1)?;
    let delimiter = source[at..end].iter().copied().filter(|byte| !matches!(byte, b'\'' | b'"' | b'\\')).collect();
    announced.push(Announced { delimiter, tabs });
    Some(end)
}

/// Behind a newline: the index behind the here-documents that were announced.
pub fn bodies(source: &[u8], mut at: usize, announced: &mut Vec<Announced>) -> Option<usize> {
    for each in announced.drain(..) {
        loop {
            let rest = source.get(at..)?;
            let line = rest.split(|&byte| byte == b'\n').next()?;
            let skipped = if each.tabs { line.iter().take_while(|&&byte| byte == b'\t').count() } else { 0 };
            let text = &line[skipped..];
            if text == each.delimiter {
                at += line.len();
                break;
            }
            // The parenthesis may stand on the delimiter's line.
            if text
                .strip_prefix(each.delimiter.as_slice())
                .is_some_and(|rest| rest.trim_ascii_start().starts_with(b")"))
            {
                at += skipped + each.delimiter.len();
                break;
            }
            at += line.len() + 1;
        }
    }
    Some(at)
}
