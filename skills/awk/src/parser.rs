//! From tokens to a program: its rules and functions. What is in them is in `parser/statement.rs` and `parser/expression.rs`.

use std::collections::HashMap;

use crate::Error;
use crate::code::{Function, Pattern, Program, Rule, SPECIALS, Slot, Statement};
use crate::lexer::{Lexer, Token};

mod expression;
mod statement;

/// Deeper nesting would use up the stack.
const DEEPEST: usize = 200;

pub fn parse(source: &[u8]) -> Result<Program, Error> {
    let lexer = Lexer::new(source);
    let globals = SPECIALS.iter().map(|(name, special)| ((*name).to_owned(), special.slot())).collect();
    let mut parser = Parser {
        lexer,
        token: Token::Newline,
        line: 1,
        globals,
        parameters: Vec::new(),
        functions: Vec::new(),
        numbers: HashMap::new(),
        defined: defined(source)?,
        in_function: false,
        loops: 0,
        switches: 0,
        nest: 0,
        deepest: 0,
        no_greater: false,
    };
    parser.program()
}

/// The names of the functions that a program defines, which may be those of gawk's own.
fn defined(source: &[u8]) -> Result<Vec<String>, Error> {
    let mut lexer = Lexer::new(source);
    let mut names = Vec::new();
    let mut before = Token::Newline;
    // A sequence that is not a token yet may be part of a regular expression.
    loop {
        let token = match lexer.next() {
            Ok(Token::End) => return Ok(names),
            Ok(token) => token,
            Err(_) if lexer.skip() => continue,
            Err(_) => return Ok(names),
        };
        if let (Token::Keyword("function"), Token::Name(name) | Token::FunctionName(name)) = (&before, &token) {
            names.push(name.clone());
        }
        before = token;
    }
}

struct Parser<'s> {
    lexer: Lexer<'s>,
    token: Token,
    /// Where `token` stands.
    line: usize,
    globals: HashMap<String, usize>,
    /// Of the function that is being read.
    parameters: Vec<String>,
    functions: Vec<Option<Function>>,
    /// Names of functions, called or defined, with the line of the first call.
    numbers: HashMap<String, (usize, usize)>,
    defined: Vec<String>,
    in_function: bool,
    loops: usize,
    switches: usize,
    nest: usize,
    deepest: usize,
    /// `>` redirects.
    no_greater: bool,
}

impl Parser<'_> {
    fn program(&mut self) -> Result<Program, Error> {
        let mut program = Program {
            begin: Vec::new(),
            rules: Vec::new(),
            end: Vec::new(),
            begin_file: Vec::new(),
            end_file: Vec::new(),
            functions: Vec::new(),
            globals: Vec::new(),
        };
        let mut ranges = 0;
        self.advance()?;
        loop {
            self.skip_ends()?;
            match &self.token {
                Token::End => break,
                Token::Keyword("function") => self.function()?,
                Token::Keyword(word @ ("BEGIN" | "END" | "BEGINFILE" | "ENDFILE")) => {
                    let word = *word;
                    self.advance()?;
                    if !self.is_at("{") {
                        return Err(self.error(format!("{word} needs its action `{{ … }}` on the same line")));
                    }
                    let body = self.block()?;
                    match word {
                        "BEGIN" => program.begin.push(body),
                        "END" => program.end.push(body),
                        "BEGINFILE" => program.begin_file.push(body),
                        _ => program.end_file.push(body),
                    }
                }
                _ => program.rules.push(self.rule(&mut ranges)?),
            }
        }
        for (name, (_, line)) in &self.numbers {
            if !self.defined.contains(name) {
                return Err(Error::at_line(*line, format!("the function `{name}` is not defined")));
            }
        }
        program.functions = std::mem::take(&mut self.functions).into_iter().flatten().collect();
        program.globals = vec![String::new(); self.globals.len()];
        for (name, slot) in self.globals.drain() {
            program.globals[slot] = name;
        }
        Ok(program)
    }

    fn rule(&mut self, ranges: &mut usize) -> Result<Rule, Error> {
        let pattern = if self.is_at("{") {
            Pattern::Always
        } else {
            let first = self.expression()?;
            if self.taken(",")? {
                self.skip_newlines()?;
                let last = self.expression()?;
                *ranges += 1;
                Pattern::Range(first, last, *ranges - 1)
            } else {
                Pattern::When(first)
            }
        };
        let action = if self.is_at("{") { Some(self.block()?) } else { None };
        if action.is_none() && !matches!(self.token, Token::Newline | Token::End | Token::Sign(";" | "}")) {
            return Err(self.unexpected("an action or the end of the line"));
        }
        Ok(Rule { pattern, action })
    }

    fn function(&mut self) -> Result<(), Error> {
        self.advance()?;
        let (Token::Name(name) | Token::FunctionName(name)) = self.token.clone() else {
            return Err(self.unexpected("the name of a function"));
        };
        if let Some((name, ..)) = crate::code::BUILTINS.iter().take(expression::POSIX).find(|(b, ..)| *b == name) {
            return Err(self.error(format!("`{name}` is built in and cannot be defined")));
        }
        let number = self.function_number(&name);
        if self.functions[number].is_some() {
            return Err(self.error(format!("the function `{name}` is defined twice")));
        }
        self.advance()?;
        self.expect("(")?;
        self.parameters.clear();
        self.skip_newlines()?;
        while !self.is_at(")") {
            let Token::Name(parameter) = self.token.clone() else {
                return Err(self.unexpected("the name of a parameter"));
            };
            if self.parameters.contains(&parameter) || parameter == name {
                return Err(self.error(format!("the parameter `{parameter}` of `{name}` needs another name")));
            }
            if SPECIALS.iter().any(|(special, _)| *special == parameter) {
                return Err(self.error(format!("`{parameter}` means something to awk and cannot be a parameter")));
            }
            self.parameters.push(parameter);
            self.advance()?;
            self.skip_newlines()?;
            if !self.taken(",")? {
                break;
            }
            self.skip_newlines()?;
        }
        self.expect(")")?;
        self.skip_newlines()?;
        self.in_function = true;
        self.deepest = 0;
        let body = self.block()?;
        self.in_function = false;
        let parameters = std::mem::take(&mut self.parameters).len();
        self.functions[number] = Some(Function { name, parameters, body, depth: self.deepest + 2 });
        Ok(())
    }

    fn function_number(&mut self, name: &str) -> usize {
        if let Some((number, _)) = self.numbers.get(name) {
            return *number;
        }
        self.functions.push(None);
        self.numbers.insert(name.to_owned(), (self.functions.len() - 1, self.line));
        self.functions.len() - 1
    }

    fn slot(&mut self, name: &str) -> Slot {
        if let Some(at) = self.parameters.iter().position(|parameter| parameter == name) {
            return Slot::Local(at);
        }
        let next = self.globals.len();
        Slot::Global(*self.globals.entry(name.to_owned()).or_insert(next))
    }

    fn block(&mut self) -> Result<Vec<Statement>, Error> {
        self.expect("{")?;
        let mut statements = Vec::new();
        loop {
            self.skip_ends()?;
            if self.taken("}")? {
                return Ok(statements);
            }
            if self.token == Token::End {
                return Err(self.unexpected("`}`"));
            }
            statements.push(self.statement()?);
        }
    }

    fn enter(&mut self) -> Result<(), Error> {
        self.nest += 1;
        self.deepest = self.deepest.max(self.nest);
        if self.nest > DEEPEST {
            return Err(self.error(format!("nested deeper than {DEEPEST} levels")));
        }
        Ok(())
    }

    /// Runs `parse` as inside parentheses, where `>` compares.
    fn free<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let greater = std::mem::take(&mut self.no_greater);
        let parsed = parse(self);
        self.no_greater = greater;
        parsed
    }

    fn advance(&mut self) -> Result<(), Error> {
        self.token = self.lexer.next()?;
        self.line = self.lexer.line - usize::from(self.token == Token::Newline);
        Ok(())
    }

    fn is_at(&self, sign: &'static str) -> bool {
        self.token == Token::Sign(sign)
    }

    fn taken(&mut self, sign: &'static str) -> Result<bool, Error> {
        let here = self.is_at(sign);
        if here {
            self.advance()?;
        }
        Ok(here)
    }

    fn taken_keyword(&mut self, word: &'static str) -> Result<bool, Error> {
        let here = self.token == Token::Keyword(word);
        if here {
            self.advance()?;
        }
        Ok(here)
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), Error> {
        if self.taken(sign)? { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn skip_newlines(&mut self) -> Result<(), Error> {
        while self.token == Token::Newline {
            self.advance()?;
        }
        Ok(())
    }

    fn skip_ends(&mut self) -> Result<(), Error> {
        while matches!(self.token, Token::Newline | Token::Sign(";")) {
            self.advance()?;
        }
        Ok(())
    }

    fn unexpected(&self, expected: &str) -> Error {
        self.error(format!("syntax error at {}; expected {expected}", self.token.shown()))
    }

    fn error(&self, message: String) -> Error {
        Error::at_line(self.line, message)
    }
}
