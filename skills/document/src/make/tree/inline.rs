//! Text between the elements of a paragraph.

use std::rc::Rc;

use super::build::Around;
use super::{Inline, Words};
use crate::make::css::style::{Style, White};
use crate::make::dom::Element;

/// Text in the style around it.
pub fn words(text: &str, around: &Around) -> Inline {
    with_around((text.to_owned(), around.style.clone()), around)
}

pub fn with_around((text, style): (String, Rc<Style>), around: &Around) -> Inline {
    Inline::Text(Words { text, style, link: around.link.clone(), span: around.span.clone() })
}

/// How a field of a form looks on paper.
pub fn input(element: &Element, around: &Around) -> Option<Inline> {
    let is_checked = element.get("checked").is_some();
    let text = match element.get("type").unwrap_or("text") {
        "checkbox" => if is_checked { "☑ " } else { "☐ " }.to_owned(),
        "radio" => if is_checked { "◉ " } else { "○ " }.to_owned(),
        "hidden" => return None,
        _ => element.get("value").or_else(|| element.get("placeholder")).unwrap_or_default().to_owned(),
    };
    Some(words(&text, around))
}

/// Makes one space of many, drops those at the ends of lines, and drops what has no text then.
pub fn normalize(inlines: Vec<Inline>) -> Vec<Inline> {
    let mut kept: Vec<Inline> = Vec::new();
    // Whether a space now would follow another, or begin a line.
    let mut after_space = true;
    for inline in inlines {
        match inline {
            Inline::Text(mut words) => {
                if !words.style.keeps_spaces() {
                    words.text = collapse(&words.text, words.style.white == White::PreLine, &mut after_space);
                } else if !words.text.is_empty() {
                    words.text = words.text.replace("\r\n", "\n");
                    after_space = false;
                }
                if words.text.is_empty() {
                    continue;
                }
                // One text for what only the parser cut.
                if let Some(Inline::Text(last)) = kept.last_mut()
                    && Rc::ptr_eq(&last.style, &words.style)
                    && last.link == words.link
                    && last.span.as_ref().map(Rc::as_ptr) == words.span.as_ref().map(Rc::as_ptr)
                {
                    last.text.push_str(&words.text);
                    continue;
                }
                kept.push(Inline::Text(words));
            }
            Inline::Break => {
                trim_end(&mut kept);
                after_space = true;
                kept.push(Inline::Break);
            }
            Inline::Picture { .. } | Inline::Box(_) | Inline::PageOf { .. } => {
                after_space = false;
                kept.push(inline);
            }
            Inline::Gap { .. } | Inline::Anchor(_) => kept.push(inline),
        }
    }
    trim_end(&mut kept);
    let is_blank = |inline: &Inline| matches!(inline, Inline::Gap { .. });
    if kept.iter().all(is_blank) {
        kept.clear();
    }
    kept
}

fn collapse(text: &str, keeps_lines: bool, after_space: &mut bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' if keeps_lines => {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                *after_space = true;
            }
            ' ' | '\t' | '\n' | '\r' | '\u{c}' => {
                if !std::mem::replace(after_space, true) {
                    out.push(' ');
                }
            }
            c => {
                out.push(c);
                *after_space = false;
            }
        }
    }
    out
}

fn trim_end(kept: &mut Vec<Inline>) {
    for at in (0..kept.len()).rev() {
        match &mut kept[at] {
            Inline::Text(words) => {
                if !words.style.keeps_spaces() {
                    words.text.truncate(words.text.trim_end_matches(' ').len());
                }
                if words.text.is_empty() {
                    kept.remove(at);
                }
                return;
            }
            Inline::Gap { .. } | Inline::Anchor(_) => {}
            _ => return,
        }
    }
}

/// Columns of a text with tabs, from a column on.
pub fn count_spaces(column: usize) -> usize {
    8 - column % 8
}
