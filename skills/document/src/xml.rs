//! Events of an XML text by local names. It never fails: after a mistake, reading ends.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::limits;

pub struct Xml<'a> {
    reader: Reader<&'a [u8]>,
    /// The tag of an empty element, whose end comes next.
    empty: Option<String>,
    depth: usize,
    done: bool,
}

pub enum Node<'a> {
    Open(Tag<'a>),
    /// The local name of an element that ends.
    Close(String),
    Text(String),
}

pub struct Tag<'a>(BytesStart<'a>);

impl Tag<'_> {
    pub fn name(&self) -> &str {
        self.0.local_name().into_inner()
    }

    /// The value of an attribute by its local name.
    pub fn attribute(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.attributes();
        let mut found =
            attributes.with_checks(false).flatten().filter(|attribute| attribute.key.local_name().into_inner() == name);
        found.next().map(|attribute| unescape(&attribute.value))
    }

    /// The value of an attribute by its name with its prefix.
    pub fn prefixed(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.attributes();
        let mut found = attributes.with_checks(false).flatten().filter(|attribute| attribute.key.into_inner() == name);
        found.next().map(|attribute| unescape(&attribute.value))
    }

    /// Whether an attribute such as `w:val` does not say no.
    pub fn is_on(&self) -> bool {
        !matches!(self.attribute("val").as_deref(), Some("0" | "false" | "off" | "none"))
    }
}

impl<'a> Xml<'a> {
    pub fn new(text: &'a str) -> Self {
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        config.allow_dangling_amp = true;
        Self { reader, empty: None, depth: 0, done: false }
    }

    /// Depth of the element that was opened last.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The next event. `None` at the end, after a mistake, and in elements that are nested too deep.
    #[expect(clippy::should_implement_trait, reason = "a node borrows the text, not the reader, and errors end it")]
    pub fn next(&mut self) -> Option<Node<'a>> {
        if let Some(name) = self.empty.take() {
            return Some(Node::Close(name));
        }
        while !self.done {
            match self.reader.read_event() {
                Ok(Event::Start(tag)) => {
                    self.depth += 1;
                    self.done = self.depth > limits::DEPTH;
                    return Some(Node::Open(Tag(tag)));
                }
                Ok(Event::Empty(tag)) => {
                    let tag = Tag(tag);
                    self.empty = Some(tag.name().to_owned());
                    return Some(Node::Open(tag));
                }
                Ok(Event::End(tag)) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Some(Node::Close(tag.local_name().into_inner().to_owned()));
                }
                Ok(Event::Text(text)) => return Some(Node::Text(text.xml10_content().into_owned())),
                Ok(Event::CData(text)) => return Some(Node::Text(text.xml10_content().into_owned())),
                Ok(Event::GeneralRef(reference)) => {
                    let name = reference.into_inner();
                    return Some(Node::Text(unescape(&format!("&{name};"))));
                }
                Ok(Event::Eof) | Err(_) => self.done = true,
                Ok(_) => {}
            }
        }
        None
    }

    /// The text up to the end of the element that was opened last.
    pub fn text(&mut self) -> String {
        let mut text = String::new();
        let mut open = 1_usize;
        while open > 0 {
            match self.next() {
                Some(Node::Open(_)) => open += 1,
                Some(Node::Close(_)) => open -= 1,
                Some(Node::Text(more)) => text.push_str(&more),
                None => break,
            }
        }
        text
    }

    /// Passes over the element that was opened last.
    pub fn skip(&mut self) {
        let mut open = 1_usize;
        while open > 0 {
            match self.next() {
                Some(Node::Open(_)) => open += 1,
                Some(Node::Close(_)) => open -= 1,
                Some(Node::Text(_)) => {}
                None => break,
            }
        }
    }
}

/// Text with its references resolved; unknown ones stay as they are.
pub fn unescape(text: &str) -> String {
    let Some(first) = text.find('&') else { return text.to_owned() };
    let mut result = text[..first].to_owned();
    let mut rest = &text[first..];
    while let Some(start) = rest.find('&') {
        result.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        match end.and_then(|end| Some((resolve(&rest[1..end])?, end))) {
            Some((c, end)) => {
                result.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                result.push('&');
                rest = &rest[1..];
            }
        }
    }
    result.push_str(rest);
    result
}

fn resolve(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).filter(|c| *c != '\0');
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "copy" => '©',
        "mdash" => '—',
        "ndash" => '–',
        _ => return None,
    })
}

/// Decodes XML by its byte order mark or by the encoding that it declares.
pub fn decode(bytes: &[u8]) -> String {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
    let label = head.split_once("encoding=").and_then(|(_, rest)| rest.get(1..)?.split(['"', '\'']).next());
    crate::charset::decode(bytes, label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_local_names() {
        let mut xml = Xml::new("<w:a w:x='1 &amp; 2' y='3'>b &lt;c&#33;<d/></w:a>");
        let mut seen = String::new();
        while let Some(node) = xml.next() {
            match node {
                Node::Open(tag) => {
                    seen += &format!("<{} {:?} {:?}>", tag.name(), tag.attribute("x"), tag.prefixed("x"));
                }
                Node::Close(name) => seen += &format!("</{name}>"),
                Node::Text(text) => seen += &text,
            }
        }
        assert_eq!(seen, "<a Some(\"1 & 2\") None>b <c!<d None None></d></a>");
    }

    #[test]
    fn hostile_texts_end() {
        let deep = "<a>".repeat(100_000);
        let mut xml = Xml::new(&deep);
        assert!(std::iter::from_fn(|| xml.next()).count() <= limits::DEPTH + 1);
        for text in ["<a", "<a><b></a>", "&#xffffffff;&nope;&", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "</a>x"] {
            let mut xml = Xml::new(text);
            assert!(std::iter::from_fn(|| xml.next()).count() < 10, "{text}");
        }
        assert_eq!(unescape("a &b; &#0; &amp"), "a &b; &#0; &amp");
    }

    #[test]
    fn an_encoding_is_declared() {
        assert_eq!(
            decode(b"<?xml version='1.0' encoding='iso-8859-1'?><a>\xe4</a>"),
            "<?xml version='1.0' encoding='iso-8859-1'?><a>ä</a>"
        );
    }
}
