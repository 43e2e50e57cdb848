//! Text of strangers as plain text of a limited length, and as Markdown that says nothing else.

/// Longest title, in characters.
const TITLE_MAX: usize = 160;
/// Longest snippet, in characters.
const SNIPPET_MAX: usize = 400;
/// Longest link, in bytes.
const LINK_MAX: usize = 2_000;
/// Longest part of a text that is read at all, in bytes.
const READ_MAX: usize = 20_000;
/// Longest reference to a character, such as `&hellip;`.
const ENTITY_MAX: usize = 10;

/// A title in one line, without markup.
pub fn title(html: &str) -> String {
    limited(html, TITLE_MAX)
}

/// A snippet in one line, without markup.
pub fn snippet(html: &str) -> String {
    limited(html, SNIPPET_MAX)
}

/// A link, if it is an http or https address that is short enough.
pub fn link(url: &str) -> Option<String> {
    let url = url.trim();
    let rest = ["https://", "http://"].iter().find_map(|scheme| {
        let (before, rest) = url.split_at_checked(scheme.len())?;
        before.eq_ignore_ascii_case(scheme).then_some(rest)
    })?;
    let is_plain = !rest.is_empty() && url.len() <= LINK_MAX && !url.chars().any(|c| is_hidden(c) || c.is_whitespace());
    // Brackets would end the link in Markdown.
    let encode = |c: char| match c {
        '(' | ')' | '<' | '>' | '"' | '`' | '\\' | '[' | ']' => format!("%{:02X}", u32::from(c)),
        c => c.to_string(),
    };
    is_plain.then(|| url.chars().map(encode).collect())
}

/// Text for Markdown in which no character starts a link, code or emphasis.
pub fn markdown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '[' | ']' | '`' | '*' | '_' | '\\' | '<' | '>' | '|' | '#' | '!') {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

fn limited(html: &str, max: usize) -> String {
    let text = text(&html[..html.floor_char_boundary(READ_MAX)]);
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}\u{2026}", text[..end].trim_end()),
        None => text,
    }
}

/// Without tags, references to characters, control characters and runs of space.
fn text(html: &str) -> String {
    let mut plain = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = if rest.starts_with('<') { after_tag(rest, &mut plain) } else { after_entity(rest, &mut plain) };
    }
    plain.push_str(rest);
    let mut line = String::with_capacity(plain.len());
    for c in plain.chars().filter(|c| c.is_whitespace() || !is_hidden(*c)) {
        match c.is_whitespace() {
            true if line.is_empty() || line.ends_with(' ') => {}
            true => line.push(' '),
            false => line.push(c),
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// Skips a tag; a `<` that begins none is text.
fn after_tag<'a>(rest: &'a str, plain: &mut String) -> &'a str {
    let begins = rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
    match rest.find('>').filter(|_| begins) {
        Some(end) => {
            // Inline marks are within words; other tags are between them.
            let name = rest[1..end].trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
            let is_inline = ["b", "strong", "em", "i", "span", "mark", "a", "sup", "sub"]
                .iter()
                .any(|inline| inline.eq_ignore_ascii_case(name));
            if !is_inline {
                plain.push(' ');
            }
            &rest[end + 1..]
        }
        None => {
            plain.push('<');
            &rest[1..]
        }
    }
}

fn after_entity<'a>(rest: &'a str, plain: &mut String) -> &'a str {
    let end = rest[1..].find(';').filter(|end| (1..=ENTITY_MAX).contains(end));
    let found = end.and_then(|end| Some((character(&rest[1..=end])?, end + 2)));
    match found {
        Some((c, end)) => {
            plain.push(c);
            &rest[end..]
        }
        None => {
            plain.push('&');
            &rest[1..]
        }
    }
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return char::from_u32(code.ok()?);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "hellip" => '\u{2026}',
        "ndash" => '\u{2013}',
        "mdash" => '\u{2014}',
        "middot" => '\u{b7}',
        "lsquo" => '\u{2018}',
        "rsquo" => '\u{2019}',
        "ldquo" => '\u{201c}',
        "rdquo" => '\u{201d}',
        _ => return None,
    })
}

/// Characters that are invisible or change the direction of the text around them.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_one_line_of_text() {
        for (html, plain) in [
            ("<strong>Rust</strong>aceans &amp; <b>friends</b>", "Rustaceans & friends"),
            ("one<br/>two<p>three", "one two three"),
            ("a < b && c &lt; d; &copy; &#x41;&#66;", "a < b && c < d; &copy; AB"),
            ("<span class=\"x\">cut", "cut"),
            ("<script>alert(1)</script> x", "alert(1) x"),
            ("a\u{202e}b\u{0}c\n\t d \u{200b}", "abc d"),
            ("&#0;&#x1F600;&#xD800;", "\u{1f600}&#xD800;"),
            ("<", "<"),
            ("&", "&"),
        ] {
            assert_eq!(text(html), plain, "{html}");
        }
        assert_eq!(snippet(&"\u{e9}".repeat(50_000)).chars().count(), SNIPPET_MAX + 1);
        assert!(title(&"word ".repeat(100)).ends_with("word\u{2026}"));
    }

    #[test]
    fn only_addresses_of_the_web_are_links() {
        assert_eq!(link(" HTTPS://a.example/x(y)?q=[1] ").as_deref(), Some("HTTPS://a.example/x%28y%29?q=%5B1%5D"));
        let refused =
            ["javascript:alert(1)", "https://", "/x", "data:text/html,x", "https://a b", "https://a/\u{202e}x"];
        for url in refused {
            assert_eq!(link(url), None, "{url}");
        }
        assert_eq!(link(&format!("https://a/{}", "x".repeat(LINK_MAX))), None);
        assert_eq!(link("é"), None);
        assert_eq!(markdown("a](http://evil) `x` <b>"), "a\\](http://evil) \\`x\\` \\<b\\>");
    }
}
