//! A patch as its parts: which files, and what changes in them.

/// One line of a hunk, with its newline if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Keep(Vec<u8>),
    Remove(Vec<u8>),
    Add(Vec<u8>),
}

#[derive(Debug, Clone, Default)]
pub struct Hunk {
    /// First line and number of lines before and after, as the patch names them.
    pub old: (u64, u64),
    pub new: (u64, u64),
    pub changes: Vec<Change>,
}

/// The changes to one file.
#[derive(Debug, Default)]
pub struct FilePatch {
    pub old: Option<String>,
    pub new: Option<String>,
    /// There is nothing before or after: the file is made or deleted.
    pub creates: bool,
    pub deletes: bool,
    pub renames: bool,
    pub binary: bool,
    pub hunks: Vec<Hunk>,
    /// The line of the patch at which it begins, and the lines that lead up to it.
    pub line: usize,
    pub header: Vec<String>,
}

/// Why a patch cannot be read, as a phrase behind `patch: ****`.
pub type Malformed = String;

/// Reads all parts of a patch.
pub fn parse(bytes: &[u8]) -> Result<Vec<FilePatch>, Malformed> {
    let mut lines = Lines { all: bytes.split_inclusive(|byte| *byte == b'\n').collect(), at: 0, strip: false };
    let mut files = Vec::new();
    let mut header = Header::default();
    while let Some(line) = lines.peek() {
        let text = String::from_utf8_lossy(line).into_owned();
        let text = text.trim_end_matches(['\n', '\r']);
        if is_header(&lines) {
            let file = unified(&mut lines, header)?;
            header = Header::default();
            files.push(file);
            continue;
        }
        if text.starts_with("diff --git ") {
            files.extend(std::mem::take(&mut header).without_hunks());
            header.git = true;
        }
        if text == "***************" || is_normal(text) && header.lines.is_empty() && files.is_empty() {
            return Err("only unified diffs are understood; make one with `diff -u`".to_owned());
        }
        header.read(text, lines.at + 1);
        lines.at += 1;
    }
    files.extend(header.without_hunks());
    match files.is_empty() {
        true => Err("Only garbage was found in the patch input.".to_owned()),
        false => Ok(files),
    }
}

struct Lines<'a> {
    all: Vec<&'a [u8]>,
    at: usize,
    /// The patch went through a program that ends lines with CR LF.
    strip: bool,
}

impl<'a> Lines<'a> {
    fn peek(&self) -> Option<&'a [u8]> {
        self.all.get(self.at).copied()
    }

    fn text(&self, ahead: usize) -> &'a [u8] {
        self.all.get(self.at + ahead).copied().unwrap_or_default()
    }

    fn malformed(&self) -> Malformed {
        let line = String::from_utf8_lossy(self.text(0)).into_owned();
        format!("malformed patch at line {}: {}", self.at + 1, line.trim_end_matches('\n'))
    }
}

fn is_header(lines: &Lines) -> bool {
    lines.text(0).starts_with(b"--- ") && lines.text(1).starts_with(b"+++ ") && lines.text(2).starts_with(b"@@ ")
}

/// `2c2`, `3a4,5`: how a normal diff begins.
fn is_normal(text: &str) -> bool {
    let Some((before, after)) = text.split_once(['a', 'c', 'd']) else { return false };
    let is_range = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    is_range(before) && is_range(after)
}

/// The lines before the hunks.
#[derive(Default)]
struct Header {
    lines: Vec<String>,
    line: usize,
    git: bool,
    from: Option<String>,
    to: Option<String>,
    named: Option<(String, String)>,
    creates: bool,
    deletes: bool,
    binary: bool,
}

impl Header {
    fn read(&mut self, text: &str, line: usize) {
        if self.lines.is_empty() {
            self.line = line;
        }
        self.lines.push(text.to_owned());
        if !self.git {
            return;
        }
        if let Some(names) = text.strip_prefix("diff --git ") {
            self.named = names.split_once(" b/").map(|(old, new)| (old.to_owned(), format!("b/{new}")));
        } else if let Some(name) = text.strip_prefix("rename from ") {
            self.from = Some(name.to_owned());
        } else if let Some(name) = text.strip_prefix("rename to ") {
            self.to = Some(name.to_owned());
        } else if text.starts_with("new file mode ") {
            self.creates = true;
        } else if text.starts_with("deleted file mode ") {
            self.deletes = true;
        } else if text == "GIT binary patch" || text.starts_with("Binary files ") {
            self.binary = true;
        }
    }

    fn renames(&self) -> bool {
        self.from.is_some() && self.to.is_some()
    }

    /// A file that changes its name, or is made or deleted with nothing in it.
    fn without_hunks(self) -> Option<FilePatch> {
        let changes = self.renames() || self.creates || self.deletes || self.binary;
        let (old, new) = self.named.clone().filter(|_| changes)?;
        let renames = self.renames();
        Some(FilePatch {
            old: Some(old),
            new: Some(new),
            creates: self.creates,
            deletes: self.deletes,
            renames,
            binary: self.binary,
            hunks: Vec::new(),
            line: self.line,
            header: self.lines,
        })
    }
}

fn unified(lines: &mut Lines, header: Header) -> Result<FilePatch, Malformed> {
    lines.strip = lines.text(0).ends_with(b"\r\n");
    let (old, old_is_nothing) = file_name(lines.text(0));
    let (new, new_is_nothing) = file_name(lines.text(1));
    let line = lines.at + 1;
    let renames = header.renames();
    let mut shown = header.lines;
    shown.extend([0, 1].map(|ahead| String::from_utf8_lossy(lines.text(ahead)).trim_end().to_owned()));
    lines.at += 2;
    let mut file = FilePatch {
        old,
        new,
        creates: header.creates || old_is_nothing,
        deletes: header.deletes || new_is_nothing,
        renames,
        binary: false,
        hunks: Vec::new(),
        line,
        header: shown,
    };
    while lines.text(0).starts_with(b"@@ ") {
        file.hunks.push(hunk(lines)?);
    }
    Ok(file)
}

/// The name in `--- name<TAB>date`, and whether it says that there is no file: by its name, or by a date of 1970.
fn file_name(line: &[u8]) -> (Option<String>, bool) {
    let text = String::from_utf8_lossy(line.get(4..).unwrap_or_default()).into_owned();
    let text = text.trim_end_matches(['\n', '\r']);
    let (name, date) = text.split_once('\t').unwrap_or((text.trim_end(), ""));
    let nothing = name == "/dev/null" || date.starts_with("1970-01-01 ") || date.starts_with("1969-12-31 ");
    let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    ((name != "/dev/null").then(|| quoted.unwrap_or(name).to_owned()), nothing)
}

fn hunk(lines: &mut Lines) -> Result<Hunk, Malformed> {
    let (old, new) = ranges(lines.text(0)).ok_or_else(|| lines.malformed())?;
    let mut hunk = Hunk { old, new, changes: Vec::new() };
    lines.at += 1;
    let (mut before, mut after) = (old.1, new.1);
    while before > 0 || after > 0 {
        let Some(line) = lines.peek() else {
            return Err(format!("unexpected end of file in patch, in the hunk that ends at line {}", lines.at));
        };
        // An editor may have taken the blank away that an empty line of context begins with.
        let (sign, rest) = match line.split_first() {
            Some((b'\n', _)) | None => (b' ', line),
            Some((sign, rest)) => (*sign, rest),
        };
        let mut text = rest.to_vec();
        if lines.strip && text.ends_with(b"\r\n") {
            text.truncate(text.len() - 2);
            text.push(b'\n');
        }
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        let (taken_before, taken_after, change) = match sign {
            b' ' | b'\t' => (1, 1, Change::Keep(text)),
            b'-' => (1, 0, Change::Remove(text)),
            b'+' => (0, 1, Change::Add(text)),
            _ => return Err(lines.malformed()),
        };
        if taken_before > before || taken_after > after {
            return Err(lines.malformed());
        }
        (before, after) = (before - taken_before, after - taken_after);
        hunk.changes.push(change);
        lines.at += 1;
        if lines.text(0).starts_with(b"\\") {
            // "\ No newline at end of file"
            let (Change::Keep(text) | Change::Remove(text) | Change::Add(text)) =
                hunk.changes.last_mut().expect("one was just added");
            text.pop();
            lines.at += 1;
        }
    }
    Ok(hunk)
}

/// `@@ -1,2 +3,4 @@`.
fn ranges(line: &[u8]) -> Option<((u64, u64), (u64, u64))> {
    let text = std::str::from_utf8(line.strip_prefix(b"@@ -")?)
        .or_else(|e| std::str::from_utf8(&line[4..e.valid_up_to()]))
        .ok()?;
    let (old, rest) = text.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| {
        let (first, count) = text.split_once(',').unwrap_or((text, "1"));
        // No file has more lines than fit into 32 bits.
        Some((u64::from(first.parse::<u32>().ok()?), u64::from(count.parse::<u32>().ok()?)))
    };
    Some((range(old)?, range(new)?))
}

impl Change {
    fn reversed(self) -> Change {
        match self {
            Change::Remove(text) => Change::Add(text),
            Change::Add(text) => Change::Remove(text),
            keep => keep,
        }
    }
}

impl Hunk {
    pub fn reversed(self) -> Hunk {
        let mut changes: Vec<Change> = self.changes.into_iter().map(Change::reversed).collect();
        // Puts removed lines before the lines that replace them.
        for run in changes.chunk_by_mut(|a, b| !matches!(a, Change::Keep(_)) && !matches!(b, Change::Keep(_))) {
            run.sort_by_key(|change| matches!(change, Change::Add(_)));
        }
        Hunk { old: self.new, new: self.old, changes }
    }

    /// The lines that must be there.
    pub fn pattern(&self) -> Vec<&[u8]> {
        let changes = self.changes.iter();
        changes
            .filter_map(|change| match change {
                Change::Keep(text) | Change::Remove(text) => Some(text.as_slice()),
                Change::Add(_) => None,
            })
            .collect()
    }

    /// The lines of context at the beginning and at the end.
    pub fn context(&self) -> (usize, usize) {
        let keeps = |change: &&Change| matches!(change, Change::Keep(_));
        (self.changes.iter().take_while(keeps).count(), self.changes.iter().rev().take_while(keeps).count())
    }
}

impl FilePatch {
    pub fn reversed(self) -> FilePatch {
        FilePatch {
            old: self.new,
            new: self.old,
            creates: self.deletes,
            deletes: self.creates,
            hunks: self.hunks.into_iter().map(Hunk::reversed).collect(),
            ..self
        }
    }
}
