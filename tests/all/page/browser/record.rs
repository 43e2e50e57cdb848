//! Events of a tab, as the browser reports them.

use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;

/// A request of the page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    id: String,
    /// Id of the document load that caused it.
    pub loader: String,
    pub url: String,
    pub method: String,
    /// "Document", "Script", "Fetch" …
    pub kind: String,
    pub body: Option<String>,
    /// `None` until the response's head arrives.
    pub status: Option<u16>,
    /// Headers of the response, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Size of head and compressed body in bytes.
    pub bytes: u64,
    /// Whether the response came from the browser's cache.
    pub cached: bool,
    pub ended: bool,
    pub failed: Option<String>,
}

impl Request {
    /// The part of the URL after the host.
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
    /// Problems: console errors, exceptions, policy violations, dialogs, windows, frames, crashes.
    pub problems: Vec<String>,
    /// Everything on the console, with its level.
    pub console: Vec<String>,
    /// Ids of loaded documents.
    pub loaded: HashSet<String>,
    /// Addresses to which the tab navigated.
    pub navigations: Vec<String>,
    /// Traced tasks of threads: process, thread, microseconds.
    tasks: Vec<(u64, u64, f64)>,
    /// Main threads of pages.
    mains: HashSet<(u64, u64)>,
    /// Whether the trace is complete.
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

    /// Durations of the traced tasks on pages' main threads.
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
                // The total, which is more exact than the sum of the parts.
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

/// A response with status 400 or more, which the browser reports on the console: "answer: 404 /path".
fn refused(entry: &Value) -> Option<String> {
    let (_, status) = entry["text"].as_str()?.split_once("responded with a status of ")?;
    let url = Request { url: string(&entry["url"]), ..Request::default() };
    Some(format!("answer: {} {}", status.split(' ').next()?, url.path()))
}

/// An exception with its location.
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

/// Converts the browser's floats.
fn whole(value: &Value) -> u64 {
    value.as_f64().map_or(0, |value| value as u64)
}
