//! Expressions, from the loosest operator to the tightest.

use crate::Error;
use crate::code::{ANY, ArrayRef, BUILTINS, Builtin, Comparison, Expr, Lvalue, Operator, SPECIALS, Slot, Source};
use crate::lexer::Token;
use crate::regex::Regex;

use super::Parser;

/// The number of built-in functions that POSIX has; a program may define functions with the names of the others.
pub const POSIX: usize = Builtin::Fflush as usize + 1;

impl Parser<'_> {
    pub fn expression(&mut self) -> Result<Expr, Error> {
        self.enter()?;
        let expr = self.ternary();
        self.nest -= 1;
        expr
    }

    fn ternary(&mut self) -> Result<Expr, Error> {
        let condition = self.or()?;
        if !self.taken("?")? {
            return Ok(condition);
        }
        self.skip_newlines()?;
        let then = self.expression()?;
        self.skip_newlines()?;
        self.expect(":")?;
        self.skip_newlines()?;
        let otherwise = self.expression()?;
        Ok(Expr::Conditional(condition.into(), then.into(), otherwise.into()))
    }

    fn or(&mut self) -> Result<Expr, Error> {
        let mut left = self.and()?;
        while self.taken("||")? {
            self.skip_newlines()?;
            left = Expr::Or(left.into(), self.and()?.into());
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, Error> {
        let mut left = self.membership()?;
        while self.taken("&&")? {
            self.skip_newlines()?;
            left = Expr::And(left.into(), self.membership()?.into());
        }
        Ok(left)
    }

    fn membership(&mut self) -> Result<Expr, Error> {
        let mut left = self.matching()?;
        while self.taken_keyword("in")? {
            left = Expr::In(self.array()?, vec![left]);
        }
        Ok(left)
    }

    fn matching(&mut self) -> Result<Expr, Error> {
        let mut left = self.comparison()?;
        loop {
            let negated = self.is_at("!~");
            if !self.taken("~")? && !self.taken("!~")? {
                return Ok(left);
            }
            left = Expr::Match(left.into(), self.comparison()?.into(), negated);
        }
    }

    fn comparison(&mut self) -> Result<Expr, Error> {
        let left = self.concatenation()?;
        let comparison = match self.token {
            Token::Sign("<") => Comparison::Less,
            Token::Sign("<=") => Comparison::LessEqual,
            Token::Sign("==") => Comparison::Equal,
            Token::Sign("!=") => Comparison::NotEqual,
            Token::Sign(">") if !self.no_greater => Comparison::Greater,
            Token::Sign(">=") => Comparison::GreaterEqual,
            _ => return Ok(left),
        };
        self.advance()?;
        Ok(Expr::Compare(comparison, left.into(), self.concatenation()?.into()))
    }

    /// Also `command | getline`, which takes a concatenation as its command.
    pub fn concatenation(&mut self) -> Result<Expr, Error> {
        let mut left = self.joined()?;
        while self.is_at("|") || self.is_at("|&") {
            let coprocess = self.is_at("|&");
            let saved = (self.lexer.clone(), self.token.clone(), self.line);
            self.advance()?;
            if !self.taken_keyword("getline")? {
                (self.lexer, self.token, self.line) = saved;
                return Ok(left);
            }
            if coprocess {
                return Err(self.no_coprocess());
            }
            let place = self.optional_place()?;
            left = Expr::Getline(Source::Command(left.into()), place);
        }
        Ok(left)
    }

    fn joined(&mut self) -> Result<Expr, Error> {
        let first = self.additive()?;
        if !self.begins_operand() {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.begins_operand() {
            parts.push(self.additive()?);
        }
        Ok(Expr::Concat(parts))
    }

    fn begins_operand(&self) -> bool {
        match &self.token {
            Token::Number(_) | Token::Text(_) | Token::Name(_) | Token::FunctionName(_) => true,
            Token::Sign(sign) => matches!(*sign, "$" | "!" | "(" | "++" | "--"),
            _ => false,
        }
    }

    fn additive(&mut self) -> Result<Expr, Error> {
        let mut left = self.multiplicative()?;
        loop {
            let operator = match self.token {
                Token::Sign("+") => Operator::Add,
                Token::Sign("-") => Operator::Subtract,
                _ => return Ok(left),
            };
            self.advance()?;
            left = Expr::Binary(operator, left.into(), self.multiplicative()?.into());
        }
    }

    fn multiplicative(&mut self) -> Result<Expr, Error> {
        let mut left = self.unary()?;
        loop {
            let operator = match self.token {
                Token::Sign("*") => Operator::Multiply,
                Token::Sign("/") => Operator::Divide,
                Token::Sign("%") => Operator::Remainder,
                _ => return Ok(left),
            };
            self.advance()?;
            left = Expr::Binary(operator, left.into(), self.unary()?.into());
        }
    }

    pub fn unary(&mut self) -> Result<Expr, Error> {
        let sign = match self.token {
            Token::Sign(sign @ ("!" | "-" | "+")) => sign,
            _ => return self.power(),
        };
        self.advance()?;
        self.enter()?;
        let operand = self.unary();
        self.nest -= 1;
        let operand = operand?.into();
        Ok(match sign {
            "!" => Expr::Not(operand),
            "-" => Expr::Negate(operand),
            _ => Expr::Plus(operand),
        })
    }

    fn power(&mut self) -> Result<Expr, Error> {
        let base = self.postfix()?;
        if !self.taken("^")? {
            return Ok(base);
        }
        // To the right: 2^3^2 is 2^9, and the exponent may have a sign.
        let exponent = self.unary()?;
        Ok(Expr::Binary(Operator::Power, base.into(), exponent.into()))
    }

    /// An operand, or an assignment to it.
    fn postfix(&mut self) -> Result<Expr, Error> {
        let operand = self.operand()?;
        let Expr::Place(place) = operand else { return Ok(operand) };
        let operator = match self.token {
            Token::Sign("=") => None,
            Token::Sign("+=") => Some(Operator::Add),
            Token::Sign("-=") => Some(Operator::Subtract),
            Token::Sign("*=") => Some(Operator::Multiply),
            Token::Sign("/=") => Some(Operator::Divide),
            Token::Sign("%=") => Some(Operator::Remainder),
            Token::Sign("^=") => Some(Operator::Power),
            _ => return self.stepped(place),
        };
        self.advance()?;
        self.skip_newlines()?;
        let value = self.expression()?;
        Ok(match operator {
            Some(operator) => Expr::Update(operator, place, value.into()),
            None => assigned(place, value),
        })
    }

    fn stepped(&mut self, place: Box<Lvalue>) -> Result<Expr, Error> {
        if self.taken("++")? {
            return Ok(Expr::Step(place, 1.0, true));
        }
        if self.taken("--")? {
            return Ok(Expr::Step(place, -1.0, true));
        }
        Ok(Expr::Place(place))
    }

    fn operand(&mut self) -> Result<Expr, Error> {
        let token = self.token.clone();
        match token {
            Token::Number(number) => {
                self.advance()?;
                Ok(Expr::Number(number))
            }
            Token::Text(text) => {
                self.advance()?;
                Ok(Expr::Text(text.into()))
            }
            Token::Sign("/" | "/=") => {
                let source = self.lexer.regex(&token)?;
                let regex = Regex::new(&source, false).map_err(|why| self.error(why))?;
                self.advance()?;
                Ok(Expr::Regex(regex))
            }
            Token::Sign("$") => {
                self.advance()?;
                self.enter()?;
                let index = self.field_index();
                self.nest -= 1;
                Ok(Expr::Place(Lvalue::Field(index?).into()))
            }
            Token::Sign(sign @ ("++" | "--")) => {
                self.advance()?;
                let Expr::Place(place) = self.operand()? else {
                    return Err(self.error(format!("`{sign}` needs a variable, a field or an element")));
                };
                Ok(Expr::Step(place, if sign == "++" { 1.0 } else { -1.0 }, false))
            }
            Token::Sign("(") => self.group(),
            Token::Keyword("getline") => {
                self.advance()?;
                let place = self.optional_place()?;
                let source = if self.taken("<")? { Source::File(self.file_name()?.into()) } else { Source::Main };
                Ok(Expr::Getline(source, place))
            }
            Token::Name(name) => self.named(&name),
            Token::FunctionName(name) => self.call(&name),
            _ => Err(self.unexpected("an expression")),
        }
    }

    /// The operand of `$`, which binds tighter than all else: `$i++` steps the field.
    fn field_index(&mut self) -> Result<Expr, Error> {
        match self.token {
            Token::Sign("-" | "+" | "!") => self.unary(),
            _ => self.operand(),
        }
    }

    fn file_name(&mut self) -> Result<Expr, Error> {
        match self.operand()? {
            Expr::Place(place) => self.stepped(place),
            other => Ok(other),
        }
    }

    fn group(&mut self) -> Result<Expr, Error> {
        self.advance()?;
        let mut list = self.free(|parser| parser.list(")"))?;
        self.expect(")")?;
        match (list.len(), list.pop()) {
            (1, Some(place @ Expr::Place(_))) if matches!(self.token, Token::Sign("++" | "--")) => Ok(place),
            (1, Some(inner)) => Ok(Expr::Group(inner.into())),
            (_, Some(last)) if self.taken_keyword("in")? => {
                list.push(last);
                Ok(Expr::In(self.array()?, list))
            }
            (_, Some(_)) => Err(self.unexpected("`in` behind a list in parentheses")),
            (_, None) => Err(self.unexpected("an expression between the parentheses")),
        }
    }

    /// Expressions up to `end`, which stays.
    pub fn list(&mut self, end: &'static str) -> Result<Vec<Expr>, Error> {
        let mut list = Vec::new();
        self.skip_newlines()?;
        while !self.is_at(end) {
            list.push(self.expression()?);
            self.skip_newlines()?;
            if !self.taken(",")? {
                break;
            }
            self.skip_newlines()?;
        }
        Ok(list)
    }

    fn subscripts(&mut self) -> Result<Vec<Expr>, Error> {
        self.expect("[")?;
        let list = self.free(|parser| parser.list("]"))?;
        if list.is_empty() {
            return Err(self.unexpected("a subscript"));
        }
        self.expect("]")?;
        Ok(list)
    }

    /// The name of an array, with subscripts where its elements are arrays.
    pub fn array(&mut self) -> Result<ArrayRef, Error> {
        let Token::Name(name) = self.token.clone() else { return Err(self.unexpected("the name of an array")) };
        self.advance()?;
        let mut array = ArrayRef::Variable(self.slot(&name));
        while self.is_at("[") {
            array = ArrayRef::Element(array.into(), self.subscripts()?);
        }
        Ok(array)
    }

    fn named(&mut self, name: &str) -> Result<Expr, Error> {
        if let Some((name, builtin, least, _)) = self.builtin(name) {
            self.advance()?;
            if self.is_at("(") {
                return self.arguments(builtin, name);
            }
            if least > 0 || builtin != Builtin::Length {
                return Err(self.unexpected(&format!("`(` behind `{name}`")));
            }
            return Ok(Expr::Builtin(builtin, Vec::new()));
        }
        if self.defined.iter().any(|function| function == name) && !self.parameters.iter().any(|p| p == name) {
            self.advance()?;
            if !self.is_at("(") {
                return Err(self.error(format!("`{name}` is a function and needs its `(`")));
            }
            return self.user_call(name);
        }
        Ok(Expr::Place(match self.array()? {
            ArrayRef::Variable(slot) => Lvalue::Variable(slot).into(),
            ArrayRef::Element(array, subscripts) => Lvalue::Element(*array, subscripts).into(),
        }))
    }

    fn optional_place(&mut self) -> Result<Option<Box<Lvalue>>, Error> {
        match self.token {
            Token::Name(_) | Token::Sign("$") => match self.operand()? {
                Expr::Place(place) => Ok(Some(place)),
                _ => Err(self.error("`getline` needs a variable, a field or an element".into())),
            },
            _ => Ok(None),
        }
    }

    fn builtin(&self, name: &str) -> Option<(&'static str, Builtin, usize, usize)> {
        let at = BUILTINS.iter().position(|(builtin, ..)| *builtin == name)?;
        (at < POSIX || !self.defined.iter().any(|defined| defined == name)).then_some(BUILTINS[at])
    }

    fn call(&mut self, name: &str) -> Result<Expr, Error> {
        match self.builtin(name) {
            Some((name, builtin, ..)) => {
                self.advance()?;
                self.arguments(builtin, name)
            }
            None => {
                self.advance()?;
                self.user_call(name)
            }
        }
    }

    fn user_call(&mut self, name: &str) -> Result<Expr, Error> {
        let number = self.function_number(name);
        self.expect("(")?;
        let arguments = self.free(|parser| parser.list(")"))?;
        self.expect(")")?;
        Ok(Expr::Call(number, arguments))
    }

    fn arguments(&mut self, builtin: Builtin, name: &str) -> Result<Expr, Error> {
        self.expect("(")?;
        let arguments = self.free(|parser| parser.list(")"))?;
        self.expect(")")?;
        let (_, _, least, most) = BUILTINS[builtin as usize];
        if arguments.len() < least || arguments.len() > most {
            let wanted = match (least, most) {
                (_, ANY) => format!("at least {least}"),
                _ if least == most => least.to_string(),
                _ => format!("{least} to {most}"),
            };
            return Err(self.error(format!("`{name}` takes {wanted} argument(s), not {}", arguments.len())));
        }
        if matches!(builtin, Builtin::Sub | Builtin::Gsub)
            && arguments.get(2).is_some_and(|e| !matches!(e, Expr::Place(_)))
        {
            return Err(self.error(format!(
                "the third argument of `{name}` is changed, so it must be a variable, a field or an element"
            )));
        }
        Ok(Expr::Builtin(builtin, arguments))
    }
}

/// `x = x "more"` adds to the end of `x`, which a copy would make slow in a loop.
fn assigned(place: Box<Lvalue>, value: Expr) -> Expr {
    let Lvalue::Variable(slot) = *place else { return Expr::Assign(place, value.into()) };
    let Expr::Concat(mut parts) = value else { return Expr::Assign(Lvalue::Variable(slot).into(), value.into()) };
    let same = |part: &Expr| matches!(part, Expr::Place(place) if matches!(**place, Lvalue::Variable(s) if s == slot));
    let plain = !matches!(slot, Slot::Global(at) if at < SPECIALS.len());
    if plain && parts.len() > 1 && same(&parts[0]) && parts.iter().all(changes_nothing) {
        parts.remove(0);
        return Expr::Append(slot, parts);
    }
    Expr::Assign(Lvalue::Variable(slot).into(), Expr::Concat(parts).into())
}

/// Whether it is certain that an expression changes no variable.
fn changes_nothing(expr: &Expr) -> bool {
    match expr {
        Expr::Number(_) | Expr::Text(_) => true,
        Expr::Group(inner) => changes_nothing(inner),
        Expr::Concat(parts) => parts.iter().all(changes_nothing),
        Expr::Binary(_, a, b) => changes_nothing(a) && changes_nothing(b),
        Expr::Conditional(a, b, c) => [a, b, c].into_iter().all(|expr| changes_nothing(expr)),
        Expr::Builtin(Builtin::Substr | Builtin::Sprintf | Builtin::Toupper | Builtin::Tolower, arguments) => {
            arguments.iter().all(changes_nothing)
        }
        Expr::Place(place) => match &**place {
            Lvalue::Variable(_) => true,
            Lvalue::Field(index) => changes_nothing(index),
            Lvalue::Element(ArrayRef::Variable(_), subscripts) => subscripts.iter().all(changes_nothing),
            Lvalue::Element(..) => false,
        },
        _ => false,
    }
}
