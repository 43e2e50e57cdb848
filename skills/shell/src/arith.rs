//! Arithmetic: `$((…))`, `((…))`, `let`, subscripts, `-eq` in `[[`. 64-bit integers that wrap.

#[cfg(test)]
mod tests;
mod token;

use crate::expand::value::{absolute, scalar};
use crate::expand::{self, Env, Opt, Stop, Value};
use token::{Token, Tokens};

/// How deep parentheses, operators that bind to the right, and variables whose value is an expression again may nest.
/// bash gives up at 1024; here each level is a few frames of a component's small stack.
const MAX_DEPTH: usize = 100;

/// Evaluates the source of an expression, in which `$x` and quotes have not been expanded yet.
pub fn arithmetic(env: &mut dyn Env, expr: &str) -> Result<i64, Stop> {
    let source = expand::expression(env, expr)?;
    evaluate(env, &source)
}

/// Evaluates an expression that has been expanded.
pub(crate) fn evaluate(env: &mut dyn Env, source: &str) -> Result<i64, Stop> {
    run(env, source, MAX_DEPTH)
}

fn run(env: &mut dyn Env, source: &str, depth: usize) -> Result<i64, Stop> {
    let source = source.trim();
    if source.is_empty() {
        return Ok(0);
    }
    if let Some(number) = plain(source) {
        return Ok(number);
    }
    let mut evaluator = Evaluator { env, tokens: Tokens::new(source), depth, skipping: false };
    let value = evaluator.expression(COMMA)?;
    match evaluator.tokens.next()? {
        Token::End => evaluator.value(value),
        _ => Err(evaluator.tokens.error("syntax error in expression")),
    }
}

/// A decimal number without sign, the most common expression.
fn plain(source: &str) -> Option<i64> {
    let digits = source.len() < 18 && !source.starts_with('0') && source.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| source.parse().ok()).flatten()
}

// How strongly operators bind.
const COMMA: u8 = 1;
const ASSIGN: u8 = 2;
const TERNARY: u8 = 3;
const OR: u8 = 4;
const AND: u8 = 5;
const POWER: u8 = 14;
const UNARY: u8 = 15;

fn binding(operator: &str) -> Option<u8> {
    Some(match operator {
        "," => COMMA,
        "=" | "*=" | "/=" | "%=" | "+=" | "-=" | "<<=" | ">>=" | "&=" | "^=" | "|=" => ASSIGN,
        "?" => TERNARY,
        "||" => OR,
        "&&" => AND,
        "|" => 6,
        "^" => 7,
        "&" => 8,
        "==" | "!=" => 9,
        "<" | ">" | "<=" | ">=" => 10,
        "<<" | ">>" => 11,
        "+" | "-" => 12,
        "*" | "/" | "%" => 13,
        "**" => POWER,
        _ => return None,
    })
}

/// A variable's value is read when it is used, because an assignment does not use it.
enum Operand<'s> {
    Number(i64),
    Place { name: &'s str, index: Option<&'s str> },
}

struct Evaluator<'e, 's> {
    env: &'e mut dyn Env,
    tokens: Tokens<'s>,
    depth: usize,
    /// In the part of `&&`, `||` and `?:` that does not count: nothing is assigned and nothing divided.
    skipping: bool,
}

impl<'s> Evaluator<'_, 's> {
    fn expression(&mut self, least: u8) -> Result<Operand<'s>, Stop> {
        self.depth =
            self.depth.checked_sub(1).ok_or_else(|| self.tokens.error("expression recursion level exceeded"))?;
        let mut left = self.unary()?;
        while let Token::Operator(mut operator) = self.tokens.peek()? {
            // `5--3` has a sign behind the operator.
            let split = matches!(operator, "++" | "--");
            if split {
                operator = &operator[1..];
            }
            let Some(strength) = binding(operator).filter(|&strength| strength >= least) else { break };
            self.tokens.next()?;
            if split {
                self.tokens.back();
            }
            left = match strength {
                ASSIGN => self.assignment(left, operator)?,
                TERNARY => self.ternary(left)?,
                OR | AND => self.logical(left, operator == "&&", strength)?,
                _ => {
                    let first = self.value(left)?;
                    // Powers bind to the right.
                    let right = self.expression(strength + u8::from(strength != POWER))?;
                    let second = self.value(right)?;
                    Operand::Number(self.binary(operator, first, second)?)
                }
            };
        }
        self.depth += 1;
        Ok(left)
    }

    fn unary(&mut self) -> Result<Operand<'s>, Stop> {
        let token = self.tokens.next()?;
        let operand = match token {
            Token::Number(number) => Operand::Number(number),
            Token::Name(name) => Operand::Place { name, index: self.tokens.subscript()? },
            Token::Operator("(") => {
                let inner = self.expression(COMMA)?;
                let inner = self.value(inner)?;
                match self.tokens.next()? {
                    Token::Operator(")") => Operand::Number(inner),
                    _ => return Err(self.tokens.error("missing `)'")),
                }
            }
            Token::Operator(operator @ ("+" | "-" | "!" | "~")) => {
                let operand = self.expression(UNARY)?;
                let value = self.value(operand)?;
                Operand::Number(match operator {
                    "+" => value,
                    "-" => value.wrapping_neg(),
                    "!" => i64::from(value == 0),
                    _ => !value,
                })
            }
            Token::Operator(operator @ ("++" | "--")) => {
                let operand = self.expression(UNARY)?;
                match operand {
                    // `--5` is a sign twice.
                    Operand::Number(number) => Operand::Number(number),
                    place => {
                        let changed = step(operator, self.peek_value(&place)?);
                        self.store(&place, changed)?;
                        Operand::Number(changed)
                    }
                }
            }
            Token::Operator(_) | Token::End => return Err(self.tokens.error("syntax error: operand expected")),
        };
        match (operand, self.tokens.peek()?) {
            (place @ Operand::Place { .. }, Token::Operator(operator @ ("++" | "--"))) => {
                self.tokens.next()?;
                let value = self.peek_value(&place)?;
                self.store(&place, step(operator, value))?;
                Ok(Operand::Number(value))
            }
            (operand, _) => Ok(operand),
        }
    }

    fn assignment(&mut self, left: Operand<'s>, operator: &str) -> Result<Operand<'s>, Stop> {
        if let Operand::Number(_) = left {
            return Err(self.tokens.error("attempted assignment to non-variable"));
        }
        let right = self.expression(ASSIGN)?;
        let mut value = self.value(right)?;
        if let Some(operator) = operator.strip_suffix('=').filter(|operator| !operator.is_empty()) {
            let old = self.peek_value(&left)?;
            value = self.binary(operator, old, value)?;
        }
        self.store(&left, value)?;
        Ok(Operand::Number(value))
    }

    fn ternary(&mut self, condition: Operand<'s>) -> Result<Operand<'s>, Stop> {
        let condition = self.value(condition)? != 0;
        let first = self.part(COMMA, !condition)?;
        match self.tokens.next()? {
            Token::Operator(":") => {}
            _ => return Err(self.tokens.error("`:' expected for conditional expression")),
        }
        let second = self.part(TERNARY, condition)?;
        Ok(Operand::Number(if condition { first } else { second }))
    }

    fn logical(&mut self, left: Operand<'s>, and: bool, strength: u8) -> Result<Operand<'s>, Stop> {
        let left = self.value(left)? != 0;
        let right = self.part(strength + 1, left != and)? != 0;
        Ok(Operand::Number(i64::from(if and { left && right } else { left || right })))
    }

    /// A part that is read but not evaluated if `skip`.
    fn part(&mut self, least: u8, skip: bool) -> Result<i64, Stop> {
        let outer = self.skipping;
        self.skipping |= skip;
        let operand = self.expression(least)?;
        let value = self.value(operand)?;
        self.skipping = outer;
        Ok(value)
    }

    fn binary(&mut self, operator: &str, left: i64, right: i64) -> Result<i64, Stop> {
        Ok(match operator {
            "," => right,
            "|" => left | right,
            "^" => left ^ right,
            "&" => left & right,
            "==" => i64::from(left == right),
            "!=" => i64::from(left != right),
            "<" => i64::from(left < right),
            ">" => i64::from(left > right),
            "<=" => i64::from(left <= right),
            ">=" => i64::from(left >= right),
            "<<" => left.wrapping_shl(right as u32),
            ">>" => left.wrapping_shr(right as u32),
            "+" => left.wrapping_add(right),
            "-" => left.wrapping_sub(right),
            "*" => left.wrapping_mul(right),
            "/" | "%" if right == 0 && self.skipping => 0,
            "/" | "%" if right == 0 => return Err(self.tokens.error("division by 0")),
            "/" => left.wrapping_div(right),
            "%" => left.wrapping_rem(right),
            _ if right < 0 && self.skipping => 0,
            _ if right < 0 => return Err(self.tokens.error("exponent less than 0")),
            _ => power(left, right),
        })
    }

    fn value(&mut self, operand: Operand) -> Result<i64, Stop> {
        self.peek_value(&operand)
    }

    fn peek_value(&mut self, operand: &Operand) -> Result<i64, Stop> {
        match operand {
            Operand::Number(number) => Ok(*number),
            Operand::Place { .. } if self.skipping => Ok(0),
            Operand::Place { name, index } => {
                let text = match index {
                    None => self.env.get(name).and_then(scalar),
                    Some(index) => self.element(name, index)?,
                };
                match text {
                    None if self.env.option(Opt::Nounset) => Err(Stop::unset(format!("{name}: unbound variable"))),
                    None => Ok(0),
                    Some(text) => {
                        let depth = self.depth.checked_sub(1);
                        let depth = depth.ok_or_else(|| self.tokens.error("expression recursion level exceeded"))?;
                        run(self.env, &text, depth)
                    }
                }
            }
        }
    }

    fn element(&mut self, name: &str, index: &str) -> Result<Option<String>, Stop> {
        if let Some(Value::Keyed(elements)) = self.env.get(name).as_deref() {
            return Ok(elements.get(unquoted(index)).cloned());
        }
        let number = self.index(index)?;
        Ok(self.env.get(name).as_deref().and_then(|value| value.element(number)).map(str::to_owned))
    }

    fn index(&mut self, source: &str) -> Result<i64, Stop> {
        let depth =
            self.depth.checked_sub(1).ok_or_else(|| self.tokens.error("expression recursion level exceeded"))?;
        run(self.env, source, depth)
    }

    fn store(&mut self, place: &Operand, value: i64) -> Result<(), Stop> {
        let Operand::Place { name, index } = place else { return Ok(()) };
        if self.skipping {
            return Ok(());
        }
        let value = value.to_string();
        let Some(index) = index else { return self.env.set(name, value) };
        if matches!(self.env.get(name).as_deref(), Some(Value::Keyed(_))) {
            return self.env.set_element(name, unquoted(index), value);
        }
        let number = self.index(index)?;
        store_at(self.env, name, index, number, value)
    }
}

/// Assigns to the element that the source of a subscript means.
pub fn set_element(env: &mut dyn Env, name: &str, index: &str, value: String) -> Result<(), Stop> {
    if matches!(env.get(name).as_deref(), Some(Value::Keyed(_))) {
        let key = expand::key(env, index)?;
        return env.set_element(name, &key, value);
    }
    let number = arithmetic(env, index)?;
    store_at(env, name, index, number, value)
}

fn store_at(env: &mut dyn Env, name: &str, index: &str, number: i64, value: String) -> Result<(), Stop> {
    let at = match env.get(name).as_deref() {
        Some(Value::Indexed(elements)) => absolute(number, elements),
        Some(_) if number == -1 => Some(0),
        _ => u64::try_from(number).ok(),
    };
    let at = at.ok_or_else(|| Stop::failed(format!("{name}[{index}]: bad array subscript")))?;
    env.set_element(name, &at.to_string(), value)
}

/// A key may be quoted.
fn unquoted(index: &str) -> &str {
    let index = index.trim();
    index.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\'')).unwrap_or(index)
}

fn step(operator: &str, value: i64) -> i64 {
    if operator == "++" { value.wrapping_add(1) } else { value.wrapping_sub(1) }
}

/// By squaring, so that a large exponent takes no time.
fn power(mut base: i64, mut exponent: i64) -> i64 {
    let mut result = 1_i64;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}
