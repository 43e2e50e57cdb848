//! Styles of paragraphs and the numbers that Word writes before them.

use std::collections::HashMap;

use crate::package::Package;
use crate::xml::{Node, Xml};

/// Levels of a list.
const LEVELS: usize = 9;

/// Styles that are based on one another.
const CHAIN: usize = 12;

#[derive(Debug, Default, Clone)]
pub struct Style {
    based_on: String,
    /// From 1, if it is a heading.
    heading: Option<usize>,
    list: Option<String>,
    level: usize,
    code: bool,
    quote: bool,
}

#[derive(Debug, Default, Clone)]
struct Level {
    start: usize,
    format: String,
    text: String,
}

#[derive(Debug, Default)]
pub struct Numbering {
    styles: HashMap<String, Style>,
    /// List to its levels.
    lists: HashMap<String, [Level; LEVELS]>,
    counters: HashMap<String, [usize; LEVELS]>,
}

/// How a paragraph is written.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub heading: Option<usize>,
    /// List and level.
    pub list: Option<(String, usize)>,
    pub code: bool,
    pub quote: bool,
}

impl Numbering {
    pub fn read(package: &mut Package, styles: &str, numbering: &str) -> Self {
        let mut found = Self::default();
        if let Ok(text) = package.read_text(styles) {
            found.read_styles(&text);
        }
        if let Ok(text) = package.read_text(numbering) {
            found.read_lists(&text);
        }
        found
    }

    fn read_styles(&mut self, text: &str) {
        let mut xml = Xml::new(text);
        let (mut id, mut style) = (String::new(), Style::default());
        while let Some(node) = xml.next() {
            match node {
                Node::Open(tag) => match tag.name() {
                    "style" => {
                        id = tag.attribute("styleId").unwrap_or_default();
                        style = Style::default();
                    }
                    "name" => {
                        let name = tag.attribute("val").unwrap_or_default().to_lowercase();
                        style.heading = match name.as_str() {
                            "title" => Some(1),
                            _ => name.strip_prefix("heading ").and_then(|level| level.trim().parse().ok()),
                        };
                        style.code =
                            name.contains("html preformatted") || name.contains("source code") || name == "code";
                        style.quote = name == "quote" || name == "intense quote" || name == "block text";
                    }
                    "basedOn" => style.based_on = tag.attribute("val").unwrap_or_default(),
                    "outlineLvl" => {
                        let level = tag.attribute("val").and_then(|level| level.parse::<usize>().ok());
                        style.heading = style.heading.or(level.filter(|level| *level < LEVELS).map(|level| level + 1));
                    }
                    "numId" => style.list = tag.attribute("val"),
                    "ilvl" => style.level = tag.attribute("val").and_then(|level| level.parse().ok()).unwrap_or(0),
                    _ => {}
                },
                Node::Close(name) if name == "style" => {
                    self.styles.insert(std::mem::take(&mut id), std::mem::take(&mut style));
                }
                _ => {}
            }
        }
    }

    fn read_lists(&mut self, text: &str) {
        let mut xml = Xml::new(text);
        let mut kinds: HashMap<String, [Level; LEVELS]> = HashMap::new();
        let (mut kind, mut list, mut level) = (String::new(), String::new(), 0);
        while let Some(node) = xml.next() {
            let Node::Open(tag) = node else { continue };
            let value = || tag.attribute("val").unwrap_or_default();
            match tag.name() {
                "abstractNum" => {
                    kind = tag.attribute("abstractNumId").unwrap_or_default();
                    list.clear();
                }
                "num" => list = tag.attribute("numId").unwrap_or_default(),
                "lvl" | "lvlOverride" => {
                    level = tag.attribute("ilvl").and_then(|level| level.parse().ok()).unwrap_or(0).min(LEVELS - 1);
                }
                "abstractNumId" => {
                    let levels = kinds.get(&value()).cloned().unwrap_or_default();
                    self.lists.insert(list.clone(), levels);
                }
                name => {
                    let levels = match list.is_empty() {
                        true => kinds.entry(kind.clone()).or_default(),
                        false => self.lists.entry(list.clone()).or_default(),
                    };
                    match name {
                        "start" | "startOverride" => levels[level].start = value().parse().unwrap_or(1),
                        "numFmt" => levels[level].format = value(),
                        "lvlText" => levels[level].text = value(),
                        _ => {}
                    }
                }
            }
        }
    }

    /// The look that a style gives; what the paragraph itself says goes before.
    pub fn look(&self, style: &str) -> Look {
        let mut look = Look::default();
        let mut next = style;
        for _ in 0..CHAIN {
            let Some(style) = self.styles.get(next) else { break };
            look.heading = look.heading.or(style.heading);
            look.list = look.list.or_else(|| style.list.clone().map(|list| (list, style.level)));
            look.code |= style.code;
            look.quote |= style.quote;
            next = &style.based_on;
        }
        look
    }

    /// Counts one more paragraph of a list. Returns its mark: `-`, `3.`, `2.1`.
    pub fn mark(&mut self, list: &str, level: usize) -> Option<String> {
        let level = level.min(LEVELS - 1);
        let levels = self.lists.get(list)?;
        let counters = self.counters.entry(list.to_owned()).or_insert([0; LEVELS]);
        let start = |level: usize| levels[level].start;
        counters[level] = if counters[level] == 0 { start(level).max(1) } else { counters[level].saturating_add(1) };
        for (deeper, counter) in counters.iter_mut().enumerate().skip(level + 1) {
            let _ = deeper;
            *counter = 0;
        }
        match levels[level].format.as_str() {
            "bullet" => return Some("-".to_owned()),
            "none" => return None,
            _ => {}
        }
        let mut mark = levels[level].text.clone();
        for higher in 0..=level {
            let pattern = format!("%{}", higher + 1);
            if mark.contains(&pattern) {
                let number = if counters[higher] == 0 { start(higher).max(1) } else { counters[higher] };
                mark = mark.replace(&pattern, &write_number(number, &levels[higher].format));
            }
        }
        Some(mark.trim().to_owned()).filter(|mark| !mark.is_empty())
    }
}

fn write_number(number: usize, format: &str) -> String {
    let letter = |first: u8| {
        char::from(first + ((number.max(1) - 1) % 26) as u8).to_string().repeat((number.max(1) - 1) / 26 % 5 + 1)
    };
    match format {
        "lowerLetter" => letter(b'a'),
        "upperLetter" => letter(b'A'),
        "lowerRoman" => roman(number).to_lowercase(),
        "upperRoman" => roman(number),
        "decimalZero" => format!("{number:02}"),
        _ => number.to_string(),
    }
}

fn roman(mut number: usize) -> String {
    const LETTERS: [(usize, &str); 13] = [
        (1_000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if number > 3_999 {
        return number.to_string();
    }
    let mut text = String::new();
    for (value, letters) in LETTERS {
        while number >= value {
            text.push_str(letters);
            number -= value;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted() {
        let mut numbering = Numbering::default();
        numbering.read_lists(
            "<n><abstractNum abstractNumId='0'><lvl ilvl='0'><start val='1'/><numFmt val='decimal'/><lvlText val='%1.'/></lvl>\
             <lvl ilvl='1'><numFmt val='lowerLetter'/><lvlText val='%1.%2)'/></lvl></abstractNum>\
             <num numId='7'><abstractNumId val='0'/></num></n>",
        );
        let marks: Vec<_> = [0, 1, 1, 0, 1].map(|level| numbering.mark("7", level).unwrap()).into();
        assert_eq!(marks, ["1.", "1.a)", "1.b)", "2.", "2.a)"]);
        assert_eq!(numbering.mark("8", 0), None);
        assert_eq!(roman(1_994), "MCMXCIV");
    }
}
