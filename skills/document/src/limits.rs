//! Sizes and counts that a file could choose. A hostile file reaches them; a document of a person does not.

use std::time::Duration;

/// Size of a file. It is in memory as a whole.
pub const FILE_BYTES: u64 = 128 << 20;

/// Text that is kept of a document. More is left out, and the answer says so.
pub const TEXT_BYTES: usize = 32 << 20;

/// Unpacked size of one entry of a package (DOCX, XLSX, ODT, EPUB).
pub const ENTRY_BYTES: u64 = 64 << 20;

/// Unpacked size of all entries of a package that are read.
pub const UNPACKED_BYTES: u64 = 256 << 20;

/// Entries of a package.
pub const ENTRIES: usize = 20_000;

/// Ratio of an entry's unpacked size to its packed size. Deflate reaches 1032; text that people write stays below 30, and tables of
/// zeros below this.
pub const RATIO: u64 = 250;

/// Unpacked size below which the ratio does not matter.
pub const RATIO_FREE_BYTES: u64 = 4 << 20;

/// Depth of elements in XML and HTML.
pub const DEPTH: usize = 512;

/// Unpacked size of the contents of one page of a PDF file.
pub const CONTENT_BYTES: usize = 32 << 20;

/// Glyphs of one page. More are not read.
pub const GLYPHS: usize = 400_000;

/// Time for the pages of a PDF file, below what a call of the skill and a command line have.
pub const PDF_TIME: Duration = Duration::from_secs(40);

/// Cells of one sheet, empty ones between full ones included.
pub const CELLS: usize = 2_000_000;

/// Columns of a table.
pub const COLUMNS: usize = 16_384;

/// Cells of one table outside sheets.
pub const TABLE_CELLS: usize = 200_000;

/// Mails of a mailbox.
pub const MESSAGES: usize = 5_000;

/// Attachments that are listed or saved.
pub const ATTACHMENTS: usize = 1_000;

/// Sum of the sizes of attachments that are saved.
pub const ATTACHMENT_BYTES: usize = 64 << 20;

/// Pixels of a rendered page. A page of A4 at 300 dpi has 8.7 million.
pub const PIXELS: f64 = 25e6;

/// Width and height of a rendered page; the renderer counts in 16 bits.
pub const SIDE: f64 = 16_000.0;

/// Pages that one call renders.
pub const RENDERED: usize = 50;

/// Headings in an outline.
pub const HEADINGS: usize = 2_000;

/// Passages that a search answers with.
pub const PASSAGES: usize = 100;

/// Ranges in a list of pages.
pub const RANGES: usize = 200;

/// Bytes of Markdown that a document is made from. Each paragraph of a line takes a hundred times its bytes while it is parsed.
pub const MARKDOWN_BYTES: usize = 4 << 20;

/// Bytes of HTML that a document is made from, pictures in `data:` included, and of the text in it.
pub const HTML_BYTES: usize = 32 << 20;
pub const SHOWN_BYTES: usize = 8 << 20;

/// Bytes of the text of a DOCX file with its marks.
pub const DOCX_BYTES: usize = 64 << 20;

/// Elements and texts of a page that a document is made from.
pub const ELEMENTS: usize = 400_000;

/// Boxes within one another.
pub const BOX_DEPTH: usize = 120;

/// Rules of style sheets, and declarations of one rule.
pub const RULES: usize = 10_000;
pub const DECLARATIONS: usize = 400;

/// Comparisons of selectors with elements. A sheet of a person with a long page takes some million.
pub const SELECTOR_STEPS: usize = 20_000_000;

/// Columns of a table on paper, and of a cell that takes several.
pub const PAGE_COLUMNS: usize = 200;

/// Lines and boxes of a document that is made.
pub const FRAGMENTS: usize = 1_000_000;

/// Pages of a document that is made.
pub const PAGES: usize = 5_000;

/// Pictures of a document, the size of a file, and the pixels of all.
pub const PICTURES: usize = 2_000;
pub const PICTURE_BYTES: u64 = 32 << 20;
pub const ALL_PIXELS: u64 = 200_000_000;

/// Fonts from files.
pub const FONTS: usize = 24;

/// Passwords that an encrypted file is tried with.
pub const PASSWORDS: usize = 32;
