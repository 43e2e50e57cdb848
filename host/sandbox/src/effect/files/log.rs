//! The labels of one session in memory and in its file: a line for each change, and numbers for labels that were named before.

use super::super::label::LabelId;
use super::way::{EntryLabel, LEVELS, LabelKey, content_key, halves};
use data_encoding::HEXLOWER;
use kiso_plan::label::{Confidentiality, Integrity, Label, SourceSet};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, open, openat, statat};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Obsolete lines that a log may have before it is rewritten.
const SPARE_LINES: usize = 4_096;

#[derive(Debug)]
pub(super) struct LabelLog {
    path: PathBuf,
    work: PathBuf,
    labels: HashMap<LabelKey, LabelId>,
    /// The label of all others.
    others: LabelId,
    /// Bytes of the log that were read or written.
    read: u64,
    lines: usize,
    file: Option<File>,
    /// The inode of the log, which another process may rewrite.
    inode: u64,
    /// Labels that the log has numbers for.
    known: HashMap<LabelId, usize>,
    numbered: Vec<LabelId>,
    secret: Option<Secret>,
}

/// Makes the keys of entries: a guest that chooses names cannot find two that have one key.
#[derive(Debug)]
struct Secret {
    text: String,
    key: hmac::Key,
}

impl Secret {
    fn new() -> io::Result<Self> {
        let mut bytes = [0; 16];
        SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("there are no random bytes"))?;
        Ok(Self::from_text(HEXLOWER.encode(&bytes)))
    }

    fn from_text(text: String) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes());
        Self { text, key }
    }
}

impl LabelLog {
    pub(super) fn new(path: PathBuf, work: PathBuf) -> Self {
        Self {
            path,
            work,
            labels: HashMap::new(),
            others: LabelId::default(),
            read: 0,
            lines: 0,
            file: None,
            inode: 0,
            known: HashMap::new(),
            numbered: Vec::new(),
            secret: None,
        }
    }

    /// Whether anything has one.
    pub(super) fn has_any(&self) -> bool {
        !self.labels.is_empty() || self.others != LabelId::default()
    }

    /// The label of all files without a line.
    pub(super) fn others(&self) -> LabelId {
        self.others
    }

    pub(super) fn get(&self, key: LabelKey) -> LabelId {
        self.labels.get(&key).copied().unwrap_or(self.others)
    }

    /// The label of a key that has a line.
    pub(super) fn known(&self, key: LabelKey) -> LabelId {
        self.labels.get(&key).copied().unwrap_or_default()
    }

    /// The join of all labels.
    pub(super) fn all(&self) -> LabelId {
        self.labels.values().fold(self.others, |all, label| all.join(*label))
    }

    /// The key of an entry; none before there is anything to look for.
    pub(super) fn entry_key(&self, dir: LabelKey, name: &OsStr, of: EntryLabel) -> Option<LabelKey> {
        let secret = self.secret.as_ref()?;
        let mut context = hmac::Context::with_key(&secret.key);
        context.update(&dir[0].to_le_bytes());
        context.update(&dir[1].to_le_bytes());
        context.update(&[of as u8]);
        context.update(name.as_bytes());
        let tag = context.sign();
        let word =
            |at: usize| tag.as_ref().get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_le_bytes);
        Some([word(0)?, word(4)?])
    }

    /// So that entries have keys.
    pub(super) fn ready(&mut self) -> io::Result<()> {
        if self.secret.is_none() {
            self.secret = Some(Secret::new()?);
        }
        Ok(())
    }

    /// Written to the file first: a process that is killed before that has changed nothing.
    pub(super) fn put(&mut self, key: LabelKey, label: LabelId) -> io::Result<()> {
        let mut text = String::new();
        self.ready()?;
        if self.file.is_none() {
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
            // A crash or a full disk cut this line off, so its change was not made.
            if file.metadata()?.len() > self.read {
                file.set_len(self.read)?;
            }
            if self.read == 0 {
                text.push_str(&self.head()?);
            }
            self.inode = file.metadata()?.ino();
            self.file = Some(file);
        }
        let numbered = self.numbered.len();
        let number = self.number(label, &mut text);
        text.push_str(&line(key, number));
        let file = self.file.as_mut().ok_or_else(|| io::Error::other("it was opened"))?;
        if let Err(error) = file.write_all(text.as_bytes()) {
            self.file = None;
            for label in self.numbered.drain(numbered..) {
                self.known.remove(&label);
            }
            return Err(error);
        }
        self.read = file.metadata()?.len();
        self.lines += 1;
        self.take(key, label);
        if self.lines > 2 * self.labels.len() + SPARE_LINES {
            self.rewrite()?;
        }
        Ok(())
    }

    /// Its first lines.
    fn head(&self) -> io::Result<String> {
        let secret = self.secret.as_ref().map_or("", |secret| &secret.text);
        Ok(format!("of {}\nsecret {secret}\n", inode(&self.work)?))
    }

    /// The log without what says nothing any more.
    fn rewrite(&mut self) -> io::Result<()> {
        self.ready()?;
        let mut text = self.head()?;
        (self.known, self.numbered) = Default::default();
        if self.others != LabelId::default() {
            let number = self.number(self.others, &mut text);
            text.push_str(&format!("others {number}\n"));
        }
        let labels: Vec<_> = self.labels.iter().map(|(key, label)| (*key, *label)).collect();
        for (key, label) in labels {
            let number = self.number(label, &mut text);
            text.push_str(&line(key, number));
        }
        let new = self.path.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        // An empty one in its place would say that nothing has a label.
        file.sync_all()?;
        std::fs::rename(&new, &self.path)?;
        let file = OpenOptions::new().append(true).open(&self.path)?;
        self.inode = file.metadata()?.ino();
        self.file = Some(file);
        (self.read, self.lines) = (text.len() as u64, self.labels.len());
        Ok(())
    }

    /// Reads what was not read yet. Returns whether there was anything.
    pub(super) fn refresh(&mut self) -> bool {
        let (length, inode) = std::fs::metadata(&self.path).map_or((0, 0), |found| (found.len(), found.ino()));
        let is_new = length < self.read || (self.inode != 0 && inode != self.inode);
        if length == self.read && !is_new {
            return false;
        }
        // This is the log of another session of the same name, or another process has rewritten it.
        if is_new {
            *self = Self::new(std::mem::take(&mut self.path), std::mem::take(&mut self.work));
        }
        self.inode = inode;
        if length == 0 {
            return true;
        }
        if let Err(error) = self.load() {
            // The sources of these files are not known.
            tracing::error!("the labels of files in {} cannot be read: {error}", self.path.display());
            let anybody = Label::new(Integrity::World, Confidentiality::Session, SourceSet::ANY);
            self.others = self.others.join(LabelId::from_label(&anybody));
            // Kept so, and readable from now on; a log that cannot even be written stays as it is.
            if self.rewrite().is_err() {
                self.read = length;
            }
        }
        true
    }

    fn load(&mut self) -> io::Result<()> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.read))?;
        let here = inode(&self.work)?;
        let mut is_here = true;
        let mut text = String::new();
        let mut reader = BufReader::new(file);
        loop {
            text.clear();
            let bytes = reader.read_line(&mut text)?;
            // A crash cut this line off, so its change was not made.
            if bytes == 0 || !text.ends_with('\n') {
                break;
            }
            self.read += bytes as u64;
            let line = text.trim_end();
            let broken = || io::Error::other(format!("the line {line:?} is broken"));
            if let Some(inode) = line.strip_prefix("of ") {
                is_here = inode.parse() == Ok(here);
            } else if let Some(secret) = line.strip_prefix("secret ") {
                self.secret = Some(Secret::from_text(secret.to_owned()));
            } else if let Some(json) = line.strip_prefix("label ") {
                let label = LabelId::from_label(&serde_json::from_str::<Label>(json)?);
                self.known.insert(label, self.numbered.len());
                self.numbered.push(label);
            } else if let Some(number) = line.strip_prefix("others ") {
                let number: usize = number.parse().map_err(|_| broken())?;
                self.others = *self.numbered.get(number).ok_or_else(broken)?;
            } else {
                let (key, number) = line.split_once(' ').ok_or_else(broken)?;
                let key = u64::from_str_radix(key, 16).map_err(|_| broken())?;
                let number: usize = number.parse().map_err(|_| broken())?;
                let label = *self.numbered.get(number).ok_or_else(broken)?;
                self.lines += 1;
                self.take(halves(key), label);
            }
        }
        if !is_here {
            let all = self.all();
            self.labels.clear();
            self.others = all;
            self.rewrite()?;
        } else if self.secret.is_none() {
            self.name_all()?;
        }
        Ok(())
    }

    /// Labels the names of a log from an earlier version, in which a file's label was also the label of its name.
    fn name_all(&mut self) -> io::Result<()> {
        self.ready()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut pending = vec![(open(&self.work, flags, Mode::empty())?, 0)];
        while let Some((dir, level)) = pending.pop() {
            let at = fstat(&dir)?;
            for entry in rustix::fs::Dir::read_from(&dir)?.flatten() {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                let Some(found) = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)
                    .ok()
                    .filter(|_| !matches!(name.as_bytes(), b"." | b".."))
                else {
                    continue;
                };
                let label = self.labels.get(&content_key(&found)).copied();
                if let Some(key) = self.entry_key(content_key(&at), name, EntryLabel::Way)
                    && let Some(label) = label
                {
                    self.take(key, label);
                }
                if FileType::from_raw_mode(found.st_mode) == FileType::Directory && level < LEVELS {
                    pending.extend(openat(&dir, name, flags, Mode::empty()).ok().map(|dir| (dir, level + 1)));
                }
            }
        }
        self.rewrite()
    }

    /// Entries, and how many there is room for.
    pub(super) fn len(&self) -> (usize, usize) {
        (self.labels.len(), self.labels.capacity())
    }

    fn take(&mut self, key: LabelKey, label: LabelId) {
        match label == LabelId::default() && self.others == LabelId::default() {
            true => drop(self.labels.remove(&key)),
            false => drop(self.labels.insert(key, label)),
        }
    }

    /// The number of a label in the log; a line is added where it has none.
    fn number(&mut self, label: LabelId, text: &mut String) -> usize {
        if let Some(number) = self.known.get(&label) {
            return *number;
        }
        let json = kiso_base::json::text(&*label.label());
        text.push_str(&format!("label {json}\n"));
        let number = self.numbered.len();
        self.known.insert(label, number);
        self.numbered.push(label);
        number
    }
}

fn line(key: LabelKey, number: usize) -> String {
    format!("{:08x}{:08x} {number}\n", key[0], key[1])
}

fn inode(path: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(path)?.ino())
}
