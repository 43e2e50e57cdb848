//! Tests the abilities of a model by calling it: `kiso doctor` does this for every model of `config.toml`.

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::{Answer, Calling, Completion, Form, Image, Model, Request, Sink, Stop, ToolSpec, Turn};
use data_encoding::BASE64;
use kiso_base::role::Role;
use kiso_plan::limits::Usage;
use kiso_plan::picture::Picture;

/// Maximum tokens of each of the three answers. The answers are a few words; the rest is for the reasoning of models that think
/// first.
pub const MAX_TOKENS: u32 = 1_024;

/// Maximum characters of a model's text in a note.
const SHOWN: usize = 160;

const SYSTEM: &str = "You are being tested. Do exactly what is asked, with nothing before or after it.";

/// The result for one ability of a model.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, JsonSchema)]
pub struct ProbeResult {
    /// "answers", "streams", "usage", "tools", "json schema" or "pictures".
    pub name: &'static str,
    pub works: bool,
    /// Whether the test had no clear result: the model may have the ability.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unclear: bool,
    /// The observation, or the error; may be empty.
    pub note: String,
    /// For a missing ability: the consequence, and the remedy if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<&'static str>,
}

/// Returns the consequence of a missing ability, and the remedy, for a person.
fn meaning(name: &str) -> Option<&'static str> {
    Some(match name {
        "answers" => "Messages cannot be answered with this model.",
        "streams" => {
            "Replies appear at once when they are complete, and not word by word. Nothing is lost; a proxy before the server may collect the answer."
        }
        "usage" => {
            "kiso estimates tokens and costs, because the provider does not count them. Limits hold by the estimate."
        }
        "tools" => {
            "Tasks with tools may fail. If they do, choose a model that calls tools, or start a local server with tool support (llama.cpp: `--jinja`)."
        }
        "json schema" => {
            "kiso checks each answer and asks again if its form is wrong, so planning can take longer. Nothing to do."
        }
        "pictures" => {
            "This model does not read pictures. To ask about pictures, choose a model with vision, or have another model describe them (setting `models.eyes`)."
        }
        _ => return None,
    })
}

/// The meaning if a model accepted tools and called none.
const UNCALLED: &str = "It did not call the tool of this test. It may call tools when it works on a task; if such tasks fail, choose another model.";

/// The meaning if a model accepted a picture and did not read it.
const UNREAD: &str = "It accepted the picture of this test and did not read the number on it. Ask it about a picture of yours to find out.";

impl ProbeResult {
    fn new(name: &'static str, works: bool, note: impl Into<String>) -> Self {
        Self { name, works, unclear: false, note: note.into(), meaning: meaning(name).filter(|_| !works) }
    }

    fn unclear(name: &'static str, note: String, meaning: &'static str) -> Self {
        Self { unclear: true, meaning: Some(meaning), ..Self::new(name, false, note) }
    }
}

/// Asks `model` for a few words, a tool call, JSON, and the number on a picture: at most four calls. A model that does not answer
/// the first call is not called again. Returns one entry for each name of [`ProbeResult`], "answers" first, and the usage of all
/// calls, including failed ones.
pub async fn probe(model: &dyn Model) -> (Vec<ProbeResult>, Usage) {
    let mut pieces = Pieces::default();
    let found = capabilities(model, &mut pieces).await;
    (found, pieces.used)
}

async fn capabilities(model: &dyn Model, pieces: &mut Pieces) -> Vec<ProbeResult> {
    let mut found = Vec::new();
    let words = ask(model, words(), pieces).await;
    let completion = match words {
        Ok(completion) => completion,
        Err(why) => {
            found.push(ProbeResult::new("answers", false, why));
            let rest = ["streams", "usage", "tools", "json schema", "pictures"];
            found.extend(rest.map(|name| ProbeResult::new(name, false, "not tried: it does not answer")));
            return found;
        }
    };
    found.push(answers(&completion));
    let count = pieces.count;
    let note = if count == 1 { "the answer came in 1 piece".to_owned() } else { format!("{count} pieces") };
    found.push(ProbeResult::new("streams", count > 1, note));
    found.push(usage(&completion));
    found.push(match ask(model, tool_call(), pieces).await {
        Ok(completion) => tools(&completion),
        Err(why) => ProbeResult::new("tools", false, why),
    });
    found.push(match ask(model, json_answer(), pieces).await {
        Ok(completion) => json_schema(&completion),
        Err(why) => ProbeResult::new("json schema", false, why),
    });
    found.push(match ask(model, picture(), pieces).await {
        Ok(completion) => pictures(&completion),
        Err(why) => ProbeResult::new("pictures", false, why),
    });
    found
}

/// Asks `model` for the number on a picture, and returns whether it read the number. The model stores the result, except if the
/// call failed or a fallback answered.
pub async fn sees(model: &dyn Model) -> bool {
    let Ok(completion) = ask(model, picture(), &mut Pieces::default()).await else { return false };
    let sees = pictures(&completion).works;
    if completion.model == model.name() {
        model.learn_vision(sees);
    }
    sees
}

fn words() -> Request {
    bounded("Write the numbers from one to twelve as English words, separated by commas.")
}

fn tool_call() -> Request {
    let tool = ToolSpec {
        name: "report_number".to_owned(),
        description: "Reports a number.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": { "number": { "type": "integer", "description": "the number" } },
            "required": ["number"],
            "additionalProperties": false,
        }),
    };
    Request { tools: vec![tool], ..bounded("Call the tool report_number with the number 7.") }
}

fn json_answer() -> Request {
    let schema = json!({
        "type": "object",
        "properties": { "word": { "type": "string" }, "number": { "type": "integer" } },
        "required": ["word", "number"],
        "additionalProperties": false,
    });
    let text = "Answer with a JSON object: \"word\" is the string \"kiso\", \"number\" is 7. Nothing but the JSON.";
    Request { answer: Answer::Json(schema.into()), ..bounded(text) }
}

/// A picture of 160 x 60 pixels with this number.
const PICTURE: &[u8] = include_bytes!("probe/number.png");
const NUMBER: &str = "4271";

fn picture() -> Request {
    let (name, media_type) = ("number.png".to_owned(), "image/png".to_owned());
    let picture = Picture { name, digest: String::new(), media_type, width: 160, height: 60 };
    let image = Image { content: Some(BASE64.encode(PICTURE).into()), ..Image::from_picture(&picture) };
    let request =
        bounded("Which number is on the picture? Answer with its digits alone, or with 0 if you see no picture.");
    Request { turns: vec![Turn::Pictures(vec![image])], ..request }
}

fn pictures(completion: &Completion) -> ProbeResult {
    let works = !completion.blind && completion.text.contains(NUMBER);
    let note = match completion.blind {
        true => "it takes none; [models] eyes names a model that describes them for it".to_owned(),
        false if works => short(completion.text.trim()),
        false => {
            let said = short(completion.text.trim());
            let note = format!(
                "it read {said:?} on a picture of {NUMBER}; vision = \"no\" in its [model_settings] has pictures described for it"
            );
            // It accepted the picture, and did not say that it cannot see it.
            if said != "0" && !said.is_empty() {
                return ProbeResult::unclear("pictures", note, UNREAD);
            }
            note
        }
    };
    ProbeResult::new("pictures", works, note)
}

fn bounded(user: &str) -> Request {
    Request { max_tokens: MAX_TOKENS, ..Request::new(Role::Worker, SYSTEM.to_owned(), user.to_owned()) }
}

async fn ask(model: &dyn Model, request: Request, pieces: &mut Pieces) -> Result<Completion, String> {
    let answer = model.complete(&request, pieces).await.map_err(|error| error.to_string());
    if let Ok(completion) = &answer {
        pieces.used += completion.usage;
    }
    answer
}

fn answers(completion: &Completion) -> ProbeResult {
    let text = completion.text.trim();
    let works = !text.is_empty();
    let note = match completion.stop {
        _ if works => format!("{:?}", short(text)),
        Stop::Length => format!("it used {MAX_TOKENS} tokens without a word of an answer"),
        Stop::Filter => "the provider held the answer back".to_owned(),
        _ => "the answer is empty".to_owned(),
    };
    ProbeResult::new("answers", works, note)
}

fn usage(completion: &Completion) -> ProbeResult {
    let used = completion.usage;
    let cost =
        if used.cost_micros == 0 { String::new() } else { format!(", {} millionths of a dollar", used.cost_micros) };
    let counted = if completion.counted { "" } else { "it counts none; by estimate " };
    let note = format!("{counted}{} tokens in, {} out{cost}", used.input_tokens, used.output_tokens);
    ProbeResult::new("usage", completion.counted, note)
}

fn tools(completion: &Completion) -> ProbeResult {
    let no = |note: String| ProbeResult::new("tools", false, note);
    let Some(call) = completion.calls.first() else {
        let way_out = match completion.calling {
            Calling::Native => "; tool_calls = \"no\" in its [model_settings] has it asked for calls as JSON",
            Calling::Json => ", also when asked for calls as JSON",
        };
        let note = format!("it called no tool, and said {:?}{way_out}", short(completion.text.trim()));
        return ProbeResult::unclear("tools", note, UNCALLED);
    };
    let shown = format!("{} with {}", short(&call.name), short(&call.args));
    match serde_json::from_str::<Value>(&call.args) {
        Ok(args) if call.name == "report_number" && args["number"].is_i64() => {
            let how = match completion.calling {
                Calling::Native => String::new(),
                Calling::Json => ", asked for as JSON, because it has no calls of its own".to_owned(),
            };
            ProbeResult::new("tools", true, shown + &how)
        }
        _ => no(format!("it called {shown}")),
    }
}

fn json_schema(completion: &Completion) -> ProbeResult {
    let text = completion.text.trim();
    let fits = serde_json::from_str::<Value>(text).is_ok_and(|value| {
        value.as_object().is_some_and(|o| o.len() == 2) && value["word"].is_string() && value["number"].is_i64()
    });
    let note = match completion.form {
        _ if !fits => format!("the answer does not fit: {:?}", short(text)),
        Form::Schema => short(text),
        Form::Object => {
            "plain JSON only: it takes no schema, and its answer fits because the prompt says so".to_owned()
        }
        Form::Prompt => {
            "plain text only: it takes no schema, and its answer fits because the prompt says so".to_owned()
        }
    };
    ProbeResult::new("json schema", fits && completion.form == Form::Schema, note)
}

/// Returns the beginning of a model's text.
fn short(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Counts pieces of text, and the usage of failed answers.
#[derive(Default)]
struct Pieces {
    count: usize,
    used: Usage,
}

impl Sink for Pieces {
    fn text(&mut self, piece: &str) {
        self.count += usize::from(!piece.is_empty());
    }

    fn restart(&mut self) {
        self.count = 0;
    }

    fn spent(&mut self, usage: Usage) {
        self.used += usage;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Completing, LlmError};
    use kiso_plan::call::ToolCall;
    use std::sync::Mutex;

    /// The pieces of a text and the rest of the completion, or an error.
    type Line = Result<(Vec<&'static str>, Completion), LlmError>;

    /// Returns these answers in order.
    struct Fake(Mutex<Vec<Line>>);

    impl Model for Fake {
        fn name(&self) -> &str {
            "fake:one"
        }

        fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Completing<'a> {
            assert_eq!(request.max_tokens, MAX_TOKENS);
            let (pieces, completion) = match self.0.lock().unwrap().remove(0) {
                Ok(answer) => answer,
                Err(error) => return Box::pin(async { Err(error) }),
            };
            pieces.iter().for_each(|piece| sink.text(piece));
            let text = pieces.concat();
            Box::pin(async move { Ok(Completion { text, ..completion }) })
        }
    }

    fn text_answer(pieces: &[&'static str]) -> Line {
        let usage = Usage { input_tokens: 9, output_tokens: 5, ..Usage::default() };
        Ok((pieces.to_vec(), Completion { usage, counted: true, form: Form::Schema, ..Completion::default() }))
    }

    fn call_answer(name: &str, args: &str) -> Line {
        let call = ToolCall::new("1", name, args);
        Ok((vec![], Completion { calls: vec![call], ..Completion::default() }))
    }

    /// Returns "yes", "no" or "unclear" for each ability, and all notes.
    async fn probed(answers: Vec<Line>) -> (String, String) {
        let fake = Fake(Mutex::new(answers));
        let (found, _) = probe(&fake).await;
        assert!(fake.0.lock().unwrap().is_empty());
        let names: Vec<_> = found.iter().map(|c| c.name).collect();
        assert_eq!(names, ["answers", "streams", "usage", "tools", "json schema", "pictures"]);
        let word = |c: &ProbeResult| {
            if c.works {
                "yes"
            } else if c.unclear {
                "unclear"
            } else {
                "no"
            }
        };
        let works: Vec<_> = found.iter().map(word).collect();
        let notes: Vec<_> = found.into_iter().map(|c| c.note).collect();
        (works.join(" "), notes.join("\n"))
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_model_that_can_everything() {
        let answers = vec![
            text_answer(&["one, ", "two"]),
            call_answer("report_number", "{\"number\": 7}"),
            text_answer(&["{\"word\": \"kiso\", \"number\": 7}"]),
            text_answer(&["The number is 4271."]),
        ];
        let (works, notes) = probed(answers).await;
        assert_eq!(works, "yes yes yes yes yes yes");
        assert!(notes.contains("2 pieces") && notes.contains("9 tokens in, 5 out"), "{notes}");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_estimated_or_only_asked_for_does_not_count_as_able() {
        for (form, note) in [(Form::Object, "plain JSON only"), (Form::Prompt, "plain text only")] {
            let mut answers = vec![
                text_answer(&["one, ", "two"]),
                call_answer("report_number", "{\"number\": 7}"),
                text_answer(&["{\"word\": \"kiso\", \"number\": 7}"]),
                text_answer(&["4271"]),
            ];
            for (_, completion) in answers.iter_mut().flatten() {
                (completion.form, completion.counted) = (form, false);
            }
            let (works, notes) = probed(answers).await;
            assert_eq!(works, "yes yes no yes no yes");
            assert!(notes.contains(note) && notes.contains("by estimate 9 tokens in, 5 out"), "{notes}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_model_that_only_talks() {
        let answers = vec![
            text_answer(&["one"]),
            text_answer(&["I call it"]),
            text_answer(&["Sure! {\"word\": \"kiso\"}"]),
            text_answer(&["0"]),
        ];
        let (works, notes) = probed(answers).await;
        assert_eq!(works, "yes no yes unclear no no");
        let takes =
            vec![text_answer(&["a", "b"]), text_answer(&["7"]), text_answer(&["{"]), text_answer(&["A picture came."])];
        assert_eq!(probed(takes).await.0, "yes yes yes unclear no unclear");
        for note in ["came in 1 piece", "called no tool, and said \"I call it\"", "it read \"0\" on a picture of 4271"]
        {
            assert!(notes.contains(note), "{notes}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn odd_calls_and_errors_in_between_are_notes() {
        let refused = LlmError::Refused { model: "fake:one".to_owned(), message: "no schemas here".to_owned() };
        for call in [
            call_answer("report_number", "{"),
            call_answer("other", "{\"number\": 7}"),
            call_answer("report_number", "[7]"),
        ] {
            let (works, notes) =
                probed(vec![text_answer(&["a", "b"]), call, Err(refused.clone()), Err(refused.clone())]).await;
            assert_eq!(works, "yes yes yes no no no");
            assert!(notes.contains("it called ") && notes.contains("no schemas here"), "{notes}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_model_that_does_not_answer_is_asked_once() {
        let down = LlmError::Unavailable {
            model: "fake:one".to_owned(),
            message: "connection refused".to_owned(),
            retryable: true,
            retry_after: None,
        };
        let (works, notes) = probed(vec![Err(down)]).await;
        assert_eq!(works, "no no no no no no");
        assert!(notes.contains("connection refused") && notes.contains("not tried"), "{notes}");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_empty_answer_is_none() {
        let empty = Ok((vec![], Completion { stop: Stop::Length, ..Completion::default() }));
        let (works, notes) = probed(vec![empty, text_answer(&[""]), text_answer(&["{"]), text_answer(&[""])]).await;
        assert_eq!(works, "no no no unclear no no");
        assert!(notes.contains("it used 1024 tokens without a word"), "{notes}");
    }
}
