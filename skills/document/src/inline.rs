//! Text with marks within a paragraph.

use crate::out::Style;

/// Marks of a run of text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    pub bold: bool,
    pub italic: bool,
    pub strike: bool,
    pub code: bool,
    pub link: Option<String>,
    /// The class and attributes of a tracked change, as pandoc writes them.
    pub change: Option<String>,
}

/// Collects the runs of a paragraph.
#[derive(Debug, Default)]
pub struct Inline {
    runs: Vec<(Marks, String)>,
}

impl Inline {
    pub fn push(&mut self, marks: &Marks, text: &str) {
        match self.runs.last_mut() {
            _ if text.is_empty() => {}
            Some((last, run)) if last == marks => run.push_str(text),
            _ => self.runs.push((marks.clone(), text.to_owned())),
        }
    }

    /// Adds text with its white space as one space, as HTML is read.
    pub fn push_collapsed(&mut self, marks: &Marks, text: &str) {
        let mut collapsed = String::with_capacity(text.len());
        let mut space = self.ends_in_space();
        for c in text.chars() {
            let white = matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}');
            if !white {
                collapsed.push(c);
            } else if !space {
                collapsed.push(' ');
            }
            space = white;
        }
        self.push(marks, &collapsed);
    }

    fn ends_in_space(&self) -> bool {
        self.runs.last().is_none_or(|(_, run)| run.ends_with([' ', '\n']))
    }

    pub fn is_blank(&self) -> bool {
        self.runs.iter().all(|(_, run)| run.trim().is_empty())
    }

    /// The text alone; the runs are gone.
    pub fn finish_plain(&mut self) -> String {
        std::mem::take(&mut self.runs).into_iter().map(|(_, run)| run).collect()
    }

    /// The text in a style; the runs are gone.
    pub fn finish(&mut self, style: Style) -> String {
        if style == Style::Text {
            return self.finish_plain();
        }
        let mut text = String::new();
        for (marks, run) in std::mem::take(&mut self.runs) {
            write_run(&mut text, &marks, &run);
        }
        text
    }
}

/// Writes a run with its marks around its words, since `** a**` is not bold.
fn write_run(text: &mut String, marks: &Marks, run: &str) {
    if let Some(change) = &marks.change {
        let marks = Marks { change: None, ..marks.clone() };
        text.push('[');
        write_run(text, &marks, run);
        text.push_str(&format!("]{{{change}}}"));
        return;
    }
    let inner = run.trim();
    if inner.is_empty() {
        text.push_str(&run.replace('\n', "  \n"));
        return;
    }
    let start = run.len() - run.trim_start().len();
    text.push_str(&run[..start]);
    let link = marks.link.as_deref().filter(|link| !link.is_empty() && *link != inner);
    let around = [(marks.bold, "**"), (marks.italic, "*"), (marks.strike, "~~")];
    if link.is_some() {
        text.push('[');
    }
    // Marks inside a word would be read as characters by most readers of Markdown.
    let splits = text.ends_with(char::is_alphanumeric) && link.is_none();
    let mut open: Vec<&str> = Vec::new();
    if !marks.code && !splits {
        open.extend(around.iter().filter(|(set, _)| *set).map(|(_, mark)| *mark));
    }
    open.iter().for_each(|mark| text.push_str(mark));
    if marks.code {
        let fence = if inner.contains('`') { "``" } else { "`" };
        text.push_str(&format!("{fence}{}{fence}", inner.replace('\n', " ")));
    } else {
        escape(text, inner);
    }
    open.iter().rev().for_each(|mark| text.push_str(mark));
    if let Some(link) = link {
        let link: String = link.chars().take(2_000).filter(|c| !c.is_control()).collect();
        let link = link.replace(' ', "%20").replace('(', "%28").replace(')', "%29");
        text.push_str(&format!("]({link})"));
    }
    text.push_str(&run[start + inner.len()..]);
}

/// Escapes the few characters that Markdown would take for marks. Escaping all of them would cost readers more than it gives.
pub fn escape(text: &mut String, run: &str) {
    let mut before = ' ';
    let mut chars = run.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or(' ');
        match c {
            '\n' => text.push_str("  "),
            '*' if !next.is_whitespace() => text.push('\\'),
            '_' if !next.is_whitespace() && !before.is_alphanumeric() => text.push('\\'),
            '`' => text.push('\\'),
            '<' if next.is_ascii_alphabetic() || matches!(next, '/' | '!') => text.push('\\'),
            '[' if run.contains("](") => text.push('\\'),
            _ => {}
        }
        text.push(c);
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markdown(runs: &[(Marks, &str)]) -> String {
        let mut inline = Inline::default();
        runs.iter().for_each(|(marks, run)| inline.push(marks, run));
        inline.finish(Style::Markdown)
    }

    #[test]
    fn marks_stand_around_words() {
        let bold = Marks { bold: true, ..Marks::default() };
        let link = Marks { link: Some("https://a.b/c (1)".into()), ..Marks::default() };
        let plain = Marks::default();
        assert_eq!(markdown(&[(plain.clone(), "a"), (bold.clone(), " b "), (plain.clone(), "c")]), "a **b** c");
        assert_eq!(markdown(&[(link, "here")]), "[here](https://a.b/c%20%281%29)");
        assert_eq!(markdown(&[(plain.clone(), "2 * 3 *x* a_b _c_ <b>")]), "2 * 3 \\*x* a_b \\_c_ \\<b>");
        assert_eq!(markdown(&[(plain, "wo"), (bold, "rd")]), "word");
    }

    #[test]
    fn white_space_collapses() {
        let mut inline = Inline::default();
        inline.push_collapsed(&Marks::default(), "  a \n b ");
        inline.push_collapsed(&Marks::default(), "  c");
        assert_eq!(inline.finish_plain(), "a b c");
    }
}
