//! The scene: the skills and files for a message, and the lookup of files by name.

use std::collections::BTreeSet;

use kiso_plan::prompt::{ColumnKind, FileCard};

use crate::column::{ColumnMatch, Columns, Reach};
use crate::effort;
use crate::spelling::near_names;
use crate::vocabulary::Vocabulary;
use crate::word::{Word, WordShape, key, words_around};

/// A file that a step can read.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Relative to `/work`.
    pub path: String,
    /// `None` if the host has not read the file.
    pub columns: Option<Columns>,
    /// Number of columns at the front that are groups; 0 unless an earlier step computes the file.
    pub groups: usize,
}

impl Source {
    /// Returns the key of the file's name if it is one word: in `orders.csv`, "orders" are its rows. A name of several words is a
    /// description, and a word that is a column's name means the column.
    pub(crate) fn own_words(&self) -> BTreeSet<String> {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        let base = name.rsplit_once('.').map_or(name, |(base, _)| base).to_lowercase();
        let mut parts = base.split(|c: char| !c.is_alphabetic()).filter(|part| part.len() >= 3);
        let is_column = |word: &str| {
            self.columns.as_ref().is_some_and(|all| all.resolve(word, Reach::Name) != ColumnMatch::Nothing)
        };
        match (parts.next(), parts.next()) {
            (Some(word), None) if !is_column(word) => [key(word)].into(),
            _ => BTreeSet::new(),
        }
    }

    /// Whether it is a text file and not a table.
    pub(crate) fn is_text(&self) -> bool {
        const ENDINGS: [&str; 38] = [
            "adoc", "bash", "c", "cfg", "conf", "cpp", "css", "env", "go", "h", "htm", "html", "ini", "java", "js",
            "log", "lua", "markdown", "md", "mjs", "org", "php", "pl", "py", "rb", "rs", "rst", "sh", "sql", "svelte",
            "tex", "text", "toml", "ts", "txt", "xml", "yaml", "yml",
        ];
        const NAMES: [&str; 5] = ["readme", "license", "makefile", "dockerfile", "changelog"];
        let name = self.path.rsplit('/').next().unwrap_or(&self.path).to_lowercase();
        let is_known = match name.rsplit_once('.') {
            Some((_, ending)) => ENDINGS.contains(&ending),
            None => NAMES.contains(&name.as_str()),
        };
        self.columns.is_none() && is_known
    }

    pub(crate) fn is_number(&self, column: &str) -> bool {
        self.columns.as_ref().is_none_or(|all| all.iter().any(|c| c.name == column && c.kind == ColumnKind::Number))
    }
}

/// The context of a message.
#[derive(Debug, Clone)]
pub(crate) struct Scene<'a> {
    /// The message; words refer to places in it.
    pub text: &'a str,
    pub skills: &'a [Vocabulary<'a>],
    /// The files of the workspace, and the output files of earlier steps of the plan.
    pub files: Vec<Source>,
    /// Whether `files` is complete: only then can an error say that a file is missing.
    pub complete: bool,
    /// The files attached to the message.
    pub attached: Vec<String>,
    /// Columns for steps without a file.
    pub none: Columns,
}

impl<'a> Scene<'a> {
    /// Creates the scene of a message. If `files` is `None`, nothing is known about the workspace.
    pub(crate) fn new(text: &'a str, skills: &'a [Vocabulary<'a>], files: Option<&[FileCard]>) -> Self {
        let source = |card: &FileCard| Source {
            path: card.path.clone(),
            columns: card.columns.clone().map(Columns::new),
            groups: 0,
        };
        Self {
            text,
            skills,
            files: files.unwrap_or_default().iter().map(source).collect(),
            complete: files.is_some(),
            attached: Vec::new(),
            none: Columns::default(),
        }
    }

    /// Returns the steps that copying and reading the scene costs.
    pub(crate) fn weight(&self) -> usize {
        let columns = self.files.iter().filter_map(|file| file.columns.as_ref());
        8 * (self.files.len() + columns.map(|all| all.len()).sum::<usize>() + 8)
    }

    /// Splits a text into words; each file and column of this scene is a single word.
    pub(crate) fn words(&self, text: &str) -> Vec<Word> {
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_lowercase();
        let both = self.files.iter().flat_map(|f| [f.path.to_lowercase(), name(&f.path)]);
        let mut spaced: Vec<String> = both.filter(|path| path.contains(char::is_whitespace)).collect();
        spaced.sort_by_key(|path| std::cmp::Reverse(path.len()));
        let mut words = words_around(text, &spaced);
        for word in &mut words {
            match word.shape {
                WordShape::Quoted if word.raw.contains('.') && self.file(&word.raw).is_some() => {
                    word.shape = WordShape::File
                }
                WordShape::File if self.file(&word.raw).is_none() && self.is_dotted_column(&word.norm) => {
                    word.shape = WordShape::Plain;
                }
                _ => {}
            }
        }
        words
    }

    /// Whether `address.city` is a column, or a misspelt column without a file's extension.
    fn is_dotted_column(&self, norm: &str) -> bool {
        const ENDINGS: [&str; 16] = [
            "csv", "tsv", "json", "jsonl", "ndjson", "txt", "md", "html", "xml", "rss", "atom", "svg", "png", "pdf",
            "log", "zip",
        ];
        if !effort::spend(self.weight() / 4) {
            return false;
        }
        let mut columns = self.tables().flat_map(|t| t.columns.iter().flat_map(|c| c.iter()));
        let Some((base, ending)) = norm.rsplit_once('.') else { return false };
        let is_file = ENDINGS.contains(&ending);
        columns.any(|c| {
            let own = c.name.to_lowercase();
            own == norm || (!is_file && own.rsplit_once('.').is_some_and(|(b, _)| b == base))
        })
    }

    /// Returns the file that `said` means: by its path, its name, or its name without the extension, ignoring case.
    pub(crate) fn file(&self, said: &str) -> Option<&Source> {
        let said = said.trim_start_matches("/work/").trim_start_matches("./");
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_lowercase();
        let only = |fits: &dyn Fn(&Source) -> bool| {
            let mut found = self.files.iter().filter(|f| fits(f));
            found.next().filter(|_| found.next().is_none())
        };
        let lower = said.to_lowercase();
        self.files
            .iter()
            .find(|f| f.path == said)
            .or_else(|| only(&|f| f.path.to_lowercase() == lower))
            .or_else(|| only(&|f| name(&f.path) == lower))
            .or_else(|| {
                only(&|f| f.columns.is_some() && name(&f.path).rsplit_once('.').is_some_and(|(base, _)| base == lower))
            })
    }

    /// Returns the files that contain tables.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|f| f.columns.is_some())
    }

    /// Returns the tables that a message without a file's name may mean: the attached ones, if any.
    pub(crate) fn likely_tables(&self) -> impl Iterator<Item = &Source> {
        let attached = self.tables().any(|file| self.attached.contains(&file.path));
        self.tables().filter(move |file| !attached || self.attached.contains(&file.path))
    }

    /// Returns "there is no file `x`; near: `y`; the workspace holds a, b".
    pub(crate) fn missing_file(&self, said: &str) -> String {
        let paths: Vec<&str> = self.files.iter().map(|f| f.path.as_str()).collect();
        let near = match near_names(said, paths.iter().copied()).first() {
            Some(near) => format!("near: `{near}`; "),
            None => String::new(),
        };
        format!("there is no file `{said}`; {near}{}", self.holdings())
    }

    /// Returns "the workspace holds a, b", or that it is empty: tables first, without pictures.
    pub(crate) fn holdings(&self) -> String {
        const SHOWN: usize = 12;
        let others = self.files.iter().filter(|f| f.columns.is_none() && !is_picture(&f.path));
        let all: Vec<&str> = self.tables().chain(others).map(|f| f.path.as_str()).collect();
        let paths = &all[..all.len().min(SHOWN)];
        match (paths.len(), all.len() - paths.len()) {
            (0, _) if !self.files.is_empty() => "the workspace holds only pictures".to_owned(),
            (0, _) => "the workspace is empty".to_owned(),
            (_, 0) => format!("the workspace holds {}", paths.join(", ")),
            (_, more) => format!("the workspace holds {} and {more} more", paths.join(", ")),
        }
    }

    /// Returns the text from the first to the last of these words in the message.
    pub(crate) fn slice(&self, words: &[Word]) -> &str {
        match words {
            [one] => one_word(self.text, one),
            [first, .., last] => self.text.get(first.at.start..last.at.end).unwrap_or_default(),
            [] => "",
        }
    }
}

fn is_picture(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    matches!(ending.as_str(), "svg" | "png" | "jpg" | "jpeg" | "gif" | "webp")
}

/// Whether a column is named like a computed value: `mean_rain_mm`.
pub(crate) fn is_computed(column: &str) -> bool {
    const FUNCTIONS: [&str; 8] = ["mean", "sum", "min", "max", "median", "std", "count", "distinct"];
    column.split_once('_').is_some_and(|(function, rest)| FUNCTIONS.contains(&function) && !rest.is_empty())
}

/// Returns a quoted word without its quotes.
fn one_word<'t>(text: &'t str, word: &Word) -> &'t str {
    let whole = text.get(word.at.clone()).unwrap_or_default();
    match whole.find(&word.raw) {
        Some(start) => &whole[start..start + word.raw.len()],
        None => whole,
    }
}
