//! Fetches a URL: pages as Markdown or text, JSON as JSON, anything else into a file.
//!
//! Which hosts can be reached is the host's to decide, request by request, so that a redirect to a host that was not
//! granted is refused like a first request to it.

mod kind;
mod page;

use kind::{Kind, Shape};
use kiso_sdk::http::{Get, Response};
use kiso_sdk::{Call, Failure, Reply, Skill};
use serde_json::{Value, json};

/// Redirects that are followed; browsers allow 20, honest sites need two.
const REDIRECTS: usize = 5;
/// Most text in a reply, in bytes. A reply with its data must stay below the output limit of 256 KiB.
const TEXT_MAX: usize = 100_000;
/// Text in a reply whose whole text was saved.
const EXCERPT_MAX: usize = 2_000;
/// Largest HTML that is converted: its tree takes some ten times as much memory.
const HTML_MAX: usize = 6 << 20;

struct Fetch;

#[derive(serde::Deserialize)]
struct Args {
    url: String,
    #[serde(rename = "as", default)]
    form: Form,
    save: Option<String>,
    max_bytes: usize,
}

/// The form in which the caller wants the page.
#[derive(serde::Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
enum Form {
    #[default]
    Markdown,
    Text,
    Json,
}

impl Skill for Fetch {
    type Args = Args;

    fn run(args: Args, _call: &Call) -> Result<Reply, Failure> {
        let response = get(&args)?;
        let kind = Kind::detect(response.header("content-type"), &response.body);
        let answer = Answer { url: response.url, kind, body: response.body };
        match &args.save {
            Some(path) => answer.save(path, args.form),
            None => answer.show(args.form),
        }
    }

    fn self_test() -> Result<(), String> {
        let html =
            "<html><head><title>T</title></head><body><h1>Caf\u{e9}</h1><p>a <a href='/b'>b</a></p></body></html>";
        let latin: Vec<u8> = html.chars().map(|c| c as u8).collect();
        let text = kiso_sdk::decode(&latin, Some("iso-8859-1")).map_err(|e| e.to_string())?;
        let page = page::convert(&text, "https://example.com/x", Form::Markdown)?;
        match page.text.as_str() {
            "# Caf\u{e9}\n\na [b](https://example.com/b)" => Ok(()),
            other => Err(format!("a page became {other:?}")),
        }
    }
}

kiso_sdk::skill!(Fetch);

/// The answer to the last request of a chain of redirects.
fn get(args: &Args) -> Result<Response, Failure> {
    let accept = match args.form {
        Form::Json => "application/json, */*;q=0.5",
        Form::Markdown | Form::Text => "text/html, text/markdown, text/plain, application/json;q=0.9, */*;q=0.5",
    };
    let request = Get::new(args.url.trim())
        .header("accept", accept)
        .header("accept-encoding", "identity")
        .header("user-agent", concat!("kiso-fetch/", env!("CARGO_PKG_VERSION")))
        .redirects(REDIRECTS)
        .max_bytes(args.max_bytes);
    let response = request.send().map_err(|failure| match failure.code.as_str() {
        "too-large" => {
            Failure { message: format!("{}; raise max_bytes (at most 16777216)", failure.message), ..failure }
        }
        _ => failure,
    })?;
    accepted(response)
}

/// The response, if its status is one of success.
fn accepted(response: Response) -> Result<Response, Failure> {
    let url = &response.url;
    let status = response.status;
    let says = match status {
        200..=299 => match response.header("content-encoding") {
            Some(coding) if !coding.is_empty() && !coding.eq_ignore_ascii_case("identity") => {
                return Err(Failure::new(
                    "failed",
                    format!("{url} is sent compressed ({coding}), though that was not asked for"),
                ));
            }
            _ => return Ok(response),
        },
        400 => "bad request",
        401 => "it wants a login",
        403 => "forbidden",
        404 => "not found",
        410 => "gone",
        429 => "too many requests",
        500..=599 => "the server failed",
        _ => "no page",
    };
    let message = format!("{url} answered {status}: {says}");
    Err(match status {
        404 | 410 => Failure::new("not-found", message),
        408 | 425 | 429 | 500..=599 => Failure::retryable("unavailable", message),
        _ => Failure::new("failed", message),
    })
}

struct Answer {
    url: String,
    kind: Kind,
    body: Vec<u8>,
}

/// An answer that can be read.
struct Readable {
    title: Option<String>,
    text: String,
}

impl Answer {
    fn show(&self, form: Form) -> Result<Reply, Failure> {
        if form == Form::Json {
            return self.show_json();
        }
        let page = self.read(form)?;
        let (shown, cut) = head(&page.text, TEXT_MAX);
        let mut text = match &page.title {
            Some(title) if !shown.contains(title.as_str()) => format!("{title}\n\n{shown}"),
            _ => shown.to_owned(),
        };
        if cut {
            text.push_str(&format!(
                "\n\n(the first {} of {} bytes; give `save` to keep all)",
                shown.len(),
                page.text.len()
            ));
        }
        if text.is_empty() {
            text = format!("{} is empty", self.url);
        }
        Ok(Reply::text(text).data(&self.data(page.title.as_deref(), cut, None)))
    }

    fn show_json(&self) -> Result<Reply, Failure> {
        let text = self.text()?;
        let value: Value = serde_json::from_str(&text)
            .map_err(|e| Failure::new("not-json", format!("{} ({}) is not JSON: {e}", self.url, self.kind)))?;
        let pretty = format!("{value:#}");
        let (shown, cut) = head(&pretty, TEXT_MAX);
        if cut || text.len() > TEXT_MAX {
            let size = text.len();
            let note = format!("\n\n(the first {} bytes of {size}; give `save` to keep all)", shown.len());
            return Ok(Reply::text(format!("{shown}{note}")).data(&self.data(None, true, None)));
        }
        Ok(Reply::text(pretty).data(&value))
    }

    fn save(&self, path: &str, asked: Form) -> Result<Reply, Failure> {
        let ending = path.rsplit('.').next().unwrap_or_default().to_lowercase();
        let form = match ending.as_str() {
            "md" | "markdown" => Some(Form::Markdown),
            "txt" => Some(Form::Text),
            _ => None,
        };
        if ending == "json" || asked == Form::Json {
            serde_json::from_str::<serde::de::IgnoredAny>(&self.text()?)
                .map_err(|e| Failure::new("not-json", format!("{} ({}) is not JSON: {e}", self.url, self.kind)))?;
        }
        let (page, written) = match form {
            Some(form) => {
                let page = self.read(form)?;
                let written = kiso_sdk::write(path, &page.text)?;
                (Some(page), written)
            }
            None => (self.read(Form::Markdown).ok(), kiso_sdk::write(path, &self.body)?),
        };
        let title = page.as_ref().and_then(|p| p.title.clone());
        let mut text = format!("saved {} ({}, {} bytes) to {written}", self.url, self.kind, self.body.len());
        if let Some(page) = &page {
            let (excerpt, cut) = head(&page.text, EXCERPT_MAX);
            text.push_str(&format!("\n\n{excerpt}{}", if cut { "\n\u{2026}" } else { "" }));
        }
        let data = self.data(title.as_deref(), false, Some(&written));
        Ok(Reply::text(text).data(&data).titled_file(written, title.unwrap_or_else(|| self.url.clone())))
    }

    /// The answer as text: HTML converted, other text as it is.
    fn read(&self, form: Form) -> Result<Readable, Failure> {
        let text = self.text()?;
        if self.kind.shape != Shape::Html {
            return Ok(Readable { title: None, text });
        }
        if text.len() > HTML_MAX {
            let url = &self.url;
            return Err(Failure::new(
                "too-large",
                format!(
                    "{url} is a page of {} bytes, too large to convert; save it to a name ending in .html",
                    text.len()
                ),
            ));
        }
        let page = page::convert(&text, &self.url, form)?;
        Ok(Readable { title: page.title, text: page.text })
    }

    fn text(&self) -> Result<String, Failure> {
        if self.kind.shape == Shape::Binary {
            let (url, kind, bytes) = (&self.url, &self.kind, self.body.len());
            return Err(Failure::new(
                "not-text",
                format!("{url} is not text ({kind}, {bytes} bytes); give `save` to keep it in a file"),
            ));
        }
        kiso_sdk::decode(&self.body, self.kind.charset(&self.body).as_deref())
            .map_err(|f| Failure { message: format!("{}: {}", self.url, f.message), ..f })
    }

    fn data(&self, title: Option<&str>, cut: bool, file: Option<&str>) -> Value {
        json!({
            "url": self.url, "type": self.kind.to_string(), "title": title, "bytes": self.body.len(), "cut": cut, "file": file,
        })
    }
}

/// The first `max` bytes at most, ending at a character; and whether something was left out.
fn head(text: &str, max: usize) -> (&str, bool) {
    (&text[..text.floor_char_boundary(max)], text.len() > max)
}
