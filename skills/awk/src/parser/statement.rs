//! Statements.

use crate::Error;
use crate::code::{ArrayRef, Case, Expr, Lvalue, Redirect, Statement, Target};
use crate::lexer::Token;

use super::Parser;

impl Parser<'_> {
    /// The body of `if`, a loop or `else`.
    fn body(&mut self) -> Result<Vec<Statement>, Error> {
        self.skip_newlines()?;
        if self.is_at("{") {
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

    pub fn statement(&mut self) -> Result<Statement, Error> {
        self.enter()?;
        let statement = self.any_statement();
        self.nest -= 1;
        statement
    }

    fn any_statement(&mut self) -> Result<Statement, Error> {
        let Token::Keyword(word) = self.token else {
            if self.is_at("{") {
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
                    let variable = Lvalue::Variable(self.slot(&name));
                    return Ok(Statement::ForIn(variable, array, self.looped()?));
                }
            }
            (self.lexer, self.token, self.line) = saved;
        }
        let first = self.for_part(";")?;
        self.expect(";")?;
        self.skip_newlines()?;
        let condition = if self.is_at(";") { None } else { Some(self.free(|parser| parser.expression())?) };
        self.expect(";")?;
        self.skip_newlines()?;
        let step = self.for_part(")")?;
        self.expect(")")?;
        Ok(Statement::For(first, condition, step, self.looped()?))
    }

    fn for_part(&mut self, end: &'static str) -> Result<Option<Expr>, Error> {
        if self.is_at(end) { Ok(None) } else { self.free(|parser| parser.expression()).map(Some) }
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
                if self.is_at("}") || matches!(self.token, Token::Keyword("case" | "default")) {
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

    /// Parses a `print` or `printf` statement behind its keyword.
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
        if self.is_at("(") {
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

    pub fn no_coprocess(&self) -> Error {
        self.error("`|&` is not supported; write to a file and read it with `getline`, or use two pipes".into())
    }
}
