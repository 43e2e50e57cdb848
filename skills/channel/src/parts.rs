//! A long text in parts that a service takes.

/// The parts of a text, each at most `max` bytes, cut where a paragraph, a line or a word ends. A part that a fenced block is cut in
/// closes the fence, and the next one opens it again.
pub fn parts(text: &str, max: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text.trim().to_owned();
    while rest.len() > max {
        // Room for the line that closes a fence.
        let limit = rest.floor_char_boundary(max.saturating_sub(8).max(1));
        let head = &rest[..limit];
        let at = ["\n\n", "\n", " "].iter().filter_map(|end| head.rfind(end)).find(|at| *at > limit / 2);
        // A character may be longer than all the room there is.
        let at = at.unwrap_or(limit).max(rest.chars().next().map_or(1, char::len_utf8));
        let (mut part, tail) =
            (rest[..at].trim_end().to_owned(), rest[at..].trim_start_matches(['\n', ' ']).to_owned());
        rest = match open_fence(&part) {
            // The line that opens it again must not make the rest as long as it was.
            Some(fence) if fence.len() + 1 < at => {
                let opened = format!("{fence}\n{tail}");
                part.push_str("\n```");
                opened
            }
            _ => tail,
        };
        parts.push(part);
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

/// The line that opened a block which is not closed at the end of the text.
fn open_fence(text: &str) -> Option<String> {
    let mut open = None;
    for line in text.lines().filter(|line| line.starts_with("```")) {
        open = match open {
            None => Some(line.to_owned()),
            Some(_) => None,
        };
    }
    open.filter(|line| line.len() <= 40)
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn parts_are_short_and_nothing_is_lost() {
        let text = "one two three\n\nfour five\nsix ".repeat(40);
        let cut = parts(&text, 100);
        assert!(cut.len() > 10 && cut.iter().all(|part| part.len() <= 100 && !part.is_empty()));
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&cut.join("\n")), words(&text));
        assert_eq!(parts("short", 100), ["short"]);
        assert!(parts(" \n ", 100).is_empty());
        let wide = "ü".repeat(500);
        assert_eq!(parts(&wide, 100).concat(), wide);
        assert_eq!(parts("üü", 1), ["ü", "ü"]);
    }

    #[test]
    fn a_block_that_is_cut_is_closed_and_opened_again() {
        let text = format!("before\n```sh\n{}```\nafter", "echo hello\n".repeat(30));
        let cut = parts(&text, 120);
        for part in &cut {
            assert!(part.len() <= 120, "{part}");
            assert_eq!(part.lines().filter(|line| line.starts_with("```")).count() % 2, 0, "{part}");
        }
        assert_eq!(cut.join("\n").matches("echo hello").count(), 30);
    }
}
