//! Running a script of `sed` over files.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::rc::Rc;

use command::permissions;

use super::Options;
use super::pattern::{Groups, Pattern};
use super::script::{Action, Address, Command, End, Expression, Part, Range, Substitution};
use crate::cli::{self, Error};

/// The lines of the files, one ahead, because `$` asks whether there is another.
struct Input {
    files: std::vec::IntoIter<String>,
    reader: Option<BufReader<Box<dyn io::Read>>>,
    next: Option<Vec<u8>>,
    name: String,
    end: u8,
    failed: bool,
}

impl Input {
    fn new(files: Vec<String>, end: u8) -> Input {
        Input { files: files.into_iter(), reader: None, next: None, name: String::new(), end, failed: false }
    }

    /// The next line with its end, if it has one.
    fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = match self.next.take() {
            Some(line) => Some(line),
            None => self.read()?,
        };
        Ok(line)
    }

    fn is_last(&mut self) -> io::Result<bool> {
        if self.next.is_none() {
            self.next = self.read()?;
        }
        Ok(self.next.is_none())
    }

    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(reader) = &mut self.reader {
                let mut line = Vec::new();
                if reader.read_until(self.end, &mut line)? > 0 {
                    return Ok(Some(line));
                }
                self.reader = None;
            }
            let Some(name) = self.files.next() else { return Ok(None) };
            match cli::open(&name) {
                Ok(file) => self.reader = Some(BufReader::with_capacity(64 << 10, file)),
                Err(e) if e.kind() == io::ErrorKind::IsADirectory => {
                    eprintln!("sed: couldn't edit {name}: not a regular file");
                    self.failed = true;
                }
                Err(e) => {
                    eprintln!("sed: can't read {name}: {}", cli::reason(&e));
                    self.failed = true;
                }
            }
            self.name = name;
        }
    }
}

/// The exit code of `sed` if a file could not be read.
const UNREADABLE: i32 = 2;

pub fn run(options: &Options, script: Vec<Command>, files: Vec<String>) -> cli::Outcome {
    let end = if options.zero { 0 } else { b'\n' };
    let mut editor = Editor::new(options, script, end);
    let mut failed = false;
    let mut write = |files: Vec<String>, out: &mut dyn Write| -> Result<Option<i32>, Error> {
        let mut input = Input::new(files, end);
        let code = editor.edit(&mut input, out)?;
        out.flush()?;
        failed |= input.failed;
        Ok(code)
    };
    if let Some(suffix) = &options.in_place {
        for mut file in files {
            if options.follow
                && let Ok(place) = std::fs::canonicalize(&file)
            {
                file = place.to_string_lossy().into_owned();
            }
            if !std::path::Path::new(&file).is_file() {
                write(vec![file], &mut io::sink())?;
                continue;
            }
            let part = format!("{file}.sed-part");
            let mut out = BufWriter::new(File::create(&part).map_err(cli::with_path(&file))?);
            let code = write(vec![file.clone()], &mut out)?;
            drop(out);
            let bits = permissions::get(file.as_ref(), true).map_err(cli::with_path(&file))?;
            permissions::set(part.as_ref(), bits).map_err(cli::with_path(&file))?;
            if !suffix.is_empty() {
                let copy = if suffix.contains('*') { suffix.replace('*', &file) } else { format!("{file}{suffix}") };
                std::fs::rename(&file, &copy).map_err(cli::with_path(&copy))?;
            }
            std::fs::rename(&part, &file).map_err(cli::with_path(&file))?;
            if let Some(code) = code {
                return Ok(code);
            }
        }
    } else {
        let mut out = io::stdout().lock();
        let groups: Vec<Vec<String>> =
            if options.separate { files.into_iter().map(|file| vec![file]).collect() } else { vec![files] };
        for group in groups {
            if let Some(code) = write(group, &mut out)? {
                return Ok(code);
            }
        }
    }
    Ok(if failed { UNREADABLE } else { 0 })
}

struct Editor<'a> {
    options: &'a Options,
    script: Vec<Command>,
    /// For each command the line in which its range ends, while it is in it.
    active: Vec<Option<Ending>>,
    hold: Vec<u8>,
    line: usize,
    last: Option<Rc<Pattern>>,
    files: HashMap<String, File>,
    end: u8,
}

#[derive(Clone, Copy)]
enum Ending {
    At(usize),
    /// With a match or the last line.
    Open,
}

/// How to go on after the commands of a cycle.
enum Next {
    Cycle,
    /// Without reading a line (`D`).
    Again,
    Quit(i32),
}

/// The state of one cycle.
struct Cycle<'a> {
    space: Vec<u8>,
    /// Whether the line had an end.
    ended: bool,
    append: Vec<Append<'a>>,
}

enum Append<'a> {
    Text(&'a str),
    File(&'a str),
}

impl<'a> Editor<'a> {
    fn new(options: &'a Options, script: Vec<Command>, end: u8) -> Self {
        let active = vec![None; script.len()];
        Editor { options, script, active, hold: Vec::new(), line: 0, last: None, files: HashMap::new(), end }
    }

    /// Returns the code that the script ended with, if it did.
    fn edit(&mut self, input: &mut Input, out: &mut dyn Write) -> Result<Option<i32>, Error> {
        if self.options.separate {
            self.line = 0;
        }
        let script = std::mem::take(&mut self.script);
        let mut code = None;
        let mut again: Option<Cycle> = None;
        loop {
            let mut cycle = match again.take() {
                Some(cycle) => cycle,
                None => match input.line()? {
                    Some(line) => {
                        self.line += 1;
                        self.cycle(line)
                    }
                    None => break,
                },
            };
            let next = self.commands(&script, &mut cycle, input, out)?;
            self.append(&mut cycle, out)?;
            match next {
                Next::Cycle => {}
                Next::Again => again = Some(cycle),
                Next::Quit(quit) => {
                    code = Some(quit);
                    break;
                }
            }
        }
        self.script = script;
        Ok(code)
    }

    fn cycle<'s>(&self, mut line: Vec<u8>) -> Cycle<'s> {
        let ended = line.pop_if(|byte| *byte == self.end).is_some();
        Cycle { space: line, ended, append: Vec::new() }
    }

    fn put(&self, text: &[u8], ended: bool, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(text)?;
        if ended { out.write_all(&[self.end]) } else { Ok(()) }
    }

    fn append(&self, cycle: &mut Cycle, out: &mut dyn Write) -> io::Result<()> {
        if !cycle.append.is_empty() && !cycle.ended {
            out.write_all(&[self.end])?;
            cycle.ended = true;
        }
        for append in cycle.append.drain(..) {
            match append {
                Append::Text(text) => out.write_all(text.as_bytes())?,
                // A missing file is not an error.
                Append::File(path) => {
                    if let Ok(bytes) = cli::read(path) {
                        out.write_all(&bytes)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn commands<'s>(
        &mut self,
        script: &'s [Command],
        cycle: &mut Cycle<'s>,
        input: &mut Input,
        out: &mut dyn Write,
    ) -> Result<Next, Error> {
        let mut at = 0;
        let mut substituted = false;
        while let Some(command) = script.get(at) {
            at += 1;
            let selected = self.selects(at - 1, &command.range, &cycle.space, input)?;
            if selected == command.range.negated {
                if let Action::Block(end) = command.action {
                    at = end;
                }
                continue;
            }
            match &command.action {
                Action::Block(_) => {}
                Action::Substitute(substitution) => {
                    if self.substitute(substitution, cycle, out)? {
                        substituted = true;
                    }
                }
                Action::Translate(pairs) => {
                    let text = String::from_utf8_lossy(&cycle.space);
                    let change = |c| pairs.iter().find(|(from, _)| *from == c).map_or(c, |(_, to)| *to);
                    cycle.space = text.chars().map(change).collect::<String>().into_bytes();
                }
                Action::Append(text) => cycle.append.push(Append::Text(text)),
                Action::Read(path) => cycle.append.push(Append::File(path)),
                Action::Insert(text) => out.write_all(text.as_bytes())?,
                Action::Change(text) => {
                    // A range is changed as a whole, at its end.
                    let inside = command.range.end.is_some() && self.active[at - 1].is_some() && !command.range.negated;
                    if !inside {
                        out.write_all(text.as_bytes())?;
                    }
                    return Ok(Next::Cycle);
                }
                Action::Branch(kind, to) => {
                    let goes = match kind {
                        't' => std::mem::take(&mut substituted),
                        'T' => !std::mem::take(&mut substituted),
                        _ => true,
                    };
                    if goes {
                        at = *to;
                    }
                }
                Action::Write(path) => self.write_file(path, &cycle.space, out)?,
                Action::Quit { code, print } => {
                    if *print && !self.options.quiet {
                        self.put(&cycle.space, cycle.ended, out)?;
                    }
                    return Ok(Next::Quit(*code));
                }
                Action::Plain(letter) => {
                    if let Some(next) = self.plain(*letter, cycle, input, out)? {
                        return Ok(next);
                    }
                }
            }
        }
        if !self.options.quiet {
            self.put(&cycle.space, cycle.ended, out)?;
        }
        Ok(Next::Cycle)
    }

    fn plain(
        &mut self,
        letter: char,
        cycle: &mut Cycle,
        input: &mut Input,
        out: &mut dyn Write,
    ) -> Result<Option<Next>, Error> {
        match letter {
            '=' => writeln!(out, "{}", self.line)?,
            'F' => writeln!(out, "{}", input.name)?,
            'd' => return Ok(Some(Next::Cycle)),
            'D' => match cycle.space.iter().position(|byte| *byte == b'\n') {
                Some(newline) => {
                    cycle.space.drain(..=newline);
                    return Ok(Some(Next::Again));
                }
                None => return Ok(Some(Next::Cycle)),
            },
            'g' => cycle.space.clone_from(&self.hold),
            'G' => {
                cycle.space.push(b'\n');
                cycle.space.extend_from_slice(&self.hold);
            }
            'h' => self.hold.clone_from(&cycle.space),
            'H' => {
                self.hold.push(b'\n');
                self.hold.extend_from_slice(&cycle.space);
            }
            'x' => std::mem::swap(&mut self.hold, &mut cycle.space),
            'z' => cycle.space.clear(),
            'l' => out.write_all(visible(&cycle.space).as_bytes())?,
            'p' => self.put(&cycle.space, cycle.ended || !input.is_last()?, out)?,
            'P' => {
                let line = cycle.space.split(|byte| *byte == b'\n').next().unwrap_or_default();
                self.put(line, true, out)?;
            }
            'n' | 'N' => {
                if input.is_last()? {
                    // GNU's sed prints the pattern space before it ends.
                    if !self.options.quiet {
                        self.put(&cycle.space, cycle.ended, out)?;
                    }
                    return Ok(Some(Next::Cycle));
                }
                if letter == 'n' && !self.options.quiet {
                    self.put(&cycle.space, cycle.ended, out)?;
                }
                self.append(cycle, out)?;
                let Some(line) = input.line()? else { return Ok(Some(Next::Cycle)) };
                self.line += 1;
                let next = self.cycle(line);
                if letter == 'N' {
                    cycle.space.push(b'\n');
                    cycle.space.extend_from_slice(&next.space);
                } else {
                    cycle.space = next.space;
                }
                cycle.ended = next.ended;
            }
            _ => {}
        }
        Ok(None)
    }

    /// Whether the addresses take this line, without regard to `!`.
    fn selects(&mut self, at: usize, range: &Range, space: &[u8], input: &mut Input) -> Result<bool, Error> {
        let Some(start) = &range.start else { return Ok(true) };
        let Some(end) = &range.end else { return self.is_at(start, space, input) };
        if let Some(ending) = self.active[at] {
            let ends = match (ending, end) {
                (Ending::At(line), _) => self.line >= line,
                (Ending::Open, End::Match(expression)) => self.matches(expression, space)?,
                (Ending::Open, _) => input.is_last()?,
            };
            if ends {
                self.active[at] = None;
            }
            // A range that ended before this line does not take it.
            return Ok(!matches!(ending, Ending::At(line) if self.line > line) || self.is_at(start, space, input)?);
        }
        let zero = matches!(start, Address::Line(0));
        if zero && self.line == 1 {
            if let End::Match(expression) = end
                && !self.matches(expression, space)?
            {
                self.active[at] = Some(Ending::Open);
            }
            return Ok(true);
        }
        if zero || !self.is_at(start, space, input)? {
            return Ok(false);
        }
        let until = match end {
            End::Line(line) => Some(*line),
            End::Count(count) => Some(self.line + count),
            End::Multiple(0) => Some(self.line),
            End::Multiple(step) => Some(self.line.next_multiple_of(*step)),
            End::Last | End::Match(_) => None,
        };
        self.active[at] = match until {
            Some(line) => (line > self.line).then_some(Ending::At(line)),
            None if matches!(end, End::Last) && input.is_last()? => None,
            None => Some(Ending::Open),
        };
        Ok(true)
    }

    fn is_at(&mut self, address: &Address, space: &[u8], input: &mut Input) -> Result<bool, Error> {
        Ok(match address {
            Address::Line(line) => self.line == *line,
            Address::Last => input.is_last()?,
            Address::Step(first, 0) => self.line == *first,
            Address::Step(first, step) => self.line >= *first && (self.line - first).is_multiple_of(*step),
            Address::Match(expression) => self.matches(expression, space)?,
        })
    }

    fn pattern(&mut self, expression: &Expression) -> Result<Rc<Pattern>, Error> {
        let pattern = expression.clone().or_else(|| self.last.clone()).ok_or("no previous regular expression")?;
        self.last = Some(pattern.clone());
        Ok(pattern)
    }

    fn matches(&mut self, expression: &Expression, space: &[u8]) -> Result<bool, Error> {
        Ok(self.pattern(expression)?.is_match(space))
    }

    fn substitute(&mut self, with: &Substitution, cycle: &mut Cycle, out: &mut dyn Write) -> Result<bool, Error> {
        let pattern = self.pattern(&with.pattern)?;
        let Some(changed) = replaced(&pattern, with, &cycle.space) else { return Ok(false) };
        cycle.space = changed;
        if with.print {
            self.put(&cycle.space, true, out)?;
        }
        if let Some(path) = &with.file {
            self.write_file(path, &cycle.space, out)?;
        }
        Ok(true)
    }

    fn write_file(&mut self, path: &str, text: &[u8], out: &mut dyn Write) -> Result<(), Error> {
        if path == "/dev/stdout" {
            return Ok(self.put(text, true, out)?);
        }
        if path == "/dev/stderr" {
            return Ok(self.put(text, true, &mut io::stderr())?);
        }
        if !self.files.contains_key(path) {
            self.files.insert(path.to_owned(), File::create(path).map_err(cli::with_path(path))?);
        }
        let line = [text, &[self.end]].concat();
        Ok((&self.files[path]).write_all(&line)?)
    }
}

/// The text with what `s` changes in it; nothing if it changes nothing.
fn replaced(pattern: &Pattern, with: &Substitution, text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut from, mut copied, mut count) = (0, 0, 0);
    let mut last_end = None;
    while from <= text.len()
        && let Some(groups) = pattern.groups(text, from)
    {
        let (start, end) = groups[0].unwrap_or((from, from));
        // An empty match right behind another match does not count.
        if start == end && last_end == Some(start) {
            from = start + 1;
            continue;
        }
        count += 1;
        last_end = Some(end);
        if count >= with.first {
            out.extend_from_slice(&text[copied..start]);
            fill(&with.parts, text, &groups, &mut out);
            copied = end;
            if !with.all {
                break;
            }
        }
        from = if end == start { end + 1 } else { end };
    }
    if count < with.first {
        return None;
    }
    out.extend_from_slice(&text[copied..]);
    Some(out)
}

fn fill(parts: &[Part], text: &[u8], groups: &Groups, out: &mut Vec<u8>) {
    // For all that follows, and for the next character.
    let (mut case, mut once) = ('E', 'E');
    for part in parts {
        let piece = match part {
            Part::Case(letter @ ('u' | 'l')) => {
                once = *letter;
                continue;
            }
            Part::Case(letter) => {
                case = *letter;
                continue;
            }
            Part::Text(text) => &text[..],
            Part::Group(number) => match groups.get(*number) {
                Some(Some((start, end))) => &text[*start..*end],
                _ => b"",
            },
        };
        if case == 'E' && once == 'E' {
            out.extend_from_slice(piece);
            continue;
        }
        for c in String::from_utf8_lossy(piece).chars() {
            let changed: String = match (std::mem::replace(&mut once, 'E'), case) {
                ('u', _) | ('E', 'U') => c.to_uppercase().collect(),
                ('l', _) | ('E', 'L') => c.to_lowercase().collect(),
                _ => c.to_string(),
            };
            out.extend_from_slice(changed.as_bytes());
        }
    }
}

/// The text as `l` shows it, cut into lines of 70 characters.
fn visible(text: &[u8]) -> String {
    let mut out = String::new();
    let mut width = 0;
    for byte in text {
        let shown = match byte {
            b'\\' => "\\\\".to_owned(),
            b'\n' => "\\n".to_owned(),
            b'\t' => "\\t".to_owned(),
            b'\r' => "\\r".to_owned(),
            7 => "\\a".to_owned(),
            8 => "\\b".to_owned(),
            11 => "\\v".to_owned(),
            12 => "\\f".to_owned(),
            32..127 => char::from(*byte).to_string(),
            byte => format!("\\{byte:03o}"),
        };
        if width + shown.len() > 69 {
            out.push_str("\\\n");
            width = 0;
        }
        width += shown.len();
        out.push_str(&shown);
    }
    out + "$\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sed::script;

    #[track_caller]
    fn check(text: &str, input: &str, expected: &str) {
        let (quiet, text) = text.strip_prefix("-n ").map_or((false, text), |text| (true, text));
        let options = Options { quiet, ..Options::default() };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("in");
        std::fs::write(&path, input).unwrap();
        let mut editor = Editor::new(&options, script::parse(text, false).unwrap(), b'\n');
        let mut out = Vec::new();
        editor.edit(&mut Input::new(vec![path.to_str().unwrap().into()], b'\n'), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{text}");
    }

    #[test]
    fn substitutions() {
        check("s/a/b/", "aa\n", "ba\n");
        check("s/a/b/2g", "aaa\n", "abb\n");
        check("s/x*/-/g", "abc\n", "-a-b-c-\n");
        check(r"s/\(a\)\(b\)/\2\1/", "ab", "ba");
        check(r"s/\w\+/\u&/g", "one two\n", "One Two\n");
        check("s/$/!/;s/^/>/", "a\n", ">a!\n");
        check(r"s/\(.\)\1/<&>/", "abba\n", "a<bb>a\n");
        check("2,3{s/a/b/;s/c/d/}", "ac\nac\nac\nac\n", "ac\nbd\nbd\nac\n");
    }

    #[test]
    fn addresses() {
        let input = "1\n2\n3\n4\n5\n";
        check("-n 2,3p", input, "2\n3\n");
        check("-n $p", input, "5\n");
        check("-n /2/,/4/p", input, "2\n3\n4\n");
        check("-n 2,+1p", input, "2\n3\n");
        check("-n 0~2p", input, "2\n4\n");
        check("-n 2,1p", input, "2\n");
        check("2,$!d", input, "2\n3\n4\n5\n");
        check("0,/1/d", input, "2\n3\n4\n5\n");
        check("/3/q", input, "1\n2\n3\n");
    }

    #[test]
    fn texts_and_spaces() {
        check("2i\\\nnew", "a\nb\n", "a\nnew\nb\n");
        check("1a new", "a\nb\n", "a\nnew\nb\n");
        check("1,2c x", "a\nb\nc\n", "x\nc\n");
        check(":a;N;$!ba;s/\\n/,/g", "a\nb\nc\n", "a,b,c\n");
        check("1!G;h;$!d", "a\nb\nc\n", "c\nb\na\n");
        check("$!N;P;D", "a\nb\nc\n", "a\nb\nc\n");
        check("y/ab/xy/", "aabb\n", "xxyy\n");
        check("-n l", "a\tb\\\n", "a\\tb\\\\$\n");
        check("=", "a\n", "1\na\n");
    }
}
