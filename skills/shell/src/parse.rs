//! From source to `program`, and what to say when it is not one.

pub mod mask;

use std::borrow::Cow;

use brush_parser::{ParseError, Parser, ParserOptions, Token, TokenizerError};

use crate::lower;
use crate::parse::mask::Masked;
use crate::program::List;

/// The parser takes memory of many times its source.
const LONGEST_SOURCE: usize = 1 << 20;

/// The parser is recursive, and a guest's stack is small: more than this would be a trap.
const DEEPEST: usize = 60;

#[derive(Debug)]
pub struct SyntaxError {
    pub message: String,
    /// More source could make it right.
    pub incomplete: bool,
}

pub fn parse(source: &str) -> Result<List, SyntaxError> {
    let lines = script(source)?;
    Ok(List(lines.into_iter().flat_map(|line| line.0).collect()))
}

/// The lines of a script, each with all that was read at once with it.
pub fn script(source: &str) -> Result<Vec<List>, SyntaxError> {
    let source = &*without_returns(source);
    if source.len() > LONGEST_SOURCE {
        let size = source.len();
        return Err(refused(format!(
            "a command line of {size} bytes is more than {LONGEST_SOURCE}; put data into a file"
        )));
    }
    if let Some(line) = too_deep(source) {
        return Err(refused(format!("line {line}: nested deeper than {DEEPEST} levels")));
    }
    let masked = mask::mask(source);
    if let Some(line) = enormous_number(&masked.text) {
        return Err(refused(format!("line {line}: a channel's number has at most {DIGITS} digits")));
    }
    // At the end of an expansion that is open behind `<<` the parser panics, since it counts what it holds back for the document
    // twice; in the word that ends the document it takes memory without end.
    if masked.unclosed && masked.text.contains("<<") && masked.text.contains(['$', '`']) {
        let (line, column) = end(source);
        let message = format!(
            "line {line}, column {column}: syntax error: unexpected end of input; a quote or an expansion is open"
        );
        return Err(SyntaxError { message, incomplete: true });
    }
    let tree = Parser::new(masked.text.as_bytes(), &ParserOptions::default())
        .parse_program()
        .map_err(|error| explain(source, &masked, error))?;
    lower::program(&masked, tree)
        .map_err(|form| refused(format!("line {}: `{}` is not supported", form.line, form.what)))
}

/// Most digits before `<` or `>`; the parser takes them for a number of 32 bits without a look.
const DIGITS: usize = 9;

/// The line of a redirection whose channel has a number with too many digits.
fn enormous_number(text: &str) -> Option<usize> {
    let (mut line, mut digits, mut quote, mut escaped) = (1, 0, None, false);
    for c in text.chars() {
        line += usize::from(c == '\n');
        let was_escaped = std::mem::take(&mut escaped);
        match (quote, c) {
            _ if was_escaped => digits = 0,
            (None | Some('"'), '\\') => (escaped, digits) = (true, 0),
            (Some(open), c) if c == open => (quote, digits) = (None, 0),
            (Some(_), _) => {}
            (None, '"' | '\'') => (quote, digits) = (Some(c), 0),
            (None, '<' | '>') if digits > DIGITS => return Some(line),
            (None, c) if c.is_ascii_digit() => digits += 1,
            _ => digits = 0,
        }
    }
    None
}

/// A source whose lines all end in CRLF was meant without the CR; bash would take it for a part of words.
fn without_returns(source: &str) -> Cow<'_, str> {
    let (ends, lines) = (source.matches("\r\n").count(), source.matches('\n').count());
    if ends > 0 && ends == lines { Cow::Owned(source.replace("\r\n", "\n")) } else { Cow::Borrowed(source) }
}

fn refused(message: String) -> SyntaxError {
    SyntaxError { message, incomplete: false }
}

fn explain(source: &str, masked: &Masked, error: ParseError) -> SyntaxError {
    match error {
        ParseError::ParsingNear(place) => {
            let (line, column) = masked.position(place.index);
            let near: String =
                source[masked.place(place.index)..].chars().take_while(|c| !c.is_whitespace()).take(40).collect();
            let near = if near.is_empty() { "end of line".to_owned() } else { format!("`{near}`") };
            let scanned = scan(masked, Some(place.index));
            if let Some((word, line, column)) = scanned.stray {
                return stray(&word, line, column);
            }
            let expected = scanned.open;
            let expected = expected.map(|open| format!("; {open}")).unwrap_or_default();
            refused(format!("line {line}, column {column}: syntax error near {near}{expected}"))
        }
        ParseError::ParsingAtEndOfInput => {
            let scanned = scan(masked, None);
            if let Some((word, line, column)) = scanned.stray {
                return refused(format!(
                    "line {line}, column {column}: syntax error near `{word}`, which ends nothing"
                ));
            }
            let (line, column) = end(source);
            let expected = scanned.open.unwrap_or_else(|| "a command is missing".to_owned());
            SyntaxError {
                message: format!("line {line}, column {column}: syntax error: unexpected end of input; {expected}"),
                incomplete: true,
            }
        }
        ParseError::Tokenizing { inner, position } => {
            let started = match &inner {
                TokenizerError::UnterminatedSingleQuote(place)
                | TokenizerError::UnterminatedAnsiCQuote(place)
                | TokenizerError::UnterminatedDoubleQuote(place)
                | TokenizerError::UnterminatedBackquote(place)
                | TokenizerError::UnterminatedExtendedGlob(place) => Some(place.clone()),
                _ => None,
            };
            let place = started.or(position).unwrap_or_default();
            let (line, column) = masked.position(place.index);
            let what = match &inner {
                TokenizerError::UnterminatedSingleQuote(_) | TokenizerError::UnterminatedAnsiCQuote(_) => {
                    "expected a closing `'`".to_owned()
                }
                TokenizerError::UnterminatedDoubleQuote(_) => "expected a closing `\"`".to_owned(),
                TokenizerError::UnterminatedBackquote(_) => "expected a closing backquote".to_owned(),
                TokenizerError::UnterminatedCommandSubstitution => "expected `)` at the end of `$(`".to_owned(),
                TokenizerError::UnterminatedVariable => "expected `}` at the end of `${`".to_owned(),
                TokenizerError::UnterminatedExpansion => "expected the end of an expansion".to_owned(),
                TokenizerError::UnterminatedHereDocuments(tags, _) => {
                    format!("expected the line `{}` that ends the here-document", tags.trim())
                }
                other => other.to_string(),
            };
            SyntaxError {
                message: format!("line {line}, column {column}: syntax error: {what}"),
                incomplete: inner.is_incomplete(),
            }
        }
    }
}

fn stray(word: &str, line: usize, column: usize) -> SyntaxError {
    refused(format!("line {line}, column {column}: syntax error near `{word}`, which ends nothing"))
}

fn end(source: &str) -> (usize, usize) {
    let last = source.lines().last().unwrap_or_default();
    (source.lines().count().max(1), last.chars().count() + 1)
}

/// Problems that the tokens alone show in a source that the parser could not read.
#[derive(Default)]
struct Scanned {
    /// The innermost word or bracket that is still open, and what would close it.
    open: Option<String>,
    /// A word that closes what was not opened, with line and column.
    stray: Option<(String, usize, usize)>,
}

fn scan(masked: &Masked, until: Option<usize>) -> Scanned {
    let mut scanned = Scanned::default();
    let Ok(tokens) = brush_parser::uncached_tokenize_str(&masked.text, &Default::default()) else { return scanned };
    let mut open: Vec<(&str, &str, usize)> = Vec::new();
    let mut command_may_start = true;
    for token in &tokens {
        let place = &token.location().start;
        if until.is_some_and(|until| place.index >= until) {
            break;
        }
        let (line, column) = masked.position(place.index);
        match token {
            Token::Operator(text, _) => {
                match text.as_str() {
                    "(" => open.push(("(", ")", line)),
                    ")" if open.last().is_some_and(|open| open.0 == "(") => {
                        open.pop();
                    }
                    _ => {}
                }
                command_may_start = !text.starts_with(['<', '>']);
            }
            Token::Word(text, _) if command_may_start => match text.as_str() {
                "if" => open.push(("if", "then", line)),
                "while" => open.push(("while", "do", line)),
                "until" => open.push(("until", "do", line)),
                "{" => open.push(("{", "}", line)),
                "for" | "case" => {
                    open.push(if text == "for" { ("for", "do", line) } else { ("case", "esac", line) });
                    command_may_start = false;
                }
                "then" | "else" | "elif" | "do" => match open.last_mut() {
                    Some(last) => {
                        last.1 = match text.as_str() {
                            "do" => "done",
                            "elif" => "then",
                            _ => "fi",
                        }
                    }
                    None => scanned.stray = scanned.stray.or(Some((text.clone(), line, column))),
                },
                "fi" | "done" | "esac" | "}" => {
                    if open.pop().is_none() {
                        scanned.stray = scanned.stray.or(Some((text.clone(), line, column)));
                    }
                }
                "!" | "time" => {}
                _ => command_may_start = false,
            },
            Token::Word(text, _) => {
                // Patterns follow `case x in`, but so can `esac`, which is only found where a command may start.
                command_may_start = text == "in" && open.last().is_some_and(|open| open.0 == "case");
            }
        }
    }
    let innermost = open.pop();
    scanned.open = innermost.map(|(word, closer, line)| format!("expected `{closer}` for the `{word}` of line {line}"));
    scanned
}

/// The line at which brackets and compound commands are nested too deep for the parser. It counts a little more than
/// there is, because it knows neither here-documents nor which words begin a command.
fn too_deep(source: &str) -> Option<usize> {
    // Apart, because the pattern of a `case` ends with a bracket that nothing opened.
    let (mut brackets, mut compounds, mut line) = (0_usize, 0_usize, 1);
    // Of `$[`, whose end is that of a test or a pattern too.
    let mut expressions = 0_usize;
    let mut quoted = false;
    let mut word = String::new();
    // Whether the word stands where a command may: `echo done` closes nothing.
    let (mut may_close, mut word_may_close) = (true, true);
    let mut chars = source.chars().peekable();
    let mut previous = ' ';
    while let Some(c) = chars.next() {
        if c == '\n' {
            line += 1;
        }
        if c.is_ascii_alphabetic() {
            if word.is_empty() {
                word_may_close = may_close;
            }
            word.push(c);
            may_close = false;
        } else {
            match std::mem::take(&mut word).as_str() {
                "if" | "while" | "until" | "for" | "case" if !quoted => compounds += 1,
                "fi" | "done" | "esac" if !quoted && word_may_close => {
                    compounds = compounds.saturating_sub(1);
                    may_close = true;
                }
                "then" | "do" | "else" if word_may_close => may_close = true,
                _ => {}
            }
            if !c.is_whitespace() || c == '\n' {
                may_close = matches!(c, '\n' | ';' | '&' | '|' | '(' | ')' | '{' | '}');
            }
        }
        match c {
            '\\' => {
                chars.next();
            }
            '\'' if !quoted => {
                for c in chars.by_ref().take_while(|&c| c != '\'') {
                    line += usize::from(c == '\n');
                }
            }
            '#' if !quoted && previous.is_whitespace() => while chars.next_if(|&c| c != '\n').is_some() {},
            '"' => quoted = !quoted,
            '(' | '{' if !quoted || previous == '$' => brackets += 1,
            ')' | '}' => brackets = brackets.saturating_sub(1),
            '[' if previous == '$' => expressions += 1,
            ']' => expressions = expressions.saturating_sub(1),
            _ => {}
        }
        if brackets + compounds > DEEPEST || expressions > DEEPEST {
            return Some(line);
        }
        previous = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn message(source: &str) -> String {
        parse(source).expect_err("not a program").message
    }

    #[test]
    fn names_what_is_open() {
        assert_eq!(
            message("if true; then echo a"),
            "line 1, column 21: syntax error: unexpected end of input; expected `fi` for the `if` of line 1"
        );
        assert_eq!(
            message("\nwhile true\ndo echo a; done; for x in a b"),
            "line 3, column 30: syntax error: unexpected end of input; expected `do` for the `for` of line 3"
        );
        assert_eq!(message("echo a; )"), "line 1, column 9: syntax error near `)`");
        assert!(message("echo 'a").ends_with("expected a closing `'`"), "{}", message("echo 'a"));
    }

    #[test]
    fn an_expansion_that_is_open_behind_a_here_document_is_told() {
        for source in [
            "cat <<E $(${a}\nE\n",
            "cat <<E 3$(local y=${a[@]} &>>&1\n$([  ] < f)\nE\n",
            "cat <<E `${a}\nE\n",
            "cat << \"$( <<< \"$(",
            "cat <<- \"$( < \"$(",
        ] {
            let error = parse(source).expect_err("an open expansion");
            assert!(error.incomplete && error.message.contains("a quote or an expansion is open"), "{}", error.message);
        }
        assert!(parse("cat <<E\na\nE\n# $(").is_ok());
    }

    #[test]
    fn says_whether_more_lines_could_help() {
        assert!(parse("echo \"a").expect_err("open quote").incomplete);
        assert!(parse("cat <<E\na").expect_err("open document").incomplete);
        assert!(parse("f() {").expect_err("open group").incomplete);
        assert!(parse("for ((;;)); do break; done").is_ok());
        assert!(!parse("fi").expect_err("no if").incomplete);
    }

    #[test]
    fn lines_may_end_in_crlf() {
        assert_eq!(
            parse("if a\r\nthen b\r\nfi\r\n").map(|list| list.to_string()).ok().as_deref(),
            Some("if a; then b; fi")
        );
        let mixed = parse("printf 'a\r\nb'\nc").map(|list| list.to_string());
        assert_eq!(mixed.ok().as_deref(), Some("printf 'a\r\nb'; c"));
    }

    #[test]
    fn refuses_what_would_overflow_the_stack() {
        assert!(message(&"( ".repeat(5000)).contains("nested deeper"));
        assert!(message(&"if a; then ".repeat(5000)).contains("nested deeper"));
        assert!(message(&format!("echo {}", "$(echo ".repeat(5000))).contains("nested deeper"));
        assert!(message(&"$[".repeat(5000)).contains("nested deeper"));
        assert!(message(&"case x in x) ".repeat(5000)).contains("nested deeper"));
        assert!(message(&"if echo fi; then ".repeat(5000)).contains("nested deeper"));
        let many = "if a; then b; fi; case x in x) c;; esac; for i in 1; do echo done; done\n".repeat(100);
        assert!(parse(&many).is_ok(), "side by side is not nested");
        assert!(message(&"a".repeat(LONGEST_SOURCE + 1)).contains("put data into a file"));
    }
}
