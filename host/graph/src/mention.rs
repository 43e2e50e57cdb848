//! Mentions of skills in a text: `@data` requests this skill. They stay in the text, so that the planner sees them.

use kiso_plan::tags::marked;

/// Maximum mentions of one message; further ones are ignored.
const MAX_MENTIONS: usize = 8;

/// Returns the categories of the tools that a text names, each once. `known` contains names of tools with their categories;
/// `@calc` names all tools of a skill whose tools are `calc.add` and `calc.mul`. Other names are ignored, because they may be
/// those of people.
pub fn categories(text: &str, known: &[(String, String)]) -> Vec<String> {
    found(text, |word| {
        let is_named = |name: &str| {
            let below = name.strip_prefix(word);
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        known.iter().find(|(name, _)| is_named(name)).map(|(_, category)| category)
    })
}

/// Returns the Agent Skills of `known` that a text names, each once.
pub fn agent_skills(text: &str, known: &[String]) -> Vec<String> {
    found(text, |word| known.iter().find(|name| *name == word))
}

/// Returns the meanings of the mentions in a text, each once.
fn found<'k>(text: &str, meant: impl Fn(&str) -> Option<&'k String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    marked(text, '@', of_name, |word| {
        let word = word.trim_end_matches(['.', '-', '_']);
        let Some(meant) = Some(word).filter(|word| !word.is_empty()).and_then(&meant) else { return };
        if found.len() < MAX_MENTIONS && !found.contains(meant) {
            found.push(meant.clone());
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_are_named_wherever_they_stand() {
        let known = [("data", "data"), ("calc.add", "maths"), ("web-search", "web"), ("chart", "data")];
        let known = known.map(|(name, category)| (name.to_owned(), category.to_owned()));
        for (text, expected) in [
            ("@data file=a.csv", &["data"][..]),
            ("Draw it with @chart, please.", &["data"]),
            ("(@web-search) then @calc.", &["web", "maths"]),
            ("@calc.add 2 and 3", &["maths"]),
            ("@data and @chart", &["data"]),
            ("mail ann@data.example or @ann about @dat", &[]),
            ("`@data` is a name, and so is\n```\n@chart\n```", &[]),
            ("@ data @", &[]),
            ("@Data", &[]),
        ] {
            assert_eq!(categories(text, &known), expected, "{text}");
        }
        let known = ["pdf-forms".to_owned(), "3d".to_owned()];
        for (text, expected) in [
            ("Fill it with @pdf-forms.", &["pdf-forms"][..]),
            ("@3d, then @pdf-forms, then @3d", &["3d", "pdf-forms"]),
            ("@pdf ann@3d.example `@3d`", &[]),
        ] {
            assert_eq!(agent_skills(text, &known), expected, "{text}");
        }
    }
}
