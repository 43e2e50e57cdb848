//! One tab: where it is led, what it is asked, what it looks like, and what must not have happened in it.

use super::record::{Record, Request, thrown};
use super::wire::{PATIENCE, Wire};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long between two looks at something that is waited for: at first, and where it takes longer. Each look costs the
/// browser time that it needs to bring about what is looked for.
const LOOK: Duration = Duration::from_millis(10);
const LONGEST_LOOK: Duration = Duration::from_millis(80);

/// Runs before anything of a page does. What the policy refused is told by a binding, which no page can take away.
const WATCH: &str = "(() => { const tell = globalThis.kisoViolation; delete globalThis.kisoViolation;
document.addEventListener('securitypolicyviolation', (event) => tell(
  `${event.effectiveDirective} of ${event.blockedURI || 'inline'} at ${event.sourceFile || 'the document'}:${event.lineNumber} ${event.sample}`)); })()";

/// A tab of the browser. When a test ends well and its tab has seen what should not be, the test fails after all.
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

    /// Another tab of the same profile, as when a person opens the page twice.
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
        // In a window of its own: a tab behind another one is not drawn.
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
                    // Else the page stands still.
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

    /// A method of the protocol.
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

    /// Leads the tab to an address, and waits until the document is loaded.
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

    /// The value of an expression; of a promise, what it becomes.
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
        // A document that is being replaced has no answer yet.
        self.wait(expression, || self.try_eval(&format!("!!({expression})")).is_ok_and(|value| value == true));
    }

    /// Waits until something that can be seen is so.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, so: impl Fn() -> bool) {
        let (began, mut pause) = (Instant::now(), LOOK);
        while !so() {
            assert!(began.elapsed() < PATIENCE, "it did not come about: {what}\n{}", self.describe());
            std::thread::sleep(pause);
            pause = LONGEST_LOOK.min(pause * 3 / 2);
        }
    }

    /// The text that stands on the page.
    pub(crate) fn text(&self) -> String {
        let text = self.try_eval("document.body?.innerText ?? ''").unwrap_or_else(Value::String);
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a text stands on the page.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) {
        self.wait(&format!("the page shows {text:?}"), || self.text().contains(text));
    }

    /// Width and height in pixels of CSS; `mobile` for a phone with a touch screen.
    pub(crate) fn set_viewport(&self, width: u32, height: u32, mobile: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.call("Emulation.setDeviceMetricsOverride", size);
        self.call("Emulation.setTouchEmulationEnabled", json!({ "enabled": mobile }));
    }

    /// "light" or "dark", as the system says it.
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

    /// Cuts the network of this tab, or mends it.
    pub(crate) fn set_offline(&self, offline: bool) {
        let conditions = json!({ "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        self.call("Network.emulateNetworkConditions", conditions);
    }

    /// Gives the tab's profile a cookie that no script can read.
    #[track_caller]
    pub(crate) fn set_cookie(&self, url: &str, name: &str, value: &str) {
        let cookie = json!({ "name": name, "value": value, "url": url, "httpOnly": true, "sameSite": "Strict" });
        self.call("Network.setCookie", cookie);
    }

    /// Lets the page and the test use the clipboard, which a person allows with a click. There is one for all tabs, so this one has it
    /// alone until what is returned goes.
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

    /// How long each task of the page's main thread took while something was done. Other tabs of the browser count as well.
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

    /// What is seen, as PNG.
    pub(crate) fn screenshot(&self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        super::input::from_base64(shot["data"].as_str().expect("it is a picture"))
    }

    /// What the page has asked for so far, in order.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.record().requests.clone()
    }

    /// Those to paths that begin so.
    pub(crate) fn requests_to(&self, path: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.path().starts_with(path)).collect()
    }

    /// Those since the document was loaded last.
    pub(crate) fn requests_of_this_load(&self) -> Vec<Request> {
        let all = self.requests();
        let last = all.iter().rposition(|request| request.kind == "Document").unwrap_or(0);
        // The document before may ask for something until the next one takes its place.
        let (before, here) = all.split_at(last);
        let of_before = |request: &&Request| before.iter().any(|old| old.loader == request.loader);
        here.iter().filter(|request| !of_before(request)).cloned().collect()
    }

    pub(crate) fn forget_requests(&self) {
        self.record().requests.clear();
    }

    /// Documents that the tab was led to so far.
    pub(crate) fn navigations(&self) -> Vec<String> {
        self.record().navigations.clone()
    }

    /// Everything on the console so far, with its level.
    pub(crate) fn console(&self) -> Vec<String> {
        self.record().console.clone()
    }

    /// What should not be and was not expected.
    pub(crate) fn problems(&self) -> Vec<String> {
        let expected = self.expected.borrow();
        let problems = self.record().problems.clone();
        problems.into_iter().filter(|problem| !expected.iter().any(|part| problem.contains(part.as_str()))).collect()
    }

    /// A problem with this text in it belongs to the test.
    pub(crate) fn expects(&self, part: &str) -> &Self {
        self.expected.borrow_mut().push(part.to_owned());
        self
    }

    /// Fails if anything happened that should not; else done when the test ends.
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

    /// For the one who reads that a test failed: where the tab is, what it shows, what went wrong in it, and a picture.
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

    /// A picture of the tab in target/page, by the name of the test.
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
        // What a tab does while it is closed is not the test's.
        let problems = if std::thread::panicking() || self.checked.get() { Vec::new() } else { self.problems() };
        let description = if problems.is_empty() { String::new() } else { self.describe() };
        self.wire.leave(&self.session);
        self.wire.tell(Some(&self.session), "Page.close", &json!({}));
        assert!(problems.is_empty(), "this should not have happened in the browser: {problems:#?}\n{description}");
    }
}
