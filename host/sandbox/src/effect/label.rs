//! Labels as numbers, for files and processes. Equal labels have the same number, and the number 0 is the default.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock};

use kiso_plan::label::{Label, SourceSet};

/// A label of this process, by its number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct LabelId(u32);

/// Labels that get a number of their own. Beyond these, labels lose their sources: hosts can have any number of names.
const MAX_LABELS: usize = 32_768;

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(RwLock::default);

struct Table {
    labels: Vec<Arc<Label>>,
    numbers: HashMap<Arc<Label>, u32>,
    joins: HashMap<(u32, u32), u32>,
}

impl Default for Table {
    fn default() -> Self {
        let mut table = Self { labels: Vec::new(), numbers: HashMap::new(), joins: HashMap::new() };
        table.number(Label::default());
        table
    }
}

impl Table {
    fn number(&mut self, mut label: Label) -> u32 {
        if let Some(number) = self.numbers.get(&label) {
            return *number;
        }
        if self.labels.len() >= MAX_LABELS && label.sources != SourceSet::one(SourceSet::ANY) {
            label.sources = SourceSet::one(SourceSet::ANY);
            return self.number(label);
        }
        let number = u32::try_from(self.labels.len()).unwrap_or(u32::MAX);
        let label = Arc::new(label);
        self.labels.push(label.clone());
        self.numbers.insert(label, number);
        number
    }
}

impl LabelId {
    pub fn from_label(label: &Label) -> Self {
        if label.is_default() {
            return Self::default();
        }
        if let Some(number) = TABLE.read().unwrap_or_else(PoisonError::into_inner).numbers.get(label) {
            return Self(*number);
        }
        Self(TABLE.write().unwrap_or_else(PoisonError::into_inner).number(label.clone()))
    }

    pub fn label(self) -> Arc<Label> {
        let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
        table.labels.get(self.0 as usize).unwrap_or(&table.labels[0]).clone()
    }

    /// The label of data that is made from both.
    pub fn join(self, other: Self) -> Self {
        if self == other || other.0 == 0 {
            return self;
        }
        if self.0 == 0 {
            return other;
        }
        let pair = (self.0.min(other.0), self.0.max(other.0));
        let joined =
            |table: &Table| table.labels[pair.0 as usize].as_ref().clone().joined(&table.labels[pair.1 as usize]);
        let label = {
            let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
            match table.joins.get(&pair) {
                Some(number) => return Self(*number),
                None => joined(&table),
            }
        };
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        let number = table.number(label);
        if table.joins.len() < MAX_LABELS {
            table.joins.insert(pair, number);
        }
        Self(number)
    }

    /// The label of a session's own data.
    pub fn session() -> Self {
        static SESSION: LazyLock<LabelId> = LazyLock::new(|| LabelId::from_label(&Label::session()));
        *SESSION
    }

    /// Whether it is as good as the label of a session's own data, or better.
    pub fn is_ordinary(self) -> bool {
        self.0 == 0 || self == Self::session() || self.label().is_ordinary()
    }
}

/// Something that a process has open for writing. What the process does not write is information, too, so the file gets the label
/// of everything that the process has read.
pub trait OpenToWrite: fmt::Debug + Send + Sync {
    /// Joins the label. Returns false if it is closed.
    fn mark(&self, label: LabelId) -> bool;
}

/// The label of a reader, which only gets worse. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct LabelCell(Arc<Cell>);

#[derive(Debug, Default)]
struct Cell {
    label: AtomicU32,
    open: Mutex<Vec<Box<dyn OpenToWrite>>>,
}

/// The number of open files above which closed ones are dropped from the list.
const MANY_OPEN: usize = 64;

impl LabelCell {
    pub fn new(label: LabelId) -> Self {
        Self(Arc::new(Cell { label: AtomicU32::new(label.0), open: Mutex::default() }))
    }

    pub fn get(&self) -> LabelId {
        LabelId(self.0.label.load(SeqCst))
    }

    /// Records that the process has read data with this label.
    pub fn join(&self, label: LabelId) {
        let mut now = self.get();
        loop {
            let joined = now.join(label);
            if joined == now {
                return;
            }
            match self.0.label.compare_exchange_weak(now.0, joined.0, SeqCst, SeqCst) {
                Ok(_) => break,
                Err(other) => now = LabelId(other),
            }
        }
        let label = self.get();
        if !label.is_ordinary() {
            self.open().retain(|open| open.mark(label));
        }
    }

    /// Records that it has something open for writing.
    pub fn holds(&self, open: impl OpenToWrite + 'static) {
        let mut all = self.open();
        let label = self.get();
        if all.len() >= MANY_OPEN {
            all.retain(|open| open.mark(label));
        }
        // Under the lock, so that a later `join` marks it.
        if label.is_ordinary() || open.mark(label) {
            all.push(Box::new(open));
        }
    }

    fn open(&self) -> MutexGuard<'_, Vec<Box<dyn OpenToWrite>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_join_as_their_labels_do() {
        let (a, b) = (Label::world("web:a.example"), Label::session());
        let (x, y) = (LabelId::from_label(&a), LabelId::from_label(&b));
        assert_eq!(LabelId::from_label(&Label::default()), LabelId::default());
        assert_eq!(*x.join(y).label(), a.clone().joined(&b));
        assert_eq!(x.join(y), y.join(x));
        assert_eq!((x.join(LabelId::default()), LabelId::default().join(x)), (x, x));
        assert!(y.is_ordinary() && !x.is_ordinary() && LabelId::default().is_ordinary());
        let cell = LabelCell::default();
        let other = cell.clone();
        other.join(x);
        cell.join(y);
        assert_eq!(other.get(), x.join(y));
    }

    #[test]
    fn there_are_only_so_many_numbers() {
        let mut table = Table::default();
        for n in 0..MAX_LABELS + 10 {
            table.number(Label::world(&format!("web:{n}.example")));
        }
        assert!(table.labels.len() <= MAX_LABELS + 1);
        let last = table.number(Label::world("web:new.example"));
        assert_eq!(table.labels[last as usize].sources, SourceSet::one(SourceSet::ANY));
    }
}
