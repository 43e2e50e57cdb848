//! Statements.

use crate::Error;
use crate::code::{Case, Expr, Redirect, Special, Statement};
use crate::value::{Cell, Text, Value};

use super::{Flow, Interpreter, reason};

impl<'p> Interpreter<'p, '_> {
    pub fn block(&mut self, statements: &'p [Statement]) -> Result<Flow, Error> {
        for statement in statements {
            let flow = self.statement(statement)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn statement(&mut self, statement: &'p Statement) -> Result<Flow, Error> {
        match statement {
            Statement::Expr(expr) => self.effect(expr)?,
            Statement::Print(arguments, redirect) => self.print(arguments, redirect.as_ref())?,
            Statement::Printf(arguments, redirect) => self.printf(arguments, redirect.as_ref())?,
            Statement::If(condition, then, otherwise) => {
                let body = if self.truth(condition)? { then } else { otherwise };
                return self.block(body);
            }
            Statement::While(condition, body) => {
                while self.truth(condition)? {
                    match self.block(body)? {
                        Flow::On | Flow::Continue => {}
                        Flow::Break => break,
                        flow => return Ok(flow),
                    }
                }
            }
            Statement::Do(body, condition) => loop {
                match self.block(body)? {
                    Flow::On | Flow::Continue => {}
                    Flow::Break => break,
                    flow => return Ok(flow),
                }
                if !self.truth(condition)? {
                    break;
                }
            },
            Statement::For(first, condition, step, body) => {
                if let Some(first) = first {
                    self.effect(first)?;
                }
                loop {
                    if let Some(condition) = condition
                        && !self.truth(condition)?
                    {
                        break;
                    }
                    match self.block(body)? {
                        Flow::On | Flow::Continue => {}
                        Flow::Break => break,
                        flow => return Ok(flow),
                    }
                    if let Some(step) = step {
                        self.effect(step)?;
                    }
                }
            }
            Statement::ForIn(place, array, body) => {
                let array = self.array(array)?;
                for key in self.keys(&array)? {
                    if !array.borrow().contains_key(&key) {
                        continue;
                    }
                    self.assign(place, Value::Input(key))?;
                    match self.block(body)? {
                        Flow::On | Flow::Continue => {}
                        Flow::Break => break,
                        flow => return Ok(flow),
                    }
                }
            }
            Statement::Switch(value, cases) => return self.switch(value, cases),
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
            Statement::Next => return Ok(Flow::Next),
            Statement::NextFile => return Ok(Flow::NextFile),
            Statement::Exit(code) => {
                if let Some(code) = code {
                    self.exit = self.number(code)? as i64 as i32 & 0xff;
                }
                return Ok(Flow::Exit);
            }
            Statement::Return(value) => {
                self.returned = match value {
                    Some(value) => self.value(value)?,
                    None => Value::Uninit,
                };
                return Ok(Flow::Return);
            }
            Statement::Delete(array, subscripts) => {
                let array = self.array(array)?;
                let key = self.key(subscripts)?;
                array.borrow_mut().swap_remove(&key);
            }
            Statement::DeleteAll(array) => self.array(array)?.borrow_mut().clear(),
            Statement::Block(body) => return self.block(body),
        }
        Ok(Flow::On)
    }

    fn switch(&mut self, value: &'p Expr, cases: &'p [(Case, Vec<Statement>)]) -> Result<Flow, Error> {
        let value = self.value(value)?;
        let mut start = None;
        for (at, (case, _)) in cases.iter().enumerate() {
            let hit = match case {
                Case::Default => false,
                Case::Regex(regex) => regex.is_match(value.text(&self.convfmt).bytes()),
                Case::Value(case) => {
                    let case = self.value(case)?;
                    // Only what is a number is compared with one.
                    value.compare(&case, &self.convfmt, false).is_some_and(std::cmp::Ordering::is_eq)
                }
            };
            if hit {
                start = Some(at);
                break;
            }
        }
        let default = || cases.iter().position(|(case, _)| matches!(case, Case::Default));
        let Some(start) = start.or_else(default) else { return Ok(Flow::On) };
        for (_, body) in &cases[start..] {
            match self.block(body)? {
                Flow::On => {}
                Flow::Break => break,
                flow => return Ok(flow),
            }
        }
        Ok(Flow::On)
    }

    pub fn print_record(&mut self) -> Result<(), Error> {
        let text = self.record.text(&self.ofs, &self.convfmt);
        self.streams.out.extend_from_slice(text);
        self.streams.out.extend_from_slice(&self.ors);
        self.written()
    }

    fn written(&mut self) -> Result<(), Error> {
        self.streams.check().map_err(|e| Error::new(format!("write error: {}", reason(&e))))
    }

    fn print(&mut self, arguments: &'p [Expr], redirect: Option<&'p Redirect>) -> Result<(), Error> {
        if arguments.is_empty() && redirect.is_none() {
            return self.print_record();
        }
        let mut line = std::mem::take(&mut self.scratch);
        line.clear();
        let done = self.line(arguments, &mut line);
        line.extend_from_slice(&self.ors);
        let done = done.and_then(|()| self.put(&line, redirect));
        self.scratch = line;
        done
    }

    fn line(&mut self, arguments: &'p [Expr], line: &mut Vec<u8>) -> Result<(), Error> {
        if arguments.is_empty() {
            line.extend_from_slice(self.record.text(&self.ofs, &self.convfmt));
        }
        for (at, argument) in arguments.iter().enumerate() {
            if at > 0 {
                line.extend_from_slice(&self.ofs);
            }
            if self.write_field(argument, line)? {
                continue;
            }
            let value = self.value(argument)?;
            value.write(&self.ofmt, line);
        }
        Ok(())
    }

    fn printf(&mut self, arguments: &'p [Expr], redirect: Option<&'p Redirect>) -> Result<(), Error> {
        let line = self.formatted(arguments)?;
        self.put(&line, redirect)
    }

    pub fn formatted(&mut self, arguments: &'p [Expr]) -> Result<Vec<u8>, Error> {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.value(argument)?);
        }
        let format = values[0].text(&self.convfmt);
        let mut out = Vec::new();
        crate::format::write(format.bytes(), &values[1..], &self.convfmt, &mut out)?;
        Ok(out)
    }

    fn put(&mut self, line: &[u8], redirect: Option<&'p Redirect>) -> Result<(), Error> {
        let Some(redirect) = redirect else {
            self.streams.out.extend_from_slice(line);
            return self.written();
        };
        let name = self.value(&redirect.name)?.text(&self.convfmt);
        if name.bytes().is_empty() {
            return Err(Error::new("the file or command to print to has an empty name"));
        }
        self.streams
            .write(redirect.to, name.bytes(), line)
            .map_err(|e| Error::new(format!("cannot print to \"{}\": {}", name.lossy(), reason(&e))))
    }

    pub fn set_errno(&mut self, error: &std::io::Error) {
        self.globals[Special::Errno.slot()] = Cell::Value(Value::Text(Text::from(reason(error).as_str())));
    }

    pub fn global_number(&mut self, special: Special, number: f64) {
        self.globals[special.slot()] = Cell::Value(Value::Number(number));
    }
}
