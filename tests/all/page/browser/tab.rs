//! A tab: navigation, evaluation, screenshots, and checks for unexpected events.

use super::record::{Record, Request, thrown};
use super::wire::{PATIENCE, Wire};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pause between two looks while waiting: at first, and after a while. Each look takes time that the browser could use for the
/// awaited change.
const LOOK: Duration = Duration::from_millis(10);
const LONGEST_LOOK: Duration = Duration::from_millis(80);

/// Runs before the page's scripts. Policy violations are reported through a binding that the page cannot remove.
const WATCH: &str = "(() => { const tell = globalThis.kisoViolation; delete globalThis.kisoViolation;
document.addEventListener('securitypolicyviolation', (event) => tell(
  `${event.effectiveDirective} of ${event.blockedURI || 'inline'} at ${event.sourceFile || 'the document'}:${event.lineNumber} ${event.sample}`)); })()";

/// A tab of the browser. A test that passes fails after all if its tab recorded an unexpected problem.
pub(crate) struct Tab {
    pub(super) wire: Arc<Wire>,
    pub(super) session: String,
    profile: Arc<Profile>,
    record: Arc<Mutex<Record>>,
    expected: RefCell<Vec<String>>,
    media: RefCell<[(&'static str, &'static str); 2]>,
    checked: Cell<bool>,
}

/// Cookies, storage and cache that tabs share.
struct Profile {
    wire: Arc<Wire>,
    id: String,
}

impl Drop for Profile {
    fn drop(&mut self) {
        self.wire.tell(None, "Target.disposeBrowserContext", &json!({ "browserContextId": self.id }));
    }
}

impl Tab {
    #[track_caller]
    pub(super) fn in_a_new_profile(wire: &Arc<Wire>) -> Tab {
        let created = wire.call(None, "Target.createBrowserContext", &json!({ "disposeOnDetach": true }));
        let id = created.unwrap_or_else(|error| panic!("{error}"))["browserContextId"].as_str().unwrap().to_owned();
        Tab::open(wire, Arc::new(Profile { wire: wire.clone(), id }))
    }

    /// Opens another tab of the same profile, as when a person opens the page twice.
    #[track_caller]
    pub(crate) fn beside(&self) -> Tab {
        let tab = Tab::open(&self.wire, self.profile.clone());
        tab.expected.borrow_mut().clone_from(&self.expected.borrow());
        tab
    }

    #[track_caller]
    fn open(wire: &Arc<Wire>, profile: Arc<Profile>) -> Tab {
        let ask = |method: &str, params: Value| {
            wire.call(None, method, &params).unwrap_or_else(|error| panic!("{method}: {error}"))
        };
        // In a separate window: a tab behind another one is not drawn.
        let target = ask(
            "Target.createTarget",
            json!({ "url": "about:blank", "browserContextId": profile.id, "newWindow": true }),
        );
        let attached = ask("Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }));
        let session = attached["sessionId"].as_str().expect("it has one").to_owned();
        let record: Arc<Mutex<Record>> = Arc::default();
        let (heard, of) = (record.clone(), session.clone());
        wire.listen(
            &session,
            Arc::new(move |wire: &Wire, event: &str, params: &Value| {
                if event == "Page.javascriptDialogOpening" {
                    // An open dialog would block the page.
                    wire.tell(Some(&of), "Page.handleJavaScriptDialog", &json!({ "accept": false }));
                }
                heard.lock().unwrap_or_else(PoisonError::into_inner).hear(event, params);
            }),
        );
        let tab = Tab {
            wire: wire.clone(),
            session,
            profile,
            record,
            expected: RefCell::default(),
            media: RefCell::new([("prefers-color-scheme", "light"), ("prefers-reduced-motion", "no-preference")]),
            checked: Cell::new(false),
        };
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable", "DOM.enable"] {
            tab.call(domain, json!({}));
        }
        tab.call("Page.setLifecycleEventsEnabled", json!({ "enabled": true }));
        tab.call("Runtime.addBinding", json!({ "name": "kisoViolation" }));
        tab.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WATCH }));
        tab.call("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        tab.call("Emulation.setTimezoneOverride", json!({ "timezoneId": "UTC" }));
        tab.set_viewport(1280, 800, false);
        tab
    }

    /// Calls a method of the protocol.
    #[track_caller]
    pub(crate) fn call(&self, method: &str, params: Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    pub(super) fn try_call(&self, method: &str, params: Value) -> Result<Value, String> {
        self.wire.call(Some(&self.session), method, &params)
    }

    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Navigates to an address, and waits until the document is loaded.
    #[track_caller]
    pub(crate) fn goto(&self, url: &str) {
        let answer = self.call("Page.navigate", json!({ "url": url }));
        assert!(answer["errorText"].is_null(), "{url}: {}", answer["errorText"]);
        // Without a loader it was a fragment of the same document.
        if let Some(loader) = answer["loaderId"].as_str() {
            self.wait(&format!("{url} is loaded"), || self.record().loaded.contains(loader));
        }
    }

    #[track_caller]
    pub(crate) fn reload(&self) {
        let before = self.record().loaded.len();
        self.call("Page.reload", json!({}));
        self.wait("the document is loaded again", || self.record().loaded.len() > before);
    }

    /// The value of an expression; a promise is awaited.
    #[track_caller]
    pub(crate) fn eval(&self, expression: &str) -> Value {
        self.try_eval(expression).unwrap_or_else(|error| panic!("{expression}\n{error}\n{}", self.describe()))
    }

    pub(super) fn try_eval(&self, expression: &str) -> Result<Value, String> {
        let asked = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.try_call("Runtime.evaluate", asked)?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(thrown(details)),
            None => Ok(answer["result"]["value"].take()),
        }
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn wait_until(&self, expression: &str) {
        // A document that is being replaced gives no answer.
        self.wait(expression, || self.try_eval(&format!("!!({expression})")).is_ok_and(|value| value == true));
    }

    /// Waits until a condition holds.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, so: impl Fn() -> bool) {
        let (began, mut pause) = (Instant::now(), LOOK);
        while !so() {
            assert!(began.elapsed() < PATIENCE, "it did not come about: {what}\n{}", self.describe());
            std::thread::sleep(pause);
            pause = LONGEST_LOOK.min(pause * 3 / 2);
        }
    }

    /// The visible text of the page.
    pub(crate) fn text(&self) -> String {
        let text = self.try_eval("document.body?.innerText ?? ''").unwrap_or_else(Value::String);
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the page shows a text.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) {
        self.wait(&format!("the page shows {text:?}"), || self.text().contains(text));
    }

    /// Sets width and height in CSS pixels; `mobile` for a phone with a touch screen.
    pub(crate) fn set_viewport(&self, width: u32, height: u32, mobile: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.call("Emulation.setDeviceMetricsOverride", size);
        self.call("Emulation.setTouchEmulationEnabled", json!({ "enabled": mobile }));
    }

    /// Sets the system's theme, "light" or "dark".
    pub(crate) fn set_theme(&self, theme: &'static str) {
        self.set_media(0, theme);
    }

    pub(crate) fn set_reduced_motion(&self, reduced: bool) {
        self.set_media(1, if reduced { "reduce" } else { "no-preference" });
    }

    fn set_media(&self, which: usize, value: &'static str) {
        self.media.borrow_mut()[which].1 = value;
        let features = self.media.borrow().map(|(name, value)| json!({ "name": name, "value": value }));
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Disconnects the tab's network, or connects it again.
    pub(crate) fn set_offline(&self, offline: bool) {
        let conditions = json!({ "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        self.call("Network.emulateNetworkConditions", conditions);
    }

    /// Sets a cookie that scripts cannot read.
    #[track_caller]
    pub(crate) fn set_cookie(&self, url: &str, name: &str, value: &str) {
        let cookie = json!({ "name": name, "value": value, "url": url, "httpOnly": true, "sameSite": "Strict" });
        self.call("Network.setCookie", cookie);
    }

    /// Allows the page and the test to use the clipboard, as a person does with a click. All tabs share one clipboard, so this
    /// tab locks it until the returned guard is dropped.
    #[must_use = "others may use the clipboard when this is dropped"]
    #[track_caller]
    pub(crate) fn allow_clipboard(&self) -> MutexGuard<'static, ()> {
        static CLIPBOARD: Mutex<()> = Mutex::new(());
        let alone = CLIPBOARD.lock().unwrap_or_else(PoisonError::into_inner);
        let params = json!({
            "browserContextId": self.profile.id, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"],
        });
        self.wire.call(None, "Browser.grantPermissions", &params).unwrap_or_else(|error| panic!("{error}"));
        alone
    }

    /// The text in the clipboard.
    #[track_caller]
    pub(crate) fn clipboard(&self) -> String {
        self.eval("navigator.clipboard.readText()").as_str().unwrap_or_default().to_owned()
    }

    /// Durations of tasks on the page's main thread during `work`. Other tabs of the browser count as well.
    #[track_caller]
    pub(crate) fn tasks_during(&self, work: impl FnOnce()) -> Vec<Duration> {
        let categories = json!(["toplevel"]);
        let config = json!({ "recordMode": "recordContinuously", "includedCategories": categories });
        self.record().begin_trace();
        self.call("Tracing.start", json!({ "traceConfig": config, "transferMode": "ReportEvents" }));
        work();
        self.call("Tracing.end", json!({}));
        self.wait("the trace is there", || self.record().traced);
        self.record().tasks()
    }

    /// A screenshot as PNG.
    pub(crate) fn screenshot(&self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        super::input::from_base64(shot["data"].as_str().expect("it is a picture"))
    }

    /// Requests of the page so far, in order.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.record().requests.clone()
    }

    /// Requests to paths with this prefix.
    pub(crate) fn requests_to(&self, path: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.path().starts_with(path)).collect()
    }

    /// Requests since the last document was loaded.
    pub(crate) fn requests_of_this_load(&self) -> Vec<Request> {
        let all = self.requests();
        let last = all.iter().rposition(|request| request.kind == "Document").unwrap_or(0);
        // The previous document may send requests until the next one replaces it.
        let (before, here) = all.split_at(last);
        let of_before = |request: &&Request| before.iter().any(|old| old.loader == request.loader);
        here.iter().filter(|request| !of_before(request)).cloned().collect()
    }

    pub(crate) fn forget_requests(&self) {
        self.record().requests.clear();
    }

    /// Addresses to which the tab navigated so far.
    pub(crate) fn navigations(&self) -> Vec<String> {
        self.record().navigations.clone()
    }

    /// Everything on the console so far, with its level.
    pub(crate) fn console(&self) -> Vec<String> {
        self.record().console.clone()
    }

    /// Unexpected problems.
    pub(crate) fn problems(&self) -> Vec<String> {
        let expected = self.expected.borrow();
        let problems = self.record().problems.clone();
        problems.into_iter().filter(|problem| !expected.iter().any(|part| problem.contains(part.as_str()))).collect()
    }

    /// Marks problems that contain this text as expected.
    pub(crate) fn expects(&self, part: &str) -> &Self {
        self.expected.borrow_mut().push(part.to_owned());
        self
    }

    /// Fails if there are unexpected problems. Otherwise runs at the end of the test.
    #[track_caller]
    pub(crate) fn check(&self) {
        self.checked.set(true);
        let problems = self.problems();
        assert!(
            problems.is_empty(),
            "this should not have happened in the browser: {problems:#?}\n{}",
            self.describe()
        );
        self.checked.set(false);
    }

    /// A description for the report of a failed test: address, text, problems, and a screenshot.
    pub(crate) fn describe(&self) -> String {
        let url = self.try_eval("location.href").unwrap_or_else(Value::String);
        let mut text = self.text();
        if let Some((at, _)) = text.char_indices().nth(4_000) {
            text.truncate(at);
        }
        let record = self.record();
        let (console, problems) = (record.console.clone(), record.problems.clone());
        let open: Vec<_> = record.requests.iter().filter(|request| !request.ended).map(|r| r.url.clone()).collect();
        drop(record);
        let picture = self.picture().map_or_else(|error| error, |path| path.display().to_string());
        let console = &console[console.len().saturating_sub(30)..];
        format!(
            "at {url}\npicture: {picture}\nproblems: {problems:#?}\nconsole: {console:#?}\nopen requests: {open:?}\ntext: {text}"
        )
    }

    /// A screenshot in target/page under the test's name.
    fn picture(&self) -> Result<PathBuf, String> {
        let shot = self.try_call("Page.captureScreenshot", json!({ "format": "png" }))?;
        let dir = kiso_tests::root().join("target/page");
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("main").replace("::", "-");
        let path = dir.join(format!("{name}.png"));
        let bytes = super::input::from_base64(shot["data"].as_str().unwrap_or_default());
        std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(&path, bytes)).map_err(|error| error.to_string())?;
        Ok(path)
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        // Problems while the tab is closing do not count.
        let problems = if std::thread::panicking() || self.checked.get() { Vec::new() } else { self.problems() };
        let description = if problems.is_empty() { String::new() } else { self.describe() };
        self.wire.leave(&self.session);
        self.wire.tell(Some(&self.session), "Page.close", &json!({}));
        assert!(problems.is_empty(), "this should not have happened in the browser: {problems:#?}\n{description}");
    }
}
