//! The categories of tools, from which the router chooses.

use super::call::SHELL;
use super::{Tools, builtin};

/// The purpose of its category, for the router.
const SHELL_PURPOSE: &str = "commands, files";

/// Maximum length in characters of a category's purpose that is taken from a skill's summary.
const MAX_PURPOSE: usize = 36;

impl Tools {
    /// Returns the categories for the router, each with its purpose: the host's text, or the summary of its single tool, or the
    /// names of several: "web: feed, fetch".
    pub fn category_lines(&self) -> Vec<String> {
        let index = self.index();
        let line = |(category, names): &(String, Vec<String>)| {
            let purpose = match category.as_str() {
                SHELL => Some(SHELL_PURPOSE.to_owned()),
                category => builtin::purpose(category).map(str::to_owned),
            };
            let summary = || match names.as_slice() {
                [name] => {
                    index.catalog.iter().find(|(spec, _)| spec.name == *name).map(|(spec, _)| head(&spec.description))
                }
                _ => None,
            };
            format!("{category}: {}", purpose.or_else(summary).unwrap_or_else(|| names.join(", ")))
        };
        index.categories.iter().map(line).collect()
    }

    /// Returns the categories, each with the names of its tools.
    pub fn by_category(&self) -> Vec<(String, Vec<String>)> {
        self.index().categories.clone()
    }

    /// Returns the names of the categories.
    pub fn categories(&self) -> Vec<String> {
        self.index().categories.iter().map(|(category, _)| category.clone()).collect()
    }
}

/// Returns the beginning of a summary: its first part if that is short enough, or as many words as fit.
fn head(summary: &str) -> String {
    let part = summary.split([':', ';', '\n']).next().unwrap_or_default().trim();
    if part.chars().count() <= MAX_PURPOSE {
        return part.to_owned();
    }
    let cut = part.char_indices().nth(MAX_PURPOSE).map_or(part.len(), |(at, _)| at);
    let whole = part[..cut].rfind(' ').unwrap_or(cut);
    format!("{}…", &part[..whole])
}

#[cfg(test)]
mod tests {
    use super::head;

    #[test]
    fn a_purpose_is_the_beginning_of_a_summary() {
        assert_eq!(head("Query a CSV file: describe, filter"), "Query a CSV file");
        assert_eq!(head("Answers with its arguments"), "Answers with its arguments");
        assert_eq!(head("Draw a line, bar or scatter chart or a histogram"), "Draw a line, bar or scatter chart…");
        assert_eq!(head(&"ä".repeat(50)), format!("{}…", "ä".repeat(36)));
        assert_eq!(head(""), "");
    }
}
