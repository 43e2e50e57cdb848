//! Parses style sheets.

use super::select::Selector;
use crate::limits;

/// Name, value, and whether it is `!important`.
pub type Declaration = (String, String, bool);

#[derive(Debug)]
pub struct Rule {
    pub selector: Selector,
    pub declarations: std::rc::Rc<Vec<Declaration>>,
}

#[derive(Debug, Default)]
pub struct Sheet {
    pub rules: Vec<Rule>,
    /// Declarations of `@page`.
    pub page: Vec<Declaration>,
    /// Texts in the margins of pages: the name of the place (`bottom-center`) with its declarations.
    pub margins: Vec<(String, Vec<Declaration>)>,
    /// Families and addresses of `@font-face`.
    pub faces: Vec<(String, String)>,
}

impl Sheet {
    /// Adds the rules of a sheet.
    pub fn parse(&mut self, text: &str) {
        let text = without_comments(text);
        self.block(&text, 0);
    }

    fn block(&mut self, text: &str, depth: usize) {
        let mut rest = text;
        while let Some((head, body, more)) = next_block(rest) {
            rest = more;
            if self.rules.len() >= limits::RULES {
                return;
            }
            // Statements such as `@import` end with a semicolon before the next rule.
            let head = head.rsplit(';').next().unwrap_or_default().trim();
            match head.strip_prefix('@') {
                Some(at) => self.at_rule(at, body, depth),
                None => self.rule(head, body),
            }
        }
    }

    fn at_rule(&mut self, at: &str, body: &str, depth: usize) {
        let (name, condition) = at.split_once(|c: char| c.is_whitespace() || c == '(').unwrap_or((at, ""));
        match name.to_ascii_lowercase().as_str() {
            "media" if depth < 4 && is_print(condition) => self.block(body, depth + 1),
            "supports" | "layer" if depth < 4 => self.block(body, depth + 1),
            // Pages of a name or place of their own are not told apart.
            "page" if condition.trim().is_empty() && !name.contains(':') => self.page_rule(body),
            "font-face" => {
                let declarations = declarations(body);
                let find = |wanted: &str| declarations.iter().find(|(name, ..)| name == wanted);
                if let (Some((_, family, _)), Some((_, source, _))) = (find("font-family"), find("src"))
                    && let Some(address) = address(source)
                {
                    self.faces.push((unquote(family).to_owned(), address.to_owned()));
                }
            }
            _ => {}
        }
    }

    fn page_rule(&mut self, body: &str) {
        let mut rest = body;
        let mut own = String::new();
        while let Some((head, inner, more)) = next_block(rest) {
            let (before, place) = head.rsplit_once(';').unwrap_or(("", head));
            own.push_str(before);
            own.push(';');
            if let Some(place) = place.trim().strip_prefix('@') {
                self.margins.push((place.to_ascii_lowercase(), declarations(inner)));
            }
            rest = more;
        }
        own.push_str(rest);
        self.page.extend(declarations(&own));
    }

    fn rule(&mut self, head: &str, body: &str) {
        let declarations = std::rc::Rc::new(declarations(body));
        if declarations.is_empty() {
            return;
        }
        for part in split(head, ',') {
            if let Some(selector) = Selector::parse(part) {
                self.rules.push(Rule { selector, declarations: declarations.clone() });
            }
        }
    }
}

/// Whether a media query fits paper.
fn is_print(condition: &str) -> bool {
    condition.to_ascii_lowercase().split(',').any(|query| {
        let is_other = ["screen", "speech", "max-width", "max-device-width", "prefers-", "not print", "aural"]
            .iter()
            .any(|word| query.contains(word));
        !is_other
    })
}

/// The text before the next `{`, what is between it and its `}`, and the rest.
fn next_block(text: &str) -> Option<(&str, &str, &str)> {
    let start = find(text, '{')?;
    let inner = &text[start + 1..];
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, c) in inner.char_indices() {
        match (quote, c) {
            (Some(mark), c) if c == mark => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') if depth == 0 => return Some((&text[..start], &inner[..at], &inner[at + 1..])),
            (None, '}') => depth -= 1,
            _ => {}
        }
    }
    // The end of the sheet closes what is open.
    Some((&text[..start], inner, ""))
}

/// The place of a character outside quotes and parentheses.
fn find(text: &str, wanted: char) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0_usize;
    text.char_indices().find_map(|(at, c)| {
        match (quote, c) {
            (Some(mark), c) if c == mark => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            (None, c) if c == wanted && depth == 0 => return Some(at),
            _ => {}
        }
        None
    })
}

/// Splits outside quotes and parentheses.
pub fn split(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = find(rest, separator) {
        parts.push(rest[..at].trim());
        rest = &rest[at + separator.len_utf8()..];
    }
    parts.push(rest.trim());
    parts
}

/// The declarations between braces, or in a `style` attribute.
pub fn declarations(text: &str) -> Vec<Declaration> {
    let parts = split(text, ';').into_iter().take(limits::DECLARATIONS);
    parts
        .filter_map(|part| {
            let (name, value) = part.split_once(':')?;
            let value = value.trim();
            let plain = value.strip_suffix("important").and_then(|value| value.trim_end().strip_suffix('!'));
            let name = name.trim();
            let name = if name.starts_with("--") { name.to_owned() } else { name.to_ascii_lowercase() };
            Some((name, plain.unwrap_or(value).trim().to_owned(), plain.is_some()))
        })
        .collect()
}

/// The address in `url(…)`.
pub fn address(text: &str) -> Option<&str> {
    let start = text.find("url(")? + 4;
    let end = start + text[start..].find(')')?;
    Some(unquote(text[start..end].trim()))
}

pub fn unquote(text: &str) -> &str {
    let text = text.trim();
    let inner = |mark: char| text.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, more)) = rest.split_once("/*") {
        kept.push_str(before);
        rest = more.split_once("*/").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept.replace("<!--", "").replace("-->", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sheets_are_parsed() {
        let mut sheet = Sheet::default();
        sheet.parse(
            "@import url(x;y.css); /* p { } */ h1, .a > b:hover { color: red !important; content: ';{' }\n\
             @media print { p { margin: 0 } } @media screen and (min-width: 3px) { p { margin: 9px } }\n\
             @page { size: A4; @bottom-center { content: counter(page) } margin: 2cm }\n\
             @font-face { font-family: 'My Font'; src: url('a.ttf') format('truetype') } x { y: z",
        );
        assert_eq!(sheet.rules.len(), 4, "{sheet:?}");
        assert_eq!(sheet.rules[0].declarations[0], ("color".to_owned(), "red".to_owned(), true));
        assert_eq!(sheet.rules[0].declarations[1].1, "';{'");
        assert_eq!(sheet.page.len(), 2);
        assert_eq!(sheet.margins[0].0, "bottom-center");
        assert_eq!(sheet.faces, [("My Font".to_owned(), "a.ttf".to_owned())]);
    }

    #[test]
    fn damaged_sheets_end() {
        for text in ["{", "}", "a{b", "@media {", "@page{@x{", "/*", "a{;:;}", "'", "@"] {
            Sheet::default().parse(text);
            Sheet::default().parse(&text.repeat(1_000));
        }
    }
}
