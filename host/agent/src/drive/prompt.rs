//! A prompt as text for a trace.

use kiso_llm::{Request, Turn};

/// Returns a prompt as a person reads it in a trace.
pub(super) fn as_text(request: &Request) -> String {
    let mut text = format!("[system]\n{}", request.system.trim());
    if !request.user.trim().is_empty() {
        text.push_str(&format!("\n[user]\n{}", request.user.trim()));
    }
    for turn in &request.turns {
        match turn {
            Turn::User(said) => text.push_str(&format!("\n[user]\n{}", said.trim())),
            Turn::Assistant { text: said, calls } => {
                text.push_str(&format!("\n[assistant]\n{}", said.trim()));
                for call in calls {
                    text.push_str(&format!("\n→ {} {}", call.name, call.args));
                }
            }
            Turn::Tool { name, text: result, .. } => text.push_str(&format!("\n[tool {name}]\n{result}")),
            Turn::Note(note) => text.push_str(&format!("\n[note]\n{note}")),
            Turn::Pictures(images) => {
                for image in images {
                    text.push_str(&format!("\n[picture] {}", image.picture.title()));
                    if let Some(words) = &image.described {
                        text.push_str(&format!("\n{words}"));
                    }
                }
            }
        }
    }
    if !request.tools.is_empty() {
        let names: Vec<_> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        text.push_str(&format!("\n[tools] {}", names.join(", ")));
    }
    text
}
