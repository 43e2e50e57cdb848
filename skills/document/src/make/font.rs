//! Fonts: those in this component, and those from files.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ttf_parser::{Face, GlyphId};

use super::css::style::Family;
use crate::error::{Error, Result};
use crate::limits;

const BUILTIN: [&[u8]; 12] = [
    include_bytes!("../../fonts/sans-regular.ttf.z"),
    include_bytes!("../../fonts/sans-bold.ttf.z"),
    include_bytes!("../../fonts/sans-italic.ttf.z"),
    include_bytes!("../../fonts/sans-bolditalic.ttf.z"),
    include_bytes!("../../fonts/serif-regular.ttf.z"),
    include_bytes!("../../fonts/serif-bold.ttf.z"),
    include_bytes!("../../fonts/serif-italic.ttf.z"),
    include_bytes!("../../fonts/serif-bolditalic.ttf.z"),
    include_bytes!("../../fonts/mono-regular.ttf.z"),
    include_bytes!("../../fonts/mono-bold.ttf.z"),
    include_bytes!("../../fonts/symbols.ttf.z"),
    include_bytes!("../../fonts/emoji.ttf.z"),
];

const SYMBOLS: usize = 10;
const EMOJI: usize = 11;

/// A font that is in memory as long as the program runs, since its tables are read in place.
#[derive(Debug)]
pub struct Loaded {
    pub data: &'static [u8],
    pub number: u32,
    pub face: Face<'static>,
}

impl Loaded {
    fn new(data: Vec<u8>, number: u32) -> Option<Self> {
        Face::parse(&data, number).ok()?;
        let data: &'static [u8] = Box::leak(data.into_boxed_slice());
        let face = Face::parse(data, number).ok()?;
        Some(Self { data, number, face })
    }

    pub fn em(&self) -> f32 {
        f32::from(self.face.units_per_em())
    }
}

fn builtin(number: usize) -> Option<&'static Loaded> {
    static LOADED: [OnceLock<Option<Loaded>>; BUILTIN.len()] = [const { OnceLock::new() }; BUILTIN.len()];
    let unpack = || {
        let mut data = Vec::new();
        flate2::read::ZlibDecoder::new(*BUILTIN.get(number)?).read_to_end(&mut data).ok()?;
        Loaded::new(data, 0)
    };
    LOADED.get(number)?.get_or_init(unpack).as_ref()
}

/// A glyph of a font, with what stands in for a missing style.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Glyph {
    /// Number of the font.
    pub font: u16,
    pub id: u16,
    /// In parts of the size of the font.
    pub advance: f32,
    pub is_slanted: bool,
    pub is_thickened: bool,
}

/// Family, whether it is bold, whether it is italic, character.
type Key = (Family, bool, bool, char);

#[derive(Debug, Default)]
pub struct Fonts {
    /// Beside the built-in ones: those of files.
    files: Vec<&'static Loaded>,
    /// Names by which style sheets call them, and their numbers in `files` by bold and italic.
    families: Vec<(String, [Option<usize>; 4])>,
    /// Directory that is searched for fonts with characters that no other has.
    folder: Option<PathBuf>,
    is_searched: bool,
    found: Vec<usize>,
    cache: HashMap<Key, Glyph>,
    /// Characters that no font has.
    pub missing: BTreeSet<char>,
}

impl Fonts {
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, ..Self::default() }
    }

    /// The names of the families from files.
    pub fn names(&self) -> Vec<String> {
        self.families.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Adds a font from a file under a name, with the bold and italic ones beside it.
    pub fn add(&mut self, path: &Path, name: &str) -> Result<Family> {
        let bytes = crate::answer::load(path).map_err(|e| Error::new(format!("font {}: {e}", path.display())))?;
        let number = self
            .load(bytes)
            .ok_or_else(|| Error::new(format!("font {}: it is not TrueType or OpenType", path.display())))?;
        let mut styles = [Some(number), None, None, None];
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let end = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let base = stem.trim_end_matches("Regular").trim_end_matches("regular").trim_end_matches(['-', '_']);
        let ends = [(1, ["Bold", "bold"]), (2, ["Italic", "italic"]), (3, ["BoldItalic", "bolditalic"])];
        for (index, ends) in ends {
            let beside = ends.iter().map(|style| path.with_file_name(format!("{base}-{style}.{end}")));
            let bytes = beside.filter(|path| path.is_file()).find_map(|path| crate::answer::load(&path).ok());
            styles[index] = bytes.and_then(|bytes| self.load(bytes));
        }
        let name = name.to_lowercase();
        self.families.retain(|(known, _)| *known != name);
        self.families.push((name, styles));
        Ok(Family::File(u8::try_from(self.families.len() - 1).unwrap_or(u8::MAX)))
    }

    fn load(&mut self, bytes: Vec<u8>) -> Option<usize> {
        if self.files.len() >= limits::FONTS {
            return None;
        }
        let loaded: &'static Loaded = Box::leak(Box::new(Loaded::new(bytes, 0)?));
        self.files.push(loaded);
        Some(BUILTIN.len() + self.files.len() - 1)
    }

    pub fn get(&self, number: usize) -> Option<&'static Loaded> {
        match number.checked_sub(BUILTIN.len()) {
            Some(file) => self.files.get(file).copied(),
            None => builtin(number),
        }
    }

    /// The font of a family and style, and whether it has to be thickened or slanted.
    fn face(&self, family: Family, bold: bool, italic: bool) -> (usize, bool, bool) {
        let style = usize::from(bold) + 2 * usize::from(italic);
        match family {
            Family::Sans => (style, false, false),
            Family::Serif => (4 + style, false, false),
            Family::Mono => (8 + usize::from(bold), false, italic),
            Family::File(number) => match self.families.get(usize::from(number)) {
                Some((_, styles)) => match (styles[style], styles[usize::from(bold)], styles[0]) {
                    (Some(found), ..) => (found, false, false),
                    (_, Some(found), _) => (found, false, italic),
                    (_, _, Some(found)) => (found, bold, italic),
                    _ => (style, false, false),
                },
                None => (style, false, false),
            },
        }
    }

    /// The font of the first choice, for the height of lines.
    pub fn primary(&self, family: Family, bold: bool, italic: bool) -> Option<&'static Loaded> {
        self.get(self.face(family, bold, italic).0)
    }

    /// The glyph of a character.
    pub fn glyph(&mut self, family: Family, bold: bool, italic: bool, c: char) -> Glyph {
        let key = (family, bold, italic, c);
        if let Some(glyph) = self.cache.get(&key) {
            return *glyph;
        }
        let glyph = self.find(family, bold, italic, c);
        self.cache.insert(key, glyph);
        glyph
    }

    fn find(&mut self, family: Family, bold: bool, italic: bool, c: char) -> Glyph {
        let (first, thickened, slanted) = self.face(family, bold, italic);
        let make = |fonts: &Self, font: usize, is_thickened: bool, is_slanted: bool, c: char| {
            let loaded = fonts.get(font)?;
            let id = loaded.face.glyph_index(c)?;
            let advance = f32::from(loaded.face.glyph_hor_advance(id).unwrap_or(0)) / loaded.em();
            Some(Glyph { font: short(font), id: id.0, advance, is_slanted, is_thickened })
        };
        let style = usize::from(bold) + 2 * usize::from(italic);
        let plain = plain(c);
        let known = make(self, first, thickened, slanted, c)
            .or_else(|| make(self, style, false, false, c))
            .or_else(|| make(self, SYMBOLS, bold, false, c))
            .or_else(|| make(self, EMOJI, false, false, c))
            .or_else(|| plain.and_then(|c| make(self, first, thickened, slanted, c)));
        if let Some(glyph) = known {
            return glyph;
        }
        self.search();
        let found = self.found.clone();
        if let Some(glyph) = found.iter().find_map(|font| make(self, *font, bold, italic, c)) {
            return glyph;
        }
        if self.missing.len() < 100 {
            self.missing.insert(c);
        }
        // An empty box of a font that has one.
        let missing = self.get(style).map(|loaded| {
            let advance = f32::from(loaded.face.glyph_hor_advance(GlyphId(0)).unwrap_or(0)) / loaded.em();
            Glyph { font: short(style), id: 0, advance, is_slanted: false, is_thickened: false }
        });
        missing.unwrap_or(Glyph { font: 0, id: 0, advance: 0.0, is_slanted: false, is_thickened: false })
    }

    /// Loads the fonts of the working directory, once and only if a character asks for them.
    fn search(&mut self) {
        if std::mem::replace(&mut self.is_searched, true) {
            return;
        }
        let Some(entries) = self.folder.as_ref().and_then(|folder| std::fs::read_dir(folder).ok()) else { return };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| {
            let end = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
            matches!(end.as_str(), "ttf" | "otf" | "ttc" | "otc")
        });
        paths.sort();
        for path in paths {
            let number = crate::answer::load(&path).ok().and_then(|bytes| self.load(bytes));
            self.found.extend(number);
        }
        // A font that was named has what another of its kind may not have.
        let named = self.families.iter().flat_map(|(_, styles)| styles).flatten();
        self.found.extend(named);
    }

    /// How much closer two glyphs are, in parts of the size.
    pub fn kerning(&self, font: u16, left: u16, right: u16) -> f32 {
        let Some(loaded) = self.get(usize::from(font)) else { return 0.0 };
        let Some(kern) = loaded.face.tables().kern else { return 0.0 };
        let tables = kern.subtables.into_iter().filter(|table| table.horizontal && !table.variable);
        let found = tables.filter_map(|table| table.glyphs_kerning(GlyphId(left), GlyphId(right))).next();
        f32::from(found.unwrap_or(0)) / loaded.em()
    }
}

/// The number of a font in a glyph; there are few.
fn short(font: usize) -> u16 {
    u16::try_from(font).unwrap_or(0)
}

/// A character that stands for one that few fonts have.
fn plain(c: char) -> Option<char> {
    Some(match c {
        '\u{2010}' | '\u{2011}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{7}' => ' ',
        '\u{2015}' => '—',
        '\u{2016}' => '|',
        '\u{25e6}' => '○',
        '\u{25aa}' => '■',
        '\u{2236}' => ':',
        _ => return None,
    })
}

/// Whether a character has no glyph: controls, joiners, variation selectors.
pub fn is_invisible(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
        || matches!(c, '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_style_has_its_letters() {
        let mut fonts = Fonts::new(None);
        for family in [Family::Sans, Family::Serif, Family::Mono] {
            for style in 0..4 {
                for c in "aÄżđăαΩЖїҐ€–“•−≤½ﬁ─│✓☐→✅🚀".chars() {
                    let glyph = fonts.glyph(family, style & 1 > 0, style & 2 > 0, c);
                    assert!(glyph.id > 0 && glyph.advance > 0.0, "{family:?} {style} {c}");
                }
            }
        }
        assert!(fonts.missing.is_empty(), "{:?}", fonts.missing);
        fonts.glyph(Family::Sans, false, false, '漢');
        assert_eq!(fonts.missing.len(), 1);
        let pair = ['A', 'V'].map(|c| fonts.glyph(Family::Sans, false, false, c).id);
        assert!(fonts.kerning(0, pair[0], pair[1]) < -0.05);
    }
}
