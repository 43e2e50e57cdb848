//! `docs_search`, `docs_list`, `docs_read`: the embedded user documentation.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use ring::digest::{SHA256, digest};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{CallContext, Tool, ToolFault, number, page, text, tool};
use kiso_sandbox::skill::near_names;
use kiso_store::memory::{Meaning, RANKS};
use kiso_store::store::{Store, StoreError, Words};

pub(super) const CATEGORY: &str = "docs";
pub(super) const SEARCH: &str = "docs_search";
const LIST: &str = "docs_list";
const READ: &str = "docs_read";

/// Every page below `docs/` except those for developers; a test compares this with the directory.
const PAGES: &[(&str, &str)] = &[
    ("agent-skills.md", include_str!("../../../../../docs/agent-skills.md")),
    ("api.md", include_str!("../../../../../docs/api.md")),
    ("approvals.md", include_str!("../../../../../docs/approvals.md")),
    ("architecture.md", include_str!("../../../../../docs/architecture.md")),
    ("backup.md", include_str!("../../../../../docs/backup.md")),
    ("c.md", include_str!("../../../../../docs/c.md")),
    ("channels.md", include_str!("../../../../../docs/channels.md")),
    ("chat.md", include_str!("../../../../../docs/chat.md")),
    ("clients.md", include_str!("../../../../../docs/clients.md")),
    ("commands/slash-commands.md", include_str!("../../../../../docs/commands/slash-commands.md")),
    ("comparison.md", include_str!("../../../../../docs/comparison.md")),
    ("configuration.md", include_str!("../../../../../docs/configuration.md")),
    ("fleet.md", include_str!("../../../../../docs/fleet.md")),
    ("folders.md", include_str!("../../../../../docs/folders.md")),
    ("getting-started.md", include_str!("../../../../../docs/getting-started.md")),
    ("git.md", include_str!("../../../../../docs/git.md")),
    ("hooks.md", include_str!("../../../../../docs/hooks.md")),
    ("how-it-works.md", include_str!("../../../../../docs/how-it-works.md")),
    ("index.md", include_str!("../../../../../docs/index.md")),
    ("install.md", include_str!("../../../../../docs/install.md")),
    ("json.md", include_str!("../../../../../docs/json.md")),
    ("languages.md", include_str!("../../../../../docs/languages.md")),
    ("mcp.md", include_str!("../../../../../docs/mcp.md")),
    ("memory/how-memory-works.md", include_str!("../../../../../docs/memory/how-memory-works.md")),
    ("memory/recall-memory.md", include_str!("../../../../../docs/memory/recall-memory.md")),
    ("model-guide.md", include_str!("../../../../../docs/model-guide.md")),
    ("models.md", include_str!("../../../../../docs/models.md")),
    ("network.md", include_str!("../../../../../docs/network.md")),
    ("packages.md", include_str!("../../../../../docs/packages.md")),
    ("page.md", include_str!("../../../../../docs/page.md")),
    ("performance.md", include_str!("../../../../../docs/performance.md")),
    ("policy.md", include_str!("../../../../../docs/policy.md")),
    ("python.md", include_str!("../../../../../docs/python.md")),
    ("raspberry-pi.md", include_str!("../../../../../docs/raspberry-pi.md")),
    ("reflex.md", include_str!("../../../../../docs/reflex.md")),
    ("registry.md", include_str!("../../../../../docs/registry.md")),
    ("schedule.md", include_str!("../../../../../docs/schedule.md")),
    ("security.md", include_str!("../../../../../docs/security.md")),
    ("shell.md", include_str!("../../../../../docs/shell.md")),
    ("skills.md", include_str!("../../../../../docs/skills.md")),
    ("socket.md", include_str!("../../../../../docs/socket.md")),
    ("subagents.md", include_str!("../../../../../docs/subagents.md")),
    ("undo.md", include_str!("../../../../../docs/undo.md")),
    ("webhooks.md", include_str!("../../../../../docs/webhooks.md")),
];

/// Maximum size in bytes of a section in search results; `docs_read` shows the rest.
const SHOWN: usize = 1_500;

/// Maximum number of sections in a search result.
const MAX_HITS: usize = 20;

/// Number of bytes at the beginning of a section that are embedded: a section has one topic, and states it first.
const MEANT: usize = 2_000;

/// A part of a page under one heading.
#[derive(Debug)]
pub struct DocSection {
    page: &'static str,
    heading: &'static str,
    text: &'static str,
    /// SHA-256 of the embedded text.
    pub digest: Vec<u8>,
}

impl DocSection {
    /// Returns the text to embed.
    pub fn embedded(&self) -> String {
        let DocSection { page, heading, text, .. } = self;
        format!("{page}: {heading}\n{}", &text[..text.floor_char_boundary(MEANT)])
    }

    fn shown(&self) -> String {
        let shown = &self.text[..self.text.floor_char_boundary(SHOWN)];
        let more = if shown.len() < self.text.len() { "\n[…]" } else { "" };
        format!("{}: {}\n{shown}{more}", self.page, self.heading)
    }
}

/// Returns every non-empty section, in the order of the pages.
pub fn documentation() -> &'static [DocSection] {
    static SECTIONS: LazyLock<Vec<DocSection>> = LazyLock::new(|| {
        let of_page = |(page, whole): &(&'static str, &'static str)| {
            let page = *page;
            sections(whole).into_iter().filter(|(_, text)| !text.is_empty()).map(move |(heading, text)| {
                let mut section = DocSection { page, heading, text, digest: Vec::new() };
                section.digest = digest(&SHA256, section.embedded().as_bytes()).as_ref().to_vec();
                section
            })
        };
        PAGES.iter().flat_map(of_page).collect()
    });
    &SECTIONS
}

/// The pages, and an index of their sections that is built at the first search.
#[derive(Debug, Default, Clone)]
pub(super) struct Library(Arc<OnceLock<Result<Mutex<Connection>, String>>>);

pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool(
            SEARCH,
            CATEGORY,
            "Search kiso's documentation.",
            json!({
                "query": { "type": "string", "minLength": 1, "maxLength": 400 },
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_HITS, "default": 5 },
            }),
            &["query"],
        ),
        tool(LIST, CATEGORY, "List the pages of kiso's documentation.", json!({}), &[]),
        tool(
            READ,
            CATEGORY,
            "Read a page of kiso's documentation.",
            json!({
                "page": { "type": "string", "minLength": 1, "maxLength": 100, "description": "such as shell.md" },
                "offset": { "type": "integer", "minimum": 0, "default": 0 },
                "limit": { "type": "integer", "minimum": 1, "maximum": 100_000, "default": 6_000 },
            }),
            &["page"],
        ),
    ]
}

impl Library {
    pub(super) async fn call(
        &self,
        store: &Store,
        name: &str,
        args: &Value,
        at: &CallContext,
    ) -> Result<String, ToolFault> {
        match name {
            SEARCH => {
                let (library, query, limit) = (self.clone(), text(args, "query").to_owned(), number(args, "limit"));
                let near = match at.meanings.iter().find(|(question, _)| *question == query) {
                    Some((_, meaning)) => near(store, meaning.clone()).await?,
                    None => Vec::new(),
                };
                // Building the index takes a moment.
                let search = tokio::task::spawn_blocking(move || library.search(&query, MAX_HITS)).await;
                let by_words = search.map_err(|error| ToolFault::new(error.to_string()))?;
                let by_words = by_words
                    .map_err(|error| ToolFault::new(format!("the documentation cannot be searched: {error}")))?;
                let found = fused(&by_words, &near, limit);
                if found.is_empty() {
                    return Err(ToolFault::new("no section has these words").hint("docs_list shows all pages"));
                }
                Ok(found
                    .into_iter()
                    .map(|section| documentation()[section].shown())
                    .collect::<Vec<_>>()
                    .join("\n---\n"))
            }
            LIST => Ok(PAGES.iter().map(|(page, text)| contents(page, text)).collect::<Vec<_>>().join("\n")),
            _ => {
                let wanted = text(args, "page").trim().trim_start_matches("docs/");
                let found = PAGES.iter().find(|(page, _)| *page == wanted || page.strip_suffix(".md") == Some(wanted));
                let Some((_, found)) = found else {
                    let names: Vec<&str> = PAGES.iter().map(|(page, _)| *page).collect();
                    let near = near_names(wanted, names.iter().copied());
                    let shown = if near.is_empty() { names } else { near };
                    let fault = ToolFault::new(format!("there is no page {wanted:?}"));
                    return Err(fault.hint(format!("there are {}", shown.join(", "))));
                };
                Ok(page(found, number(args, "offset"), number(args, "limit"), at.result_tokens))
            }
        }
    }

    /// Returns the positions of the sections with the best matching words.
    fn search(&self, query: &str, limit: usize) -> Result<Vec<usize>, String> {
        let Some(words) = Words::parse(query) else { return Ok(Vec::new()) };
        let index = self.0.get_or_init(|| index().map(Mutex::new).map_err(|error| error.to_string()));
        let index = index.as_ref().map_err(Clone::clone)?.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = |words: &str| -> Result<Vec<usize>, rusqlite::Error> {
            // A word in a heading has more weight than one in the text.
            let mut query = index.prepare_cached(
                "SELECT rowid FROM sections WHERE sections MATCH ?1 ORDER BY bm25(sections, 2.0, 6.0, 1.0) LIMIT ?2",
            )?;
            let rows = query.query_map((words, limit as i64), |row| row.get::<_, i64>(0))?;
            rows.map(|row| row.map(|place| usize::try_from(place).unwrap_or_default())).collect()
        };
        let found = ask(&words.all()).map_err(|error| error.to_string())?;
        if found.is_empty() { ask(&words.any()).map_err(|error| error.to_string()) } else { Ok(found) }
    }
}

fn index() -> Result<Connection, rusqlite::Error> {
    let conn = Connection::open_in_memory()?;
    conn.execute_batch(
        "CREATE VIRTUAL TABLE sections USING fts5 (page, heading, text, tokenize = 'porter unicode61')",
    )?;
    for (place, DocSection { page, heading, text, .. }) in documentation().iter().enumerate() {
        conn.prepare_cached("INSERT INTO sections (rowid, page, heading, text) VALUES (?1, ?2, ?3, ?4)")?.execute((
            place as i64,
            page,
            heading,
            text,
        ))?;
    }
    Ok(conn)
}

/// Returns the positions of the sections with the nearest embeddings; empty if they have none yet.
async fn near(store: &Store, meaning: Meaning) -> Result<Vec<usize>, StoreError> {
    let name = meaning.embedder.clone();
    let read = store.read(move |view| match view.embedder(&name)? {
        Some(embedder) => view.doc_vectors(embedder),
        None => Ok(HashMap::new()),
    });
    let vectors = read.await?;
    let likeness = |(place, section): (usize, &DocSection)| {
        let how = vectors.get(&section.digest)?.as_ref()?.likeness(&meaning.vector);
        (how >= meaning.least).then_some((place, how))
    };
    let mut near: Vec<(usize, f32)> = documentation().iter().enumerate().filter_map(likeness).collect();
    near.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    near.truncate(MAX_HITS);
    Ok(near.into_iter().map(|(place, _)| place).collect())
}

/// Merges both lists by reciprocal rank fusion, as in memory.
fn fused(by_words: &[usize], near: &[usize], limit: usize) -> Vec<usize> {
    let mut score: HashMap<usize, f64> = HashMap::new();
    for (rank, place) in [by_words, near].into_iter().flat_map(|list| list.iter().enumerate()) {
        *score.entry(*place).or_default() += 1.0 / (RANKS + rank as f64 + 1.0);
    }
    let mut best: Vec<(usize, f64)> = score.into_iter().collect();
    best.sort_by(|(a, score_a), (b, score_b)| score_b.total_cmp(score_a).then(a.cmp(b)));
    best.into_iter().take(limit).map(|(place, _)| place).collect()
}

/// Returns a line for a page and one for each of its sections.
fn contents(page: &str, text: &str) -> String {
    let mut lines = String::new();
    for (index, (heading, _)) in sections(text).iter().enumerate() {
        lines.push_str(&if index == 0 { format!("{page}: {heading}") } else { format!("\n  - {heading}") });
    }
    lines
}

/// Returns headings with their text, up to the next heading. Lines of code that begin with '#' are not headings.
fn sections(text: &str) -> Vec<(&str, &str)> {
    let mut sections = Vec::new();
    let (mut heading, mut begin, mut at, mut code) = ("", 0, 0, false);
    for line in text.split_inclusive('\n') {
        code ^= line.trim_start().starts_with("```");
        if !code && line.starts_with('#') {
            sections.push((heading, text[begin..at].trim()));
            heading = line.trim_start_matches('#').trim();
            begin = at + line.len();
        }
        at += line.len();
    }
    sections.push((heading, text[begin..].trim()));
    // The text before the first heading.
    if sections[0] == ("", "") {
        sections.remove(0);
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_compiled_in() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let (mut files, mut dirs) = (Vec::new(), vec![dir.clone()]);
        while let Some(next) = dirs.pop() {
            for entry in std::fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true if path.ends_with("decisions") => {}
                    true => dirs.push(path),
                    false => files.push(path.strip_prefix(&dir).unwrap().to_str().unwrap().to_owned()),
                }
            }
        }
        files.retain(|name| name.ends_with(".md"));
        files.sort();
        assert_eq!(files, PAGES.iter().map(|(page, _)| *page).collect::<Vec<_>>());
    }

    #[test]
    fn a_page_is_cut_at_its_headings() {
        let page = "# One\n\nfirst\n```\n# no heading\n```\n## Two\nsecond\n";
        assert_eq!(sections(page), [("One", "first\n```\n# no heading\n```"), ("Two", "second")]);
        assert_eq!(contents("p.md", page), "p.md: One\n  - Two");
        assert_eq!(sections("no heading"), [("", "no heading")]);
    }
}
