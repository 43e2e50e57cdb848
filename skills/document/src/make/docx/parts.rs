//! The parts of a package that are mostly the same.

use super::body::List;
use super::styles::{NAMESPACE, hex};
use super::{escape, twips};
use crate::make::css::style::Marker;
use crate::make::css::value::Color;
use crate::make::paper::{PAGE, Paper, TOTAL, Texts};

pub const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";

pub const CONTENT_TYPES: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n\
<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\"><Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\
<Default Extension=\"xml\" ContentType=\"application/xml\"/><Default Extension=\"png\" ContentType=\"image/png\"/><Default Extension=\"jpeg\" ContentType=\"image/jpeg\"/>\
<Default Extension=\"gif\" ContentType=\"image/gif\"/>\
<Override PartName=\"/word/document.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml\"/>\
<Override PartName=\"/word/styles.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml\"/>\
<Override PartName=\"/word/numbering.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.wordprocessingml.numbering+xml\"/>\
<Override PartName=\"/word/settings.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.wordprocessingml.settings+xml\"/>\
<Override PartName=\"/word/header1.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.wordprocessingml.header+xml\"/>\
<Override PartName=\"/word/footer1.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.wordprocessingml.footer+xml\"/>\
<Override PartName=\"/docProps/core.xml\" ContentType=\"application/vnd.openxmlformats-package.core-properties+xml\"/></Types>";

pub const RELATIONS: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n\
<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">\
<Relationship Id=\"rId1\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument\" Target=\"word/document.xml\"/>\
<Relationship Id=\"rId2\" Type=\"http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties\" Target=\"docProps/core.xml\"/></Relationships>";

/// Title, author and language. It has no time.
pub fn core(title: &str, author: &str, language: &str) -> String {
    let part = |name: &str, value: &str| {
        if value.is_empty() { String::new() } else { format!("<dc:{name}>{}</dc:{name}>", escape(value)) }
    };
    format!(
        "{XML}<cp:coreProperties xmlns:cp=\"http://schemas.openxmlformats.org/package/2006/metadata/core-properties\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">{}{}{}</cp:coreProperties>",
        part("title", title),
        part("creator", author),
        part("language", language)
    )
}

/// The document before and after its body.
pub fn document(paper: &Paper, texts: &Texts, background: Option<Color>) -> (String, String) {
    let background = background.map_or(String::new(), |color| format!("<w:background w:color=\"{}\"/>", hex(color)));
    let reference = |name: &str, id: &str, rows: &[String; 3]| {
        let is_there = rows.iter().any(|text| !text.is_empty());
        if is_there { format!("<w:{name}Reference w:type=\"default\" r:id=\"{id}\"/>") } else { String::new() }
    };
    let orientation = if paper.width > paper.height { " w:orient=\"landscape\"" } else { "" };
    let [top, right, bottom, left] = paper.margin.map(twips);
    let head = format!(
        "{XML}<w:document {NAMESPACE} xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\" \
         xmlns:wp=\"http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing\" xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\" \
         xmlns:pic=\"http://schemas.openxmlformats.org/drawingml/2006/picture\">{background}<w:body>"
    );
    let foot = format!(
        "<w:sectPr>{}{}\
         <w:pgSz w:w=\"{}\" w:h=\"{}\"{orientation}/><w:pgMar w:top=\"{top}\" w:right=\"{right}\" w:bottom=\"{bottom}\" w:left=\"{left}\" w:header=\"{}\" w:footer=\"{}\" w:gutter=\"0\"/></w:sectPr></w:body></w:document>",
        reference("header", "rId4", &texts.head),
        reference("footer", "rId5", &texts.foot),
        twips(paper.width),
        twips(paper.height),
        top * 2 / 5,
        bottom * 2 / 5,
    );
    (head, foot)
}

pub fn settings(has_background: bool) -> String {
    let shape = if has_background { "<w:displayBackgroundShape/>" } else { "" };
    format!(
        "{XML}<w:settings {NAMESPACE}>{shape}<w:defaultTabStop w:val=\"720\"/><w:compat><w:compatSetting w:name=\"compatibilityMode\" w:uri=\"http://schemas.microsoft.com/office/word\" w:val=\"15\"/></w:compat></w:settings>"
    )
}

/// A header or footer: left, center and right.
pub fn margin(element: &str, rows: &[String; 3], paper: &Paper) -> String {
    let style = if element == "hdr" { "Header" } else { "Footer" };
    let width = twips(paper.inner_width());
    let mut runs = String::new();
    for (column, text) in rows.iter().enumerate() {
        if column > 0 {
            runs.push_str("<w:r><w:tab/></w:r>");
        }
        for part in text.split_inclusive([PAGE, TOTAL]) {
            let words = part.trim_end_matches([PAGE, TOTAL]);
            if !words.is_empty() {
                runs.push_str(&format!("<w:r><w:t xml:space=\"preserve\">{}</w:t></w:r>", escape(words)));
            }
            let field = match part.chars().last() {
                Some(PAGE) => "PAGE",
                Some(TOTAL) => "NUMPAGES",
                _ => continue,
            };
            runs.push_str(&format!("<w:fldSimple w:instr=\" {field} \"><w:r><w:t>1</w:t></w:r></w:fldSimple>"));
        }
    }
    format!(
        "{XML}<w:{element} {NAMESPACE}><w:p><w:pPr><w:pStyle w:val=\"{style}\"/><w:tabs><w:tab w:val=\"center\" w:pos=\"{}\"/><w:tab w:val=\"right\" w:pos=\"{width}\"/></w:tabs></w:pPr>{runs}</w:p></w:{element}>",
        width / 2
    )
}

/// Bullets and numbers. Each list counts by itself.
pub fn numbering(lists: &[List]) -> String {
    let mut xml = format!("{XML}<w:numbering {NAMESPACE}>");
    for (number, is_ordered) in [(1, false), (2, true)] {
        xml.push_str(&format!("<w:abstractNum w:abstractNumId=\"{number}\"><w:multiLevelType w:val=\"multilevel\"/>"));
        for level in 0..9 {
            let marker = match (is_ordered, level % 3) {
                (false, 0) => Marker::Disc,
                (false, 1) => Marker::Circle,
                (false, _) => Marker::Square,
                (true, _) => Marker::Decimal,
            };
            xml.push_str(&level_xml(level, marker));
        }
        xml.push_str("</w:abstractNum>");
    }
    for (number, list) in lists.iter().enumerate() {
        xml.push_str(&format!(
            "<w:num w:numId=\"{}\"><w:abstractNumId w:val=\"{}\"/>",
            number + 1,
            1 + i32::from(list.is_ordered)
        ));
        if list.is_ordered {
            let own = if list.marker == Marker::Decimal { String::new() } else { level_xml(list.level, list.marker) };
            let (level, start) = (list.level, list.start);
            xml.push_str(&format!(
                "<w:lvlOverride w:ilvl=\"{level}\"><w:startOverride w:val=\"{start}\"/>{own}</w:lvlOverride>"
            ));
        }
        xml.push_str("</w:num>");
    }
    xml.push_str("</w:numbering>");
    xml
}

fn level_xml(level: usize, marker: Marker) -> String {
    let number = format!("%{}.", level + 1);
    let (format, text) = match marker {
        Marker::Circle => ("bullet", "◦"),
        Marker::Square => ("bullet", "▪"),
        Marker::Disc | Marker::None => ("bullet", "•"),
        Marker::Decimal => ("decimal", number.as_str()),
        Marker::LowerAlpha => ("lowerLetter", number.as_str()),
        Marker::UpperAlpha => ("upperLetter", number.as_str()),
        Marker::LowerRoman => ("lowerRoman", number.as_str()),
        Marker::UpperRoman => ("upperRoman", number.as_str()),
    };
    format!(
        "<w:lvl w:ilvl=\"{level}\"><w:start w:val=\"1\"/><w:numFmt w:val=\"{format}\"/><w:lvlText w:val=\"{text}\"/><w:lvlJc w:val=\"left\"/><w:pPr><w:ind w:left=\"{}\" w:hanging=\"360\"/></w:pPr></w:lvl>",
        720 + level * 360
    )
}
