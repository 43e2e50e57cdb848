//! Text, links and pictures of a paragraph.

use super::body::{Body, Parts};
use super::escape;
use super::styles::hex;
use crate::make::css::style::{Family, Style, Vertical};
use crate::make::picture::{Pictures, Pixels};
use crate::make::tree::{Content, Inline, Text, Words};

/// Units of DrawingML in a point.
const EMU: f32 = 12_700.0;

impl Body<'_, '_> {
    pub fn runs(&mut self, inlines: &[Inline], base: &Style, width: f32) -> String {
        let mut xml = String::new();
        let mut at = 0;
        while at < inlines.len() {
            let link = find_link(&inlines[at]).cloned();
            let end = at + inlines[at..].iter().take_while(|inline| find_link(inline) == link.as_ref()).count().max(1);
            let inner: String = inlines[at..end].iter().map(|inline| self.inline(inline, base, width)).collect();
            match link {
                Some(link) => xml.push_str(&self.link(&link, &inner)),
                None => xml.push_str(&inner),
            }
            at = end;
        }
        xml
    }

    fn link(&mut self, target: &Text, inner: &str) -> String {
        if let Some(id) = target.strip_prefix('#') {
            let name = self.bookmark(id);
            return format!("<w:hyperlink w:anchor=\"{name}\">{inner}</w:hyperlink>");
        }
        if self.parts.links.len() >= 10_000 || target.is_empty() {
            return inner.to_owned();
        }
        self.parts.links.push(target.to_string());
        format!("<w:hyperlink r:id=\"rLink{}\">{inner}</w:hyperlink>", self.parts.links.len())
    }

    fn inline(&mut self, inline: &Inline, base: &Style, width: f32) -> String {
        match inline {
            Inline::Text(words) => self.words(words, base),
            Inline::Break => "<w:r><w:br/></w:r>".to_owned(),
            Inline::Picture { number, style, alt, .. } => self.picture(*number, style, alt, width),
            Inline::Box(node) => match &node.content {
                Content::Inline(inlines) => {
                    let mut inner = inlines.clone();
                    for inline in &mut inner {
                        if let Inline::Text(words) = inline {
                            words.span.get_or_insert_with(|| node.style.clone());
                        }
                    }
                    self.runs(&inner, base, width)
                }
                _ => {
                    let text = node.text();
                    format!("<w:r><w:t xml:space=\"preserve\">{}</w:t></w:r>", escape(&text))
                }
            },
            Inline::Anchor(id) => self.bookmark_xml(id),
            Inline::Gap { .. } | Inline::PageOf { .. } => String::new(),
        }
    }

    fn words(&mut self, words: &Words, base: &Style) -> String {
        let style = &words.style;
        let mut looks = String::new();
        let is_code = style.family == Family::Mono && base.family != Family::Mono;
        if is_code {
            looks.push_str("<w:rStyle w:val=\"VerbatimChar\"/>");
        } else if words.link.is_some() {
            looks.push_str("<w:rStyle w:val=\"Hyperlink\"/>");
        }
        let mut own = (**style).clone();
        if is_code {
            own.family = base.family;
        }
        if words.link.is_some() && own.is_underlined {
            // The style of links says it.
            own.is_underlined = false;
            own.color = base.color;
        }
        if matches!(own.vertical, Vertical::Sub | Vertical::Super) {
            own.size = base.size;
        }
        looks.push_str(&self.styles.differences(&own, base));
        if let Some(color) = words.span.as_ref().and_then(|span| span.background) {
            looks.push_str(&format!("<w:shd w:val=\"clear\" w:color=\"auto\" w:fill=\"{}\"/>", hex(color)));
        }
        match style.vertical {
            Vertical::Super => looks.push_str("<w:vertAlign w:val=\"superscript\"/>"),
            Vertical::Sub => looks.push_str("<w:vertAlign w:val=\"subscript\"/>"),
            _ => {}
        }
        let mut text = String::new();
        let body = if style.keeps_spaces() { words.text.trim_end_matches('\n') } else { &words.text };
        for (number, line) in body.split('\n').enumerate() {
            if number > 0 {
                text.push_str("<w:br/>");
            }
            for (number, part) in line.split('\t').enumerate() {
                if number > 0 {
                    text.push_str("<w:tab/>");
                }
                if !part.is_empty() {
                    text.push_str(&format!("<w:t xml:space=\"preserve\">{}</w:t>", escape(part)));
                }
            }
        }
        let looks = if looks.is_empty() { looks } else { format!("<w:rPr>{looks}</w:rPr>") };
        format!("<w:r>{looks}{text}</w:r>")
    }

    fn picture(&mut self, number: usize, style: &Style, alt: &str, width: f32) -> String {
        let Some(picture) = self.pictures.all.get(number) else { return String::new() };
        let (width, height) = self.layout.picture_size(number, style, width);
        let turn = match picture.pixels {
            Pixels::Jpeg { orientation: 3, .. } => 180,
            Pixels::Jpeg { orientation: 6, .. } => 90,
            Pixels::Jpeg { orientation: 8, .. } => 270,
            _ => 0,
        };
        self.parts.pictures.insert(number);
        self.shapes += 1;
        let emu = |points: f32| (points * EMU).round() as i64;
        let (own_width, own_height) = if turn % 180 == 90 { (height, width) } else { (width, height) };
        format!(
            "<w:r><w:drawing><wp:inline distT=\"0\" distB=\"0\" distL=\"0\" distR=\"0\"><wp:extent cx=\"{}\" cy=\"{}\"/><wp:docPr id=\"{id}\" name=\"Picture {id}\" descr=\"{}\"/>\
             <a:graphic><a:graphicData uri=\"http://schemas.openxmlformats.org/drawingml/2006/picture\"><pic:pic><pic:nvPicPr><pic:cNvPr id=\"{id}\" name=\"Picture {id}\"/><pic:cNvPicPr/></pic:nvPicPr>\
             <pic:blipFill><a:blip r:embed=\"rPic{number}\"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill>\
             <pic:spPr><a:xfrm rot=\"{}\"><a:off x=\"0\" y=\"0\"/><a:ext cx=\"{}\" cy=\"{}\"/></a:xfrm><a:prstGeom prst=\"rect\"><a:avLst/></a:prstGeom></pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>",
            emu(width),
            emu(height),
            escape(alt),
            turn * 60_000,
            emu(own_width),
            emu(own_height),
            id = self.shapes,
        )
    }
}

fn find_link(inline: &Inline) -> Option<&Text> {
    match inline {
        Inline::Text(words) => words.link.as_ref(),
        Inline::Picture { link, .. } => link.as_ref(),
        _ => None,
    }
}

impl Parts {
    /// The relations that the body refers to.
    pub fn relations(&self, pictures: &Pictures) -> String {
        const TYPE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
        let mut xml = format!(
            "{}<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">",
            super::parts::XML
        );
        for (id, kind, target) in [
            ("rId1", "styles", "styles.xml"),
            ("rId2", "numbering", "numbering.xml"),
            ("rId3", "settings", "settings.xml"),
            ("rId4", "header", "header1.xml"),
            ("rId5", "footer", "footer1.xml"),
        ] {
            xml.push_str(&format!("<Relationship Id=\"{id}\" Type=\"{TYPE}/{kind}\" Target=\"{target}\"/>"));
        }
        for number in &self.pictures {
            let end = pictures.all.get(*number).map_or("png", |picture| picture.end);
            xml.push_str(&format!(
                "<Relationship Id=\"rPic{number}\" Type=\"{TYPE}/image\" Target=\"media/image{number}.{end}\"/>"
            ));
        }
        for (number, target) in self.links.iter().enumerate() {
            xml.push_str(&format!(
                "<Relationship Id=\"rLink{}\" Type=\"{TYPE}/hyperlink\" Target=\"{}\" TargetMode=\"External\"/>",
                number + 1,
                escape(target)
            ));
        }
        xml.push_str("</Relationships>");
        xml
    }
}
