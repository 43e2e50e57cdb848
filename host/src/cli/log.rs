//! This process's log: lines on standard error, without secrets.
//!
//! A line is plain text on a terminal, has its priority if the systemd journal reads it, or is one JSON object. In every
//! form, each text in it is redacted by [`log_redaction`] and made harmless: it cannot begin a line or a field, move a
//! cursor or reverse a line, because clients name files and models name tools.

use std::fmt::{self, Write as _};
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

use super::out::escaped;
use super::show::is_active;
use kiso_store::secret::log_redaction;

/// The variable that overrides `config.toml`.
const VARIABLE: &str = "KISO_LOG";

/// The levels of other crates. The sender of a request gets its error, so a server's bad response is not logged as well.
const OTHERS: &str = "warn,wasmtime_wasi_http=error";

/// The part that can be changed while the process runs.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Whether lines are JSON.
static JSON: AtomicBool = AtomicBool::new(false);

/// Starts the log for a command: warnings, and details with `KISO_LOG=debug`.
pub(super) fn begin() {
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| OTHERS.into());
    let (filter, handle) = reload::Layer::new(filter);
    let stderr = std::io::stderr();
    let look = if stderr.is_terminal() {
        Look::Terminal
    } else if is_journal(&stderr) {
        Look::Journal
    } else {
        Look::Plain
    };
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).event_format(Lines { look });
    if tracing_subscriber::registry().with(filter).with(lines).try_init().is_ok() {
        let _ = FILTER.set(handle);
    }
}

/// Returns whether standard error is the stream that the variable names; programs with other streams inherit the variable,
/// too.
fn is_journal(stderr: &std::io::Stderr) -> bool {
    let named = super::environment("JOURNAL_STREAM");
    let here = rustix::fs::fstat(stderr).ok().map(|stat| format!("{}:{}", stat.st_dev, stat.st_ino));
    named.is_some() && named == here
}

/// Applies the daemon's configuration. `KISO_LOG` and a format on the command line override it.
pub(super) fn configure(level: &str, format: &str) {
    JSON.store(format == "json", Ordering::Relaxed);
    if let Some(filter) = FILTER.get()
        && EnvFilter::try_from_env(VARIABLE).is_err()
    {
        // Other crates log only warnings.
        let _ = filter.reload(EnvFilter::new(format!("{OTHERS},kiso={level}")));
    }
}

/// Writes panics to the log.
pub(super) fn catch_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "this is a bug in kiso: {text}");
    }));
}

/// The reader of lines that are not JSON.
#[derive(Debug, Clone, Copy)]
enum Look {
    Terminal,
    /// Adds its own timestamps, and reads a priority from the beginning of a line.
    Journal,
    Plain,
}

struct Lines {
    look: Look,
}

/// The redacted message and fields of an event.
#[derive(Default)]
struct Said {
    message: String,
    fields: Vec<(&'static str, Value)>,
}

impl Said {
    fn text(&mut self, field: &Field, text: &str) {
        let text = log_redaction::redacted(text);
        match field.name() {
            "message" => self.message = text,
            name => self.fields.push((name, text.into())),
        }
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.push((field.name(), value.into()));
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut said = Said::default();
        event.record(&mut said);
        let mut spans = Vec::new();
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>().map_or("", |fields| fields.fields.as_str());
            spans.push((span.name(), log_redaction::redacted(fields)));
        }
        let (level, target) = (*event.metadata().level(), event.metadata().target());
        let line = match JSON.load(Ordering::Relaxed) {
            true => json_line(level, target, said, &spans),
            false => self.line(level, said, &spans),
        };
        let mut writer = writer;
        writeln!(writer, "{line}")
    }
}

impl Lines {
    fn line(&self, level: Level, said: Said, spans: &[(&'static str, String)]) -> String {
        let mut line = String::new();
        let name = level.as_str();
        let now = jiff::Timestamp::now();
        let _ = match self.look {
            Look::Terminal => {
                let colour = match level {
                    Level::ERROR => 31,
                    Level::WARN => 33,
                    Level::INFO => 32,
                    _ => 2,
                };
                let now = now.to_zoned(jiff::tz::TimeZone::system());
                write!(line, "\x1b[2m{}\x1b[0m \x1b[{colour}m{name:>5}\x1b[0m ", now.strftime("%H:%M:%S"))
            }
            Look::Journal => write!(line, "<{}>", priority(level)),
            Look::Plain => write!(line, "{now:.3} {name:>5} "),
        };
        for (name, fields) in spans {
            let _ = match fields.is_empty() {
                true => write!(line, "{name}: "),
                false => write!(line, "{name}{{{}}}: ", plain(fields)),
            };
        }
        line += &message(&said.message);
        for (name, value) in &said.fields {
            let text = value.as_str().map_or_else(|| value.to_string(), word);
            let _ = write!(line, " {name}={text}");
        }
        line
    }
}

fn json_line(level: Level, target: &str, said: Said, spans: &[(&'static str, String)]) -> String {
    let fields: Map<String, Value> = said.fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let mut line = json!({
        "type": "log", "at": format!("{:.3}", jiff::Timestamp::now()), "level": level.as_str().to_lowercase(),
        "target": target, "message": said.message,
    });
    if !fields.is_empty() {
        line["fields"] = fields.into();
    }
    if !spans.is_empty() {
        line["spans"] = spans.iter().map(|(name, fields)| json!({ "name": name, "fields": fields })).collect();
    }
    escaped(line.to_string())
}

/// Returns a message, in quotes if it could be mistaken for one with other fields.
fn message(text: &str) -> String {
    if text.contains('=') || text.starts_with('"') { quoted(text) } else { plain(text) }
}

/// Returns the value of a field, in quotes if it has more than one word.
fn word(text: &str) -> String {
    let is_word =
        !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '"' || c == '=' || is_active(c));
    if is_word { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", plain(&text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// Returns the text as one line without active characters.
fn plain(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => clean.push_str("\\n"),
            c if is_active(c) => drop(write!(clean, "{}", c.escape_unicode())),
            c => clean.push(c),
        }
    }
    clean
}

/// Returns the priority as in syslog.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_be_taken_for_another_field() {
        for (value, shown) in [
            ("report.csv", "report.csv"),
            ("a/b-c_d.txt", "a/b-c_d.txt"),
            ("", "\"\""),
            ("x by=admin", "\"x by=admin\""),
            ("x\" by=admin y=\"", "\"x\\\" by=admin y=\\\"\""),
            ("x\\\" by=admin", "\"x\\\\\\\" by=admin\""),
            ("by=admin", "\"by=admin\""),
            ("a\nERROR b", "\"a\\nERROR b\""),
            ("a\u{1b}[2J", "\"a\\u{1b}[2J\""),
            ("a\u{202e}b", "\"a\\u{202e}b\""),
            ("a\u{9b}2J", "\"a\\u{9b}2J\""),
            ("a\u{a0}by", "\"a\u{a0}by\""),
            ("שלום", "שלום"),
        ] {
            assert_eq!(word(value), shown, "{value:?}");
        }
        assert_eq!(message("a request failed: no host"), "a request failed: no host");
        assert_eq!(message("gone by=admin"), "\"gone by=admin\"");
        assert_eq!(message("gone\n\u{9b}"), "gone\\n\\u{9b}");
    }
}
