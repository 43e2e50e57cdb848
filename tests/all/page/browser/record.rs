//! What happened in a tab, as the browser tells it.

use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;

/// A request that the page made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    id: String,
    /// The load of a document that it belongs to.
    pub loader: String,
    pub url: String,
    pub method: String,
    /// "Document", "Script", "Fetch" …
    pub kind: String,
    pub body: Option<String>,
    /// None until the head of the answer came.
    pub status: Option<u16>,
    /// The headers of the answer, names in lower case.
    pub headers: Vec<(String, String)>,
    /// What came over the wire, head and compressed body.
    pub bytes: u64,
    /// The answer came from the browser's own cache.
    pub cached: bool,
    pub ended: bool,
    pub failed: Option<String>,
}

impl Request {
    /// What stands behind the host.
    pub(crate) fn path(&self) -> &str {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        rest.find('/').map_or("/", |at| &rest[at..])
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Default)]
pub(super) struct Record {
    pub requests: Vec<Request>,
    /// What should not be: errors on the console, exceptions, breaches of the policy, dialogs, windows, frames, crashes.
    pub problems: Vec<String>,
    /// Everything on the console, with its level.
    pub console: Vec<String>,
    /// Documents that are loaded, by the browser's id for it.
    pub loaded: HashSet<String>,
    /// Where the tab itself was led.
    pub navigations: Vec<String>,
    /// Tasks of threads while they were traced: process, thread, microseconds.
    tasks: Vec<(u64, u64, f64)>,
    /// Main threads of pages.
    mains: HashSet<(u64, u64)>,
    /// All of what was traced is there.
    pub traced: bool,
}

impl Record {
    pub(super) fn hear(&mut self, event: &str, params: &Value) {
        match event {
            "Runtime.consoleAPICalled" => {
                let args = params["args"].as_array().into_iter().flatten().map(printed);
                let text = args.collect::<Vec<_>>().join(" ");
                let level = params["type"].as_str().unwrap_or_default();
                self.console.push(format!("{level}: {text}"));
                if matches!(level, "error" | "assert") {
                    self.problems.push(format!("console: {text}"));
                }
            }
            "Runtime.exceptionThrown" => {
                self.problems.push(format!("exception: {}", thrown(&params["exceptionDetails"])));
            }
            "Log.entryAdded" => {
                let entry = &params["entry"];
                let text = format!("{} {}", string(&entry["text"]), string(&entry["url"]));
                self.console.push(format!("{}: {text}", string(&entry["level"])));
                if entry["level"] == "error" {
                    self.problems.push(refused(entry).unwrap_or_else(|| format!("console: {text}")));
                }
            }
            "Runtime.bindingCalled" => self.problems.push(format!("violation: {}", string(&params["payload"]))),
            "Page.javascriptDialogOpening" => {
                self.problems.push(format!("dialog: {} {}", string(&params["type"]), string(&params["message"])));
            }
            "Page.windowOpen" => self.problems.push(format!("window: {}", string(&params["url"]))),
            "Page.frameAttached" => self.problems.push("frame: a frame was attached".to_owned()),
            "Inspector.targetCrashed" => self.problems.push("crash: the tab crashed".to_owned()),
            "Page.frameNavigated" if params["frame"]["parentId"].is_null() => {
                self.navigations.push(string(&params["frame"]["url"]));
            }
            "Tracing.dataCollected" => params["value"].as_array().into_iter().flatten().for_each(|one| self.trace(one)),
            "Tracing.tracingComplete" => self.traced = true,
            "Page.lifecycleEvent" if params["name"] == "load" => {
                self.loaded.insert(string(&params["loaderId"]));
            }
            _ => self.hear_network(event, params),
        }
    }

    fn trace(&mut self, event: &Value) {
        let [process, thread] = ["pid", "tid"].map(|key| event[key].as_u64().unwrap_or_default());
        if event["name"] == "thread_name" && event["args"]["name"] == "CrRendererMain" {
            self.mains.insert((process, thread));
        } else if event["name"] == "ThreadControllerImpl::RunTask" {
            self.tasks.push((process, thread, event["dur"].as_f64().unwrap_or_default()));
        }
    }

    pub(super) fn begin_trace(&mut self) {
        self.tasks.clear();
        self.traced = false;
    }

    /// How long the traced tasks of pages' main threads took.
    pub(super) fn tasks(&self) -> Vec<Duration> {
        let of_mains = self.tasks.iter().filter(|(process, thread, _)| self.mains.contains(&(*process, *thread)));
        of_mains.map(|(_, _, micros)| Duration::from_secs_f64(micros / 1e6)).collect()
    }

    fn hear_network(&mut self, event: &str, params: &Value) {
        let id = string(&params["requestId"]);
        if event == "Network.requestWillBeSent" {
            let request = &params["request"];
            self.requests.push(Request {
                id,
                loader: string(&params["loaderId"]),
                url: string(&request["url"]),
                method: string(&request["method"]),
                kind: string(&params["type"]),
                body: request["postData"].as_str().map(str::to_owned),
                ..Request::default()
            });
            return;
        }
        let Some(request) = self.requests.iter_mut().rfind(|request| request.id == id) else { return };
        match event {
            "Network.responseReceived" => {
                let response = &params["response"];
                request.status = response["status"].as_u64().and_then(|status| status.try_into().ok());
                request.bytes = whole(&response["encodedDataLength"]);
                request.cached |= response["fromDiskCache"] == true;
                let headers = response["headers"].as_object().into_iter().flatten();
                request.headers = headers.map(|(name, value)| (name.to_lowercase(), string(value))).collect();
            }
            "Network.requestServedFromCache" => request.cached = true,
            "Network.dataReceived" => request.bytes += whole(&params["encodedDataLength"]),
            "Network.loadingFinished" => {
                request.ended = true;
                // Of the whole, and more exact than the sum of the parts.
                request.bytes = whole(&params["encodedDataLength"]);
            }
            "Network.loadingFailed" => {
                request.ended = true;
                let reason = [&params["blockedReason"], &params["errorText"]].map(string).join(" ");
                request.failed = Some(reason.trim().to_owned());
            }
            _ => {}
        }
    }
}

/// Of an answer with a status of 400 or more, which the browser itself puts on the console: "answer: 404 /path".
fn refused(entry: &Value) -> Option<String> {
    let (_, status) = entry["text"].as_str()?.split_once("responded with a status of ")?;
    let url = Request { url: string(&entry["url"]), ..Request::default() };
    Some(format!("answer: {} {}", status.split(' ').next()?, url.path()))
}

/// An exception with where it came from.
pub(super) fn thrown(details: &Value) -> String {
    let description = details["exception"]["description"].as_str().or(details["exception"]["value"].as_str());
    let description = description.map_or_else(|| string(&details["text"]), str::to_owned);
    match details["url"].as_str() {
        Some(url) if !url.is_empty() => format!("{description} ({url}:{})", details["lineNumber"]),
        _ => description,
    }
}

fn printed(argument: &Value) -> String {
    let value = argument.get("value").map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    value.unwrap_or_else(|| string(&argument["description"]))
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The browser counts in floats.
fn whole(value: &Value) -> u64 {
    value.as_f64().map_or(0, |value| value as u64)
}
