//! Writes pages as PDF.

mod draw;
mod fonts;

use std::collections::HashMap;

use pdf_writer::types::{ActionType, AnnotationType};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};

use super::css::value::Color;
use super::font::Fonts;
use super::layout::Line;
use super::paginate::Pages;
use super::paper::Paper;
use super::picture::{Picture, Pictures, Pixels};
use super::tree::{Entry, Text};
use fonts::Used;

/// Everything that the writer needs beside pages.
pub struct Job<'a> {
    pub paper: &'a Paper,
    pub fonts: &'a mut Fonts,
    pub pictures: &'a Pictures,
    pub headings: &'a [Entry],
    pub background: Option<Color>,
    pub title: &'a str,
    pub author: &'a str,
    pub language: &'a str,
    /// For each page the lines in its margins, with their places from its top left corner.
    pub margins: Vec<Vec<(Line, f32, f32)>>,
}

/// A link with the place on its page.
struct Link {
    rect: Rect,
    target: Text,
}

struct Ids(i32);

impl Ids {
    fn next(&mut self) -> Ref {
        self.0 += 1;
        Ref::new(self.0)
    }
}

/// The bytes of a PDF file.
pub fn write(pages: &Pages, mut job: Job) -> Vec<u8> {
    let mut pdf = Pdf::new();
    let mut ids = Ids(0);
    let (catalog, tree, info) = (ids.next(), ids.next(), ids.next());
    let page_ids: Vec<Ref> = (0..pages.count).map(|_| ids.next()).collect();
    let mut used = Used::default();
    let mut pictures: HashMap<usize, Ref> = HashMap::new();
    let by_page = by_page(pages, job.paper.inner_height());
    for (number, drawn) in by_page.iter().enumerate() {
        let mut drawer = draw::Drawer::new(&mut job, pages, &mut used, number);
        drawer.page(drawn);
        let (content, links, shown) = drawer.finish();
        let content_id = ids.next();
        let link_ids: Vec<Ref> =
            links.iter().map(|link| annotation(&mut pdf, &mut ids, link, (pages, &page_ids), job.paper)).collect();
        let packed = deflate(&content);
        pdf.stream(content_id, &packed).filter(Filter::FlateDecode);
        let picture_ids: Vec<(usize, Ref)> =
            shown.into_iter().map(|number| (number, *pictures.entry(number).or_insert_with(|| ids.next()))).collect();
        let mut page = pdf.page(page_ids[number]);
        page.media_box(Rect::new(0.0, 0.0, job.paper.width, job.paper.height));
        page.parent(tree).contents(content_id);
        if !link_ids.is_empty() {
            page.annotations(link_ids);
        }
        let mut resources = page.resources();
        let mut objects = resources.x_objects();
        for (number, id) in picture_ids {
            objects.pair(Name(format!("P{number}").as_bytes()), id);
        }
        objects.finish();
        let mut fonts = resources.fonts();
        for (number, id) in used.ids(&mut ids) {
            fonts.pair(Name(format!("F{number}").as_bytes()), id);
        }
    }
    pdf.pages(tree).kids(page_ids.iter().copied()).count(i32::try_from(page_ids.len()).unwrap_or(i32::MAX));
    let mut numbers: Vec<(usize, Ref)> = pictures.into_iter().collect();
    numbers.sort_unstable();
    for (number, id) in numbers {
        if let Some(picture) = job.pictures.all.get(number) {
            write_picture(&mut pdf, &mut ids, id, picture);
        }
    }
    used.write(&mut pdf, &mut ids, job.fonts);
    let outline = outline(&mut pdf, &mut ids, job.headings, (pages, &page_ids), job.paper);
    let mut root = pdf.catalog(catalog);
    root.pages(tree);
    if let Some(outline) = outline {
        root.outlines(outline);
    }
    if !job.language.is_empty() {
        root.lang(TextStr(job.language));
    }
    if !job.title.is_empty() {
        root.viewer_preferences().display_doc_title(true);
    }
    root.finish();
    let mut facts = pdf.document_info(info);
    if !job.title.is_empty() {
        facts.title(TextStr(job.title));
    }
    if !job.author.is_empty() {
        facts.author(TextStr(job.author));
    }
    facts.producer(TextStr("kiso"));
    facts.finish();
    pdf.finish().to_vec()
}

/// For each page the numbers of its shapes, in order.
fn by_page(pages: &Pages, height: f32) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new(); pages.count];
    let height = f64::from(height);
    for (number, drawn) in pages.drawn.iter().enumerate() {
        let first = ((drawn.top + 0.02) / height).floor().max(0.0) as usize;
        let last = ((drawn.bottom - 0.05) / height).floor().max(0.0) as usize;
        for page in found.iter_mut().take(last.max(first) + 1).skip(first) {
            page.push(number);
        }
    }
    found
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

fn annotation(pdf: &mut Pdf, ids: &mut Ids, link: &Link, (pages, page_ids): (&Pages, &[Ref]), paper: &Paper) -> Ref {
    let id = ids.next();
    let mut annotation = pdf.indirect(id).start::<pdf_writer::writers::Annotation>();
    annotation.subtype(AnnotationType::Link).rect(link.rect).border(0.0, 0.0, 0.0, None);
    match link.target.strip_prefix('#') {
        Some(name) => {
            if let Some((page, y)) = pages.anchors.get(name)
                && let Some(target) = page_ids.get(*page)
            {
                let mut action = annotation.action();
                action.action_type(ActionType::GoTo).destination().page(*target).xyz(0.0, paper.from_top(*y), None);
            }
        }
        None => {
            annotation.action().action_type(ActionType::Uri).uri(Str(link.target.as_bytes()));
        }
    }
    id
}

/// Headings as bookmarks.
fn outline(
    pdf: &mut Pdf,
    ids: &mut Ids,
    headings: &[Entry],
    (pages, page_ids): (&Pages, &[Ref]),
    paper: &Paper,
) -> Option<Ref> {
    if headings.is_empty() {
        return None;
    }
    let root = ids.next();
    let item_ids: Vec<Ref> = headings.iter().map(|_| ids.next()).collect();
    // For each heading the one above it; `None` is the root.
    let mut parents: Vec<Option<usize>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (number, entry) in headings.iter().enumerate() {
        while open.last().is_some_and(|last| headings[*last].level >= entry.level) {
            open.pop();
        }
        parents.push(open.last().copied());
        open.push(number);
    }
    let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    parents.iter().enumerate().for_each(|(number, parent)| children.entry(*parent).or_default().push(number));
    for (number, entry) in headings.iter().enumerate() {
        let siblings = &children[&parents[number]];
        let place = siblings.binary_search(&number).unwrap_or(0);
        let mut item = pdf.outline_item(item_ids[number]);
        item.title(TextStr(&entry.text)).parent(parents[number].map_or(root, |parent| item_ids[parent]));
        if let Some(before) = place.checked_sub(1) {
            item.prev(item_ids[siblings[before]]);
        }
        if let Some(after) = siblings.get(place + 1) {
            item.next(item_ids[*after]);
        }
        if let Some(own) = children.get(&Some(number)) {
            item.first(item_ids[own[0]]).last(item_ids[own[own.len() - 1]]);
            item.count(-i32::try_from(own.len()).unwrap_or(1));
        }
        let (page, y) = pages.anchors.get(&entry.id).copied().unwrap_or((0, 0.0));
        if let Some(page) = page_ids.get(page) {
            item.dest().page(*page).xyz(0.0, paper.from_top(y), None);
        }
    }
    let top = &children[&None];
    let mut writer = pdf.outline(root);
    writer.first(item_ids[top[0]]).last(item_ids[top[top.len() - 1]]);
    writer.count(i32::try_from(top.len()).unwrap_or(1));
    Some(root)
}

fn write_picture(pdf: &mut Pdf, ids: &mut Ids, id: Ref, picture: &Picture) {
    let side = |pixels: u32| i32::try_from(pixels).unwrap_or(i32::MAX);
    let (width, height) = (side(picture.stored.0), side(picture.stored.1));
    match &picture.pixels {
        Pixels::Jpeg { components, is_inverted, .. } => {
            let mut image = pdf.image_xobject(id, &picture.file);
            image.width(width).height(height).bits_per_component(8).filter(Filter::DctDecode);
            match components {
                1 => image.color_space().device_gray(),
                4 => image.color_space().device_cmyk(),
                _ => image.color_space().device_rgb(),
            }
            if *is_inverted {
                image.decode([1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
            }
        }
        Pixels::Samples { rgb, alpha } => {
            let mask = alpha.as_ref().map(|alpha| (ids.next(), alpha));
            let mut image = pdf.image_xobject(id, rgb);
            image.width(width).height(height).bits_per_component(8).filter(Filter::FlateDecode);
            image.color_space().device_rgb();
            if let Some((mask, _)) = mask {
                image.s_mask(mask);
            }
            image.finish();
            if let Some((mask, alpha)) = mask {
                let mut image = pdf.image_xobject(mask, alpha);
                image.width(width).height(height).bits_per_component(8).filter(Filter::FlateDecode);
                image.color_space().device_gray();
            }
        }
    }
}

/// Adds a colour to fill with.
fn fill(content: &mut Content, Color(red, green, blue): Color) {
    let [red, green, blue] = [red, green, blue].map(|part| f32::from(part) / 255.0);
    content.set_fill_rgb(red, green, blue);
}
