//! Runs a program: its rules over the records of its input.

use crate::code::{Expr, Pattern, Program, Slot, Special, Statement};
use crate::record::{Reader, Record, Separator, Terminator};
use crate::regex::{Compiled, Regex};
use crate::stream::{self, Streams};
use crate::value::{Cell, Text, Value};
use crate::{Commands, Error, lexer};

mod array;
mod call;
mod expression;
mod statement;
mod text;
mod variable;

/// How a program is started.
#[derive(Default)]
pub struct Settings {
    /// `-v`, `-F`: before BEGIN.
    pub variables: Vec<(String, Vec<u8>)>,
    /// ARGV, the command's own name first.
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub csv: bool,
    /// Each file is replaced by what is printed while it is read.
    pub in_place: bool,
    /// The limit of nested statements and expressions, which bounds the stack.
    pub stack: usize,
}

/// Where a statement leads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flow {
    On,
    Break,
    Continue,
    Next,
    NextFile,
    Return,
    Exit,
}

struct Interpreter<'p, 'c> {
    program: &'p Program,
    streams: Streams<'c>,
    globals: Vec<Cell>,
    /// The parameters of all functions that run.
    stack: Vec<Cell>,
    base: usize,
    depth: usize,
    deepest: usize,
    returned: Value,
    /// `next` or `exit` in a function.
    leaving: Option<Flow>,
    exit: i32,
    /// A file could not be read.
    failed: bool,
    record: Record,
    /// Room for the record that comes.
    next_text: Vec<u8>,
    nr: f64,
    fnr: f64,
    input: Option<Reader>,
    ended_by: Vec<u8>,
    /// The next of ARGV, and whether one of them was a file.
    argument: usize,
    any_file: bool,
    open_ranges: Vec<bool>,
    /// As OFS, ORS, SUBSEP, CONVFMT, OFMT, FS and RS say.
    ofs: Vec<u8>,
    ors: Vec<u8>,
    subsep: Vec<u8>,
    convfmt: Vec<u8>,
    ofmt: Vec<u8>,
    separator: Separator,
    /// The separator of FS, for `split`.
    fs: Separator,
    terminator: Terminator,
    fold: bool,
    csv: bool,
    in_place: bool,
    regexes: Compiled,
    random: u64,
    seed: f64,
    /// Room for what is printed to a file.
    scratch: Vec<u8>,
}

/// Runs a program and returns its exit code.
pub fn run(program: &Program, settings: Settings, commands: &mut dyn Commands) -> Result<i32, Error> {
    let mut interpreter = Interpreter::new(program, &settings, commands)?;
    let done = interpreter.whole();
    // Writes the output that precedes an error, too.
    let closed = interpreter.streams.close_all().map_err(|e| Error::new(format!("write error: {}", reason(&e))));
    done?;
    closed?;
    Ok(if interpreter.exit == 0 && interpreter.failed { 2 } else { interpreter.exit })
}

/// The system's message without its number.
pub fn reason(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::IsADirectory {
        return "Is a directory".into();
    }
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

impl<'p, 'c> Interpreter<'p, 'c> {
    fn new(program: &'p Program, settings: &Settings, commands: &'c mut dyn Commands) -> Result<Self, Error> {
        let ranges = program.rules.iter().filter(|rule| matches!(rule.pattern, Pattern::Range(..))).count();
        let mut interpreter = Interpreter {
            program,
            streams: Streams::new(commands),
            globals: vec![Cell::default(); program.globals.len()],
            stack: Vec::new(),
            base: 0,
            depth: 0,
            deepest: settings.stack,
            returned: Value::Uninit,
            leaving: None,
            exit: 0,
            failed: false,
            record: Record::default(),
            next_text: Vec::new(),
            nr: 0.0,
            fnr: 0.0,
            input: None,
            ended_by: Vec::new(),
            argument: 1,
            any_file: false,
            open_ranges: vec![false; ranges],
            ofs: b" ".to_vec(),
            ors: b"\n".to_vec(),
            subsep: vec![0x1c],
            convfmt: b"%.6g".to_vec(),
            ofmt: b"%.6g".to_vec(),
            separator: if settings.csv { Separator::Csv } else { Separator::Blanks },
            fs: if settings.csv { Separator::Csv } else { Separator::Blanks },
            terminator: if settings.csv { Terminator::Csv } else { Terminator::Byte(b'\n') },
            fold: false,
            csv: settings.csv,
            in_place: settings.in_place,
            regexes: Compiled::default(),
            random: 0,
            seed: 0.0,
            scratch: Vec::new(),
        };
        interpreter.reseed(0.0);
        interpreter.prepare(settings)?;
        Ok(interpreter)
    }

    fn prepare(&mut self, settings: &Settings) -> Result<(), Error> {
        for (special, text) in [
            (Special::Fs, " "),
            (Special::Ofs, " "),
            (Special::Ors, "\n"),
            (Special::Rs, "\n"),
            (Special::Subsep, "\x1c"),
            (Special::Convfmt, "%.6g"),
            (Special::Ofmt, "%.6g"),
            (Special::Fieldwidths, ""),
            (Special::Filename, ""),
            (Special::Rt, ""),
            (Special::Errno, ""),
        ] {
            self.globals[special.slot()] = Value::Text(Text::from(text)).into();
        }
        self.globals[Special::Fpat.slot()] = Value::Text(Text::from("[^[:space:]]+")).into();
        for (special, number) in
            [(Special::Ignorecase, 0.0), (Special::Rstart, 0.0), (Special::Rlength, -1.0), (Special::Argind, 0.0)]
        {
            self.globals[special.slot()] = Value::Number(number).into();
        }
        self.globals[Special::Argc.slot()] = Value::Number(settings.arguments.len() as f64).into();
        let arguments = settings.arguments.iter().enumerate();
        self.fill(Special::Argv, arguments.map(|(at, text)| (at.to_string(), text.clone())))?;
        self.fill(Special::Environ, settings.environment.iter().cloned())?;
        self.fill(Special::Procinfo, [("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())].into_iter())?;
        for (name, value) in &settings.variables {
            self.assign_by_name(name, value)?;
        }
        Ok(())
    }

    fn fill(&mut self, special: Special, items: impl Iterator<Item = (String, String)>) -> Result<(), Error> {
        let array = self.array_of(Slot::Global(special.slot()))?;
        let cell = |value: String| Cell::from(Value::Input(Text::from(value.as_str())));
        array.borrow_mut().extend(items.map(|(name, value)| (Text::from(name.as_str()), cell(value))));
        Ok(())
    }

    /// `name=value` of the command line.
    fn assign_by_name(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        if self.program.functions.iter().any(|function| function.name == name) {
            return Err(Error::new(format!("`{name}` is a function and cannot be assigned to")));
        }
        // A name that the program does not use needs no value.
        let Some(slot) = self.program.globals.iter().position(|global| global == name) else { return Ok(()) };
        self.set_variable(Slot::Global(slot), Value::Input(Text::from(lexer::unescaped(value))))
    }

    fn whole(&mut self) -> Result<(), Error> {
        let program = self.program;
        for body in &program.begin {
            match self.action(body)? {
                Flow::Exit => return self.finish(),
                Flow::Next | Flow::NextFile => return Err(Error::new("`next` cannot be used in BEGIN")),
                _ => {}
            }
        }
        let reads = !program.rules.is_empty() || !program.end.is_empty();
        if reads || !program.begin_file.is_empty() || !program.end_file.is_empty() {
            self.records()?;
        }
        self.finish()
    }

    /// END, also behind an `exit` elsewhere.
    fn finish(&mut self) -> Result<(), Error> {
        let program = self.program;
        for body in &program.end {
            match self.action(body)? {
                Flow::Exit => break,
                Flow::Next | Flow::NextFile => return Err(Error::new("`next` cannot be used in END")),
                _ => {}
            }
        }
        Ok(())
    }

    fn records(&mut self) -> Result<(), Error> {
        while self.next_record(None)? {
            match self.rules()? {
                Flow::Exit => return Ok(()),
                Flow::NextFile => self.end_file()?,
                _ => {}
            }
        }
        Ok(())
    }

    fn rules(&mut self) -> Result<Flow, Error> {
        let program = self.program;
        for rule in &program.rules {
            let matched = match &rule.pattern {
                Pattern::Always => Ok(true),
                Pattern::When(condition) => self.truth(condition),
                Pattern::Range(first, last, number) => self.in_range(first, last, *number),
            };
            match matched {
                Ok(true) => {}
                Ok(false) => continue,
                Err(e) => return self.left(e),
            }
            match &rule.action {
                None => self.print_record()?,
                Some(body) => match self.action(body)? {
                    Flow::On | Flow::Break | Flow::Continue | Flow::Return => {}
                    Flow::Next => return Ok(Flow::On),
                    flow => return Ok(flow),
                },
            }
        }
        Ok(Flow::On)
    }

    /// The body of a rule. What a function of it leaves by `next` or `exit` comes back as an error.
    fn action(&mut self, body: &'p [Statement]) -> Result<Flow, Error> {
        self.block(body).or_else(|e| self.left(e))
    }

    fn left(&mut self, error: Error) -> Result<Flow, Error> {
        match self.leaving.take() {
            Some(flow) => {
                self.stack.clear();
                (self.base, self.depth) = (0, 0);
                Ok(match flow {
                    Flow::Next => Flow::On,
                    flow => flow,
                })
            }
            None => Err(error),
        }
    }

    fn in_range(&mut self, first: &'p Expr, last: &'p Expr, number: usize) -> Result<bool, Error> {
        if !self.open_ranges[number] && !self.truth(first)? {
            return Ok(false);
        }
        self.open_ranges[number] = !self.truth(last)?;
        Ok(true)
    }

    /// Reads the next record of the main input: into `$0`, or into `other`. `false` at the end.
    fn next_record(&mut self, mut other: Option<&mut Vec<u8>>) -> Result<bool, Error> {
        loop {
            if self.input.is_none() && !self.next_file()? {
                return Ok(false);
            }
            let Some(input) = self.input.as_mut() else { return Ok(false) };
            if input.is_drained() {
                self.streams.flush_out().map_err(|e| Error::new(format!("write error: {}", reason(&e))))?;
            }
            // `$0` stays as it is at the end of the input: END looks at it.
            let record = other.as_deref_mut().unwrap_or(&mut self.next_text);
            let before = self.ended_by.first().copied();
            match input.next(&self.terminator, record, &mut self.ended_by) {
                Ok(true) => {
                    if other.is_none() {
                        self.record.replace(&mut self.next_text);
                    }
                    self.nr += 1.0;
                    self.fnr += 1.0;
                    if before != self.ended_by.first().copied() || !matches!(self.terminator, Terminator::Byte(_)) {
                        self.globals[Special::Rt.slot()] = Value::Text(Text::from(self.ended_by.as_slice())).into();
                    }
                    return Ok(true);
                }
                Ok(false) => self.end_file()?,
                Err(e) => {
                    let name = self.get(Slot::Global(Special::Filename.slot()))?.text(&self.convfmt).lossy();
                    return Err(Error::new(format!("{name}: {}", reason(&e))));
                }
            }
        }
    }

    /// Opens the next file of ARGV, on the way assigning what is to be assigned. `false`: there is none.
    fn next_file(&mut self) -> Result<bool, Error> {
        loop {
            let count = self.get(Slot::Global(Special::Argc.slot()))?.number();
            let name = if (self.argument as f64) < count {
                let array = self.array_of(Slot::Global(Special::Argv.slot()))?;
                let key = self.argument.to_string();
                let found = match array.borrow().get(key.as_bytes()) {
                    Some(Cell::Value(value)) => value.text(&self.convfmt),
                    _ => Text::default(),
                };
                self.argument += 1;
                if found.bytes().is_empty() {
                    continue;
                }
                if let Some((name, value)) = assignment(&found.lossy()) {
                    self.assign_by_name(name, value.as_bytes())?;
                    continue;
                }
                found
            } else if self.any_file {
                return Ok(false);
            } else {
                self.any_file = true;
                self.begin_file(Text::default(), 0)?;
                self.input = Some(Reader::new(Box::new(std::io::stdin())));
                return Ok(true);
            };
            self.any_file = true;
            match stream::open(&name.lossy()) {
                Ok(source) => {
                    self.begin_file(name, self.argument - 1)?;
                    self.input = Some(Reader::new(source));
                    return Ok(true);
                }
                Err(e) => {
                    self.complain(&format!("{}: {}", name.lossy(), reason(&e)));
                    self.failed = true;
                }
            }
        }
    }

    fn begin_file(&mut self, name: Text, argument: usize) -> Result<(), Error> {
        self.fnr = 0.0;
        self.globals[Special::Filename.slot()] = Value::Input(name).into();
        self.globals[Special::Argind.slot()] = Value::Number(argument as f64).into();
        if self.in_place && argument > 0 {
            self.streams.flush_out().map_err(|e| Error::new(format!("write error: {}", reason(&e))))?;
            self.streams.in_place = Some(Vec::new());
        }
        let program = self.program;
        self.hooks(&program.begin_file)
    }

    fn end_file(&mut self) -> Result<(), Error> {
        if self.input.take().is_none() {
            return Ok(());
        }
        let program = self.program;
        self.hooks(&program.end_file)?;
        if self.streams.in_place.is_some() {
            let failed = |e: std::io::Error| Error::new(format!("write error: {}", reason(&e)));
            self.streams.flush_out().map_err(failed)?;
            let text = self.streams.in_place.take().unwrap_or_default();
            let name = self.get(Slot::Global(Special::Filename.slot()))?.text(&self.convfmt).lossy();
            std::fs::write(&name, text).map_err(|e| Error::new(format!("{name}: {}", reason(&e))))?;
        }
        Ok(())
    }

    fn hooks(&mut self, bodies: &'p [Vec<Statement>]) -> Result<(), Error> {
        for body in bodies {
            self.action(body)?;
        }
        Ok(())
    }

    fn complain(&mut self, message: &str) {
        let _ = self.streams.flush_out();
        eprintln!("awk: {message}");
    }

    fn regex(&mut self, source: &[u8]) -> Result<Regex, Error> {
        self.regexes.get(source, self.fold).map_err(Error::from)
    }
}

/// An operand of the form `name=value`.
pub fn assignment(operand: &str) -> Option<(&str, &str)> {
    let (name, value) = operand.split_once('=')?;
    let mut chars = name.chars();
    let first = chars.next()?;
    ((first.is_ascii_alphabetic() || first == '_') && chars.all(|c| c.is_ascii_alphanumeric() || c == '_'))
        .then_some((name, value))
}
