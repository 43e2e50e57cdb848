//! Orders of arrays: `for (k in a)`, `asort`, `asorti`.

use std::cmp::Ordering;

use crate::Error;
use crate::code::{Expr, Slot, Special};
use crate::value::{Array, Cell, Text, Value};

use super::Interpreter;

type Pair = (Text, Cell);

impl<'p> Interpreter<'p, '_> {
    /// The subscripts in the order that PROCINFO["sorted_in"] says; else in that of their making.
    pub fn keys(&mut self, array: &Array) -> Result<Vec<Text>, Error> {
        let order = self.array_of(Slot::Global(Special::Procinfo.slot()))?;
        let order = match order.borrow().get(&b"sorted_in"[..]) {
            Some(Cell::Value(value)) => value.text(&self.convfmt).lossy(),
            _ => return Ok(array.borrow().keys().cloned().collect()),
        };
        let mut pairs: Vec<Pair> = array.borrow().iter().map(|(key, cell)| (key.clone(), cell.clone())).collect();
        self.sort(&mut pairs, &order)?;
        Ok(pairs.into_iter().map(|(key, _)| key).collect())
    }

    fn sort(&mut self, pairs: &mut [Pair], order: &str) -> Result<(), Error> {
        let (by, descending) = match order.strip_suffix("_desc") {
            Some(by) => (by, true),
            None => (order.strip_suffix("_asc").unwrap_or(order), false),
        };
        let compare: fn(&Pair, &Pair) -> Ordering = match by {
            "" | "@unsorted" => return Ok(()),
            "@ind_str" => |a, b| a.0.cmp(&b.0),
            "@ind_num" => |a, b| numbers(number(&a.0), number(&b.0)).then_with(|| a.0.cmp(&b.0)),
            "@val_type" => |a, b| values(a, b).then_with(|| a.0.cmp(&b.0)),
            "@val_str" => |a, b| text(a).cmp(&text(b)).then_with(|| a.0.cmp(&b.0)),
            "@val_num" => |a, b| numbers(scalar(a).number(), scalar(b).number()).then_with(|| values(a, b)),
            name => return self.sort_by_function(pairs, name),
        };
        pairs.sort_by(|a, b| if descending { compare(b, a) } else { compare(a, b) });
        Ok(())
    }

    /// By a function of the program that compares (index, value, index, value).
    fn sort_by_function(&mut self, pairs: &mut [Pair], name: &str) -> Result<(), Error> {
        let Some(number) = self.program.functions.iter().position(|function| function.name == name) else {
            return Err(Error::new(format!("\"{name}\" is no order of an array and no function of the program")));
        };
        let mut failed = None;
        // The order may contradict itself, and a merge does not mind.
        merge_sort(pairs, &mut |a, b| {
            let cells = [Value::Input(a.0.clone()).into(), a.1.clone(), Value::Input(b.0.clone()).into(), b.1.clone()];
            match self.call_with(number, cells.to_vec()) {
                Ok(value) => value.number() > 0.0,
                Err(e) => {
                    failed.get_or_insert(e);
                    false
                }
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// `asort` and `asorti`.
    pub fn sorted(&mut self, arguments: &'p [Expr], indices: bool) -> Result<Value, Error> {
        let source = self.array_argument(&arguments[0])?;
        let target = match arguments.get(1) {
            Some(target) => self.array_argument(target)?,
            None => source.clone(),
        };
        let order = match arguments.get(2) {
            Some(order) => self.value(order)?.text(&self.convfmt).lossy(),
            None => if indices { "@ind_str_asc" } else { "@val_type_asc" }.to_owned(),
        };
        let mut pairs: Vec<Pair> = source.borrow().iter().map(|(key, cell)| (key.clone(), cell.clone())).collect();
        self.sort(&mut pairs, &order)?;
        let mut elements = target.borrow_mut();
        elements.clear();
        let count = pairs.len();
        for (at, (key, cell)) in pairs.into_iter().enumerate() {
            let cell = if indices { Value::Text(key).into() } else { cell };
            elements.insert(Text::from((at + 1).to_string().as_str()), cell);
        }
        Ok(Value::Number(count as f64))
    }
}

fn number(key: &Text) -> f64 {
    crate::number::from_text(key.bytes())
}

fn numbers(a: f64, b: f64) -> Ordering {
    a.total_cmp(&b)
}

fn scalar(pair: &Pair) -> Value {
    match &pair.1 {
        Cell::Value(value) => value.clone(),
        _ => Value::Uninit,
    }
}

fn text(pair: &Pair) -> Text {
    scalar(pair).text(b"%.6g")
}

/// Numbers before texts before arrays.
fn values(a: &Pair, b: &Pair) -> Ordering {
    let rank = |pair: &Pair| match &pair.1 {
        Cell::Value(value) => match numeric(value) {
            Some(number) => (0, number),
            None => (1, 0.0),
        },
        _ => (2, 0.0),
    };
    let (a_rank, b_rank) = (rank(a), rank(b));
    a_rank.0.cmp(&b_rank.0).then_with(|| numbers(a_rank.1, b_rank.1)).then_with(|| text(a).cmp(&text(b)))
}

fn numeric(value: &Value) -> Option<f64> {
    match value {
        Value::Uninit => Some(0.0),
        Value::Number(number) => Some(*number),
        Value::Input(text) => crate::number::whole(text.bytes()),
        Value::Text(_) => None,
    }
}

fn merge_sort(pairs: &mut [Pair], after: &mut impl FnMut(&Pair, &Pair) -> bool) {
    let middle = pairs.len() / 2;
    if middle == 0 {
        return;
    }
    merge_sort(&mut pairs[..middle], after);
    merge_sort(&mut pairs[middle..], after);
    let mut right = pairs.to_vec();
    let mut left = right.drain(..middle).collect::<Vec<_>>().into_iter().peekable();
    let mut right = right.into_iter().peekable();
    for pair in pairs {
        let next = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if after(a, b) => right.next(),
            (Some(_), _) => left.next(),
            (None, _) => right.next(),
        };
        if let Some(next) = next {
            *pair = next;
        }
    }
}
