//! A request, from the arguments of the skill or the options of the command.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::pages::Pages;

/// Characters of an answer of the skill, unless `max` says otherwise.
pub const DEFAULT_MAX: usize = 50_000;

/// The most that `max` may be: what a skill may answer is limited by the host.
pub const LARGEST_MAX: usize = 200_000;

pub const DEFAULT_DPI: f64 = 110.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    #[default]
    Markdown,
    Text,
    Json,
}

impl Format {
    pub fn parse(word: &str) -> Result<Self> {
        match word {
            "markdown" | "md" => Ok(Self::Markdown),
            "text" | "txt" | "plain" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(Error::new(format!("format `{word}`: expected markdown, text or json"))),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    pub file: String,
    pub pages: Option<Pages>,
    pub sheet: Option<String>,
    pub format: Format,
    pub outline: bool,
    pub search: Option<String>,
    /// Directory into which attachments are saved.
    pub attachments: Option<String>,
    /// Passwords that an encrypted file is tried with.
    pub passwords: Vec<String>,
    /// Pages that are drawn.
    pub render: Option<Pages>,
    pub dpi: f64,
    /// Characters of the answer.
    pub max: usize,
    /// Characters that are passed over.
    pub from: usize,
}

impl Request {
    pub fn new(file: impl Into<String>) -> Self {
        Self { file: file.into(), dpi: DEFAULT_DPI, max: usize::MAX, ..Self::default() }
    }

    /// Reads a call of the skill: `{"args": {"file": …}, "secrets": {…}}`.
    pub fn from_call(call: &Value) -> Result<Self> {
        let args = call.get("args").and_then(Value::as_object).ok_or("args: expected an object")?;
        let mut request = Self::new("");
        request.max = DEFAULT_MAX;
        for (name, value) in args {
            if value.is_null() {
                continue;
            }
            let text = || match value {
                Value::String(text) => Ok(text.trim().to_owned()),
                Value::Number(number) => Ok(number.to_string()),
                _ => Err(Error::new(format!("{name}: expected a text"))),
            };
            let number = || {
                let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
                number.ok_or_else(|| Error::new(format!("{name}: expected a number")))
            };
            let some = || text().map(|text| Some(text).filter(|text| !text.is_empty()));
            match name.as_str() {
                "file" => request.file = text()?,
                "pages" => request.pages = some()?.map(|pages| Pages::parse(&pages)).transpose()?,
                "sheet" => request.sheet = some()?,
                "format" => request.format = Format::parse(&text()?)?,
                "outline" => request.outline = value.as_bool().ok_or("outline: expected true or false")?,
                "search" => request.search = some()?,
                "attachments" => request.attachments = some()?,
                "password" => request.passwords.splice(..0, some()?).for_each(drop),
                "render" => request.render = some()?.map(|pages| Pages::parse(&pages)).transpose()?,
                "dpi" => request.dpi = number()?,
                "max" => request.max = number()? as usize,
                "from" => request.from = number()? as usize,
                _ => return Err(Error::new(format!("there is no argument `{name}`"))),
            }
        }
        let secrets = call.get("secrets").and_then(Value::as_object);
        request
            .passwords
            .extend(secrets.into_iter().flat_map(|all| all.values()).filter_map(Value::as_str).map(str::to_owned));
        request.max = request.max.clamp(1, LARGEST_MAX);
        request.check()?;
        Ok(request)
    }

    pub fn check(&self) -> Result<()> {
        if self.file.is_empty() {
            return Err("file: a path is needed".into());
        }
        if !(10.0..=600.0).contains(&self.dpi) {
            return Err(Error::limit(&format!("dpi: {} is out of range", self.dpi), "10 to 600"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_read() {
        let call = json!({"args": {"file": "a.pdf", "pages": "2-3", "render": 4, "outline": true, "max": 9e9, "search": ""}, "secrets": {"password": "x", "tax_password": "y"}});
        let request = Request::from_call(&call).unwrap();
        assert!(request.pages.unwrap().contains(3) && request.render.unwrap().contains(4) && request.outline);
        assert_eq!(
            (request.max, request.search, request.passwords),
            (LARGEST_MAX, None, vec!["x".to_owned(), "y".to_owned()])
        );
    }

    #[test]
    fn a_wrong_call_is_refused() {
        for (args, words) in [
            (json!({}), "a path is needed"),
            (json!({"file": "a", "nope": 1}), "no argument `nope`"),
            (json!({"file": "a", "dpi": 9_999}), "10 to 600"),
            (json!({"file": "a", "format": "x"}), "expected markdown"),
            (json!({"file": ["a"]}), "expected a text"),
        ] {
            let error = Request::from_call(&json!({ "args": args })).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
