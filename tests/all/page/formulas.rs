//! Formulas are MathML, which a browser draws, selects and reads aloud; footnotes link to their text and back.

use super::browser::{css, role};
use super::fill;
use super::stage::{QUICK, Stage};
use crate::harness::Home;
use serde_json::{Value, json};

/// TeX, and the resulting elements with their texts.
const FORMULAS: [(&str, &str); 18] = [
    (r"E = mc^2", "mrow(mi:E mo:= mi:m msup(mi:c mn:2))"),
    (r"x_i^2", "msubsup(mi:x mi:i mn:2)"),
    (r"\frac{1}{2}", "mfrac(mn:1 mn:2)"),
    (r"\sqrt[3]{x}", "mroot(mi:x mn:3)"),
    (r"\sqrt x", "msqrt(mi:x)"),
    (r"\sum_{i=1}^n i", "mrow(munderover(mo:∑ mrow(mi:i mo:= mn:1) mi:n) mi:i)"),
    (r"\int_0^1 x", "mrow(msubsup(mo:∫ mn:0 mn:1) mi:x)"),
    (r"\lim_{n \to \infty}", "munder(mo:lim mrow(mi:n mo:→ mi:∞))"),
    (r"\alpha \le \Omega", "mrow(mi:α mo:≤ mi:Ω)"),
    (r"\text{if } x", "mrow(mtext:if  mi:x)"),
    (r"\mathbb{R}", "mi:ℝ"),
    (r"\binom{n}{k}", "mrow(mo:( mfrac(mi:n mi:k) mo:))"),
    (
        r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}",
        "mrow(mo:( mtable(mtr(mtd(mi:a) mtd(mi:b)) mtr(mtd(mi:c) mtd(mi:d))) mo:))",
    ),
    (
        r"\begin{cases} 1 & x \\ 0 & y \end{cases}",
        "mrow(mo:{ mtable(mtr(mtd(mn:1) mtd(mi:x)) mtr(mtd(mn:0) mtd(mi:y))))",
    ),
    (r"\left( a \right]", "mrow(mo:( mi:a mo:])"),
    (r"a \not= b \unknown", "mrow(mi:a mo:≠ mi:b mtext:\\unknown)"),
    // Names of JavaScript's object properties are ordinary commands.
    (r"\constructor x", "mrow(mtext:\\constructor mi:x)"),
    (r"\not\text{toString}", "mtext:toString\u{338}"),
];

/// Writes an element in the form of the table above.
const WRITTEN: &str = "(() => {
  const write = (it) => it.children.length ? `${it.localName}(${[...it.children].map(write).join(' ')})` : `${it.localName}:${it.textContent}`;
  return [...document.querySelectorAll('.md-display .md-math > math')].map((math) => write(math.firstElementChild));
})()";

#[test]
fn formulas_are_mathml_and_footnotes_lead_there_and_back() {
    let blocks: String = FORMULAS.iter().map(|(tex, _)| format!("$$\n{tex}\n$$\n\n")).collect();
    let notes = format!(
        "A claim.[^one] Another.[^zwei] A class of letters is [^a-z].\n\n{}\n\n[^one]: Its source, $x^2$.\n[^zwei]: More\n    of it.\n\nThe end.",
        "A line.\n\n".repeat(60)
    );
    let texts = ["formulas".to_owned(), blocks, "notes".to_owned(), notes];
    let Some(stage) = Stage::prepared(Home::new(), QUICK, |home| fill::session(home, "math", texts)) else { return };
    let tab = &stage.tab;
    stage.open("math");
    tab.shows("The end.");
    tab.wait("all formulas are drawn", || tab.count(css(".md-display .md-math > math")) == FORMULAS.len());
    let written = tab.eval(WRITTEN);
    let written: Vec<&str> = written.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(written, FORMULAS.map(|(_, mathml)| mathml));
    let display = tab.eval(
        "[...document.querySelectorAll('.md-display math')].every((it) => it.getAttribute('display') === 'block')",
    );
    assert_eq!(display, true);
    // The source is available.
    assert_eq!(tab.eval_on(css(".md-display .md-math"), "it.title"), json!("E = mc^2"));

    assert_eq!(tab.count(css(".md-note")), 2);
    assert!(tab.text().contains("[^a-z]"), "what names no footnote is text");
    tab.focus(role("button", "Footnote 2"));
    tab.press("Enter");
    tab.wait_of(css(".md-note[data-footnote='2']"), "document.activeElement === it && it.innerText.includes('More') && it.getBoundingClientRect().bottom <= innerHeight");
    tab.click(role("button", "Back to the reference of footnote 2"));
    tab.wait_of(role("button", "Footnote 2"), "document.activeElement === it");
    tab.audit("formulas and footnotes");
}
