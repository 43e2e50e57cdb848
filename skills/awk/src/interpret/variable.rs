//! Variables, fields and elements: reading and assigning them.

use crate::Error;
use crate::code::{ArrayRef, Expr, Lvalue, SPECIALS, Slot, Special};
use crate::number;
use crate::record::{MOST_FIELDS, Separator, Terminator};
use crate::value::{Array, Cell, Text, Value};

use super::Interpreter;

impl<'p> Interpreter<'p, '_> {
    fn cell(&mut self, slot: Slot) -> &mut Cell {
        match slot {
            Slot::Global(at) => &mut self.globals[at],
            Slot::Local(at) => &mut self.stack[self.base + at],
        }
    }

    pub fn name(&self, slot: Slot) -> String {
        match slot {
            Slot::Global(at) => format!("`{}`", self.program.globals[at]),
            Slot::Local(_) => "a parameter".into(),
        }
    }

    pub fn get(&mut self, slot: Slot) -> Result<Value, Error> {
        match slot {
            Slot::Global(at) if at <= Special::Fnr.slot() => Ok(Value::Number(self.counter(at))),
            _ => match self.cell(slot) {
                Cell::Value(value) => Ok(value.clone()),
                Cell::Unused(_) => Ok(Value::Uninit),
                Cell::Array(_) => {
                    Err(Error::new(format!("{} is an array and cannot be used as a value", self.name(slot))))
                }
            },
        }
    }

    /// NF, NR and FNR.
    fn counter(&mut self, slot: usize) -> f64 {
        match slot {
            0 => {
                self.split_record();
                self.record.count() as f64
            }
            1 => self.nr,
            _ => self.fnr,
        }
    }

    /// The number of a variable, without a copy of its text.
    pub fn number_of(&mut self, slot: Slot) -> Result<f64, Error> {
        match slot {
            Slot::Global(at) if at <= Special::Fnr.slot() => Ok(self.counter(at)),
            _ => match self.cell(slot) {
                Cell::Value(value) => Ok(value.number()),
                _ => Ok(self.get(slot)?.number()),
            },
        }
    }

    pub fn set_variable(&mut self, slot: Slot, value: Value) -> Result<(), Error> {
        if let Slot::Global(at) = slot
            && let Some((_, special)) = SPECIALS.get(at)
        {
            return self.set_special(*special, value);
        }
        match self.cell(slot) {
            Cell::Array(_) => Err(Error::new(format!("{} is an array and cannot be assigned to", self.name(slot)))),
            cell => {
                *cell = Cell::Value(value);
                Ok(())
            }
        }
    }

    fn set_special(&mut self, special: Special, value: Value) -> Result<(), Error> {
        // The record that was read before is still split as it was then.
        if matches!(special, Special::Fs | Special::Fieldwidths | Special::Fpat) {
            self.split_record();
        }
        let text = value.text(&self.convfmt);
        match special {
            Special::Nf => {
                self.split_record();
                let count = value.number();
                if !(0.0..=MOST_FIELDS as f64).contains(&count) {
                    return Err(Error::new(format!("NF cannot be {count}; a record has 0 to {MOST_FIELDS} fields")));
                }
                self.record.resize(count as usize);
                return Ok(());
            }
            Special::Nr => self.nr = value.number(),
            Special::Fnr => self.fnr = value.number(),
            Special::Ofs => {
                // A changed record is put together with the separator that was set then.
                self.record.text(&self.ofs, &self.convfmt);
                self.ofs = text.bytes().to_vec();
            }
            Special::Ors => self.ors = text.bytes().to_vec(),
            Special::Subsep => self.subsep = text.bytes().to_vec(),
            Special::Convfmt => self.convfmt = text.bytes().to_vec(),
            Special::Ofmt => self.ofmt = text.bytes().to_vec(),
            Special::Ignorecase => self.fold = value.truth(),
            Special::Fs if !self.csv => {
                self.fs = self.separator(text.bytes())?;
                self.separator = self.fs.clone();
            }
            Special::Rs if !self.csv => self.terminator = self.terminator(text.bytes())?,
            Special::Fieldwidths if !text.bytes().is_empty() => {
                let widths: Option<Vec<usize>> =
                    text.lossy().split_whitespace().map(|width| width.parse().ok()).collect();
                let widths =
                    widths.ok_or_else(|| Error::new("FIELDWIDTHS must be numbers with blanks between them"))?;
                self.separator = Separator::Widths(widths);
            }
            Special::Fpat => self.separator = Separator::Fields(self.regex(text.bytes())?),
            Special::Environ | Special::Argv | Special::Procinfo => {
                let name = self.name(Slot::Global(special.slot()));
                return Err(Error::new(format!("{name} is an array and cannot be assigned to")));
            }
            _ => {}
        }
        self.globals[special.slot()] = Cell::Value(value);
        Ok(())
    }

    /// The separator that a text means as FS, or as the third argument of `split`.
    pub fn separator(&mut self, text: &[u8]) -> Result<Separator, Error> {
        Ok(match text {
            b" " => Separator::Blanks,
            b"" => Separator::Nothing,
            [byte] if !self.fold && *byte != b'\\' && byte.is_ascii() => Separator::Byte(*byte),
            b"\\" => Separator::Byte(b'\\'),
            [b'\\', byte @ (b'|' | b'.' | b'*' | b'+' | b'?' | b'$' | b'^' | b'\\')] => Separator::Byte(*byte),
            _ => Separator::Regex(self.regex(text)?),
        })
    }

    fn terminator(&mut self, text: &[u8]) -> Result<Terminator, Error> {
        Ok(match text {
            b"" => Terminator::Paragraph,
            [byte] if !self.fold || !byte.is_ascii_alphabetic() => Terminator::Byte(*byte),
            _ => Terminator::Regex(self.regex(text)?),
        })
    }

    pub fn split_record(&mut self) {
        if !self.record.is_split() {
            let paragraph = matches!(self.terminator, Terminator::Paragraph);
            self.record.split(&self.separator, paragraph);
        }
    }

    /// The number of a field, checked.
    pub fn field_number(&mut self, index: &'p Expr) -> Result<usize, Error> {
        let number = self.number(index)?;
        if number < 0.0 || number.is_nan() || number as usize > MOST_FIELDS {
            let mut shown = Vec::new();
            number::write(number, b"%.6g", &mut shown);
            let shown = String::from_utf8_lossy(&shown).into_owned();
            return Err(Error::new(format!("out of range field ${shown}; fields have the numbers 0 to {MOST_FIELDS}")));
        }
        Ok(number as usize)
    }

    pub fn field(&mut self, number: usize) -> Value {
        if number == 0 {
            return Value::Input(Text::from(self.record.text(&self.ofs, &self.convfmt)));
        }
        self.split_record();
        self.record.value(number)
    }

    fn set_field(&mut self, number: usize, value: Value) {
        if number == 0 {
            let text = value.text(&self.convfmt);
            self.record.set(text.bytes());
            return;
        }
        self.split_record();
        self.record.assign(number, value);
    }

    pub fn array_of(&mut self, slot: Slot) -> Result<Array, Error> {
        match self.cell(slot).array() {
            Some(array) => Ok(array),
            None => Err(Error::new(format!("{} is a value and cannot be used as an array", self.name(slot)))),
        }
    }

    pub fn array(&mut self, array: &'p ArrayRef) -> Result<Array, Error> {
        match array {
            ArrayRef::Variable(slot) => self.array_of(*slot),
            ArrayRef::Element(outer, subscripts) => {
                let outer = self.array(outer)?;
                let key = self.key(subscripts)?;
                let inner = outer.borrow_mut().entry(key.clone()).or_default().array();
                inner.ok_or_else(|| {
                    Error::new(format!("the element [\"{}\"] is a value and cannot be used as an array", key.lossy()))
                })
            }
        }
    }

    /// Subscripts as one text.
    pub fn key(&mut self, subscripts: &'p [Expr]) -> Result<Text, Error> {
        if let [subscript] = subscripts {
            return Ok(self.value(subscript)?.text(&self.convfmt));
        }
        let mut key = Vec::new();
        for (at, subscript) in subscripts.iter().enumerate() {
            if at > 0 {
                key.extend_from_slice(&self.subsep);
            }
            let value = self.value(subscript)?;
            value.write(&self.convfmt, &mut key);
        }
        Ok(key.into())
    }

    /// An element, which exists from now on.
    pub fn element(&mut self, array: &'p ArrayRef, subscripts: &'p [Expr]) -> Result<Value, Error> {
        let array = self.array(array)?;
        let key = self.key(subscripts)?;
        let mut elements = array.borrow_mut();
        if let Some(cell) = elements.get(&key) {
            return match cell {
                Cell::Value(value) => Ok(value.clone()),
                Cell::Unused(_) => Ok(Value::Uninit),
                Cell::Array(_) => Err(Error::new(format!("the element [\"{}\"] is an array", key.lossy()))),
            };
        }
        elements.insert(key, Cell::default());
        Ok(Value::Uninit)
    }

    pub fn read(&mut self, place: &'p Lvalue) -> Result<Value, Error> {
        match place {
            Lvalue::Variable(slot) => self.get(*slot),
            Lvalue::Field(index) => {
                let number = self.field_number(index)?;
                Ok(self.field(number))
            }
            Lvalue::Element(array, subscripts) => self.element(array, subscripts),
        }
    }

    pub fn assign(&mut self, place: &'p Lvalue, value: Value) -> Result<(), Error> {
        match place {
            Lvalue::Variable(slot) => self.set_variable(*slot, value),
            Lvalue::Field(index) => {
                let number = self.field_number(index)?;
                self.set_field(number, value);
                Ok(())
            }
            Lvalue::Element(array, subscripts) => {
                let array = self.array(array)?;
                let key = self.key(subscripts)?;
                let mut elements = array.borrow_mut();
                if let Some(Cell::Array(_)) = elements.get(&key) {
                    return Err(Error::new(format!("the element [\"{}\"] is an array", key.lossy())));
                }
                elements.insert(key, Cell::Value(value));
                Ok(())
            }
        }
    }

    /// Replaces a number by another, with its place looked up once; returns the new one and the one before.
    pub fn update(
        &mut self,
        place: &'p Lvalue,
        change: impl FnOnce(f64) -> Result<f64, Error>,
    ) -> Result<(f64, f64), Error> {
        match place {
            Lvalue::Variable(slot) => {
                let before = self.number_of(*slot)?;
                let after = change(before)?;
                self.set_variable(*slot, Value::Number(after))?;
                Ok((after, before))
            }
            Lvalue::Field(index) => {
                let number = self.field_number(index)?;
                let before = self.field(number).number();
                let after = change(before)?;
                self.set_field(number, Value::Number(after));
                Ok((after, before))
            }
            Lvalue::Element(array, subscripts) => {
                let array = self.array(array)?;
                let key = self.key(subscripts)?;
                let mut elements = array.borrow_mut();
                let cell = elements.entry(key).or_default();
                let before = match cell {
                    Cell::Value(value) => value.number(),
                    Cell::Unused(_) => 0.0,
                    Cell::Array(_) => return Err(Error::new("an element that is an array cannot be used as a number")),
                };
                let after = change(before)?;
                *cell = Cell::Value(Value::Number(after));
                Ok((after, before))
            }
        }
    }

    /// The argument of a function: an array by reference, everything else by value.
    pub fn argument(&mut self, expr: &'p Expr) -> Result<Cell, Error> {
        if let Expr::Place(place) = expr {
            match &**place {
                Lvalue::Variable(slot) => {
                    if !matches!(slot, Slot::Global(at) if *at < SPECIALS.len())
                        || matches!(self.cell(*slot), Cell::Array(_))
                    {
                        return Ok(self.cell(*slot).share());
                    }
                }
                Lvalue::Element(array, subscripts) => {
                    let array = self.array(array)?;
                    let key = self.key(subscripts)?;
                    return Ok(array.borrow_mut().entry(key).or_default().share());
                }
                Lvalue::Field(_) => {}
            }
        }
        self.value(expr).map(Cell::Value)
    }

    /// Adds to the end of a variable.
    pub fn append(&mut self, slot: Slot, more: &[u8]) -> Result<(), Error> {
        let conversion = self.convfmt.clone();
        match self.cell(slot) {
            Cell::Value(Value::Text(text)) => text.to_mut().extend_from_slice(more),
            Cell::Value(value) => {
                let mut text = value.text(&conversion);
                text.to_mut().extend_from_slice(more);
                *value = Value::Text(text);
            }
            _ => {
                let value = Value::Text(Text::from(more));
                self.set_variable(slot, value)?;
            }
        }
        Ok(())
    }
}
