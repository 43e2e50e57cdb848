//! Charts in a text for a terminal, which cannot draw them: one line replaces each block of data.

use super::printable_line;
use serde_json::Value;

const OPENS: &str = "```chart";
const CLOSES: &str = "```";

/// Replaces charts in a text that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct Charts {
    /// Whether the next character is inside of a line.
    within: bool,
    /// The beginning of a line that may open a block.
    held: String,
    /// The content of the open block, without its first line.
    block: Option<String>,
}

impl Charts {
    /// Returns the text to show for the next piece.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut out = String::new();
        for part in piece.split_inclusive('\n') {
            let ends = part.ends_with('\n');
            if let Some(block) = &mut self.block {
                block.push_str(part);
                if ends && is_closed(block) {
                    out.push_str(&shown(block));
                    out.push('\n');
                    self.block = None;
                }
            } else if self.within {
                out.push_str(part);
                self.within = !ends;
            } else {
                self.held.push_str(part);
                if ends && self.held.trim_end() == OPENS {
                    self.held.clear();
                    self.block = Some(String::new());
                } else if ends || !OPENS.starts_with(&self.held) {
                    out.push_str(&std::mem::take(&mut self.held));
                    self.within = !ends;
                }
            }
        }
        out
    }

    /// Returns the rest at the end.
    pub(crate) fn finish(self) -> String {
        match self.block {
            Some(block) if is_closed(&block) => shown(&block),
            Some(block) => format!("{OPENS}\n{block}"),
            None => self.held,
        }
    }
}

/// Replaces the charts in a complete text.
pub(crate) fn folded(text: &str) -> String {
    let mut charts = Charts::default();
    let out = charts.push(text);
    out + &charts.finish()
}

fn is_closed(block: &str) -> bool {
    block.lines().last().is_some_and(|line| line.trim() == CLOSES)
}

fn shown(block: &str) -> String {
    let data = block.trim_end().strip_suffix(CLOSES).unwrap_or(block);
    line(data).unwrap_or_else(|| format!("{OPENS}\n{}", block.trim_end()))
}

/// Returns the line that replaces the data of a chart; `None` if the data is not a chart.
pub(crate) fn line(data: &str) -> Option<String> {
    let chart: Value = serde_json::from_str(data).ok()?;
    let series = chart.get("series")?.as_array()?;
    let title = chart.get("title").and_then(Value::as_str).filter(|title| !title.is_empty()).unwrap_or("no title");
    let mut parts: Vec<String> = series.iter().take(MOST).map(describe).collect();
    if series.len() > MOST {
        parts.push(format!("and {} more", series.len() - MOST));
    }
    Some(printable_line(&format!("[chart: {title}; {}]", parts.join("; "))))
}

/// Maximum series that are described.
const MOST: usize = 4;

/// Describes a series: its name, the number of values, and their range.
fn describe(series: &Value) -> String {
    let name = series.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).unwrap_or("values");
    let values = series.get("values").and_then(Value::as_array).into_iter().flatten();
    let values: Vec<f64> = values.filter_map(Value::as_f64).collect();
    let least = values.iter().copied().reduce(f64::min);
    let (Some(least), Some(most)) = (least, values.iter().copied().reduce(f64::max)) else {
        return format!("{name} without values");
    };
    let count = values.len();
    if count == 1 { format!("{name} {least}") } else { format!("{name} {least} to {most} in {count} values") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "Drawn:\n\n```chart\n{\"title\":\"Rain\",\"series\":[{\"values\":[1]}]}\n```\n\nFiles: `a`, ```b```\n";

    #[test]
    fn a_line_stands_for_a_chart_however_its_pieces_fall() {
        let wanted = "Drawn:\n\n[chart: Rain; values 1]\n\nFiles: `a`, ```b```\n";
        assert_eq!(folded(TEXT), wanted);
        for size in 1..TEXT.len() {
            let mut charts = Charts::default();
            let pieces: Vec<char> = TEXT.chars().collect();
            let shown: String =
                pieces.chunks(size).map(|piece| charts.push(&piece.iter().collect::<String>())).collect();
            assert_eq!(shown + &charts.finish(), wanted, "{size}");
        }
    }

    #[test]
    fn the_line_says_what_the_chart_shows() {
        let told = |series: &str| line(&format!("{{\"title\":\"T\",\"series\":[{series}]}}")).unwrap();
        assert_eq!(told(r#"{"name":"Oslo","values":[1.5,null,-4]}"#), "[chart: T; Oslo -4 to 1.5 in 2 values]");
        assert_eq!(
            told(r#"{"name":"a\nb","values":[]}"#),
            format!("[chart: T; {} without values]", printable_line("a\nb"))
        );
        let many = [r#"{"name":"x","values":[1]}"#; 6].join(",");
        assert_eq!(told(&many), "[chart: T; x 1; x 1; x 1; x 1; and 2 more]");
    }

    #[test]
    fn what_is_no_chart_stays_as_it_is() {
        for text in
            ["```chart\nno data\n```\nend", "```chart\n{\"series\":[", "```charts\nx\n```", "```", "a ```chart\n", ""]
        {
            assert_eq!(folded(text), text);
        }
    }
}
