//! Reading, sorting, writing to temporary files, merging and checking.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use super::compare::View;
use super::{Check, Options};
use crate::cli::{self, Error};

/// One line in the buffer. The first key is kept, because to find it takes longer than to compare it.
struct Line {
    start: u32,
    end: u32,
    key: (u32, u32),
    value: f64,
}

/// How much is read from each file that is merged.
const PIECE: usize = 64 << 10;

pub fn run(options: &Options) -> cli::Outcome {
    if let Some(check) = options.check {
        return ordered(options, check);
    }
    if options.merge {
        let mut sources = Vec::new();
        for file in &options.files {
            sources.push(open(file)?);
        }
        return match &options.output {
            None => merge(options, sources, &mut io::stdout().lock()),
            Some(path) => {
                // It may be one of the files that are merged.
                let directory = temporary(options)?;
                let part = directory.path().join("merged");
                merge(options, sources, &mut File::create(&part)?)?;
                std::fs::copy(&part, path).map_err(cli::with_path(path))?;
                Ok(0)
            }
        };
    }
    let mut chunk = Chunk::default();
    let mut spilled = Spilled::default();
    for file in &options.files {
        let mut reader = open(file)?;
        loop {
            let before = chunk.bytes.len();
            if reader.read_until(options.end, &mut chunk.bytes).map_err(cli::with_path(file))? == 0 {
                break;
            }
            chunk.add(options, before)?;
            if chunk.is_full(options) {
                spilled.write(options, &mut chunk)?;
            }
        }
    }
    let mut output: Box<dyn Write> = match &options.output {
        None => Box::new(io::stdout().lock()),
        Some(path) => Box::new(File::create(path).map_err(cli::with_path(path))?),
    };
    if spilled.count == 0 {
        chunk.write(options, &mut output)?;
        return Ok(0);
    }
    if !chunk.lines.is_empty() {
        spilled.write(options, &mut chunk)?;
    }
    drop(chunk);
    merge(options, spilled.sources()?, &mut output)
}

fn open(file: &str) -> Result<Box<dyn BufRead>, Error> {
    let opened = match file {
        "-" => Ok(Box::new(BufReader::with_capacity(PIECE, io::stdin())) as Box<dyn BufRead>),
        path => cli::open(path).map(|reader| Box::new(BufReader::with_capacity(PIECE, reader)) as Box<dyn BufRead>),
    };
    opened.map_err(|e| {
        let verb = if e.kind() == io::ErrorKind::IsADirectory { "read failed" } else { "cannot read" };
        format!("{verb}: {file}: {}", cli::reason(&e)).into()
    })
}

fn temporary(options: &Options) -> Result<tempfile::TempDir, Error> {
    let made = tempfile::Builder::new().prefix("sort").tempdir_in(&options.directory);
    made.map_err(|e| format!("cannot create temporary file in '{}': {}", options.directory, cli::reason(&e)).into())
}

#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    lines: Vec<Line>,
}

impl Chunk {
    /// Takes the bytes from `start` on as a line.
    fn add(&mut self, options: &Options, start: usize) -> Result<(), Error> {
        if self.bytes.len() > start && self.bytes.ends_with(&[options.end]) {
            self.bytes.pop();
        }
        let small = |number: usize| u32::try_from(number).map_err(|_| Error::from("a line of more than 4 GiB"));
        let line = &self.bytes[start..];
        let view = options.order.view(line);
        let key = start + view.key.as_ptr() as usize - line.as_ptr() as usize;
        let key = (small(key)?, small(key + view.key.len())?);
        self.lines.push(Line { start: small(start)?, end: small(self.bytes.len())?, key, value: view.value });
        Ok(())
    }

    fn is_full(&self, options: &Options) -> bool {
        self.bytes.len() + self.lines.len() * size_of::<Line>() >= options.buffer
    }

    fn view(&self, line: &Line) -> View<'_> {
        let range = |from: u32, to: u32| &self.bytes[from as usize..to as usize];
        View { line: range(line.start, line.end), key: range(line.key.0, line.key.1), value: line.value }
    }

    fn write(&mut self, options: &Options, output: &mut dyn Write) -> io::Result<()> {
        let mut lines = std::mem::take(&mut self.lines);
        // Where lines are equal to all else, the first one read comes first.
        if options.order.is_plain() {
            let text = |line: &Line| &self.bytes[line.start as usize..line.end as usize];
            if options.reverse {
                lines.sort_unstable_by(|a, b| text(b).cmp(text(a)).then(a.start.cmp(&b.start)));
            } else {
                lines.sort_unstable_by(|a, b| text(a).cmp(text(b)).then(a.start.cmp(&b.start)));
            }
        } else {
            let compare = |a: &Line, b: &Line| options.compare(&self.view(a), &self.view(b));
            lines.sort_unstable_by(|a, b| compare(a, b).then(a.start.cmp(&b.start)));
        }
        let mut output = BufWriter::with_capacity(PIECE, output);
        let mut last: Option<View> = None;
        for line in &lines {
            let view = self.view(line);
            if options.unique && last.is_some_and(|last| options.order.compare(&last, &view).is_eq()) {
                continue;
            }
            output.write_all(view.line)?;
            output.write_all(&[options.end])?;
            last = Some(view);
        }
        output.flush()?;
        lines.clear();
        self.lines = lines;
        self.bytes.clear();
        Ok(())
    }
}

impl Options {
    /// By the keys, and if they are equal by all bytes.
    fn compare(&self, a: &View, b: &View) -> Ordering {
        let order = self.order.compare(a, b);
        if order.is_ne() || self.stable || self.unique {
            return order;
        }
        let order = a.line.cmp(b.line);
        if self.reverse { order.reverse() } else { order }
    }
}

/// Sorted files, each with a part of the input.
#[derive(Default)]
struct Spilled {
    directory: Option<tempfile::TempDir>,
    count: usize,
}

impl Spilled {
    fn write(&mut self, options: &Options, chunk: &mut Chunk) -> Result<(), Error> {
        let directory = match self.directory.take() {
            Some(directory) => directory,
            None => temporary(options)?,
        };
        let path = directory.path().join(self.count.to_string());
        self.directory = Some(directory);
        let done = File::create(&path).and_then(|mut file| chunk.write(options, &mut file));
        done.map_err(|e| format!("write failed: {}: {}", path.display(), cli::reason(&e)))?;
        self.count += 1;
        Ok(())
    }

    fn sources(&self) -> Result<Vec<Box<dyn BufRead>>, Error> {
        let Some(directory) = &self.directory else { return Ok(Vec::new()) };
        let open = |number: usize| {
            let path = directory.path().join(number.to_string());
            let file = File::open(&path).map_err(cli::with_path(&path))?;
            Ok(Box::new(BufReader::with_capacity(PIECE, file)) as Box<dyn BufRead>)
        };
        (0..self.count).map(open).collect()
    }
}

/// A file that is merged, and its next line.
struct Source {
    reader: Box<dyn BufRead>,
    number: usize,
    line: Vec<u8>,
    key: (usize, usize),
    value: f64,
}

impl Source {
    /// Reads the next line. `false`: there is none.
    fn advance(&mut self, options: &Options) -> io::Result<bool> {
        self.line.clear();
        if self.reader.read_until(options.end, &mut self.line)? == 0 {
            return Ok(false);
        }
        self.line.pop_if(|byte| *byte == options.end);
        let view = options.order.view(&self.line);
        let start = view.key.as_ptr() as usize - self.line.as_ptr() as usize;
        (self.key, self.value) = ((start, start + view.key.len()), view.value);
        Ok(true)
    }

    fn view(&self) -> View<'_> {
        View { line: &self.line, key: &self.line[self.key.0..self.key.1], value: self.value }
    }
}

fn merge(options: &Options, readers: Vec<Box<dyn BufRead>>, output: &mut dyn Write) -> cli::Outcome {
    let mut output = BufWriter::with_capacity(PIECE, output);
    let mut heap = Vec::new();
    for (number, reader) in readers.into_iter().enumerate() {
        let mut source = Source { reader, number, line: Vec::new(), key: (0, 0), value: 0.0 };
        if source.advance(options)? {
            heap.push(source);
        }
    }
    for at in (0..heap.len()).rev() {
        sink(options, &mut heap, at);
    }
    let mut last: Option<Vec<u8>> = None;
    while let Some(first) = heap.first_mut() {
        let known = |last: &Vec<u8>| options.order.compare(&options.order.view(last), &first.view()).is_eq();
        if !options.unique || !last.as_ref().is_some_and(known) {
            output.write_all(&first.line)?;
            output.write_all(&[options.end])?;
            if options.unique {
                last = Some(first.line.clone());
            }
        }
        if !first.advance(options)? {
            heap.swap_remove(0);
        }
        sink(options, &mut heap, 0);
    }
    output.flush()?;
    Ok(0)
}

/// Moves a source down the heap until none below it has a line that comes earlier.
fn sink(options: &Options, heap: &mut [Source], mut at: usize) {
    let earlier = |heap: &[Source], a: usize, b: usize| {
        options.compare(&heap[a].view(), &heap[b].view()).then(heap[a].number.cmp(&heap[b].number)).is_lt()
    };
    loop {
        let below = [2 * at + 1, 2 * at + 2].into_iter().filter(|child| *child < heap.len());
        let Some(first) = below.reduce(|a, b| if earlier(heap, b, a) { b } else { a }) else { return };
        if !earlier(heap, first, at) {
            return;
        }
        heap.swap(at, first);
        at = first;
    }
}

fn ordered(options: &Options, check: Check) -> cli::Outcome {
    let file = &options.files[0];
    let mut source = Source { reader: open(file)?, number: 0, line: Vec::new(), key: (0, 0), value: 0.0 };
    let mut last: Option<Vec<u8>> = None;
    let mut number = 0u64;
    while source.advance(options)? {
        number += 1;
        if let Some(last) = &last {
            let order = options.compare(&options.order.view(last), &source.view());
            if order.is_gt() || (options.unique && order.is_eq()) {
                if check == Check::Aloud {
                    eprintln!("sort: {file}:{number}: disorder: {}", String::from_utf8_lossy(&source.line));
                }
                return Ok(1);
            }
        }
        last.get_or_insert_default().clone_from(&source.line);
    }
    Ok(0)
}
