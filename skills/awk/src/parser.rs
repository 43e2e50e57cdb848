//! From tokens to a program: items and statements. Expressions are in `parser/expression.rs`.

use std::collections::HashMap;

use crate::Error;
use crate::code::{
    ArrayRef, Case, Expr, Function, Pattern, Place, Program, Redirect, Rule, SPECIALS, Slot, Statement, Target,
};
use crate::lexer::{Lexer, Token};

mod expression;

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
    // What is no token yet may stand in a regular expression.
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
                    if !self.at("{") {
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
                return Err(Error::at(*line, format!("the function `{name}` is not defined")));
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
        let pattern = if self.at("{") {
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
        let action = if self.at("{") { Some(self.block()?) } else { None };
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
        while !self.at(")") {
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

    /// The body of `if`, a loop or `else`.
    fn body(&mut self) -> Result<Vec<Statement>, Error> {
        self.skip_newlines()?;
        if self.at("{") {
            return self.block();
        }
        if self.taken(";")? {
            return Ok(Vec::new());
        }
        Ok(vec![self.statement()?])
    }

    fn looped(&mut self) -> Result<Vec<Statement>, Error> {
        self.loops += 1;
        let body = self.body();
        self.loops -= 1;
        body
    }

    fn statement(&mut self) -> Result<Statement, Error> {
        self.enter()?;
        let statement = self.any_statement();
        self.nest -= 1;
        statement
    }

    fn enter(&mut self) -> Result<(), Error> {
        self.nest += 1;
        self.deepest = self.deepest.max(self.nest);
        if self.nest > DEEPEST {
            return Err(self.error(format!("nested deeper than {DEEPEST} levels")));
        }
        Ok(())
    }

    fn any_statement(&mut self) -> Result<Statement, Error> {
        let Token::Keyword(word) = self.token else {
            if self.at("{") {
                return Ok(Statement::Block(self.block()?));
            }
            return self.ended(|parser| parser.simple());
        };
        match word {
            "if" => {
                self.advance()?;
                let condition = self.condition()?;
                let then = self.body()?;
                let saved = (self.lexer.clone(), self.token.clone(), self.line);
                self.skip_ends()?;
                if self.taken_keyword("else")? {
                    return Ok(Statement::If(condition, then, self.body()?));
                }
                (self.lexer, self.token, self.line) = saved;
                Ok(Statement::If(condition, then, Vec::new()))
            }
            "while" => {
                self.advance()?;
                let condition = self.condition()?;
                Ok(Statement::While(condition, self.looped()?))
            }
            "do" => {
                self.advance()?;
                let body = self.looped()?;
                self.skip_ends()?;
                if !self.taken_keyword("while")? {
                    return Err(self.unexpected("the `while` of the `do`"));
                }
                let condition = self.condition()?;
                self.ended(|_| Ok(Statement::Do(body, condition)))
            }
            "for" => self.for_loop(),
            "switch" => self.switch(),
            _ => self.ended(|parser| parser.simple()),
        }
    }

    /// A statement that ends with `;`, a line, or the block.
    fn ended(&mut self, parse: impl FnOnce(&mut Self) -> Result<Statement, Error>) -> Result<Statement, Error> {
        let statement = parse(self)?;
        match self.token {
            Token::Newline | Token::Sign(";") => self.advance()?,
            Token::Sign("}") | Token::End => {}
            _ => return Err(self.unexpected("`;` or the end of the line")),
        }
        Ok(statement)
    }

    fn condition(&mut self) -> Result<Expr, Error> {
        self.expect("(")?;
        let condition = self.free(|parser| parser.expression())?;
        self.skip_newlines()?;
        self.expect(")")?;
        Ok(condition)
    }

    fn for_loop(&mut self) -> Result<Statement, Error> {
        self.advance()?;
        self.expect("(")?;
        let saved = (self.lexer.clone(), self.token.clone(), self.line);
        if let Token::Name(name) = self.token.clone() {
            self.advance()?;
            if self.taken_keyword("in")? && matches!(self.token, Token::Name(_)) {
                let array = self.array()?;
                if self.taken(")")? {
                    let variable = Place::Variable(self.slot(&name));
                    return Ok(Statement::ForIn(variable, array, self.looped()?));
                }
            }
            (self.lexer, self.token, self.line) = saved;
        }
        let first = self.for_part(";")?;
        self.expect(";")?;
        self.skip_newlines()?;
        let condition = if self.at(";") { None } else { Some(self.free(|parser| parser.expression())?) };
        self.expect(";")?;
        self.skip_newlines()?;
        let step = self.for_part(")")?;
        self.expect(")")?;
        Ok(Statement::For(first, condition, step, self.looped()?))
    }

    fn for_part(&mut self, end: &'static str) -> Result<Option<Expr>, Error> {
        if self.at(end) { Ok(None) } else { self.free(|parser| parser.expression()).map(Some) }
    }

    fn switch(&mut self) -> Result<Statement, Error> {
        self.advance()?;
        let value = self.condition()?;
        self.skip_newlines()?;
        self.expect("{")?;
        self.switches += 1;
        let mut cases = Vec::new();
        loop {
            self.skip_ends()?;
            if self.taken("}")? {
                break;
            }
            let case = if self.taken_keyword("default")? {
                Case::Default
            } else if self.taken_keyword("case")? {
                match self.unary()? {
                    Expr::Regex(regex) => Case::Regex(regex),
                    value => Case::Value(value),
                }
            } else {
                return Err(self.unexpected("`case` or `default`"));
            };
            self.expect(":")?;
            let mut body = Vec::new();
            loop {
                self.skip_ends()?;
                if self.at("}") || matches!(self.token, Token::Keyword("case" | "default")) {
                    break;
                }
                body.push(self.statement()?);
            }
            cases.push((case, body));
        }
        self.switches -= 1;
        Ok(Statement::Switch(value, cases))
    }

    fn simple(&mut self) -> Result<Statement, Error> {
        let Token::Keyword(word) = self.token else {
            return Ok(Statement::Expr(self.expression()?));
        };
        match word {
            "print" | "printf" => {
                self.advance()?;
                self.output(word == "printf")
            }
            "break" | "continue" => {
                if self.loops == 0 && (self.switches == 0 || word == "continue") {
                    return Err(self.error(format!("`{word}` stands outside of a loop")));
                }
                self.advance()?;
                Ok(if word == "break" { Statement::Break } else { Statement::Continue })
            }
            "next" => self.advance().map(|()| Statement::Next),
            "nextfile" => self.advance().map(|()| Statement::NextFile),
            "exit" => {
                self.advance()?;
                Ok(Statement::Exit(self.optional()?))
            }
            "return" => {
                if !self.in_function {
                    return Err(self.error("`return` stands outside of a function".into()));
                }
                self.advance()?;
                Ok(Statement::Return(self.optional()?))
            }
            "delete" => {
                self.advance()?;
                let parenthesis = self.taken("(")?;
                let array = self.array()?;
                if parenthesis {
                    self.expect(")")?;
                }
                Ok(match array {
                    ArrayRef::Element(array, subscripts) => Statement::Delete(*array, subscripts),
                    array => Statement::DeleteAll(array),
                })
            }
            "getline" => Ok(Statement::Expr(self.expression()?)),
            _ => Err(self.unexpected("a statement")),
        }
    }

    fn optional(&mut self) -> Result<Option<Expr>, Error> {
        match self.token {
            Token::Newline | Token::End | Token::Sign(";" | "}") => Ok(None),
            _ => self.expression().map(Some),
        }
    }

    /// What stands behind `print` or `printf`.
    fn output(&mut self, format: bool) -> Result<Statement, Error> {
        let arguments = self.outputs()?;
        if format && arguments.is_empty() {
            return Err(self.error("`printf` needs a format".into()));
        }
        let to = match self.token {
            Token::Sign(">") => Some(Target::File),
            Token::Sign(">>") => Some(Target::Append),
            Token::Sign("|") => Some(Target::Command),
            Token::Sign("|&") => return Err(self.no_coprocess()),
            _ => None,
        };
        let redirect = match to {
            None => None,
            Some(to) => {
                self.advance()?;
                let greater = std::mem::replace(&mut self.no_greater, true);
                let name = self.concatenation()?;
                self.no_greater = greater;
                Some(Redirect { to, name })
            }
        };
        Ok(if format { Statement::Printf(arguments, redirect) } else { Statement::Print(arguments, redirect) })
    }

    fn outputs(&mut self) -> Result<Vec<Expr>, Error> {
        let end = |token: &Token| {
            matches!(token, Token::Newline | Token::End | Token::Sign(";" | "}" | ">" | ">>" | "|" | "|&"))
        };
        if end(&self.token) {
            return Ok(Vec::new());
        }
        if self.at("(") {
            let saved = (self.lexer.clone(), self.token.clone(), self.line);
            self.advance()?;
            let list = self.free(|parser| parser.list(")"));
            if let Ok(list) = list
                && self.taken(")")?
                && end(&self.token)
            {
                return Ok(list);
            }
            (self.lexer, self.token, self.line) = saved;
        }
        let greater = std::mem::replace(&mut self.no_greater, true);
        let mut list = vec![self.expression()?];
        while self.taken(",")? {
            self.skip_newlines()?;
            list.push(self.expression()?);
        }
        self.no_greater = greater;
        Ok(list)
    }

    fn no_coprocess(&self) -> Error {
        self.error("`|&` is not supported; write to a file and read it with `getline`, or use two pipes".into())
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

    fn at(&self, sign: &'static str) -> bool {
        self.token == Token::Sign(sign)
    }

    fn taken(&mut self, sign: &'static str) -> Result<bool, Error> {
        let here = self.at(sign);
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
        Error::at(self.line, message)
    }
}
