//! XML as a small tree: what a feed needs, and no more than a hostile feed may take.

use kiso_sdk::Failure;
use quick_xml::NsReader;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;

/// Deeper elements are an error. Entities that a document defines are never expanded, so depth and size are all that can grow.
const DEPTH: usize = 64;

/// An element with its text and children.
#[derive(Debug, Default)]
pub struct Element {
    /// Namespace, empty for none.
    pub space: String,
    /// Name without prefix.
    pub name: String,
    attributes: Vec<(String, String)>,
    pub children: Vec<Node>,
}

/// The content of an element, in order.
#[derive(Debug)]
pub enum Node {
    Text(String),
    Element(Element),
}

impl Element {
    /// The attribute of that name, without prefix.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The child elements.
    pub fn elements(&self) -> impl Iterator<Item = &Element> {
        self.children.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// All text, that of descendants included.
    pub fn text(&self) -> String {
        let parts = self.children.iter().map(|node| match node {
            Node::Text(text) => text.clone(),
            Node::Element(element) => element.text(),
        });
        parts.collect()
    }
}

/// Bytes to text, by the header's charset or the one in the XML declaration.
pub fn decode(bytes: &[u8], content_type: Option<&str>) -> Result<String, Failure> {
    let label = |text: &str, key: &str| {
        let (_, rest) = text.split_once(key)?;
        let rest = rest.trim_start_matches(['"', '\'', ' ', '=']);
        let end = rest.find(['"', '\'', ' ', ';', '?']).unwrap_or(rest.len());
        (end > 0).then(|| rest[..end].to_owned())
    };
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).to_ascii_lowercase();
    let declared =
        head.trim_start().starts_with("<?xml").then(|| label(head.split("?>").next()?, "encoding")).flatten();
    let named = content_type.and_then(|t| label(&t.to_ascii_lowercase(), "charset="));
    kiso_sdk::decode(bytes, named.or(declared).as_deref())
}

/// The root element of a document.
pub fn parse(text: &str) -> Result<Element, String> {
    let mut reader = NsReader::from_str(text);
    reader.config_mut().check_end_names = true;
    // The first is a placeholder that holds the root.
    let mut open = vec![Element::default()];
    loop {
        let at = reader.buffer_position();
        let broken = |e: &dyn std::fmt::Display| format!("it is broken XML at byte {at}: {e}");
        let (space, event) = reader.read_resolved_event().map_err(|e| broken(&e))?;
        let space = match space {
            ResolveResult::Bound(namespace) => namespace.into_inner().to_owned(),
            ResolveResult::Unbound | ResolveResult::Unknown(_) => String::new(),
        };
        match event {
            Event::Start(start) => {
                if open.len() > DEPTH {
                    return Err(format!("it nests more than {DEPTH} elements deep at byte {at}"));
                }
                open.push(element(space, &start));
            }
            Event::Empty(start) => push(&mut open, Node::Element(element(space, &start))),
            Event::End(_) => {
                let done = open.pop().ok_or("it ends what it never began")?;
                push(&mut open, Node::Element(done));
            }
            Event::Text(text) => push(&mut open, Node::Text(text.to_string())),
            Event::CData(text) => push(&mut open, Node::Text(text.to_string())),
            Event::GeneralRef(name) => push(&mut open, Node::Text(entity(&name))),
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    if open.len() > 1 {
        return Err(format!("it ends before its element <{}> does", open[open.len() - 1].name));
    }
    let root = open.pop().into_iter().flat_map(|holder| holder.children);
    let root = root.filter_map(|node| if let Node::Element(element) = node { Some(element) } else { None }).next();
    root.ok_or_else(|| "it has no element".to_owned())
}

fn push(open: &mut [Element], node: Node) {
    if let Some(parent) = open.last_mut() {
        parent.children.push(node);
    }
}

fn element(space: String, start: &BytesStart<'_>) -> Element {
    let mut attributes = start.attributes();
    let attributes = attributes.with_checks(false).flatten();
    let attributes = attributes.map(|a| (a.key.local_name().as_ref().to_owned(), unescape(&a.value)));
    Element {
        space,
        name: start.local_name().as_ref().to_owned(),
        attributes: attributes.collect(),
        children: Vec::new(),
    }
}

/// The text of `&name;`: the five of XML, numbers, and those that HTML authors use most. Any other stays as written.
pub fn entity(name: &str) -> String {
    let number = name.strip_prefix('#').and_then(|digits| match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    });
    let known = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "laquo" => '«',
        "raquo" => '»',
        "copy" => '©',
        "euro" => '€',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        _ => return number.and_then(char::from_u32).map_or_else(|| format!("&{name};"), String::from),
    };
    known.to_string()
}

/// Text with its entities replaced, once.
pub fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        // Names are short; looking further for each "&" would take time that grows with the square of the text.
        match rest.bytes().take(13).position(|b| b == b';') {
            Some(end) if !rest[1..end].contains(['&', ' ', '<']) => {
                out.push_str(&entity(&rest[1..end]));
                rest = &rest[end + 1..];
            }
            _ => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_keeps_text_names_and_namespaces() {
        let root = parse("<?xml version='1.0'?><a xmlns='urn:a' xmlns:b='urn:b'>x<b:c d='1 &amp; 2'>&lt;y&#x41;<![CDATA[<z>]]></b:c></a>").unwrap();
        let child = root.elements().next().unwrap();
        assert_eq!((root.space.as_str(), child.space.as_str(), child.name.as_str()), ("urn:a", "urn:b", "c"));
        assert_eq!(child.attribute("d"), Some("1 & 2"));
        assert_eq!(root.text(), "x<yA<z>");
    }

    #[test]
    fn broken_and_hostile_documents_are_refused() {
        let deep = "<a>".repeat(1_000_000);
        for text in ["", "plain", "<a>", "<a></b>", "<a", &deep] {
            assert!(parse(text).is_err(), "{}", &text[..text.len().min(20)]);
        }
        let bomb = r#"<!DOCTYPE a [<!ENTITY x "0123456789"><!ENTITY y "&x;&x;&x;">]><a>&y;</a>"#;
        assert_eq!(parse(bomb).unwrap().text(), "&y;");
    }

    #[test]
    fn the_declared_charset_is_used() {
        let latin = b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>caf\xe9</a>";
        assert!(decode(latin, None).unwrap().contains("café"));
        assert!(decode(latin, Some("text/xml; charset=utf-8")).unwrap().contains("caf\u{fffd}"));
    }
}
