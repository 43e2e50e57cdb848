//! POSIX regular expressions, basic and extended, in the syntax of the crate `regex`.

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    Basic,
    Extended,
}

/// The pattern in the syntax of `regex`. Back-references stay as they are, for `fancy-regex`; the second value says
/// whether there are any.
pub fn translate(pattern: &str, syntax: Syntax) -> Result<(String, bool), String> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut references = false;
    let mut open = 0;
    // Nothing stands before, so that `*` is a character.
    let mut start = true;
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        at += 1;
        let escaped = c == '\\';
        let c = if escaped {
            at += 1;
            *chars.get(at - 1).ok_or("trailing backslash (\\)")?
        } else {
            c
        };
        // `(` in an extended expression is what `\(` is in a basic one.
        let special = escaped == (syntax == Syntax::Basic);
        let mut starts = false;
        match c {
            '(' if special => {
                out.push('(');
                open += 1;
                starts = true;
            }
            ')' if special && (open > 0 || syntax == Syntax::Basic) => {
                if open == 0 {
                    return Err("unmatched ) or \\)".into());
                }
                open -= 1;
                out.push(')');
            }
            '|' if special => {
                out.push('|');
                starts = true;
            }
            '{' if special => match interval(&chars, at, syntax) {
                Some((text, end)) if !start => {
                    out.push_str(&text);
                    at = end;
                }
                None if syntax == Syntax::Basic => return Err("unmatched \\{, or what it holds is no interval".into()),
                _ => out.push_str("\\{"),
            },
            '+' | '?' if special => {
                if start {
                    out.push('\\');
                }
                out.push(c);
            }
            '*' if !escaped => {
                if start {
                    out.push('\\');
                }
                out.push('*');
            }
            '^' if !escaped => {
                // In the middle of a basic expression it is a character.
                let anchor = syntax == Syntax::Extended || start;
                out.push_str(if anchor { "^" } else { "\\^" });
                starts = anchor;
            }
            '$' if !escaped => {
                let anchor = syntax == Syntax::Extended
                    || at == chars.len()
                    || (chars[at] == '\\' && matches!(chars.get(at + 1), Some(')' | '|')));
                out.push_str(if anchor { "$" } else { "\\$" });
            }
            '.' if !escaped => out.push('.'),
            '[' if !escaped => at = bracket(&chars, at, &mut out)?,
            '1'..='9' if escaped => {
                references = true;
                out.push('\\');
                out.push(c);
            }
            'w' | 'W' | 's' | 'S' | 'b' | 'B' | '<' | '>' if escaped => {
                out.push('\\');
                out.push(c);
            }
            '`' if escaped => out.push_str("\\A"),
            '\'' if escaped => out.push_str("\\z"),
            c => literal(c, &mut out),
        }
        start = starts;
    }
    if open > 0 {
        return Err("unmatched ( or \\(".into());
    }
    Ok((out, references))
}

fn literal(c: char, out: &mut String) {
    if !c.is_alphanumeric()
        && c.is_ascii()
        && !c.is_ascii_whitespace()
        && !c.is_control()
        && !"<>_\"'%,/:;=@`".contains(c)
    {
        out.push('\\');
    }
    out.push(c);
}

/// `{m,n}` in the other syntax and where it ends; nothing if it is none.
fn interval(chars: &[char], from: usize, syntax: Syntax) -> Option<(String, usize)> {
    let length = chars[from..].iter().position(|c| !c.is_ascii_digit() && *c != ',')?;
    let mut end = from + length;
    let text: String = chars[from..end].iter().collect();
    if syntax == Syntax::Basic {
        (chars[end] == '\\').then_some(())?;
        end += 1;
    }
    (chars.get(end) == Some(&'}')).then_some(())?;
    let (low, high) = text.split_once(',').unwrap_or((&text, &text));
    if (low.is_empty() && !text.contains(',')) || text.matches(',').count() > 1 || low.len() > 5 || high.len() > 5 {
        return None;
    }
    let low = if low.is_empty() { "0" } else { low };
    let text = if text.contains(',') { format!("{{{low},{high}}}") } else { format!("{{{low}}}") };
    Some((text, end + 1))
}

/// Writes the bracket expression whose `[` ends before `from`, and returns where it ends. Here a backslash is a
/// character, and `[` begins at most a class.
fn bracket(chars: &[char], from: usize, out: &mut String) -> Result<usize, String> {
    let mut at = from;
    out.push('[');
    if chars.get(at) == Some(&'^') {
        out.push('^');
        at += 1;
    }
    let first = at;
    loop {
        let c = *chars.get(at).ok_or("unmatched [, [^, [:, [., or [=")?;
        match c {
            ']' if at > first => {
                out.push(']');
                return Ok(at + 1);
            }
            '[' if matches!(chars.get(at + 1), Some(':' | '.' | '=')) => {
                let kind = chars[at + 1];
                let end = (at + 2..chars.len().saturating_sub(1))
                    .find(|end| chars[*end] == kind && chars[end + 1] == ']')
                    .ok_or("unmatched [, [^, [:, [., or [=")?;
                let name: String = chars[at + 2..end].iter().collect();
                match kind {
                    ':' => out.push_str(class(&name).ok_or_else(|| format!("invalid character class: {name}"))?),
                    _ => name.chars().for_each(|c| member(c, out)),
                }
                at = end + 2;
            }
            '-' if at > first && chars.get(at + 1).is_some_and(|next| *next != ']') => {
                out.push('-');
                at += 1;
            }
            c => {
                member(c, out);
                at += 1;
            }
        }
    }
}

/// Returns the members of a class in the syntax of `regex`. As in GNU's tools with a UTF-8 locale, classes cover all scripts, and `space`
/// leaves out no-break spaces.
fn class(name: &str) -> Option<&'static str> {
    Some(match name {
        "alpha" => r"\p{Alphabetic}",
        "alnum" => r"\p{Alphabetic}\p{Nd}",
        "digit" => "0-9",
        "xdigit" => "0-9A-Fa-f",
        "upper" => r"\p{Uppercase}",
        "lower" => r"\p{Lowercase}",
        "blank" => r"\t \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200A}\x{205F}\x{3000}",
        "space" => r"\t-\r \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200A}\x{2028}\x{2029}\x{205F}\x{3000}",
        "punct" => r"\p{P}\p{S}",
        "graph" => r"[^\p{C}\p{Z}]",
        "print" => r"[^\p{C}\p{Zl}\p{Zp}]",
        "cntrl" => r"\p{Cc}",
        _ => return None,
    })
}

fn member(c: char, out: &mut String) {
    if "\\[]^-&~".contains(c) {
        out.push('\\');
    }
    out.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(syntax: Syntax, pattern: &str, expected: &str) {
        let (regex, _) = translate(pattern, syntax).unwrap();
        assert_eq!(regex, expected);
        if !regex.contains("\\1") {
            regex::Regex::new(&regex).unwrap();
        }
    }

    #[test]
    fn basic_expressions_escape_what_extended_ones_do_not() {
        check(Syntax::Basic, r"\(a\|b\)\+", "(a|b)+");
        check(Syntax::Basic, "a+(b)?", r"a\+\(b\)\?");
        check(Syntax::Basic, r"a\{2,3\}", "a{2,3}");
        check(Syntax::Basic, "*a*", r"\*a*");
        check(Syntax::Basic, "a^b$c$", r"a\^b\$c$");
        check(Syntax::Basic, r"\(^a$\)", "(^a$)");
        check(Syntax::Basic, r"\(a\)\1", r"(a)\1");
        check(Syntax::Basic, r"a\{,2\}", "a{0,2}");
    }

    #[test]
    fn extended_expressions() {
        check(Syntax::Extended, "(a|b)+{2}", "(a|b)+{2}");
        check(Syntax::Extended, "a{x", r"a\{x");
        check(Syntax::Extended, r"\(a\)", r"\(a\)");
        check(Syntax::Extended, "a)", r"a\)");
        check(Syntax::Extended, r"\<a\>", r"\<a\>");
    }

    #[test]
    fn bracket_expressions_hold_other_characters() {
        check(Syntax::Extended, r"[]\[a-]", r"[\]\\\[a\-]");
        check(Syntax::Extended, "[^[:alpha:]_]", r"[^\p{Alphabetic}_]");
        check(Syntax::Extended, "[a-z&&b]", r"[a-z\&\&b]");
    }

    #[test]
    fn classes_are_of_all_scripts() {
        for (class, inside, outside) in [
            ("alpha", "aZëжñ漢", "1 _-\u{301}"),
            ("alnum", "aë7٣", " _-"),
            ("digit", "07", "a٣"),
            ("xdigit", "0aF", "g"),
            ("upper", "AÉЖ", "aé1"),
            ("lower", "aéж", "AÉ1"),
            ("space", " \t\n\u{2003}", "a\u{a0}"),
            ("blank", " \t\u{3000}", "a\n"),
            ("punct", "!_$€«", "aé 1"),
            ("graph", "aé!1", " \t\u{3000}"),
            ("print", "aé! 1", "\t\u{7}"),
            ("cntrl", "\u{7}\t", "aé "),
        ] {
            let (regex, _) = translate(&format!("^[[:{class}:]]$"), Syntax::Extended).unwrap();
            let regex = regex::Regex::new(&regex).unwrap();
            for c in inside.chars() {
                assert!(regex.is_match(&c.to_string()), "{c:?} is {class}");
            }
            for c in outside.chars() {
                assert!(!regex.is_match(&c.to_string()), "{c:?} is not {class}");
            }
        }
        assert!(translate("[[:letter:]]", Syntax::Basic).is_err());
    }

    #[test]
    fn what_is_not_closed_is_an_error() {
        for pattern in [r"\(a", "[a", r"a\", r"a\{1"] {
            assert!(translate(pattern, Syntax::Basic).is_err(), "{pattern}");
        }
        assert!(translate("(a", Syntax::Extended).is_err());
    }
}
