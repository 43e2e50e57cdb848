//! Attributes of HTML that say how an element looks.

use super::sheet::Declaration;
use crate::make::dom::{Dom, Element, Id};

/// The declarations that stand for the attributes of an element.
pub fn hints(dom: &Dom, id: Id) -> Vec<Declaration> {
    let Some(element) = dom.element(id) else { return Vec::new() };
    let mut found = from_table(dom, id, element);
    add_own(element, &mut found);
    found
}

/// A cell has the borders and the padding that its table asks for.
fn from_table(dom: &Dom, id: Id, element: &Element) -> Vec<Declaration> {
    let mut found = Vec::new();
    let mut add = |name: &str, value: String| found.push((name.to_owned(), value, false));
    let is_cell = matches!(element.name.as_str(), "td" | "th");
    let mut table = id;
    for _ in 0..4 {
        if !is_cell || dom.name(table) == "table" {
            break;
        }
        table = dom.parents[table];
    }
    let Some(table) = dom.element(table).filter(|element| element.name == "table") else { return found };
    if table.get("border").is_some_and(|border| border.trim() != "0") {
        add("border", "1px solid #888".to_owned());
    }
    if let Some(padding) = table.get("cellpadding").filter(|_| is_cell) {
        add("padding", format!("{}px", padding.trim()));
    }
    found
}

fn add_own(element: &Element, found: &mut Vec<Declaration>) {
    let mut add = |name: &str, value: String| found.push((name.to_owned(), value, false));
    let size =
        |value: &str| if value.trim().ends_with('%') { value.trim().to_owned() } else { format!("{}px", value.trim()) };
    let name = element.name.as_str();
    for (attribute, value) in &element.attributes {
        match (name, attribute.as_str()) {
            ("table" | "td" | "th" | "col" | "img" | "hr", "width") => add("width", size(value)),
            ("td" | "th" | "img" | "table", "height") => add("height", size(value)),
            ("img" | "table", "align") if value.eq_ignore_ascii_case("center") => {
                add("margin-left", "auto".to_owned());
                add("margin-right", "auto".to_owned());
            }
            ("img" | "table", "align") => add("float", value.clone()),
            (_, "align") => add("text-align", value.clone()),
            (_, "valign") => add("vertical-align", value.clone()),
            (_, "bgcolor") => add("background-color", value.clone()),
            ("font", "color") => add("color", value.clone()),
            ("font", "face") => add("font-family", value.clone()),
            ("table", "cellspacing") => add("border-spacing", size(value)),
            ("ol", "type") => {
                let kind = match value.as_str() {
                    "a" => "lower-alpha",
                    "A" => "upper-alpha",
                    "i" => "lower-roman",
                    "I" => "upper-roman",
                    _ => "decimal",
                };
                add("list-style-type", kind.to_owned());
            }
            (_, "hidden") => add("display", "none".to_owned()),
            _ => {}
        }
    }
}
