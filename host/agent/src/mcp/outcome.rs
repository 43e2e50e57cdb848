//! The result of a tool call.

use serde_json::Value;

use super::McpFault;
use data_encoding::BASE64;
use kiso_plan::picture::MAX_PICTURES;

/// The output of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct McpOutcome {
    pub text: String,
    /// Its structured result.
    pub data: Option<Value>,
    /// Whether the tool reports a failure.
    pub is_error: bool,
    /// Pictures in its content, as files.
    pub pictures: Vec<Vec<u8>>,
}

impl McpOutcome {
    /// Parses the result of `tools/call`.
    pub(super) fn read(mut result: Value) -> Result<McpOutcome, McpFault> {
        match result.get("resultType").and_then(Value::as_str) {
            None | Some("complete") => {}
            Some(_) => return Err(McpFault::BadAnswer("it asks for input, which kiso does not give".to_owned())),
        }
        let data = result.get_mut("structuredContent").map(Value::take).filter(|data| !data.is_null());
        let blocks = match result.get("content") {
            Some(Value::Array(blocks)) => blocks.as_slice(),
            None if data.is_some() => &[],
            _ => return Err(McpFault::BadAnswer("a result has no content".to_owned())),
        };
        let (mut texts, mut pictures) = (Vec::new(), Vec::new());
        for block in blocks {
            match picture(block).filter(|_| pictures.len() < MAX_PICTURES) {
                Some(picture) => pictures.push(picture),
                None => texts.push(to_text(block)),
            }
        }
        let mut text = texts.join("\n");
        if let (true, Some(data)) = (text.is_empty(), &data) {
            text = data.to_string();
        }
        let is_error = result.get("isError") == Some(&Value::Bool(true));
        Ok(McpOutcome { text, data, is_error, pictures })
    }
}

/// Returns the bytes of a content block with a picture.
fn picture(block: &Value) -> Option<Vec<u8>> {
    let data = block.get("data")?.as_str().filter(|_| block["type"] == "image")?;
    BASE64.decode(data.as_bytes()).ok()
}

/// Returns a content block as text. Other kinds are named and left out.
fn to_text(block: &Value) -> String {
    let field = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
    match field("type") {
        "text" => field("text").to_owned(),
        "resource" => match block["resource"]["text"].as_str() {
            Some(text) => text.to_owned(),
            None => "[a resource that is no text was left out]".to_owned(),
        },
        "resource_link" => format!("[a link to {}]", super::shown(field("uri"))),
        kind => format!("[content of the type {:?} was left out]", super::shown(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_is_text_data_or_both() {
        let read = |result: Value| McpOutcome::read(result);
        let both = read(json!({ "content": [{ "type": "text", "text": "a" }, { "type": "image", "data": "x" },
            { "type": "image", "data": "YWI=", "mimeType": "image/png" }], "structuredContent": { "n": 1 }, "isError": true }));
        let text = "a\n[content of the type \"image\" was left out]".to_owned();
        let pictures = vec![b"ab".to_vec()];
        assert_eq!(both, Ok(McpOutcome { text, data: Some(json!({ "n": 1 })), is_error: true, pictures }));
        assert_eq!(read(json!({ "structuredContent": { "n": 1 } })).unwrap().text, "{\"n\":1}");
        assert!(read(json!({})).is_err());
        assert!(read(json!({ "content": [], "resultType": "input_required" })).is_err());
    }
}
