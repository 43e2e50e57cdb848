//! `docs_search`, `docs_list`, `docs_read`: the user's documentation, as it was compiled in.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rusqlite::Connection;
use serde_json::{Value, json};

use super::{Tool, ToolFault, number, page, text, tool};
use crate::skill::near_names;
use crate::store::Words;

pub(super) const CATEGORY: &str = "docs";
const SEARCH: &str = "docs_search";
const LIST: &str = "docs_list";
const READ: &str = "docs_read";

/// Every page below `docs/`; a test compares this with the directory.
const PAGES: &[(&str, &str)] = &[
    ("api.md", include_str!("../../../../docs/api.md")),
    ("backup.md", include_str!("../../../../docs/backup.md")),
    ("chat.md", include_str!("../../../../docs/chat.md")),
    ("commands/slash-commands.md", include_str!("../../../../docs/commands/slash-commands.md")),
    ("configuration.md", include_str!("../../../../docs/configuration.md")),
    ("getting-started.md", include_str!("../../../../docs/getting-started.md")),
    ("how-it-works.md", include_str!("../../../../docs/how-it-works.md")),
    ("index.md", include_str!("../../../../docs/index.md")),
    ("json.md", include_str!("../../../../docs/json.md")),
    ("memory/how-memory-works.md", include_str!("../../../../docs/memory/how-memory-works.md")),
    ("memory/recall-memory.md", include_str!("../../../../docs/memory/recall-memory.md")),
    ("models.md", include_str!("../../../../docs/models.md")),
    ("page.md", include_str!("../../../../docs/page.md")),
    ("raspberry-pi.md", include_str!("../../../../docs/raspberry-pi.md")),
    ("reflex.md", include_str!("../../../../docs/reflex.md")),
    ("schedule.md", include_str!("../../../../docs/schedule.md")),
    ("security.md", include_str!("../../../../docs/security.md")),
    ("shell.md", include_str!("../../../../docs/shell.md")),
    ("skills.md", include_str!("../../../../docs/skills.md")),
    ("socket.md", include_str!("../../../../docs/socket.md")),
    ("subagents.md", include_str!("../../../../docs/subagents.md")),
    ("webhooks.md", include_str!("../../../../docs/webhooks.md")),
];

/// Bytes of a section that a search shows; `docs_read` shows the rest.
const SHOWN: usize = 1_500;

/// The pages, and an index over their sections that is made when somebody first searches.
#[derive(Debug, Default, Clone)]
pub(super) struct Library(Arc<OnceLock<Result<Mutex<Connection>, String>>>);

pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool(
            SEARCH,
            CATEGORY,
            "Search kiso's documentation: commands, settings, skills, the shell, memory.",
            json!({
                "query": { "type": "string", "minLength": 1, "maxLength": 400, "description": "words to look for" },
                "limit": { "type": "integer", "minimum": 1, "maximum": 20, "default": 5, "description": "most sections to give" },
            }),
            &["query"],
        ),
        tool(LIST, CATEGORY, "List the pages of kiso's documentation with their sections.", json!({}), &[]),
        tool(
            READ,
            CATEGORY,
            "Read a page of kiso's documentation, in parts if it is long.",
            json!({
                "page": { "type": "string", "minLength": 1, "maxLength": 100, "description": "name of the page, such as shell.md" },
                "offset": { "type": "integer", "minimum": 0, "default": 0, "description": "character to begin at" },
                "limit": { "type": "integer", "minimum": 1, "maximum": 100_000, "default": 6_000, "description": "characters to read" },
            }),
            &["page"],
        ),
    ]
}

impl Library {
    pub async fn call(&self, name: &str, args: &Value) -> Result<String, ToolFault> {
        match name {
            SEARCH => {
                let (library, query, limit) = (self.clone(), text(args, "query").to_owned(), number(args, "limit"));
                // Making the index takes a moment.
                let search = tokio::task::spawn_blocking(move || library.search(&query, limit)).await;
                let found = search.map_err(|error| ToolFault::new(error.to_string()))?;
                let found =
                    found.map_err(|error| ToolFault::new(format!("the documentation cannot be searched: {error}")))?;
                if found.is_empty() {
                    return Err(ToolFault::new("no section has these words").hint("docs_list shows all pages"));
                }
                Ok(found.join("\n---\n"))
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
                Ok(page(found, number(args, "offset"), number(args, "limit")))
            }
        }
    }

    /// The sections that fit best, each under "page: heading".
    fn search(&self, query: &str, limit: usize) -> Result<Vec<String>, String> {
        let Some(words) = Words::of(query) else { return Ok(Vec::new()) };
        let index = self.0.get_or_init(|| index().map(Mutex::new).map_err(|error| error.to_string()));
        let index = index.as_ref().map_err(Clone::clone)?.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = |words: &str| -> Result<Vec<String>, rusqlite::Error> {
            // A word in a heading tells more than one in the text.
            let mut query = index.prepare_cached(
                "SELECT page || ': ' || heading, text FROM sections WHERE sections MATCH ?1
                 ORDER BY bm25(sections, 2.0, 6.0, 1.0) LIMIT ?2",
            )?;
            let rows = query.query_map((words, limit as i64), |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.map(|row| row.map(|(title, text): (String, String)| section(&title, &text))).collect()
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
    for (page, text) in PAGES {
        for (heading, text) in sections(text) {
            conn.prepare_cached("INSERT INTO sections VALUES (?1, ?2, ?3)")?.execute((page, heading, text))?;
        }
    }
    Ok(conn)
}

fn section(title: &str, text: &str) -> String {
    let shown = &text[..text.floor_char_boundary(SHOWN)];
    let more = if shown.len() < text.len() { "\n[…]" } else { "" };
    format!("{title}\n{shown}{more}")
}

/// A line for a page and one for each of its sections.
fn contents(page: &str, text: &str) -> String {
    let mut lines = String::new();
    for (index, (heading, _)) in sections(text).iter().enumerate() {
        lines.push_str(&if index == 0 { format!("{page}: {heading}") } else { format!("\n  - {heading}") });
    }
    lines
}

/// Headings and what stands below them, down to the next heading. Lines of code that begin with '#' are none.
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
    // What stands before the first heading.
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
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let (mut files, mut dirs) = (Vec::new(), vec![dir.clone()]);
        while let Some(next) = dirs.pop() {
            for entry in std::fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
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
