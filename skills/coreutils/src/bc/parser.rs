//! From tokens to statements.

use std::rc::Rc;

use super::lexer::{Lexer, Token, Unread};
use super::program::{
    Argument, COMPARISON, Expression, Function, Item, KEYWORDS, LEVELS, Local, Lvalue, Operator, Printed, Statement,
};

/// Brackets and blocks within each other, and operators in a row: what the parser's and the interpreter's stack have room for.
const DEEPEST: usize = 200;

#[derive(Debug)]
pub enum Wrong {
    Syntax(String),
    Read(std::io::Error),
    /// `quit` ends the program as soon as it is read, wherever it stands.
    Quit,
}

type Parsed<T> = Result<T, Wrong>;

pub struct Parser {
    pub lexer: Lexer,
    ahead: Option<Token>,
    depth: usize,
}

fn syntax<T>(message: &str) -> Parsed<T> {
    Err(Wrong::Syntax(message.to_owned()))
}

impl Parser {
    pub fn new(lexer: Lexer) -> Self {
        Self { lexer, ahead: None, depth: 0 }
    }

    /// Leaves out the rest of a line in which something is wrong.
    pub fn recover(&mut self) {
        if self.ahead.take() != Some(Token::Newline) {
            self.lexer.skip_line();
        }
        self.depth = 0;
    }

    fn peek(&mut self) -> Parsed<&Token> {
        if self.ahead.is_none() {
            let token = self.lexer.token().map_err(|unread| match unread {
                Unread::Illegal(why) => Wrong::Syntax(why),
                Unread::Broken(error) => Wrong::Read(error),
            })?;
            self.ahead = Some(token);
        }
        Ok(self.ahead.as_ref().expect("it was just read"))
    }

    fn take(&mut self) -> Parsed<Token> {
        self.peek()?;
        Ok(self.ahead.take().expect("it was just read"))
    }

    fn is_sign(&mut self, sign: &str) -> Parsed<bool> {
        Ok(matches!(self.peek()?, Token::Sign(found) if *found == sign))
    }

    fn accept(&mut self, sign: &str) -> Parsed<bool> {
        let found = self.is_sign(sign)?;
        if found {
            self.ahead = None;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.accept(sign)? { Ok(()) } else { syntax("syntax error") }
    }

    fn is_word(&mut self, word: &str) -> Parsed<bool> {
        Ok(matches!(self.peek()?, Token::Name(found) if found == word))
    }

    fn accept_word(&mut self, word: &str) -> Parsed<bool> {
        let found = self.is_word(word)?;
        if found {
            self.ahead = None;
        }
        Ok(found)
    }

    fn newlines(&mut self) -> Parsed<()> {
        while *self.peek()? == Token::Newline {
            self.ahead = None;
        }
        Ok(())
    }

    fn name(&mut self) -> Parsed<String> {
        match self.take()? {
            Token::Name(name) if !KEYWORDS.contains(&name.as_str()) => Ok(name),
            other => {
                self.ahead = Some(other);
                syntax("syntax error")
            }
        }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return syntax("nested too deep");
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// One line, with all that belongs to it.
    pub fn item(&mut self) -> Parsed<Item> {
        if *self.peek()? == Token::End {
            return Ok(Item::End);
        }
        if self.accept_word("define")? {
            let (name, function) = self.function()?;
            return Ok(Item::Function(name, Rc::new(function)));
        }
        let mut statements = Vec::new();
        loop {
            match self.peek()? {
                Token::Newline => {
                    self.ahead = None;
                    return Ok(Item::Statements(statements));
                }
                Token::End => return Ok(Item::Statements(statements)),
                Token::Sign(";") => self.ahead = None,
                _ => {
                    statements.push(self.statement()?);
                    self.end_of_statement()?;
                }
            }
        }
    }

    fn end_of_statement(&mut self) -> Parsed<()> {
        match self.peek()? {
            Token::Newline | Token::End | Token::Sign(";" | "}") => Ok(()),
            _ => syntax("syntax error"),
        }
    }

    fn function(&mut self) -> Parsed<(String, Function)> {
        let void = self.accept_word("void")?;
        let name = self.name()?;
        self.expect("(")?;
        let parameters = self.locals()?;
        self.expect(")")?;
        self.newlines()?;
        self.expect("{")?;
        self.newlines()?;
        let mut own = Vec::new();
        while self.accept_word("auto")? {
            own.extend(self.locals()?);
            while *self.peek()? == Token::Newline || self.is_sign(";")? {
                self.ahead = None;
            }
        }
        let body = self.block()?;
        Ok((name, Function { parameters, own, body, void }))
    }

    fn locals(&mut self) -> Parsed<Vec<Local>> {
        let mut locals = Vec::new();
        if self.is_sign(")")? {
            return Ok(locals);
        }
        loop {
            let reference = self.accept("*")? || self.accept("&")?;
            let name = self.name()?;
            let array = self.accept("[")?;
            if array {
                self.expect("]")?;
            } else if reference {
                return syntax("syntax error");
            }
            locals.push(Local { name, array, reference });
            if !self.accept(",")? {
                return Ok(locals);
            }
        }
    }

    /// Statements to the bracket that closes.
    fn block(&mut self) -> Parsed<Vec<Statement>> {
        let mut statements = Vec::new();
        loop {
            match self.peek()? {
                Token::Newline | Token::Sign(";") => self.ahead = None,
                Token::Sign("}") => {
                    self.ahead = None;
                    return Ok(statements);
                }
                Token::End => return syntax("syntax error: a } is missing"),
                _ => {
                    statements.push(self.statement()?);
                    self.end_of_statement()?;
                }
            }
        }
    }

    fn statement(&mut self) -> Parsed<Statement> {
        self.deeper(Self::any_statement)
    }

    fn any_statement(&mut self) -> Parsed<Statement> {
        if self.accept("{")? {
            return Ok(Statement::Block(self.block()?));
        }
        if matches!(self.peek()?, Token::Text(_)) {
            let Token::Text(text) = self.take()? else { return syntax("syntax error") };
            return Ok(Statement::Text(text));
        }
        let Token::Name(word) = self.peek()? else { return Ok(Statement::Expression(self.expression()?)) };
        let simple = match word.as_str() {
            "break" => Some(Statement::Break),
            "continue" => Some(Statement::Continue),
            "halt" => Some(Statement::Halt),
            "quit" => return Err(Wrong::Quit),
            "limits" | "warranty" => Some(Statement::Block(Vec::new())),
            "if" | "while" | "for" | "return" | "print" => None,
            _ => return Ok(Statement::Expression(self.expression()?)),
        };
        let Token::Name(word) = self.take()? else { return syntax("syntax error") };
        match word.as_str() {
            "if" => {
                self.expect("(")?;
                let condition = self.expression()?;
                self.expect(")")?;
                self.newlines()?;
                let then = self.statement()?;
                let or = if self.accept_word("else")? {
                    self.newlines()?;
                    Some(Box::new(self.statement()?))
                } else {
                    None
                };
                Ok(Statement::If(condition, Box::new(then), or))
            }
            "while" => {
                self.expect("(")?;
                let condition = self.expression()?;
                self.expect(")")?;
                self.newlines()?;
                Ok(Statement::Loop(Some(condition), None, Box::new(self.statement()?)))
            }
            "for" => {
                self.expect("(")?;
                let first = self.expression_before(";")?;
                let condition = self.expression_before(";")?;
                let step = self.expression_before(")")?;
                self.newlines()?;
                let repeated = Statement::Loop(condition, step, Box::new(self.statement()?));
                // The value of the first expression is not printed.
                let first = first.map(|first| Statement::If(first, Box::new(Statement::Block(Vec::new())), None));
                Ok(Statement::Block(first.into_iter().chain([repeated]).collect()))
            }
            "return" => match self.peek()? {
                Token::Newline | Token::End | Token::Sign(";" | "}") => Ok(Statement::Return(None)),
                _ => Ok(Statement::Return(self.optional_in_brackets()?)),
            },
            "print" => {
                let mut items = Vec::new();
                loop {
                    items.push(match self.peek()? {
                        Token::Text(text) => {
                            let text = text.clone();
                            self.ahead = None;
                            Printed::Text(text)
                        }
                        _ => Printed::Value(self.expression()?),
                    });
                    if !self.accept(",")? {
                        return Ok(Statement::Print(items));
                    }
                }
            }
            _ => Ok(simple.unwrap_or(Statement::Halt)),
        }
    }

    fn optional_in_brackets(&mut self) -> Parsed<Option<Expression>> {
        if self.accept("(")? {
            if self.accept(")")? {
                return Ok(None);
            }
            let inner = self.expression()?;
            self.expect(")")?;
            let group = Expression::Group(Box::new(inner));
            return Ok(Some(self.continued(group)?));
        }
        Ok(Some(self.expression()?))
    }

    fn expression_before(&mut self, sign: &str) -> Parsed<Option<Expression>> {
        if self.accept(sign)? {
            return Ok(None);
        }
        let expression = self.expression()?;
        self.expect(sign)?;
        Ok(Some(expression))
    }

    pub fn expression(&mut self) -> Parsed<Expression> {
        self.deeper(|parser| parser.level(0))
    }

    /// Operators of one strength, from left to right.
    fn level(&mut self, level: usize) -> Parsed<Expression> {
        if level == COMPARISON && self.accept("!")? {
            let negated = self.deeper(|parser| parser.level(COMPARISON))?;
            return Ok(Expression::Not(Box::new(negated)));
        }
        let left = match LEVELS.get(level) {
            Some(_) => self.level(level + 1)?,
            None => return self.power(),
        };
        self.operators(level, left)
    }

    fn operators(&mut self, level: usize, first: Expression) -> Parsed<Expression> {
        let mut rest = Vec::new();
        while let Token::Sign(sign) = self.peek()?
            && let Some((_, operator)) = LEVELS[level].iter().find(|(known, _)| known == sign)
        {
            let operator = *operator;
            self.ahead = None;
            rest.push((operator, self.level(level + 1)?));
        }
        Ok(if rest.is_empty() { first } else { Expression::Chain(Box::new(first), rest) })
    }

    /// Goes on behind an operand that was read already.
    fn continued(&mut self, operand: Expression) -> Parsed<Expression> {
        let mut left = self.power_of(operand)?;
        for level in (0..LEVELS.len()).rev() {
            left = self.operators(level, left)?;
        }
        Ok(left)
    }

    fn power(&mut self) -> Parsed<Expression> {
        let base = self.unary()?;
        self.power_of(base)
    }

    fn power_of(&mut self, base: Expression) -> Parsed<Expression> {
        if self.accept("^")? {
            let exponent = self.deeper(Self::power)?;
            return Ok(Expression::Power(Box::new(base), Box::new(exponent)));
        }
        Ok(base)
    }

    fn unary(&mut self) -> Parsed<Expression> {
        if self.accept("-")? {
            return Ok(Expression::Negate(Box::new(self.deeper(Self::unary)?)));
        }
        for (sign, up) in [("++", true), ("--", false)] {
            if self.accept(sign)? {
                let place = match self.deeper(Self::operand)? {
                    Expression::Read(place) => place,
                    _ => return syntax("syntax error"),
                };
                return Ok(Expression::Step { place, up, before: true });
            }
        }
        let operand = self.operand()?;
        match operand {
            Expression::Read(place) => self.stepped_or_assigned(place),
            other => Ok(other),
        }
    }

    fn stepped_or_assigned(&mut self, place: Lvalue) -> Parsed<Expression> {
        for (sign, up) in [("++", true), ("--", false)] {
            if self.accept(sign)? {
                return Ok(Expression::Step { place, up, before: false });
            }
        }
        let operator = match self.peek()? {
            Token::Sign("=") => None,
            Token::Sign("+=") => Some(Operator::Add),
            Token::Sign("-=") => Some(Operator::Subtract),
            Token::Sign("*=") => Some(Operator::Multiply),
            Token::Sign("/=") => Some(Operator::Divide),
            Token::Sign("%=") => Some(Operator::Modulo),
            Token::Sign("^=") => Some(Operator::Raise),
            _ => return Ok(Expression::Read(place)),
        };
        self.ahead = None;
        // Stronger than a comparison on its right.
        let value = self.deeper(|parser| parser.level(COMPARISON + 1))?;
        Ok(Expression::Assign(place, operator, Box::new(value)))
    }

    fn operand(&mut self) -> Parsed<Expression> {
        match self.take()? {
            Token::Number(text) => Ok(Expression::Number(text)),
            Token::Sign("(") => {
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(Expression::Group(Box::new(inner)))
            }
            Token::Name(name) => self.named(name),
            other => {
                self.ahead = Some(other);
                syntax("syntax error")
            }
        }
    }

    fn named(&mut self, name: String) -> Parsed<Expression> {
        let of_one = match name.as_str() {
            "ibase" => return Ok(Expression::Read(Lvalue::Ibase)),
            "obase" => return Ok(Expression::Read(Lvalue::Obase)),
            "last" => return Ok(Expression::Read(Lvalue::Last)),
            "scale" if !self.is_sign("(")? => return Ok(Expression::Read(Lvalue::Scale)),
            "scale" => Some(Expression::ScaleOf as fn(Box<Expression>) -> Expression),
            "length" => Some(Expression::Length as _),
            "sqrt" => Some(Expression::SquareRoot as _),
            "read" => {
                self.expect("(")?;
                self.expect(")")?;
                return Ok(Expression::Input);
            }
            keyword if KEYWORDS.contains(&keyword) => return syntax("syntax error"),
            _ => None,
        };
        if let Some(make) = of_one {
            self.expect("(")?;
            let inner = self.expression()?;
            self.expect(")")?;
            return Ok(make(Box::new(inner)));
        }
        if self.accept("[")? {
            let index = self.expression()?;
            self.expect("]")?;
            return Ok(Expression::Read(Lvalue::Element(name, Box::new(index))));
        }
        if !self.accept("(")? {
            return Ok(Expression::Read(Lvalue::Variable(name)));
        }
        let mut arguments = Vec::new();
        if self.accept(")")? {
            return Ok(Expression::Call(name, arguments));
        }
        loop {
            arguments.push(self.argument()?);
            if self.accept(")")? {
                return Ok(Expression::Call(name, arguments));
            }
            self.expect(",")?;
        }
    }

    /// An expression, or `name[]` for a whole array.
    fn argument(&mut self) -> Parsed<Argument> {
        let Token::Name(name) = self.peek()? else { return Ok(Argument::Value(self.expression()?)) };
        if KEYWORDS.contains(&name.as_str()) {
            return Ok(Argument::Value(self.expression()?));
        }
        let name = self.name()?;
        if self.accept("[")? {
            if self.accept("]")? {
                return Ok(Argument::Array(name));
            }
            let index = self.expression()?;
            self.expect("]")?;
            let element = Expression::Read(Lvalue::Element(name, Box::new(index)));
            return Ok(Argument::Value(self.behind(element)?));
        }
        let operand = self.named(name)?;
        Ok(Argument::Value(self.behind(operand)?))
    }

    /// Goes on behind a named operand: it may be assigned to.
    fn behind(&mut self, operand: Expression) -> Parsed<Expression> {
        let operand = match operand {
            Expression::Read(place) => self.stepped_or_assigned(place)?,
            other => other,
        };
        self.continued(operand)
    }
}
