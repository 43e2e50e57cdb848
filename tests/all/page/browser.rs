//! A real Chromium, controlled as by a person: elements are found in the accessibility tree and used by input events.
//!
//! All tests of a process share one browser; each has its own profile. [`Tab`] fails a test that ends with an unexpected console
//! error, exception, violation of the content security policy, dialog or new window.
//!
//! Nothing leaves the machine: only loopback names resolve, and the proxy for all others does not exist.

#![allow(dead_code, unused_imports, reason = "the tests and the bench each use a part")]

// With paths, so that the bench can include this file.
#[path = "browser/audit.rs"]
mod audit;
#[path = "browser/find.rs"]
mod find;
#[path = "browser/input.rs"]
mod input;
#[path = "browser/record.rs"]
mod record;
#[path = "browser/tab.rs"]
mod tab;
#[path = "browser/wire.rs"]
mod wire;

pub(crate) use find::{Find, css, role};
pub(crate) use tab::Tab;

use serde_json::json;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use wire::Wire;

/// Program names of Chromium. Debian's come first, and of these the headless one: it takes half the time.
const NAMES: [&str; 5] =
    ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

const MISSING: &str = "there is no Chromium here (on Debian: apt install chromium-headless-shell)";

/// The variable that selects a browser other than those on the PATH.
const CHOICE: &str = "KISO_CHROMIUM";

const FLAGS: [&str; 21] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--hide-scrollbars",
    "--mute-audio",
    "--lang=en-US",
    "--force-color-profile=srgb",
    // Background tabs are drawn and timed like visible ones.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    // Build machines have a small /dev/shm.
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-extensions",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--proxy-server=127.0.0.1:9",
    "--proxy-bypass-list=127.0.0.1;localhost",
];

/// Runs the browser with its pipe on descriptors 3 and 4, where it expects it, and removes the profile afterwards. The browser
/// ends when the other end of the pipe is closed, however this process ended.
const RUN: &str = r#"dir=$1; shift
"$@" --user-data-dir="$dir" 3<&0 4>&1 </dev/null >"$dir/said" 2>&1
for _ in 1 2 3 4 5; do rm -rf "$dir" && exit 0; sleep 1; done"#;

/// The browser of this process.
pub(crate) struct Browser {
    wire: Arc<Wire>,
}

impl Browser {
    /// Returns `None`, with one message, if there is no Chromium.
    pub(crate) fn get() -> Option<&'static Browser> {
        static BROWSER: OnceLock<Option<Browser>> = OnceLock::new();
        BROWSER
            .get_or_init(|| {
                let found = installed();
                if found.is_none() {
                    kiso_tests::missing_tool("the page in a browser", MISSING);
                }
                found.map(Browser::start)
            })
            .as_ref()
    }

    fn start(program: PathBuf) -> Browser {
        let profile = tempfile::TempDir::with_prefix("kiso-chromium-").expect("there is room for a profile").keep();
        let mut command = Command::new("sh");
        command.args(["-c", RUN, "sh"]).arg(&profile).arg(&program).args(FLAGS);
        if rustix::process::geteuid().is_root() {
            command.arg("--no-sandbox");
        }
        // A separate process group: Ctrl-C ends the tests, and their end ends the browser.
        let group = std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child =
            group.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("sh starts");
        Browser { wire: Wire::new(child, profile.join("said")) }
    }

    /// Opens a tab in a new profile: without cookies and cache.
    #[track_caller]
    pub(crate) fn tab(&self) -> Tab {
        Tab::in_a_new_profile(&self.wire)
    }

    /// The version, as in "Chrome/156.0.0.0".
    pub(crate) fn version(&self) -> String {
        self.wire.call(None, "Browser.getVersion", &json!({})).expect("it says so")["product"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

fn installed() -> Option<PathBuf> {
    if let Some(choice) = std::env::var_os(CHOICE) {
        return Some(choice.into());
    }
    let path = std::env::var_os("PATH")?;
    NAMES.iter().find_map(|name| std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file()))
}
