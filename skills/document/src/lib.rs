//! Reads documents: PDF, DOCX, PPTX, XLSX, ODF, EPUB, RTF, HTML, mails, cards and calendars, as Markdown with page numbers.
//!
//! ```text
//! bytes ── kind ──▶ reader (pdf, office, odf, sheet, mail, …) ──▶ Out ──▶ Document ──▶ answer: Markdown, text, JSON, outline, search
//! ```
//!
//! `make` goes the other way: from Markdown, HTML and tables to PDF, DOCX and XLSX.
//!
//! Each reader is one function from bytes to a [`document::Document`], which writes blocks into an [`out::Out`]. No reader knows how its text is asked for, and
//! nothing else knows a format.

pub mod answer;
pub mod charset;
pub mod command;
pub mod date;
pub mod document;
pub mod error;
pub mod inline;
pub mod kind;
pub mod language;
pub mod limits;
pub mod mail;
pub mod make;
pub mod markup;
pub mod odf;
pub mod office;
pub mod out;
pub mod package;
pub mod pages;
pub mod pdf;
pub mod read;
pub mod request;
pub mod search;
pub mod sheet;
pub mod text;
pub mod xml;
