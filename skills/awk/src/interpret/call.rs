//! The built-in functions.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::Error;
use crate::code::{Builtin, Expr, Lvalue};
use crate::value::{Cell, Text, Value, length};
use crate::{number, time};

use super::{Interpreter, reason, text};

impl<'p> Interpreter<'p, '_> {
    pub fn builtin(&mut self, builtin: Builtin, arguments: &'p [Expr]) -> Result<Value, Error> {
        Ok(Value::Number(match builtin {
            Builtin::Length => return self.length(arguments.first()),
            Builtin::Substr => return self.substr(arguments),
            Builtin::Index => self.index(arguments)?,
            Builtin::Split => return self.split(arguments, false),
            Builtin::Patsplit => return self.split(arguments, true),
            Builtin::Sub => return self.substitute(arguments, false),
            Builtin::Gsub => return self.substitute(arguments, true),
            Builtin::Gensub => return self.gensub(arguments),
            Builtin::Match => return self.match_groups(arguments),
            Builtin::Sprintf => return Ok(Value::Text(self.formatted(arguments)?.into())),
            Builtin::Sin => self.number(&arguments[0])?.sin(),
            Builtin::Cos => self.number(&arguments[0])?.cos(),
            Builtin::Atan2 => {
                let y = self.number(&arguments[0])?;
                y.atan2(self.number(&arguments[1])?)
            }
            Builtin::Exp => self.number(&arguments[0])?.exp(),
            Builtin::Log => self.number(&arguments[0])?.ln(),
            Builtin::Sqrt => self.number(&arguments[0])?.sqrt(),
            Builtin::Int => self.number(&arguments[0])?.trunc(),
            Builtin::Rand => self.rand(),
            Builtin::Srand => {
                let seed = match arguments.first() {
                    Some(seed) => self.number(seed)?,
                    None => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs() as f64),
                };
                let before = self.seed;
                self.reseed(seed);
                before
            }
            Builtin::Tolower | Builtin::Toupper => return self.cased(&arguments[0], builtin == Builtin::Toupper),
            Builtin::System => {
                let command = self.value(&arguments[0])?.text(&self.convfmt).lossy();
                let code = self.streams.system(&command);
                let code = code.map_err(|e| Error::new(format!("cannot start \"{command}\": {}", reason(&e))))?;
                f64::from(code)
            }
            Builtin::Close => {
                let name = self.value(&arguments[0])?.text(&self.convfmt);
                let closed = self.streams.close(name.bytes());
                let code =
                    closed.map_err(|e| Error::new(format!("cannot write \"{}\": {}", name.lossy(), reason(&e))))?;
                f64::from(code.unwrap_or(-1))
            }
            Builtin::Fflush => self.fflush(arguments.first())?,
            Builtin::Strftime => return self.strftime(arguments),
            Builtin::Systime => time::now(),
            Builtin::Mktime => {
                let text = self.value(&arguments[0])?.text(&self.convfmt).lossy();
                let utc = self.flag(arguments.get(1))?;
                time::mktime(&text, utc)
            }
            Builtin::And => self.bits(builtin, arguments, |a, b| a & b)?,
            Builtin::Or => self.bits(builtin, arguments, |a, b| a | b)?,
            Builtin::Xor => self.bits(builtin, arguments, |a, b| a ^ b)?,
            Builtin::Lshift => self.bits(builtin, arguments, |a, b| a.checked_shl(b as u32).unwrap_or(0))?,
            Builtin::Rshift => self.bits(builtin, arguments, |a, b| a.checked_shr(b as u32).unwrap_or(0))?,
            Builtin::Compl => (!self.whole_number(builtin, &arguments[0])? & ((1 << 53) - 1)) as f64,
            Builtin::Strtonum => self.strtonum(&arguments[0])?,
            Builtin::Asort => return self.sorted(arguments, false),
            Builtin::Asorti => return self.sorted(arguments, true),
            Builtin::Isarray => f64::from(u8::from(self.kind(&arguments[0])? == "array")),
            Builtin::Typeof => return Ok(Value::Text(Text::from(self.kind(&arguments[0])?))),
        }))
    }

    fn flag(&mut self, expr: Option<&'p Expr>) -> Result<bool, Error> {
        expr.map_or(Ok(false), |expr| self.truth(expr))
    }

    fn length(&mut self, of: Option<&'p Expr>) -> Result<Value, Error> {
        let Some(expr) = of else {
            return Ok(Value::Number(length(self.record.text(&self.ofs, &self.convfmt)) as f64));
        };
        if let Expr::Place(place) = expr
            && !matches!(**place, Lvalue::Field(_))
        {
            let size = match self.argument(expr)? {
                Cell::Array(array) | Cell::Unused(array) => array.borrow().len(),
                Cell::Value(value) => length(value.text(&self.convfmt).bytes()),
            };
            return Ok(Value::Number(size as f64));
        }
        let text = self.value(expr)?.text(&self.convfmt);
        Ok(Value::Number(length(text.bytes()) as f64))
    }

    fn substr(&mut self, arguments: &'p [Expr]) -> Result<Value, Error> {
        let text = self.value(&arguments[0])?.text(&self.convfmt);
        let start = self.number(&arguments[1])?;
        let size = match arguments.get(2) {
            Some(size) => Some(self.number(size)?),
            None => None,
        };
        Ok(Value::Text(Text::from(text::substr(text.bytes(), start, size))))
    }

    fn index(&mut self, arguments: &'p [Expr]) -> Result<f64, Error> {
        let text = self.value(&arguments[0])?.text(&self.convfmt);
        let wanted = self.value(&arguments[1])?.text(&self.convfmt);
        let found = memchr::memmem::find(text.bytes(), wanted.bytes());
        Ok(found.map_or(0.0, |at| length(&text.bytes()[..at]) as f64 + 1.0))
    }

    fn cased(&mut self, expr: &'p Expr, upper: bool) -> Result<Value, Error> {
        let text = self.value(expr)?.text(&self.convfmt);
        let bytes = text.bytes();
        let out = match std::str::from_utf8(bytes) {
            // As in C, a character becomes one character.
            Ok(text) if !text.is_ascii() => text.chars().map(|c| one_cased(c, upper)).collect::<String>().into_bytes(),
            _ if upper => bytes.to_ascii_uppercase(),
            _ => bytes.to_ascii_lowercase(),
        };
        Ok(Value::Text(out.into()))
    }

    pub fn reseed(&mut self, seed: f64) {
        self.seed = seed;
        // As with C's generator, 0 and 1 are the same seed.
        self.random = if seed == 0.0 { 1_f64 } else { seed }.to_bits() ^ 0x9e37_79b9_7f4a_7c15;
        self.rand();
    }

    /// At least 0, less than 1 (splitmix64).
    fn rand(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn fflush(&mut self, name: Option<&'p Expr>) -> Result<f64, Error> {
        let name = match name {
            Some(name) => self.value(name)?.text(&self.convfmt),
            None => Text::default(),
        };
        let flushed = match name.bytes() {
            b"" => self.streams.flush_all().map(|()| true),
            name => self.streams.flush(name),
        };
        let flushed = flushed.map_err(|e| Error::new(format!("write error: {}", reason(&e))))?;
        Ok(if flushed { 0.0 } else { -1.0 })
    }

    fn strftime(&mut self, arguments: &'p [Expr]) -> Result<Value, Error> {
        let format = match arguments.first() {
            Some(format) => Some(self.value(format)?.text(&self.convfmt).lossy()),
            None => None,
        };
        let seconds = match arguments.get(1) {
            Some(seconds) => self.number(seconds)?,
            None => time::now(),
        };
        let utc = self.flag(arguments.get(2))?;
        let text = time::strftime(format.as_deref(), seconds, utc)?;
        Ok(Value::Text(Text::from(text.as_str())))
    }

    fn whole_number(&mut self, builtin: Builtin, expr: &'p Expr) -> Result<u64, Error> {
        let number = self.number(expr)?;
        if number < 0.0 || !number.is_finite() {
            let name = crate::code::BUILTINS[builtin as usize].0;
            return Err(Error::new(format!("`{name}` takes whole numbers of at least 0, not {number}")));
        }
        Ok(number as u64)
    }

    fn bits(&mut self, builtin: Builtin, arguments: &'p [Expr], join: fn(u64, u64) -> u64) -> Result<f64, Error> {
        let mut all = self.whole_number(builtin, &arguments[0])?;
        for argument in &arguments[1..] {
            all = join(all, self.whole_number(builtin, argument)?);
        }
        Ok(all as f64)
    }

    /// Also of texts in hexadecimal and octal.
    fn strtonum(&mut self, expr: &'p Expr) -> Result<f64, Error> {
        let value = self.value(expr)?;
        let (Value::Text(text) | Value::Input(text)) = &value else { return Ok(value.number()) };
        let text = text.lossy();
        let (negative, digits) = match text.trim_start().strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.trim_start()),
        };
        let based = |digits: &str, base: u32| {
            let digits = digits.chars().map_while(|c| c.to_digit(base));
            digits.fold(0.0, |sum, digit| sum * f64::from(base) + f64::from(digit))
        };
        let number = if let Some(digits) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            based(digits, 16)
        } else if digits.starts_with('0') && !digits.contains(['.', 'e', 'E', '8', '9']) {
            based(digits, 8)
        } else {
            number::from_text(digits.as_bytes())
        };
        Ok(if negative { -number } else { number })
    }

    fn kind(&mut self, expr: &'p Expr) -> Result<&'static str, Error> {
        if let Expr::Regex(_) = expr {
            return Ok("regexp");
        }
        let cell = match expr {
            Expr::Place(_) => self.argument(expr)?,
            _ => Cell::Value(self.value(expr)?),
        };
        Ok(match cell {
            Cell::Array(_) => "array",
            Cell::Unused(array) if !array.borrow().is_empty() => "array",
            Cell::Unused(_) => "untyped",
            Cell::Value(Value::Uninit) => "unassigned",
            Cell::Value(Value::Number(_)) => "number",
            Cell::Value(Value::Text(_)) => "string",
            Cell::Value(Value::Input(text)) => {
                if number::whole(text.bytes()).is_some() {
                    "strnum"
                } else {
                    "string"
                }
            }
        })
    }
}

fn one_cased(c: char, upper: bool) -> char {
    let first = |mut all: Box<dyn Iterator<Item = char>>| (all.next(), all.next());
    match if upper { first(Box::new(c.to_uppercase())) } else { first(Box::new(c.to_lowercase())) } {
        (Some(one), None) => one,
        _ => c,
    }
}
