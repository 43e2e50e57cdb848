//! CSV, read and written.

/// Writes one record as RFC 4180 says, with `\n` at its end.
pub fn write_record(text: &mut String, record: &[String], delimiter: char) {
    for (number, field) in record.iter().enumerate() {
        if number > 0 {
            text.push(delimiter);
        }
        if field.contains([delimiter, '"', '\n', '\r']) {
            text.push('"');
            text.push_str(&field.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(field);
        }
    }
    text.push('\n');
}

/// The delimiter that the first lines have most often and alike.
pub fn find_delimiter(text: &str) -> char {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).take(10).collect();
    let score = |delimiter: char| {
        let counts: Vec<usize> = lines.iter().map(|line| count(line, delimiter)).collect();
        let first = counts.first().copied().unwrap_or(0);
        let alike = counts.iter().filter(|count| **count == first).count();
        if first == 0 { 0 } else { alike * 1_000 / counts.len().max(1) + first.min(99) }
    };
    [',', ';', '\t', '|'].into_iter().rev().max_by_key(|delimiter| score(*delimiter)).unwrap_or(',')
}

/// Delimiters outside quotes.
fn count(line: &str, delimiter: char) -> usize {
    let mut quoted = false;
    line.chars()
        .filter(|c| {
            quoted ^= *c == '"';
            *c == delimiter && !quoted
        })
        .count()
}

/// Parses records.
pub struct Records<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    delimiter: char,
}

impl<'a> Records<'a> {
    pub fn new(text: &'a str, delimiter: char) -> Self {
        Self { rest: text.chars().peekable(), delimiter }
    }
}

impl Iterator for Records<'_> {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Vec<String>> {
        self.rest.peek()?;
        let mut record = Vec::new();
        let mut field = String::new();
        let mut quoted = false;
        while let Some(c) = self.rest.next() {
            match c {
                '"' if quoted && self.rest.peek() == Some(&'"') => {
                    self.rest.next();
                    field.push('"');
                }
                '"' if quoted => quoted = false,
                '"' if field.is_empty() => quoted = true,
                c if quoted => field.push(c),
                '\r' if self.rest.peek() == Some(&'\n') => {}
                '\n' => break,
                c if c == self.delimiter => record.push(std::mem::take(&mut field)),
                c => field.push(c),
            }
        }
        record.push(field);
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_written_and_parsed() {
        let record = ["a", "b,\"c\"", "", "d\ne"].map(str::to_owned);
        let mut text = String::new();
        write_record(&mut text, &record, ',');
        assert_eq!(text, "a,\"b,\"\"c\"\"\",,\"d\ne\"\n");
        assert_eq!(Records::new(&text, ',').collect::<Vec<_>>(), [record.to_vec()]);
        assert_eq!(Records::new("a;b\r\n\nc", ';').count(), 3);
        assert_eq!(find_delimiter("a;b,c;d\n1;2;3\n"), ';');
        assert_eq!(find_delimiter("a\tb\n"), '\t');
        assert_eq!(find_delimiter("a\n"), ',');
    }
}
