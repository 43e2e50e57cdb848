//! The files and commands that a program has open, by name.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::code::Target;
use crate::record::Reader;
use crate::{Child, Commands};

const SIZE: usize = 64 << 10;

/// Standard output and what is printed elsewhere.
pub struct Streams<'c> {
    pub commands: &'c mut dyn Commands,
    pub out: Vec<u8>,
    outputs: IndexMap<Vec<u8>, Output, FxBuildHasher>,
    inputs: IndexMap<(Vec<u8>, bool), Input, FxBuildHasher>,
    /// The output that replaces standard output, with `-i inplace`.
    pub in_place: Option<Vec<u8>>,
}

struct Output {
    to: Target,
    writer: Box<dyn Write>,
    buffer: Vec<u8>,
    child: Option<Box<dyn Child>>,
}

struct Input {
    reader: Reader,
    child: Option<Box<dyn Child>>,
}

impl Output {
    fn flush(&mut self) -> io::Result<()> {
        let done = self.writer.write_all(&self.buffer).and_then(|()| self.writer.flush());
        self.buffer.clear();
        done
    }
}

/// Where a file of this name really leads.
enum Standard {
    Out,
    Error,
}

fn standard(name: &[u8]) -> Option<Standard> {
    match name {
        b"/dev/stdout" | b"/dev/fd/1" | b"-" => Some(Standard::Out),
        b"/dev/stderr" | b"/dev/fd/2" => Some(Standard::Error),
        _ => None,
    }
}

fn path(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

impl<'c> Streams<'c> {
    pub fn new(commands: &'c mut dyn Commands) -> Self {
        Streams { commands, out: Vec::new(), outputs: IndexMap::default(), inputs: IndexMap::default(), in_place: None }
    }

    /// To be called behind each write to `out`.
    pub fn check(&mut self) -> io::Result<()> {
        if self.out.len() >= SIZE { self.flush_out() } else { Ok(()) }
    }

    pub fn flush_out(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let done = match &mut self.in_place {
            Some(file) => {
                file.extend_from_slice(&self.out);
                Ok(())
            }
            None => {
                let mut out = io::stdout().lock();
                out.write_all(&self.out).and_then(|()| out.flush())
            }
        };
        self.out.clear();
        done
    }

    pub fn flush_all(&mut self) -> io::Result<()> {
        let mut done = self.flush_out();
        for output in self.outputs.values_mut() {
            done = done.and(output.flush());
        }
        done
    }

    /// Writes to a file or a command, which is opened if it is not.
    pub fn write(&mut self, to: Target, name: &[u8], bytes: &[u8]) -> io::Result<()> {
        match standard(name).filter(|_| to != Target::Command) {
            Some(Standard::Out) => {
                self.out.extend_from_slice(bytes);
                return self.check();
            }
            Some(Standard::Error) => {
                self.flush_out()?;
                return io::stderr().write_all(bytes);
            }
            None => {}
        }
        if !self.outputs.contains_key(name) {
            self.flush_all()?;
            let (writer, child): (Box<dyn Write>, _) = match to {
                Target::File => (Box::new(File::create(path(name))?), None),
                Target::Append => (Box::new(OpenOptions::new().append(true).create(true).open(path(name))?), None),
                Target::Command => {
                    let (writer, child) = self.commands.writer(&path(name))?;
                    (writer, Some(child))
                }
            };
            self.outputs.insert(name.to_vec(), Output { to, writer, buffer: Vec::new(), child });
        }
        let output = self.outputs.get_mut(name).expect("it was just opened");
        output.buffer.extend_from_slice(bytes);
        if output.buffer.len() >= SIZE { output.flush() } else { Ok(()) }
    }

    /// The reader of a file or command, for `getline`.
    pub fn reader(&mut self, name: &[u8], command: bool) -> io::Result<&mut Reader> {
        let key = (name.to_vec(), command);
        if !self.inputs.contains_key(&key) {
            self.flush_all()?;
            let (source, child): (Box<dyn Read>, _) = if command {
                let (source, child) = self.commands.reader(&path(name))?;
                (source, Some(child))
            } else {
                (open(&path(name))?, None)
            };
            self.inputs.insert(key.clone(), Input { reader: Reader::new(source), child });
        }
        Ok(&mut self.inputs.get_mut(&key).expect("it was just opened").reader)
    }

    pub fn system(&mut self, command: &str) -> io::Result<i32> {
        self.flush_all()?;
        self.commands.run(command)
    }

    /// Closes what has this name. The exit code of a command, 0 for a file, `None` if there is nothing of this name.
    pub fn close(&mut self, name: &[u8]) -> io::Result<Option<i32>> {
        let mut code = None;
        if let Some(output) = self.outputs.shift_remove(name) {
            code = Some(self.end_output(output)?);
        }
        for command in [false, true] {
            if let Some(input) = self.inputs.shift_remove(&(name.to_vec(), command)) {
                code = Some(end_input(input));
            }
        }
        Ok(code)
    }

    fn end_output(&mut self, mut output: Output) -> io::Result<i32> {
        if output.to == Target::Command {
            self.flush_out()?;
        }
        let done = output.flush();
        drop(output.writer);
        let code = output.child.map_or(0, |mut child| child.wait());
        match done {
            // A command that reads no further has had enough.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe && output.to == Target::Command => Ok(code),
            done => done.map(|()| code),
        }
    }

    /// Flushes one of them. `false`: there is none of this name.
    pub fn flush(&mut self, name: &[u8]) -> io::Result<bool> {
        if let Some(Standard::Out) = standard(name) {
            return self.flush_out().map(|()| true);
        }
        match self.outputs.get_mut(name) {
            Some(output) => output.flush().map(|()| true),
            None => Ok(standard(name).is_some()),
        }
    }

    /// Closes everything at the end of the program, and waits for the commands.
    pub fn close_all(&mut self) -> io::Result<()> {
        let mut done = self.flush_out();
        while let Some((_, output)) = self.outputs.shift_remove_index(0) {
            done = done.and(self.end_output(output).map(|_| ()));
        }
        while let Some((_, input)) = self.inputs.shift_remove_index(0) {
            end_input(input);
        }
        done
    }
}

fn end_input(input: Input) -> i32 {
    drop(input.reader);
    input.child.map_or(0, |mut child| child.wait())
}

/// A file, or standard input for `-`.
pub fn open(path: &str) -> io::Result<Box<dyn Read>> {
    if matches!(path, "-" | "/dev/stdin" | "/dev/fd/0") {
        return Ok(Box::new(io::stdin()));
    }
    if std::path::Path::new(path).is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    Ok(Box::new(File::open(path)?))
}
