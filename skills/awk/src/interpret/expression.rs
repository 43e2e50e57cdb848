//! Expressions, as a value, a number, a truth, or for their effect alone.

use std::cmp::Ordering;

use crate::Error;
use crate::code::{Comparison, Expr, Lvalue, Operator, Slot, Source, Special};
use crate::regex::Regex;
use crate::value::{Cell, Text, Value};

use super::{Flow, Interpreter, reason};

impl<'p> Interpreter<'p, '_> {
    pub fn value(&mut self, expr: &'p Expr) -> Result<Value, Error> {
        Ok(match expr {
            Expr::Number(number) => Value::Number(*number),
            Expr::Text(text) => Value::Text(text.clone()),
            Expr::Group(inner) => return self.value(inner),
            Expr::Place(place) => return self.read(place),
            Expr::Assign(place, value) => {
                let value = self.value(value)?;
                self.assign(place, value.clone())?;
                value
            }
            Expr::Append(slot, _) => {
                self.effect(expr)?;
                return self.get(*slot);
            }
            Expr::Concat(parts) => {
                let mut out = Vec::new();
                self.concat(parts, &mut out)?;
                Value::Text(out.into())
            }
            Expr::Conditional(condition, then, otherwise) => {
                let chosen = if self.truth(condition)? { then } else { otherwise };
                return self.value(chosen);
            }
            Expr::Call(function, arguments) => return self.call(*function, arguments),
            Expr::Builtin(builtin, arguments) => return self.builtin(*builtin, arguments),
            Expr::Getline(source, place) => Value::Number(self.getline(source, place.as_deref())?),
            Expr::Regex(_)
            | Expr::Compare(..)
            | Expr::And(..)
            | Expr::Or(..)
            | Expr::Not(_)
            | Expr::Match(..)
            | Expr::In(..) => Value::Number(f64::from(u8::from(self.truth(expr)?))),
            Expr::Update(..) | Expr::Step(..) | Expr::Binary(..) | Expr::Negate(_) | Expr::Plus(_) => {
                Value::Number(self.number(expr)?)
            }
        })
    }

    pub fn number(&mut self, expr: &'p Expr) -> Result<f64, Error> {
        Ok(match expr {
            Expr::Number(number) => *number,
            Expr::Group(inner) => return self.number(inner),
            Expr::Place(place) => match &**place {
                Lvalue::Variable(slot) => return self.number_of(*slot),
                Lvalue::Field(index) => {
                    let number = self.field_number(index)?;
                    if number == 0 {
                        return Ok(crate::number::from_text(self.record.text(&self.ofs, &self.convfmt)));
                    }
                    self.split_record();
                    self.record.number(number)
                }
                Lvalue::Element(..) => self.read(place)?.number(),
            },
            Expr::Binary(operator, a, b) => {
                let (a, b) = (self.number(a)?, self.number(b)?);
                arithmetic(*operator, a, b)?
            }
            Expr::Negate(inner) => -self.number(inner)?,
            Expr::Plus(inner) => self.number(inner)?,
            Expr::Update(operator, place, value) => {
                let value = self.number(value)?;
                self.update(place, |before| arithmetic(*operator, before, value))?.0
            }
            Expr::Step(place, by, before) => {
                let (after, first) = self.update(place, |number| Ok(number + by))?;
                if *before { first } else { after }
            }
            Expr::Regex(_)
            | Expr::Compare(..)
            | Expr::And(..)
            | Expr::Or(..)
            | Expr::Not(_)
            | Expr::Match(..)
            | Expr::In(..) => f64::from(u8::from(self.truth(expr)?)),
            _ => self.value(expr)?.number(),
        })
    }

    pub fn truth(&mut self, expr: &'p Expr) -> Result<bool, Error> {
        Ok(match expr {
            Expr::Group(inner) => return self.truth(inner),
            Expr::Regex(regex) => {
                let regex = self.folded(regex)?;
                regex.is_match(self.record.text(&self.ofs, &self.convfmt))
            }
            Expr::Compare(comparison, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                let ordering = match (&a, &b) {
                    (Value::Number(a), Value::Number(b)) => a.partial_cmp(b),
                    _ => a.compare(&b, &self.convfmt, self.fold),
                };
                compared(*comparison, ordering)
            }
            Expr::And(a, b) => self.truth(a)? && self.truth(b)?,
            Expr::Or(a, b) => self.truth(a)? || self.truth(b)?,
            Expr::Not(inner) => !self.truth(inner)?,
            Expr::Match(text, pattern, negated) => {
                // `$n` is looked at where it stands.
                if let (Expr::Place(place), Expr::Regex(regex)) = (&**text, &**pattern)
                    && let Lvalue::Field(index) = &**place
                {
                    let regex = self.folded(regex)?;
                    let number = self.field_number(index)?;
                    if number == 0 {
                        return Ok(regex.is_match(self.record.text(&self.ofs, &self.convfmt)) != *negated);
                    }
                    self.split_record();
                    if let Some(text) = self.record.slice(number) {
                        return Ok(regex.is_match(text) != *negated);
                    }
                }
                let text = self.value(text)?.text(&self.convfmt);
                let regex = self.pattern(pattern)?;
                regex.is_match(text.bytes()) != *negated
            }
            Expr::In(array, subscripts) => {
                let key = self.key(subscripts)?;
                let array = self.array(array)?;
                array.borrow().contains_key(&key)
            }
            Expr::Number(number) => *number != 0.0,
            Expr::Binary(..) | Expr::Update(..) | Expr::Step(..) | Expr::Negate(_) | Expr::Plus(_) => {
                self.number(expr)? != 0.0
            }
            _ => self.value(expr)?.truth(),
        })
    }

    /// Evaluates what nobody asks the value of.
    pub fn effect(&mut self, expr: &'p Expr) -> Result<(), Error> {
        match expr {
            Expr::Group(inner) => self.effect(inner),
            Expr::Assign(place, value) => {
                let value = self.value(value)?;
                self.assign(place, value)
            }
            Expr::Append(slot, parts) => {
                let mut more = Vec::new();
                self.concat(parts, &mut more)?;
                self.append(*slot, &more)
            }
            Expr::Update(..) | Expr::Step(..) => self.number(expr).map(|_| ()),
            _ => self.value(expr).map(|_| ()),
        }
    }

    fn concat(&mut self, parts: &'p [Expr], out: &mut Vec<u8>) -> Result<(), Error> {
        for part in parts {
            if self.write_field(part, out)? {
                continue;
            }
            let value = self.value(part)?;
            value.write(&self.convfmt, out);
        }
        Ok(())
    }

    /// Writes a field that is still as it was read. `false`: it is something else.
    pub fn write_field(&mut self, expr: &'p Expr, out: &mut Vec<u8>) -> Result<bool, Error> {
        match expr {
            Expr::Text(text) => out.extend_from_slice(text.bytes()),
            Expr::Place(place) => {
                let Lvalue::Field(index) = &**place else { return Ok(false) };
                let number = self.field_number(index)?;
                if number == 0 {
                    out.extend_from_slice(self.record.text(&self.ofs, &self.convfmt));
                    return Ok(true);
                }
                self.split_record();
                match self.record.slice(number) {
                    Some(text) => out.extend_from_slice(text),
                    // The index may have changed something: it is not evaluated again.
                    None => self.record.value(number).write(&self.convfmt, out),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A fixed expression, for letters of both cases where IGNORECASE says so.
    fn folded(&mut self, regex: &Regex) -> Result<Regex, Error> {
        if self.fold { self.regex(regex.source()) } else { Ok(regex.clone()) }
    }

    /// Compiles the operand of `~`, or an argument that is a regular expression.
    pub fn pattern(&mut self, expr: &'p Expr) -> Result<Regex, Error> {
        match expr {
            Expr::Regex(regex) => self.folded(regex),
            Expr::Group(inner) => self.pattern(inner),
            _ => {
                let source = self.value(expr)?.text(&self.convfmt);
                self.regex(source.bytes())
            }
        }
    }

    pub fn call(&mut self, number: usize, arguments: &'p [Expr]) -> Result<Value, Error> {
        let function = &self.program.functions[number];
        if arguments.len() > function.parameters {
            let (name, most) = (&function.name, function.parameters);
            return Err(Error::new(format!("`{name}` takes {most} argument(s), not {}", arguments.len())));
        }
        let mut cells = Vec::with_capacity(function.parameters);
        for argument in arguments {
            cells.push(self.argument(argument)?);
        }
        self.call_with(number, cells)
    }

    pub fn call_with(&mut self, number: usize, mut cells: Vec<Cell>) -> Result<Value, Error> {
        let function = &self.program.functions[number];
        if self.depth + function.depth > self.deepest {
            return Err(Error::new(format!("the function `{}` calls itself too deep", function.name)));
        }
        cells.resize_with(function.parameters, Cell::default);
        let top = self.stack.len();
        self.stack.append(&mut cells);
        let base = std::mem::replace(&mut self.base, top);
        self.depth += function.depth;
        let flow = self.block(&function.body);
        self.depth -= function.depth;
        self.base = base;
        self.stack.truncate(top);
        match flow? {
            Flow::Return => Ok(std::mem::take(&mut self.returned)),
            Flow::On | Flow::Break | Flow::Continue => Ok(Value::Uninit),
            flow => {
                self.leaving = Some(flow);
                Err(Error::new("left by `next` or `exit`"))
            }
        }
    }

    fn getline(&mut self, source: &'p Source, place: Option<&'p Lvalue>) -> Result<f64, Error> {
        let (name, command) = match source {
            Source::Main => return self.getline_main(place),
            Source::File(name) => (self.value(name)?, false),
            Source::Command(name) => (self.value(name)?, true),
        };
        let name = name.text(&self.convfmt);
        if name.bytes().is_empty() {
            return Err(Error::new("`getline` from a file or command with an empty name"));
        }
        let mut text = Vec::new();
        let mut ended_by = Vec::new();
        let read = self.streams.reader(name.bytes(), command);
        match read.and_then(|reader| reader.next(&self.terminator, &mut text, &mut ended_by)) {
            Ok(false) => return Ok(0.0),
            Ok(true) => {}
            Err(e) if command => {
                return Err(Error::new(format!("cannot start \"{}\": {}", name.lossy(), reason(&e))));
            }
            Err(e) => {
                self.set_errno(&e);
                return Ok(-1.0);
            }
        }
        self.globals[Special::Rt.slot()] = Value::Text(ended_by.into()).into();
        match place {
            Some(place) => self.assign(place, Value::Input(text.into()))?,
            None => self.record.set(&text),
        }
        Ok(1.0)
    }

    fn getline_main(&mut self, place: Option<&'p Lvalue>) -> Result<f64, Error> {
        let Some(place) = place else { return Ok(f64::from(u8::from(self.next_record(None)?))) };
        let mut text = Vec::new();
        if !self.next_record(Some(&mut text))? {
            return Ok(0.0);
        }
        self.assign(place, Value::Input(Text::from(text)))?;
        Ok(1.0)
    }

    /// The variable of this slot, for functions that set it.
    pub fn special(&mut self, special: Special) -> Result<Value, Error> {
        self.get(Slot::Global(special.slot()))
    }
}

fn compared(comparison: Comparison, ordering: Option<Ordering>) -> bool {
    let Some(ordering) = ordering else { return comparison == Comparison::NotEqual };
    match comparison {
        Comparison::Less => ordering.is_lt(),
        Comparison::LessEqual => ordering.is_le(),
        Comparison::Equal => ordering.is_eq(),
        Comparison::NotEqual => ordering.is_ne(),
        Comparison::Greater => ordering.is_gt(),
        Comparison::GreaterEqual => ordering.is_ge(),
    }
}

fn arithmetic(operator: Operator, a: f64, b: f64) -> Result<f64, Error> {
    Ok(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide if b == 0.0 => return Err(Error::new("division by zero")),
        Operator::Divide => a / b,
        Operator::Remainder if b == 0.0 => return Err(Error::new("division by zero in %")),
        Operator::Remainder => a % b,
        Operator::Power if b.fract() == 0.0 && b.abs() <= 1024.0 => a.powi(b as i32),
        Operator::Power => a.powf(b),
    })
}
