//! `awk`, on the interpreter of awk-rs.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};

use awk_rs::ast::{AssignOp, Expr, Program, Stmt};
use awk_rs::lexer::{Token, TokenKind};
use awk_rs::{Interpreter, Lexer, Parser};
use lexopt::Arg::{Long, Short, Value};

use crate::cli;

const USAGE: &str = "Usage: awk [-F FS] [-v NAME=VALUE]... 'PROGRAM' [FILE]...
       awk [-F FS] [-v NAME=VALUE]... -f PROGRAMFILE [FILE]...
Run an AWK program over the lines of the files or of standard input.
";

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 2, |mut parser| {
        let mut separator = None;
        let mut variables = Vec::new();
        let mut program = String::new();
        let mut operands = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('F') | Long("field-separator") => separator = Some(unescape(&cli::value(&mut parser)?)),
                Short('v') | Long("assign") => {
                    let text = cli::value(&mut parser)?;
                    let (name, value) = text.split_once('=').ok_or_else(|| format!("'{text}' is no assignment"))?;
                    variables.push((name.to_owned(), unescape(value)));
                }
                Short('f') | Long("file") => {
                    let text = cli::read(&cli::value(&mut parser)?)?;
                    program.push_str(&String::from_utf8_lossy(&text));
                    program.push('\n');
                }
                Long("posix" | "traditional" | "re-interval") => {}
                Value(first) => {
                    operands.push(first.to_string_lossy().into_owned());
                    operands.extend(parser.raw_args()?.map(|a| a.to_string_lossy().into_owned()));
                }
                other => return Err(other.unexpected().into()),
            }
        }
        if program.is_empty() {
            if operands.is_empty() {
                return Err("a program is needed".into());
            }
            program = operands.remove(0);
        }
        run(&program, separator.as_deref(), variables, operands)
    })
}

fn run(
    program: &str,
    separator: Option<&str>,
    variables: Vec<(String, String)>,
    operands: Vec<String>,
) -> cli::Outcome {
    let program = parse(program)?;
    let mut interpreter = Interpreter::new(&program);
    interpreter.set_fs(separator.unwrap_or(" "));
    let argv = std::iter::once("awk".to_owned()).chain(operands.iter().cloned()).collect();
    interpreter.set_args(argv);
    for (name, value) in &variables {
        interpreter.set_variable(name, value);
    }
    let mut inputs: Vec<Box<dyn BufRead>> = Vec::new();
    let mut names = Vec::new();
    for operand in &operands {
        if let Some((name, value)) = assignment(operand) {
            interpreter.set_variable(name, &unescape(value));
            continue;
        }
        match operand.as_str() {
            "-" => inputs.push(Box::new(BufReader::new(io::stdin()))),
            path => inputs.push(Box::new(BufReader::new(File::open(path).map_err(cli::at(path))?))),
        }
        names.push(operand.clone());
    }
    if inputs.is_empty() {
        inputs.push(Box::new(BufReader::new(io::stdin())));
        names.push(String::new());
    }
    interpreter.set_filenames(names);
    let mut out = io::stdout().lock();
    let code = interpreter.run(inputs, &mut out)?;
    out.flush()?;
    Ok(code)
}

/// Parses a program and mends two things that awk-rs 0.2 does otherwise: `length` without parentheses is a variable to it,
/// and a reference alone (`a[$1];`) makes no element.
fn parse(program: &str) -> Result<Program, cli::Error> {
    let mut tokens = Vec::new();
    for token in Lexer::new(program).tokenize()? {
        let (line, column) = (token.location.line, token.location.column);
        let opens = token.kind == TokenKind::LeftParen;
        if !opens && tokens.last().is_some_and(is_length) {
            tokens.push(Token::new(TokenKind::LeftParen, line, column));
            tokens.push(Token::new(TokenKind::RightParen, line, column));
        }
        tokens.push(token);
    }
    let mut program = Parser::new(tokens).parse()?;
    for statement in program.rules.iter_mut().filter_map(|rule| rule.action.as_mut()).flat_map(|b| &mut b.statements) {
        if let Stmt::Expr(reference @ Expr::ArrayAccess { .. }) = statement {
            *reference = Expr::Assign {
                target: Box::new(reference.clone()),
                op: AssignOp::Assign,
                value: Box::new(reference.clone()),
                location: reference.location(),
            };
        }
    }
    Ok(program)
}

fn is_length(token: &Token) -> bool {
    matches!(&token.kind, TokenKind::Identifier(name) if name == "length")
}

/// An operand of the form `name=value`.
fn assignment(operand: &str) -> Option<(&str, &str)> {
    let (name, value) = operand.split_once('=')?;
    let mut chars = name.chars();
    let first = chars.next()?;
    ((first.is_ascii_alphabetic() || first == '_') && chars.all(|c| c.is_ascii_alphanumeric() || c == '_'))
        .then_some((name, value))
}

/// The escapes of an AWK string, which count in assignments of the command line too.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('\\') | None => out.push('\\'),
            Some('"') => out.push('"'),
            Some('/') => out.push('/'),
            Some(other) => out.extend(['\\', other]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_told_from_files() {
        assert_eq!(assignment("a_1=x=y"), Some(("a_1", "x=y")));
        assert_eq!(assignment("./a=b"), None);
        assert_eq!(assignment("1=b"), None);
    }

    #[test]
    fn escapes_of_assignments() {
        assert_eq!(unescape(r"a\tb\\n\."), "a\tb\\n\\.");
    }

    #[track_caller]
    fn check(program: &str, input: &str, expected: &str) {
        let program = parse(program).unwrap();
        let mut interpreter = Interpreter::new(&program);
        let mut out = Vec::new();
        interpreter.run(vec![io::Cursor::new(input.to_owned())], &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn what_is_mended_works() {
        check("{ print length }", "abc\n", "3\n");
        check("length > 2", "ab\nabc\n", "abc\n");
        check("{ a[$1]; n = length(a) } END { print n }", "x\ny\nx\n", "2\n");
    }
}
