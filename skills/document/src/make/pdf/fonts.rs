//! The fonts of a file, cut to the glyphs that it uses.

use std::collections::BTreeMap;

use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Filter, Finish, Name, Pdf, Rect, Ref, Str};
use subsetter::GlyphRemapper;

use super::{Ids, deflate};
use crate::make::font::{Fonts, Loaded};

const SYSTEM: SystemInfo = SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// One font.
#[derive(Debug)]
struct Own {
    glyphs: GlyphRemapper,
    /// For each new number the old one and its character.
    chars: BTreeMap<u16, (u16, char)>,
    id: Option<Ref>,
}

/// The fonts that were drawn with.
#[derive(Debug, Default)]
pub struct Used(BTreeMap<usize, Own>);

impl Used {
    /// The number of a glyph in the font that is written.
    pub fn add(&mut self, font: usize, glyph: u16, c: char) -> u16 {
        let own = self.0.entry(font).or_insert_with(|| Own {
            glyphs: GlyphRemapper::new(),
            chars: BTreeMap::new(),
            id: None,
        });
        let new = own.glyphs.remap(glyph);
        // The box for what has no glyph stands for many characters.
        own.chars.entry(new).or_insert((glyph, if glyph == 0 { '\u{fffd}' } else { c }));
        new
    }

    /// Numbers and objects of all fonts so far.
    pub fn ids(&mut self, ids: &mut Ids) -> Vec<(usize, Ref)> {
        self.0.iter_mut().map(|(number, own)| (*number, *own.id.get_or_insert_with(|| ids.next()))).collect()
    }

    pub fn write(&mut self, pdf: &mut Pdf, ids: &mut Ids, fonts: &Fonts) {
        for (number, own) in &self.0 {
            if let (Some(loaded), Some(id)) = (fonts.get(*number), own.id) {
                write(pdf, ids, id, (*number, loaded), own);
            }
        }
    }
}

fn write(pdf: &mut Pdf, ids: &mut Ids, id: Ref, (number, loaded): (usize, &Loaded), own: &Own) {
    let (cid, descriptor, cmap, file) = (ids.next(), ids.next(), ids.next(), ids.next());
    let face = &loaded.face;
    let scale = 1_000.0 / loaded.em();
    let data = subsetter::subset(loaded.data, loaded.number, &own.glyphs).unwrap_or_else(|_| loaded.data.to_vec());
    let cff = ttf_parser::RawFace::parse(&data, 0).ok().and_then(|raw| raw.table(ttf_parser::Tag::from_bytes(b"CFF ")));
    let is_cff = cff.is_some();
    let family = face.names().into_iter().find(|name| name.name_id == 6).and_then(|name| name.to_string());
    let family: String =
        family.unwrap_or_default().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(60).collect();
    // Six letters say that the font is cut; the number of the font makes them different.
    let tag: String = (0..6).map(|place| char::from(b'A' + (number / 26_usize.pow(place) % 26) as u8)).collect();
    let base = format!("{tag}+{}", if family.is_empty() { "Font" } else { &family });
    let encoding = if is_cff { format!("{base}-Identity-H") } else { base.clone() };

    pdf.type0_font(id)
        .base_font(Name(encoding.as_bytes()))
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(cid)
        .to_unicode(cmap);

    let mut font = pdf.cid_font(cid);
    font.subtype(if is_cff { CidFontType::Type0 } else { CidFontType::Type2 });
    font.base_font(Name(base.as_bytes())).system_info(SYSTEM).font_descriptor(descriptor).default_width(0.0);
    if !is_cff {
        font.cid_to_gid_map_predefined(Name(b"Identity"));
    }
    let mut widths = font.widths();
    for (new, (old, _)) in &own.chars {
        let width = f32::from(face.glyph_hor_advance(ttf_parser::GlyphId(*old)).unwrap_or(0)) * scale;
        widths.consecutive(*new, [width]);
    }
    widths.finish();
    font.finish();

    let bounds = face.global_bounding_box();
    let mut flags = FontFlags::SYMBOLIC;
    flags.set(FontFlags::ITALIC, face.is_italic());
    flags.set(FontFlags::FIXED_PITCH, face.is_monospaced());
    let mut writer = pdf.font_descriptor(descriptor);
    writer.name(Name(base.as_bytes())).flags(flags).bbox(Rect::new(
        f32::from(bounds.x_min) * scale,
        f32::from(bounds.y_min) * scale,
        f32::from(bounds.x_max) * scale,
        f32::from(bounds.y_max) * scale,
    ));
    writer.italic_angle(face.italic_angle()).ascent(f32::from(face.ascender()) * scale);
    writer.descent(f32::from(face.descender()) * scale);
    writer.cap_height(face.capital_height().map_or(700.0, |height| f32::from(height) * scale)).stem_v(80.0);
    if is_cff {
        writer.font_file3(file);
    } else {
        writer.font_file2(file);
    }
    writer.finish();

    let mut map = UnicodeCmap::new(Name(b"Custom"), SYSTEM);
    own.chars.iter().for_each(|(new, (_, c))| map.pair(*new, *c));
    let packed = deflate(&map.finish());
    pdf.cmap(cmap, &packed).filter(Filter::FlateDecode);

    let bytes = cff.unwrap_or(&data);
    let packed = deflate(bytes);
    let mut stream = pdf.stream(file, &packed);
    stream.filter(Filter::FlateDecode);
    if is_cff {
        stream.pair(Name(b"Subtype"), Name(b"CIDFontType0C"));
    } else {
        stream.pair(Name(b"Length1"), i32::try_from(bytes.len()).unwrap_or(i32::MAX));
    }
}
