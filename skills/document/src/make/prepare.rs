//! From a text to boxes with styles, fonts and paper.

use std::path::Path;

use super::css::cascade::Cascade;
use super::css::sheet::Sheet;
use super::css::style::{Family, LineHeight, Style};
use super::css::value::Color;
use super::dom::{Dom, Element, Node as Source2};
use super::font::Fonts;
use super::markdown::{self, escape};
use super::paper::{self, PAGE, Paper, Texts};
use super::picture::Pictures;
use super::setup::{Setup, Source};
use super::tree::{self, Content, Entry, Node, Tree};
use crate::error::{Error, Result};
use crate::limits;

/// Points of 2 cm.
const MARGIN: f32 = 56.69;

/// Everything that writers need.
#[derive(Debug)]
pub struct Prepared {
    pub tree: Tree,
    pub pictures: Pictures,
    pub fonts: Fonts,
    pub paper: Paper,
    pub texts: Texts,
    pub background: Option<Color>,
    pub root_style: Style,
    pub title: String,
    pub author: String,
    pub language: String,
    /// Levels of headings in contents, if the document is to have some, and their title.
    pub contents: Option<(u8, String)>,
    /// The name of a font that the document asks for.
    pub font_name: Option<String>,
    pub notes: Vec<String>,
}

/// Reads the text and its style sheets, and builds the boxes; `with_pages` says whether its pages are made here, and with
/// them contents if they are asked for.
pub fn prepare(source: Source, setup: &Setup, with_pages: bool) -> Result<Prepared> {
    let mut setup = setup.clone();
    let mut notes = Vec::new();
    let is_markdown = matches!(source, Source::Markdown(_));
    let text = match source {
        Source::Markdown(text) | Source::Html(text) => text,
    };
    let limit = if is_markdown { limits::MARKDOWN_BYTES } else { limits::HTML_BYTES };
    if text.len() > limit {
        return Err(Error::limit(&format!("it has {} bytes of text", text.len()), limit));
    }
    let html = match source {
        Source::Html(html) => html.to_owned(),
        Source::Markdown(text) => {
            let (html, facts) = markdown::to_html(text, !setup.is_exact);
            // The command's facts come last and win.
            let given = std::mem::replace(&mut setup.facts, facts);
            setup.facts.extend(given);
            html
        }
    };
    take_facts(&mut setup, &mut notes);
    // Hebrew, Arabic and their neighbours; then the scripts of India and the south-east of Asia.
    if with_pages && text.contains(|c| matches!(c, '\u{590}'..='\u{109f}')) {
        notes.push("letters that are written from right to left or joined are not placed as they should be; DOCX has no such limit".to_owned());
    }
    let html = format!("{}{html}", title_block(&setup));
    let mut dom = Dom::parse(&html);
    if dom.is_cut {
        notes.push(format!(
            "the document has more than {} elements or {} bytes of text: the rest is left out",
            limits::ELEMENTS,
            limits::SHOWN_BYTES
        ));
    }
    if setup.is_numbered {
        number_headings(&mut dom);
    }

    let mut fonts =
        Fonts::new(Some(if setup.folder.as_os_str().is_empty() { ".".into() } else { setup.folder.clone() }));
    let mut family = Family::Sans;
    if let Some(name) = &setup.main_font {
        family = main_font(&mut fonts, name, &setup, &mut notes)?;
    }
    let mut sheet = Sheet::default();
    sheet.parse(include_str!("css/default.css"));
    if is_markdown {
        sheet.parse(include_str!("css/markdown.css"));
    }
    let own = sheet.rules.len();
    for text in page_sheets(&dom, &setup, &mut notes) {
        sheet.parse(&text);
    }
    for text in &setup.sheets {
        sheet.parse(text);
    }
    for (name, source) in std::mem::take(&mut sheet.faces) {
        if let Err(error) = fonts.add(&setup.folder.join(&source), &name) {
            notes.push(error.to_string());
        }
    }
    let mut texts = Texts::default();
    if is_markdown && !setup.is_unnumbered && setup.texts == Texts::default() {
        texts.foot[1] = PAGE.to_string();
    }
    paper::texts(&sheet, &mut texts);
    for (given, text) in [(&setup.texts.head, &mut texts.head), (&setup.texts.foot, &mut texts.foot)] {
        for (given, text) in given.iter().zip(text.iter_mut()).filter(|(given, _)| !given.is_empty()) {
            text.clone_from(given);
        }
    }
    let margin = setup.default_margin.unwrap_or(if is_markdown { MARGIN * 1.15 } else { MARGIN });
    let paper = paper::paper(&sheet, margin, setup.size, setup.is_landscape, setup.margin);

    let names = fonts.names();
    let cascade = Cascade::new(sheet, own, names);
    let mut root_style = Style::root(family, setup.font_size.unwrap_or(if is_markdown { 10.5 } else { 12.0 }));
    if let Some(factor) = setup.line_height {
        root_style.line_height = LineHeight::Factor(factor);
    }
    let mut pictures = Pictures::new(setup.folder.clone());
    let mut tree = tree::build(&dom, &cascade, &mut pictures, root_style.clone());
    if with_pages && setup.has_contents && !tree.headings.is_empty() {
        let contents = contents(&tree.headings, &setup);
        let built = tree::build(&Dom::parse(&contents), &cascade, &mut pictures, root_style.clone());
        insert_contents(&mut tree.root, built.root);
    }
    let background = page_background(&dom, &cascade, &root_style);
    let fact = |name: &str, own: &str| setup.fact(name).unwrap_or(own).to_owned();
    Ok(Prepared {
        title: fact(
            "title",
            if tree.title.is_empty() { setup.fact("file-title").unwrap_or_default() } else { &tree.title },
        ),
        author: fact("author", &tree.author),
        language: fact("lang", &tree.language),
        tree,
        pictures,
        fonts,
        paper,
        texts,
        background,
        root_style,
        contents: setup.has_contents.then(|| (setup.contents_depth.unwrap_or(3), fact("toc-title", "Contents"))),
        font_name: setup.main_font.clone(),
        notes,
    })
}

/// Takes over settings of the look from the head of Markdown, unless the command gives them.
fn take_facts(setup: &mut Setup, notes: &mut Vec<String>) {
    let fact = |setup: &Setup, name: &str| setup.fact(name).map(str::to_owned);
    if setup.size.is_none() {
        setup.size = fact(setup, "papersize").and_then(|name| paper::named(&name));
    }
    if setup.font_size.is_none() {
        setup.font_size = fact(setup, "fontsize").and_then(|size| paper::points(&size, "pt"));
    }
    if setup.main_font.is_none() {
        setup.main_font = fact(setup, "mainfont");
    }
    if let Some(geometry) = fact(setup, "geometry")
        && let Err(error) = take_geometry(setup, &geometry, false)
    {
        notes.push(error.to_string());
    }
    let is_true = |value: Option<String>| value.as_deref().is_some_and(|value| matches!(value, "true" | "yes"));
    setup.has_contents |= is_true(fact(setup, "toc"));
    setup.is_numbered |= is_true(fact(setup, "numbersections")) || is_true(fact(setup, "number-sections"));
}

/// Reads `margin=2cm, landscape`. `wins` says whether it counts more than what is there.
pub fn take_geometry(setup: &mut Setup, geometry: &str, wins: bool) -> Result<()> {
    for part in geometry.split([',', ';']).map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once(['=', ':']).unwrap_or((part, ""));
        let (name, value) = (name.trim(), value.trim());
        let sides: &[usize] = match name {
            "margin" => &[0, 1, 2, 3],
            "top" | "tmargin" => &[0],
            "right" | "rmargin" | "outer" => &[1],
            "bottom" | "bmargin" => &[2],
            "left" | "lmargin" | "inner" => &[3],
            "hmargin" => &[1, 3],
            "vmargin" => &[0, 2],
            "landscape" => {
                setup.is_landscape = true;
                continue;
            }
            "portrait" => continue,
            name => {
                if let Some(size) = paper::named(name) {
                    setup.size = Some(size);
                    continue;
                }
                return Err(Error::new(format!(
                    "geometry: `{name}` is not known; there are margin, top, right, bottom, left and landscape"
                )));
            }
        };
        let points = paper::points(value, "pt")
            .ok_or_else(|| Error::new(format!("geometry: `{value}` is not a length such as 2cm")))?;
        for side in sides {
            if wins || setup.margin[*side].is_none() {
                setup.margin[*side] = Some(points);
            }
        }
    }
    Ok(())
}

/// Title, author and date above the text.
fn title_block(setup: &Setup) -> String {
    let part = |name: &str, class: &str| {
        let value = setup.fact(name).map(str::trim).filter(|value| !value.is_empty());
        value.map_or(String::new(), |value| format!("<p class=\"{class}\">{}</p>", escape(value)))
    };
    let parts = [
        part("title", "kiso-title"),
        part("subtitle", "kiso-subtitle"),
        part("author", "kiso-by"),
        part("date", "kiso-by"),
    ]
    .concat();
    if parts.is_empty() || setup.fact("title").is_none() {
        return String::new();
    }
    format!("<div class=\"kiso-head\">{parts}</div>")
}

fn main_font(fonts: &mut Fonts, name: &str, setup: &Setup, notes: &mut Vec<String>) -> Result<Family> {
    let candidates = [setup.folder.join(name), Path::new(name).to_path_buf()];
    if let Some(path) = candidates.iter().find(|path| path.is_file()) {
        return fonts.add(path, name);
    }
    let lower = name.to_lowercase();
    if [".ttf", ".otf", ".ttc"].iter().any(|end| lower.ends_with(end)) {
        return Err(Error::new(format!("font {name}: no such file")));
    }
    let family = super::css::apply::family(name, &[]);
    notes.push(format!(
        "the font {name} is not here, so that a built-in one is used: name the file of a font to have it"
    ));
    Ok(family.unwrap_or(Family::Sans))
}

/// The style sheets in a page and beside it.
fn page_sheets(dom: &Dom, setup: &Setup, notes: &mut Vec<String>) -> Vec<String> {
    let mut sheets = Vec::new();
    for id in 0..dom.nodes.len() {
        let Some(element) = dom.element(id) else { continue };
        let media = element.get("media").unwrap_or_default();
        if media.contains("screen") && !media.contains("print") {
            continue;
        }
        match element.name.as_str() {
            "style" => sheets.push(dom.text(id)),
            "link" if element.get("rel").is_some_and(|rel| rel.eq_ignore_ascii_case("stylesheet")) => {
                let Some(source) = element.get("href") else { continue };
                if source.starts_with("http") || source.starts_with("//") {
                    notes.push(format!("the style sheet {source} is on the network and is left out"));
                    continue;
                }
                match crate::answer::load(&setup.folder.join(source)) {
                    Ok(bytes) if bytes.len() <= limits::MARKDOWN_BYTES => {
                        sheets.push(crate::charset::decode(&bytes, Some("utf-8")));
                    }
                    Ok(_) => notes.push(format!("the style sheet {source} is too large and is left out")),
                    Err(error) => notes.push(format!("the style sheet {source} is left out: {error}")),
                }
            }
            _ => {}
        }
    }
    sheets
}

/// Numbers before headings: `1.2`.
fn number_headings(dom: &mut Dom) {
    let level = |dom: &Dom, id: usize| match dom.name(id).as_bytes() {
        [b'h', digit @ b'1'..=b'6'] => Some(usize::from(digit - b'0')),
        _ => None,
    };
    let all: Vec<(usize, usize)> = (0..dom.nodes.len()).filter_map(|id| Some((id, level(dom, id)?))).collect();
    let first = all.iter().map(|(_, level)| *level).min().unwrap_or(1);
    let mut counts = [0_usize; 7];
    for (id, level) in all {
        counts[level] += 1;
        counts[level + 1..].fill(0);
        let number: Vec<String> = counts[first..=level].iter().map(usize::to_string).collect();
        let text = dom.nodes.len();
        dom.nodes.push(Source2::Text(format!("{}  ", number.join(".")).replace("  ", "\u{a0}\u{a0}")));
        dom.parents.push(id);
        dom.places.push(0);
        dom.counts.push(0);
        if let Some(Source2::Element(Element { children, .. })) = dom.nodes.get_mut(id) {
            children.insert(0, text);
        }
    }
}

/// Contents as HTML, with the numbers of pages.
fn contents(headings: &[Entry], setup: &Setup) -> String {
    let first = headings.iter().map(|entry| entry.level).min().unwrap_or(1);
    let depth = setup.contents_depth.unwrap_or(3);
    let title = setup.fact("toc-title").unwrap_or("Contents");
    let mut html = format!("<div class=\"kiso-toc\"><p class=\"kiso-toc-title\">{}</p>", escape(title));
    for entry in headings.iter().filter(|entry| entry.level < first + depth) {
        html.push_str(&format!(
            "<div class=\"kiso-toc-line\" style=\"margin-left:{}em\"><a href=\"#{id}\">{}</a><kiso-page-of id=\"{id}\"></kiso-page-of></div>",
            f32::from(entry.level - first) * 1.4,
            escape(&entry.text),
            id = escape(&entry.id)
        ));
    }
    html.push_str("</div>");
    html
}

/// Puts the contents below the title.
fn insert_contents(root: &mut Node, contents: Node) {
    let Content::Blocks(made) = contents.content else { return };
    let mut node = root;
    loop {
        let Content::Blocks(nodes) = &mut node.content else { return };
        let is_wrapper = nodes.len() == 1 && matches!(nodes[0].content, Content::Blocks(_));
        if !is_wrapper {
            let has_title = nodes
                .first()
                .is_some_and(|first| first.style.align == super::css::style::Align::Center && first.id.is_none());
            let at = usize::from(has_title);
            nodes.splice(at..at, made);
            return;
        }
        node = &mut nodes[0];
    }
}

/// The background of the page is that of its outermost element.
fn page_background(dom: &Dom, cascade: &Cascade, root: &Style) -> Option<Color> {
    let mut style = root.clone();
    for name in ["html", "body"] {
        if let Some(id) = dom.find(name) {
            style = cascade.style(dom, id, &style);
            if style.background.is_some() {
                break;
            }
        }
    }
    style.background.filter(|color| *color != Color(255, 255, 255))
}
