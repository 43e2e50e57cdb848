//! The styles of a document, by the names that Word gives them.

use super::{escape, twips};
use crate::make::css::style::{Align, Family, Style};
use crate::make::css::value::Color;
use crate::make::tree::{Content, Node, Role};

/// The paragraph styles that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Normal,
    Heading(u8),
    Title,
    Subtitle,
    Author,
    List,
    Quote,
    Code,
}

impl Kind {
    pub fn id(self) -> String {
        match self {
            Self::Normal => "Normal".to_owned(),
            Self::Heading(level) => format!("Heading{level}"),
            Self::Title => "Title".to_owned(),
            Self::Subtitle => "Subtitle".to_owned(),
            Self::Author => "Author".to_owned(),
            Self::List => "ListParagraph".to_owned(),
            Self::Quote => "Quote".to_owned(),
            Self::Code => "SourceCode".to_owned(),
        }
    }
}

#[derive(Debug)]
pub struct Styles {
    pub body: Style,
    headings: [Option<Style>; 6],
    title: Option<Style>,
    subtitle: Option<Style>,
    author: Option<Style>,
    quote: Option<Style>,
    code: Option<Style>,
    main: Option<String>,
}

impl Styles {
    /// Each style looks as the first paragraph of its kind does.
    pub fn new(root: Style, tree: &Node, font: Option<&str>) -> Self {
        let main = font.filter(|name| !name.contains('.') && !name.contains('/')).map(str::to_owned);
        let mut styles = Self {
            body: root,
            headings: [const { None }; 6],
            title: None,
            subtitle: None,
            author: None,
            quote: None,
            code: None,
            main,
        };
        if let Some(style) = first_text(tree, 0) {
            styles.body.size = style.size;
            styles.body.family = style.family;
            styles.body.color = style.color;
            styles.body.line_height = style.line_height;
        }
        styles.collect(tree);
        styles
    }

    fn collect(&mut self, node: &Node) {
        let field = match node.role {
            Role::Heading(level) => self.headings.get_mut(usize::from(level) - 1),
            Role::Title => Some(&mut self.title),
            Role::Subtitle => Some(&mut self.subtitle),
            Role::Author => Some(&mut self.author),
            Role::Quote => Some(&mut self.quote),
            Role::Code => Some(&mut self.code),
            _ => None,
        };
        if let Some(field) = field {
            field.get_or_insert_with(|| (*node.style).clone());
        }
        match &node.content {
            Content::Blocks(nodes) => nodes.iter().for_each(|node| self.collect(node)),
            Content::Table(table) => {
                table.rows.iter().flat_map(|row| &row.cells).for_each(|cell| self.collect(&cell.node));
            }
            Content::Inline(_) => {}
        }
    }

    /// How text of a kind looks, so that only what differs is written with it.
    pub fn base(&self, kind: Kind) -> Style {
        let found = match kind {
            Kind::Heading(level) => self.headings.get(usize::from(level) - 1).and_then(Option::as_ref),
            Kind::Title => self.title.as_ref(),
            Kind::Subtitle => self.subtitle.as_ref(),
            Kind::Author => self.author.as_ref(),
            Kind::Quote => self.quote.as_ref(),
            Kind::Code => self.code.as_ref(),
            Kind::Normal | Kind::List => None,
        };
        found.cloned().unwrap_or_else(|| self.default_of(kind))
    }

    fn default_of(&self, kind: Kind) -> Style {
        let mut style = self.body.clone();
        match kind {
            Kind::Heading(level) => {
                style.size *= [1.75, 1.36, 1.15, 1.0, 1.0, 1.0][usize::from(level.clamp(1, 6)) - 1];
                style.is_bold = true;
            }
            Kind::Title => {
                style.size *= 2.1;
                style.is_bold = true;
                style.align = Align::Center;
            }
            Kind::Subtitle | Kind::Author => style.align = Align::Center,
            Kind::Code => style.family = Family::Mono,
            _ => {}
        }
        style
    }

    /// The name of a font that machines have.
    pub fn font(&self, family: Family) -> &str {
        match family {
            Family::Serif => "Times New Roman",
            Family::Mono => "Courier New",
            Family::Sans => self.main.as_deref().unwrap_or("Arial"),
            Family::File(_) => self.main.as_deref().unwrap_or("Arial"),
        }
    }

    /// The properties of text that differ from those of its paragraph.
    pub fn differences(&self, own: &Style, base: &Style) -> String {
        let mut xml = String::new();
        if own.family != base.family {
            let name = escape(self.font(own.family));
            xml.push_str(&format!("<w:rFonts w:ascii=\"{name}\" w:hAnsi=\"{name}\" w:cs=\"{name}\"/>"));
        }
        let switch =
            |name: &str, is_on: bool| if is_on { format!("<w:{name}/>") } else { format!("<w:{name} w:val=\"0\"/>") };
        if own.is_bold != base.is_bold {
            xml.push_str(&switch("b", own.is_bold));
        }
        if own.is_italic != base.is_italic {
            xml.push_str(&switch("i", own.is_italic));
        }
        if own.is_struck {
            xml.push_str("<w:strike/>");
        }
        if own.color != base.color {
            xml.push_str(&format!("<w:color w:val=\"{}\"/>", hex(own.color)));
        }
        if own.letter_spacing != 0.0 {
            xml.push_str(&format!("<w:spacing w:val=\"{}\"/>", twips(own.letter_spacing)));
        }
        if (own.size - base.size).abs() > 0.2 {
            let half = (own.size * 2.0).round() as i32;
            xml.push_str(&format!("<w:sz w:val=\"{half}\"/><w:szCs w:val=\"{half}\"/>"));
        }
        if own.is_underlined {
            xml.push_str("<w:u w:val=\"single\"/>");
        }
        xml
    }

    pub fn to_xml(&self, language: &str) -> String {
        let body = &self.body;
        let font = escape(self.font(body.family));
        let language = if language.is_empty() { "en-US" } else { language };
        let line = (body.leading() / body.size / 1.15 * 240.0).round() as i32;
        let mut xml = format!(
            "{}<w:styles {NAMESPACE}><w:docDefaults><w:rPrDefault><w:rPr><w:rFonts w:ascii=\"{font}\" w:hAnsi=\"{font}\" w:eastAsia=\"{font}\" w:cs=\"{font}\"/>\
             <w:color w:val=\"{}\"/><w:sz w:val=\"{half}\"/><w:szCs w:val=\"{half}\"/><w:lang w:val=\"{}\"/></w:rPr></w:rPrDefault>\
             <w:pPrDefault><w:pPr><w:spacing w:after=\"{}\" w:line=\"{line}\" w:lineRule=\"auto\"/></w:pPr></w:pPrDefault></w:docDefaults>\
             <w:style w:type=\"paragraph\" w:default=\"1\" w:styleId=\"Normal\"><w:name w:val=\"Normal\"/><w:qFormat/></w:style>\
             <w:style w:type=\"character\" w:default=\"1\" w:styleId=\"DefaultParagraphFont\"><w:name w:val=\"Default Paragraph Font\"/></w:style>\
             <w:style w:type=\"table\" w:default=\"1\" w:styleId=\"TableNormal\"><w:name w:val=\"Normal Table\"/><w:tblPr><w:tblCellMar><w:left w:w=\"108\" w:type=\"dxa\"/><w:right w:w=\"108\" w:type=\"dxa\"/></w:tblCellMar></w:tblPr></w:style>\
             <w:style w:type=\"table\" w:styleId=\"TableGrid\"><w:name w:val=\"Table Grid\"/><w:basedOn w:val=\"TableNormal\"/></w:style>\
             <w:style w:type=\"character\" w:styleId=\"Hyperlink\"><w:name w:val=\"Hyperlink\"/><w:rPr><w:color w:val=\"1A56B0\"/><w:u w:val=\"single\"/></w:rPr></w:style>\
             <w:style w:type=\"character\" w:customStyle=\"1\" w:styleId=\"VerbatimChar\"><w:name w:val=\"Verbatim Char\"/><w:rPr><w:rFonts w:ascii=\"Courier New\" w:hAnsi=\"Courier New\" w:cs=\"Courier New\"/></w:rPr></w:style>",
            super::parts::XML,
            hex(body.color),
            escape(language),
            twips(body.size * 0.7),
            half = (body.size * 2.0).round() as i32,
        );
        for level in 1..=6 {
            let more = format!(
                "<w:keepNext/><w:keepLines/>{}<w:outlineLvl w:val=\"{}\"/>",
                self.spacing(Kind::Heading(level)),
                level - 1
            );
            self.paragraph(&mut xml, Kind::Heading(level), &format!("heading {level}"), &more);
        }
        self.paragraph(&mut xml, Kind::Title, "Title", "<w:spacing w:after=\"120\"/><w:jc w:val=\"center\"/>");
        self.paragraph(&mut xml, Kind::Subtitle, "Subtitle", "<w:jc w:val=\"center\"/>");
        self.paragraph(&mut xml, Kind::Author, "Author", "<w:spacing w:after=\"60\"/><w:jc w:val=\"center\"/>");
        self.paragraph(
            &mut xml,
            Kind::List,
            "List Paragraph",
            "<w:spacing w:after=\"60\"/><w:ind w:left=\"720\"/><w:contextualSpacing/>",
        );
        let bar = "<w:pBdr><w:left w:val=\"single\" w:sz=\"18\" w:space=\"10\" w:color=\"C3CCD6\"/></w:pBdr><w:ind w:left=\"360\"/>";
        self.paragraph(&mut xml, Kind::Quote, "Quote", bar);
        let code = "<w:shd w:val=\"clear\" w:color=\"auto\" w:fill=\"F5F6F8\"/><w:spacing w:line=\"240\" w:lineRule=\"auto\"/>";
        self.paragraph(&mut xml, Kind::Code, "Source Code", code);
        for level in 1..=6 {
            xml.push_str(&format!(
                "<w:style w:type=\"paragraph\" w:styleId=\"TOC{level}\"><w:name w:val=\"toc {level}\"/><w:basedOn w:val=\"Normal\"/><w:pPr><w:spacing w:after=\"40\"/><w:ind w:left=\"{}\"/></w:pPr></w:style>",
                (level - 1) * 280
            ));
        }
        for name in ["header", "footer"] {
            let id = if name == "header" { "Header" } else { "Footer" };
            xml.push_str(&format!(
                "<w:style w:type=\"paragraph\" w:styleId=\"{id}\"><w:name w:val=\"{name}\"/><w:basedOn w:val=\"Normal\"/><w:pPr><w:spacing w:after=\"0\"/></w:pPr><w:rPr><w:color w:val=\"5A646E\"/><w:sz w:val=\"18\"/></w:rPr></w:style>"
            ));
        }
        xml.push_str("</w:styles>");
        xml
    }

    fn spacing(&self, kind: Kind) -> String {
        let style = self.base(kind);
        let side = |side: usize, factor: f32| {
            let own = style.margin[side].or_zero(0.0);
            twips(if own > 0.0 { own } else { style.size * factor })
        };
        format!(
            "<w:spacing w:before=\"{}\" w:after=\"{}\" w:line=\"264\" w:lineRule=\"auto\"/>",
            side(0, 0.8),
            side(2, 0.35)
        )
    }

    fn paragraph(&self, xml: &mut String, kind: Kind, name: &str, more: &str) {
        let custom = if matches!(kind, Kind::Author | Kind::Code) { " w:customStyle=\"1\"" } else { "" };
        let looks = self.differences(&self.base(kind), &self.body);
        let next = if matches!(kind, Kind::Heading(_) | Kind::Title) { "<w:next w:val=\"Normal\"/>" } else { "" };
        xml.push_str(&format!(
            "<w:style w:type=\"paragraph\"{custom} w:styleId=\"{}\"><w:name w:val=\"{name}\"/><w:basedOn w:val=\"Normal\"/>{next}<w:qFormat/><w:pPr>{more}</w:pPr><w:rPr>{looks}</w:rPr></w:style>",
            kind.id()
        ));
    }
}

/// The style that the text of the page has: that of the first paragraph.
fn first_text(node: &Node, depth: usize) -> Option<&Style> {
    match &node.content {
        Content::Inline(inlines) if !inlines.is_empty() && node.role == Role::Plain => Some(&node.style),
        Content::Blocks(nodes) if depth < 40 => {
            let plain = nodes
                .iter()
                .find(|node| matches!(node.role, Role::Plain) && matches!(node.content, Content::Inline(_)));
            plain.map(|node| &*node.style).or_else(|| {
                nodes.iter().filter(|node| node.role == Role::Plain).find_map(|node| first_text(node, depth + 1))
            })
        }
        _ => None,
    }
}

pub const NAMESPACE: &str = "xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"";

pub fn hex(Color(red, green, blue): Color) -> String {
    format!("{red:02X}{green:02X}{blue:02X}")
}
