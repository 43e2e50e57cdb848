//! A tree of elements from the tokens of HTML, with the end tags that people leave out.
//!
//! The tree builder of the standard takes time that grows with the square of what a hostile page nests; this one has a limit for each step.

use std::cell::RefCell;

use html5ever::TokenizerResult;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

use crate::limits;

/// Bytes of a page that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Attributes of one element.
const ATTRIBUTES: usize = 64;

pub type Id = usize;

#[derive(Debug, Default)]
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Id>,
}

#[derive(Debug)]
pub enum Node {
    Element(Element),
    Text(String),
}

/// The root is element 0 and has no name.
#[derive(Debug)]
pub struct Dom {
    pub nodes: Vec<Node>,
    pub parents: Vec<Id>,
    /// For each node its number among the elements of its parent, from 1.
    pub places: Vec<usize>,
    /// For each node the number of elements in it.
    pub counts: Vec<usize>,
    /// Whether the page has more elements than are kept.
    pub is_cut: bool,
}

impl Dom {
    pub fn parse(html: &str) -> Self {
        let tokenizer = Tokenizer::new(
            Sink(RefCell::new(Builder::new())),
            TokenizerOpts { discard_bom: true, ..TokenizerOpts::default() },
        );
        let input = BufferQueue::default();
        let mut rest = html;
        while !rest.is_empty() && !tokenizer.sink.0.borrow().dom.is_cut {
            let (chunk, more) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES.min(rest.len())));
            input.push_back(StrTendril::from(chunk));
            rest = more;
            // It stops for some tags, and goes on where it stopped.
            while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
        }
        tokenizer.end();
        let mut dom = tokenizer.sink.0.into_inner().dom;
        dom.number();
        dom
    }

    fn number(&mut self) {
        self.places = vec![0; self.nodes.len()];
        self.counts = vec![0; self.nodes.len()];
        for id in 1..self.nodes.len() {
            let parent = self.parents[id];
            self.counts[parent] += usize::from(matches!(self.nodes[id], Node::Element(_)));
            self.places[id] = self.counts[parent];
        }
    }

    pub fn element(&self, id: Id) -> Option<&Element> {
        match self.nodes.get(id) {
            Some(Node::Element(element)) => Some(element),
            _ => None,
        }
    }

    pub fn name(&self, id: Id) -> &str {
        self.element(id).map_or("", |element| element.name.as_str())
    }

    pub fn children(&self, id: Id) -> &[Id] {
        self.element(id).map_or(&[], |element| element.children.as_slice())
    }

    /// The text of all that is in a node.
    pub fn text(&self, id: Id) -> String {
        let mut text = String::new();
        self.push_text(id, &mut text);
        text
    }

    fn push_text(&self, id: Id, text: &mut String) {
        match self.nodes.get(id) {
            Some(Node::Text(words)) => text.push_str(words),
            Some(Node::Element(element)) => element.children.iter().for_each(|child| self.push_text(*child, text)),
            None => {}
        }
    }

    /// The first element of a name, in the order of the page.
    pub fn find(&self, name: &str) -> Option<Id> {
        (0..self.nodes.len()).find(|id| self.name(*id) == name)
    }
}

impl Element {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

struct Sink(RefCell<Builder>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut builder = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return builder.open(&tag),
            Token::TagToken(tag) => builder.close(&tag.name),
            Token::CharacterTokens(text) => builder.text(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

struct Builder {
    dom: Dom,
    open: Vec<Id>,
    /// Bytes of text so far.
    bytes: usize,
}

impl Builder {
    fn new() -> Self {
        let dom = Dom {
            nodes: vec![Node::Element(Element::default())],
            parents: vec![0],
            places: Vec::new(),
            counts: Vec::new(),
            is_cut: false,
        };
        Self { dom, open: vec![0], bytes: 0 }
    }

    fn top(&self) -> Id {
        self.open.last().copied().unwrap_or(0)
    }

    fn append(&mut self, node: Node) -> Option<Id> {
        if self.dom.nodes.len() >= limits::ELEMENTS {
            self.dom.is_cut = true;
            return None;
        }
        let (id, parent) = (self.dom.nodes.len(), self.top());
        self.dom.nodes.push(node);
        self.dom.parents.push(parent);
        if let Some(Node::Element(element)) = self.dom.nodes.get_mut(parent) {
            element.children.push(id);
        }
        Some(id)
    }

    fn text(&mut self, text: &str) {
        if self.dom.name(self.top()) == "script" {
            return;
        }
        self.bytes += text.len();
        if self.bytes > limits::SHOWN_BYTES {
            self.dom.is_cut = true;
            return;
        }
        let last = self.dom.children(self.top()).last().copied();
        if let Some(Node::Text(known)) = last.and_then(|id| self.dom.nodes.get_mut(id)) {
            known.push_str(text);
            return;
        }
        self.append(Node::Text(text.to_owned()));
    }

    fn open(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        if matches!(name, "html" | "body") && self.dom.find_open(&self.open, name) {
            return TokenSinkResult::Continue;
        }
        self.close_implied(name);
        let attributes = tag.attrs.iter().take(ATTRIBUTES);
        let attributes =
            attributes.map(|attribute| (attribute.name.local.to_string(), attribute.value.to_string())).collect();
        let element = Element { name: name.to_owned(), attributes, children: Vec::new() };
        let Some(id) = self.append(Node::Element(element)) else { return TokenSinkResult::Continue };
        // Elements below the maximum depth become siblings instead of children.
        if !(is_void(name) || tag.self_closing && is_foreign(name)) && self.open.len() < limits::BOX_DEPTH {
            self.open.push(id);
        }
        match name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "xmp" | "iframe" | "noembed" | "noframes" => TokenSinkResult::RawData(RawKind::Rawtext),
            "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            _ => TokenSinkResult::Continue,
        }
    }

    /// Ends the elements whose end tags may be left out before this one.
    fn close_implied(&mut self, name: &str) {
        if ends_paragraph(name) {
            self.pop_to(&["p"], &["table", "td", "th", "caption", "button", "div", "li", "section", "blockquote"]);
        }
        match name {
            "li" => self.pop_to(&["li"], &["ul", "ol", "menu", "table"]),
            "dt" | "dd" => self.pop_to(&["dt", "dd"], &["dl", "table"]),
            "td" | "th" => self.pop_to(&["td", "th"], &["tr", "table"]),
            "tr" => self.pop_to(&["tr"], &["table"]),
            "thead" | "tbody" | "tfoot" => self.pop_to(&["thead", "tbody", "tfoot", "colgroup"], &["table"]),
            "option" => self.pop_to(&["option"], &["select"]),
            "body" => self.pop_to(&["head"], &[]),
            _ => {}
        }
    }

    /// Ends the innermost element of one of these names, unless one of `bounds` is further in.
    fn pop_to(&mut self, names: &[&str], bounds: &[&str]) {
        for depth in (1..self.open.len()).rev() {
            let name = self.dom.name(self.open[depth]);
            if names.contains(&name) {
                self.open.truncate(depth);
                return;
            }
            if bounds.contains(&name) {
                return;
            }
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "html" | "body" => {}
            "td" | "th" | "tr" | "thead" | "tbody" | "tfoot" | "caption" => self.pop_to(&[name], &["table"]),
            "li" => self.pop_to(&[name], &["ul", "ol"]),
            "br" => drop(self.append(Node::Element(Element { name: "br".to_owned(), ..Element::default() }))),
            // An end tag in a cell does not end what is around the table.
            "table" => self.pop_to(&["table"], &[]),
            _ => self.pop_to(&[name], &["td", "th"]),
        }
    }
}

impl Dom {
    fn find_open(&self, open: &[Id], name: &str) -> bool {
        open.iter().any(|id| self.name(*id) == name)
    }
}

pub fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Elements of SVG, some of which end in their start tags.
fn is_foreign(name: &str) -> bool {
    matches!(
        name,
        "svg"
            | "path"
            | "circle"
            | "rect"
            | "line"
            | "polyline"
            | "polygon"
            | "ellipse"
            | "use"
            | "stop"
            | "g"
            | "text"
            | "image"
    )
}

fn ends_paragraph(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "center"
            | "details"
            | "div"
            | "dl"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hr"
            | "li"
            | "main"
            | "menu"
            | "nav"
            | "ol"
            | "p"
            | "pre"
            | "section"
            | "table"
            | "ul"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(dom: &Dom, id: Id) -> String {
        match &dom.nodes[id] {
            Node::Text(text) => text.clone(),
            Node::Element(element) => {
                let children: Vec<String> = element.children.iter().map(|child| outline(dom, *child)).collect();
                format!("{}({})", element.name, children.join(","))
            }
        }
    }

    #[test]
    fn end_tags_may_be_left_out() {
        let dom = Dom::parse("<p>a<p>b<ul><li>c<li>d<ul><li>e</ul></ul><table><tr><td>1<td>2<tr><td>3</table>f<br>g");
        assert_eq!(outline(&dom, 0), "(p(a),p(b),ul(li(c),li(d,ul(li(e)))),table(tr(td(1),td(2)),tr(td(3))),f,br(),g)");
        let dom = Dom::parse("<title>a &amp; b</title><style>p > a {}</style><body id=x><body><p></div>y</body>");
        assert_eq!(outline(&dom, 0), "(title(a & b),style(p > a {}),body(p(y)))");
    }

    #[test]
    fn hostile_pages_end() {
        let dom = Dom::parse(&"<div><b>".repeat(50_000));
        assert!(dom.nodes.len() > 90_000);
        assert!(Dom::parse(&"<p>".repeat(limits::ELEMENTS + 9)).is_cut);
        Dom::parse("<p <<<&#x; <![CDATA[ <!-- never closed");
    }
}
