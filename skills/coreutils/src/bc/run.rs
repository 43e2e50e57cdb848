//! Runs what the parser read.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::rc::Rc;

use super::lexer::Lexer;
use super::math;
use super::number::{Failed, MOST_DIGITS, Number};
use super::print;
use super::program::{Argument, Expression, Function, Local, Lvalue, Operator, Printed, Statement};

/// Expressions, statements and calls within each other: what the stack has room for. A recursive function takes four for each
/// call.
const DEEPEST: usize = 1_000;

/// The index of an array ends here, as in GNU's bc.
const MOST_ELEMENTS: u64 = 16_777_215;

const MOST_BASE: u64 = i32::MAX as u64;

/// Columns of a line, the backslash at its end included.
const COLUMNS: usize = 69;

type Array = BTreeMap<u64, Number>;

/// How the statements of a line or of a function end.
#[derive(Debug, PartialEq, Eq)]
pub enum Flow {
    Next,
    Break,
    Continue,
    Return(Number),
    Halt,
}

/// Why they end early.
#[derive(Debug)]
pub enum Stop {
    Failed(Failed),
    Write(io::Error),
}

impl From<Failed> for Stop {
    fn from(why: Failed) -> Self {
        Stop::Failed(why)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Write(error)
    }
}

type Result<T> = std::result::Result<T, Stop>;

fn fail<T>(why: impl Into<String>) -> Result<T> {
    Err(Stop::Failed(why.into()))
}

/// A variable of the caller that comes back when the function ends.
enum Saved {
    Variable(String, Option<Number>),
    Array(String, Option<Array>),
    /// The caller's array goes back to where it came from.
    Lent {
        own: String,
        before: Option<Array>,
        lender: String,
    },
}

pub struct Machine<W: Write> {
    out: W,
    /// Columns of the line that is being printed.
    column: usize,
    columns: usize,
    variables: HashMap<String, Number>,
    arrays: HashMap<String, Array>,
    functions: HashMap<String, Rc<Function>>,
    library: bool,
    scale: u64,
    ibase: u32,
    obase: u64,
    last: Number,
    depth: usize,
}

impl<W: Write> Machine<W> {
    pub fn new(out: W, library: bool) -> Self {
        let columns = std::env::var("BC_LINE_LENGTH").ok().and_then(|text| text.parse().ok());
        Self {
            out,
            column: 0,
            // A length of 0 or 1 is that of a line without an end.
            columns: columns.map_or(COLUMNS, |length: usize| if length < 3 { usize::MAX } else { length - 1 }),
            variables: HashMap::new(),
            arrays: HashMap::new(),
            functions: HashMap::new(),
            library,
            scale: if library { 20 } else { 0 },
            ibase: 10,
            obase: 10,
            last: Number::default(),
            depth: 0,
        }
    }

    pub fn define(&mut self, name: String, function: Rc<Function>) {
        self.functions.insert(name, function);
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Runs the statements of a line. After an error the next line goes on with nothing left of calls.
    pub fn run(&mut self, statements: &[Statement], input: &mut Lexer) -> Result<Flow> {
        self.depth = 0;
        self.block(statements, input)
    }

    fn block(&mut self, statements: &[Statement], input: &mut Lexer) -> Result<Flow> {
        for statement in statements {
            let flow = self.statement(statement, input)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// Goes one level deeper, as far as there is a stack.
    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEEPEST {
            return fail("calls are nested too deep");
        }
        self.depth += 1;
        let done = work(self);
        self.depth -= 1;
        done
    }

    fn statement(&mut self, statement: &Statement, input: &mut Lexer) -> Result<Flow> {
        self.deeper(|machine| machine.perform(statement, input))
    }

    fn perform(&mut self, statement: &Statement, input: &mut Lexer) -> Result<Flow> {
        match statement {
            Statement::Expression(expression) => {
                if let Expression::Call(name, arguments) = expression {
                    // Of a function without a value nothing is printed.
                    if let Some(value) = self.call(name, arguments, input)? {
                        self.print_line(value)?;
                    }
                } else {
                    let value = self.evaluate(expression, input)?;
                    if !matches!(expression, Expression::Assign(..)) {
                        self.print_line(value)?;
                    }
                }
            }
            Statement::Text(text) => self.write(text)?,
            Statement::Print(items) => {
                for item in items {
                    match item {
                        Printed::Text(text) => {
                            let text = print::unescaped(text);
                            self.write(&text)?;
                        }
                        Printed::Value(value) => {
                            let value = self.evaluate(value, input)?;
                            self.write(&value.show(self.obase))?;
                            self.last = value;
                        }
                    }
                }
            }
            Statement::If(condition, then, or) => {
                if !self.evaluate(condition, input)?.is_zero() {
                    return self.statement(then, input);
                }
                if let Some(or) = or {
                    return self.statement(or, input);
                }
            }
            Statement::Loop(condition, step, body) => loop {
                if let Some(condition) = condition
                    && self.evaluate(condition, input)?.is_zero()
                {
                    break;
                }
                match self.statement(body, input)? {
                    Flow::Next | Flow::Continue => {}
                    Flow::Break => break,
                    other => return Ok(other),
                }
                if let Some(step) = step {
                    self.evaluate(step, input)?;
                }
            },
            Statement::Block(statements) => return self.block(statements, input),
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
            Statement::Return(None) => return Ok(Flow::Return(Number::default())),
            Statement::Return(Some(value)) => return Ok(Flow::Return(self.evaluate(value, input)?)),
            Statement::Halt => return Ok(Flow::Halt),
        }
        Ok(Flow::Next)
    }

    fn print_line(&mut self, value: Number) -> Result<()> {
        self.write(&value.show(self.obase))?;
        self.write("\n")?;
        self.last = value;
        Ok(())
    }

    /// Long lines are broken with a backslash.
    fn write(&mut self, text: &str) -> Result<()> {
        for character in text.chars() {
            if character == '\n' {
                self.column = 0;
            } else {
                self.column += 1;
                if self.column == self.columns {
                    self.out.write_all(b"\\\n")?;
                    self.column = 1;
                }
            }
            write!(self.out, "{character}")?;
        }
        Ok(())
    }

    fn evaluate(&mut self, expression: &Expression, input: &mut Lexer) -> Result<Number> {
        self.deeper(|machine| machine.value(expression, input))
    }

    fn value(&mut self, expression: &Expression, input: &mut Lexer) -> Result<Number> {
        Ok(match expression {
            Expression::Number(text) => Number::parse(text, self.ibase)?,
            Expression::Read(place) => self.read(place, input)?,
            Expression::Group(inner) => self.evaluate(inner, input)?,
            Expression::Negate(inner) => self.evaluate(inner, input)?.negated(),
            Expression::Not(inner) => truth(self.evaluate(inner, input)?.is_zero()),
            Expression::Length(inner) => Number::integer(self.evaluate(inner, input)?.length()),
            Expression::ScaleOf(inner) => Number::integer(self.evaluate(inner, input)?.scale),
            Expression::SquareRoot(inner) => self.evaluate(inner, input)?.square_root(self.scale)?,
            Expression::Input => {
                let line = input.read_line()?;
                let (sign, text) = match line.trim().strip_prefix('-') {
                    Some(text) => (true, text),
                    None => (false, line.trim()),
                };
                let number = Number::parse(text, self.ibase)?;
                if sign { number.negated() } else { number }
            }
            Expression::Power(base, exponent) => {
                let (base, exponent) = (self.evaluate(base, input)?, self.evaluate(exponent, input)?);
                base.raise(&exponent, self.scale)?
            }
            Expression::Chain(first, rest) => {
                let mut value = self.evaluate(first, input)?;
                for (operator, operand) in rest {
                    value = match operator {
                        Operator::And if value.is_zero() => Number::default(),
                        Operator::Or if !value.is_zero() => truth(true),
                        _ => {
                            let operand = self.evaluate(operand, input)?;
                            self.calculate(*operator, &value, &operand)?
                        }
                    };
                }
                value
            }
            Expression::Step { place, up, before } => {
                let old = self.read(place, input)?;
                let one = Number::integer(if *up { 1 } else { -1 });
                let new = old.add(&one);
                self.assign(place, new.clone(), input)?;
                if *before { new } else { old }
            }
            Expression::Assign(place, operator, value) => {
                let mut value = self.evaluate(value, input)?;
                if let Some(operator) = operator {
                    let old = self.read(place, input)?;
                    value = self.calculate(*operator, &old, &value)?;
                }
                self.assign(place, value.clone(), input)?;
                value
            }
            Expression::Call(name, arguments) => self.call(name, arguments, input)?.unwrap_or_default(),
        })
    }

    fn calculate(&self, operator: Operator, a: &Number, b: &Number) -> std::result::Result<Number, Failed> {
        Ok(match operator {
            Operator::Add => a.add(b),
            Operator::Subtract => a.subtract(b),
            Operator::Multiply => a.multiply(b, self.scale)?,
            Operator::Divide => a.divide(b, self.scale)?,
            Operator::Modulo => a.modulo(b, self.scale)?,
            Operator::Raise => a.raise(b, self.scale)?,
            Operator::Equal => truth(a.compare(b) == Ordering::Equal),
            Operator::Unequal => truth(a.compare(b) != Ordering::Equal),
            Operator::Less => truth(a.compare(b) == Ordering::Less),
            Operator::LessOrEqual => truth(a.compare(b) != Ordering::Greater),
            Operator::Greater => truth(a.compare(b) == Ordering::Greater),
            Operator::GreaterOrEqual => truth(a.compare(b) != Ordering::Less),
            Operator::And => truth(!a.is_zero() && !b.is_zero()),
            Operator::Or => truth(!a.is_zero() || !b.is_zero()),
        })
    }

    fn index(&mut self, name: &str, index: &Expression, input: &mut Lexer) -> Result<u64> {
        let index = self.evaluate(index, input)?.whole();
        match u64::try_from(index) {
            Ok(index) if index <= MOST_ELEMENTS => Ok(index),
            _ => fail(format!("Array {name} subscript out of bounds")),
        }
    }

    fn read(&mut self, place: &Lvalue, input: &mut Lexer) -> Result<Number> {
        Ok(match place {
            Lvalue::Variable(name) => self.variables.get(name).cloned().unwrap_or_default(),
            Lvalue::Element(name, index) => {
                let index = self.index(name, index, input)?;
                self.arrays.get(name).and_then(|array| array.get(&index)).cloned().unwrap_or_default()
            }
            Lvalue::Ibase => Number::integer(self.ibase),
            Lvalue::Obase => Number::integer(self.obase),
            Lvalue::Scale => Number::integer(self.scale),
            Lvalue::Last => self.last.clone(),
        })
    }

    fn assign(&mut self, place: &Lvalue, value: Number, input: &mut Lexer) -> Result<()> {
        match place {
            Lvalue::Variable(name) => drop(self.variables.insert(name.clone(), value)),
            Lvalue::Element(name, index) => {
                let index = self.index(name, index, input)?;
                self.arrays.entry(name.clone()).or_default().insert(index, value);
            }
            Lvalue::Last => self.last = value,
            Lvalue::Ibase => self.ibase = setting("ibase", &value, 2, 36)? as u32,
            Lvalue::Obase => self.obase = setting("obase", &value, 2, MOST_BASE)?,
            Lvalue::Scale => self.scale = setting("scale", &value, 0, MOST_DIGITS)?,
        }
        Ok(())
    }

    /// Nothing for a function without a value.
    fn call(&mut self, name: &str, arguments: &[Argument], input: &mut Lexer) -> Result<Option<Number>> {
        let Some(function) = self.functions.get(name).cloned() else {
            return self.of_library(name, arguments, input).map(Some);
        };
        if function.parameters.len() != arguments.len() {
            return fail("Parameter number mismatch");
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(match argument {
                Argument::Value(value) => Some(self.evaluate(value, input)?),
                Argument::Array(_) => None,
            });
        }
        let mut saved = Vec::new();
        for ((local, argument), value) in function.parameters.iter().zip(arguments).zip(values) {
            match (argument, value, local.array) {
                (Argument::Array(lender), _, true) => saved.push(self.pass_array(local, lender)),
                (Argument::Value(_), Some(value), false) => {
                    saved.push(Saved::Variable(local.name.clone(), self.variables.insert(local.name.clone(), value)));
                }
                _ => {
                    self.restore(saved);
                    return fail(format!("Parameter type mismatch, parameter {}", local.name));
                }
            }
        }
        for local in &function.own {
            saved.push(match local.array {
                true => Saved::Array(local.name.clone(), self.arrays.remove(&local.name)),
                false => Saved::Variable(local.name.clone(), self.variables.remove(&local.name)),
            });
        }
        let flow = self.block(&function.body, input);
        self.restore(saved);
        match flow? {
            Flow::Return(value) => Ok((!function.void).then_some(value)),
            Flow::Halt => {
                self.flush()?;
                std::process::exit(0)
            }
            _ => Ok((!function.void).then(Number::default)),
        }
    }

    fn pass_array(&mut self, local: &Local, lender: &str) -> Saved {
        let own = local.name.clone();
        if local.reference && own != lender {
            let lent = self.arrays.remove(lender).unwrap_or_default();
            let before = self.arrays.insert(own.clone(), lent);
            return Saved::Lent { own, before, lender: lender.to_owned() };
        }
        let copy = self.arrays.get(lender).cloned().unwrap_or_default();
        if local.reference {
            // It has the same name already.
            self.arrays.insert(own.clone(), copy);
            return Saved::Lent { own: own.clone(), before: None, lender: own };
        }
        Saved::Array(own.clone(), self.arrays.insert(own, copy))
    }

    fn restore(&mut self, saved: Vec<Saved>) {
        for saved in saved.into_iter().rev() {
            match saved {
                Saved::Variable(name, Some(value)) => drop(self.variables.insert(name, value)),
                Saved::Variable(name, None) => drop(self.variables.remove(&name)),
                Saved::Array(name, Some(array)) => drop(self.arrays.insert(name, array)),
                Saved::Array(name, None) => drop(self.arrays.remove(&name)),
                Saved::Lent { own, lender, .. } if own == lender => {}
                Saved::Lent { own, before, lender } => {
                    let lent = self.arrays.remove(&own).unwrap_or_default();
                    if let Some(before) = before {
                        self.arrays.insert(own, before);
                    }
                    self.arrays.insert(lender, lent);
                }
            }
        }
    }

    /// One of the functions of `-l`.
    fn of_library(&mut self, name: &str, arguments: &[Argument], input: &mut Lexer) -> Result<Number> {
        let known = matches!(name, "s" | "c" | "a" | "l" | "e" | "j");
        if !self.library || !known {
            let way_out = if known { " (it is one of those of bc -l)" } else { "" };
            return fail(format!("Function {name} not defined.{way_out}"));
        }
        let mut values = Vec::new();
        for argument in arguments {
            match argument {
                Argument::Value(value) => values.push(self.evaluate(value, input)?),
                Argument::Array(_) => return fail("Parameter type mismatch"),
            }
        }
        let scale = self.scale;
        Ok(match (name, values.as_slice()) {
            ("s", [x]) => math::sine(x, scale)?,
            ("c", [x]) => math::cosine(x, scale)?,
            ("a", [x]) => math::arctangent(x, scale)?,
            ("l", [x]) => math::logarithm(x, scale)?,
            ("e", [x]) => math::exponential(x, scale)?,
            ("j", [order, x]) => math::bessel(order, x, scale)?,
            _ => return fail("Parameter number mismatch"),
        })
    }
}

fn truth(value: bool) -> Number {
    Number::integer(i32::from(value))
}

/// The value of a register; one out of range is set to the nearest that may be.
fn setting(name: &str, value: &Number, least: u64, most: u64) -> Result<u64> {
    let whole = value.whole();
    if value.is_negative() || u64::try_from(&whole).is_ok_and(|whole| whole < least) {
        eprintln!("Runtime warning: {name} too small, set to {least}");
        return Ok(least);
    }
    match u64::try_from(whole) {
        Ok(whole) if whole <= most => Ok(whole),
        _ => {
            eprintln!("Runtime warning: {name} too large, set to {most}");
            Ok(most)
        }
    }
}
