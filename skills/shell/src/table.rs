//! The open files of a shell: numbers, and the channels behind them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::bindings::kiso::exec::spawn::{self, Channel, Errno};

/// Numbers above this are refused, so that nobody fills the table by counting.
pub const HIGHEST: u32 = 255;

/// The target of a number. A channel is closed when its last number, here or in a saved table, is gone.
pub enum End {
    Channel(Channel),
    /// The output of a builtin inside `$(…)`, when no process is needed to run it.
    Memory(RefCell<Vec<u8>>),
}

#[derive(Clone, Default)]
pub struct Table(BTreeMap<u32, Rc<End>>);

impl Table {
    /// The channels that the host gave to this process.
    pub fn inherited() -> Table {
        Table(
            spawn::inherited().into_iter().map(|(number, channel)| (number, Rc::new(End::Channel(channel)))).collect(),
        )
    }

    pub fn get(&self, number: u32) -> Option<&Rc<End>> {
        self.0.get(&number)
    }

    pub fn put(&mut self, number: u32, end: Rc<End>) {
        self.0.insert(number, end);
    }

    pub fn put_channel(&mut self, number: u32, channel: Channel) {
        self.put(number, Rc::new(End::Channel(channel)));
    }

    pub fn close(&mut self, number: u32) {
        self.0.remove(&number);
    }

    /// The channels with numbers below `limit`, as `start` and `fork` take them.
    pub fn channels(&self, limit: u32) -> Vec<(u32, &Channel)> {
        let mut channels = Vec::new();
        for (number, end) in self.0.range(..limit) {
            if let End::Channel(channel) = &**end {
                channels.push((*number, channel));
            }
        }
        channels
    }

    pub fn write(&self, number: u32, bytes: &[u8]) -> Result<(), Errno> {
        match self.get(number).map(|end| &**end) {
            Some(End::Channel(channel)) => channel.write(bytes),
            Some(End::Memory(memory)) => {
                memory.borrow_mut().extend_from_slice(bytes);
                Ok(())
            }
            None => Err(Errno::BadChannel),
        }
    }

    pub fn read(&self, number: u32, most: u32) -> Result<Vec<u8>, Errno> {
        match self.get(number).map(|end| &**end) {
            Some(End::Channel(channel)) => channel.read(most),
            _ => Err(Errno::BadChannel),
        }
    }

    pub fn read_line(&self, number: u32, most: u32) -> Result<Vec<u8>, Errno> {
        match self.get(number).map(|end| &**end) {
            Some(End::Channel(channel)) => channel.read_line(most),
            _ => Err(Errno::BadChannel),
        }
    }

    pub fn is_terminal(&self, number: u32) -> bool {
        matches!(self.get(number).map(|end| &**end), Some(End::Channel(channel)) if channel.is_terminal())
    }
}

/// Everything up to the end of a channel.
pub fn drain(channel: &Channel) -> Result<Vec<u8>, Errno> {
    const PIECE: u32 = 1 << 16;
    let mut all = Vec::new();
    loop {
        let piece = channel.read(PIECE)?;
        if piece.is_empty() {
            return Ok(all);
        }
        all.extend_from_slice(&piece);
    }
}

/// The C library's text for an error, which is what people search for.
pub fn explain(error: Errno) -> &'static str {
    match error {
        Errno::NotFound => "No such file or directory",
        Errno::NotADirectory => "Not a directory",
        Errno::IsADirectory => "Is a directory",
        Errno::Exists => "cannot overwrite existing file",
        Errno::Denied => "Permission denied",
        Errno::ReadOnly => "Read-only file system",
        Errno::NameTooLong => "File name too long",
        Errno::TooManyLinks => "Too many levels of symbolic links",
        Errno::NoSpace => "No space left on device",
        Errno::NotPlain => "Not a file or directory",
        Errno::Closed => "Broken pipe",
        Errno::BadChannel => "Bad file descriptor",
        Errno::Invalid => "Invalid argument",
        Errno::Io => "Input/output error",
    }
}
