//! Input of a person: clicks, keys, files.

use super::find::{Element, Find};
use super::tab::Tab;
use serde_json::{Value, json};
use std::path::Path;

/// Scrolls an element into view and returns the point to click: the middle of its first box. Returns null if it cannot be
/// clicked: no box, disabled, or covered.
const POINT: &str = "async function () {
  // Wait two frames: drawing may continue, and elements after a growing text move between frames.
  const frames = new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  await Promise.race([frames, new Promise((done) => setTimeout(done, 200))]);
  if (this.matches(':disabled') || this.getAttribute('aria-disabled') === 'true') return null;
  // At the edge of a scrolling area, another element may cover it.
  for (const block of ['nearest', 'center']) {
    this.scrollIntoView({ block, inline: 'nearest', behavior: 'instant' });
    const box = this.getClientRects()[0];
    if (!box || box.width < 1 || box.height < 1) return null;
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    const top = document.elementFromPoint(x, y);
    if (top && (this.contains(top) || top.contains(this) || [...(this.labels ?? [])].some((l) => l.contains(top)))) {
      globalThis.kisoTop = top;
      return [x, y];
    }
  }
  return null;
}";

/// Records whether a click reaches the wanted element, before the page handles it: the element may move away just then.
const HEAR_CLICK: &str = "function () {
  const [wanted, top] = [this, globalThis.kisoTop];
  globalThis.kisoMissed = false;
  addEventListener('click', ({ target }) => {
    globalThis.kisoMissed = target !== top && !wanted.contains(target);
  }, { capture: true, once: true });
}";

/// Maximum number of clicks on an element that moves away.
const CLICKS: usize = 5;

/// Maximum number of drops until the page receives one. A drop that the page refuses is never received.
const DROPS: usize = 5;

/// Records a drop that reached the document, before the page handles it.
const HEAR_DROP: &str = "globalThis.kisoDropHeard = false;
addEventListener('drop', () => { globalThis.kisoDropHeard = true; }, { capture: true, once: true })";

impl Tab {
    /// Waits until the element can be clicked, and clicks it.
    #[track_caller]
    pub(crate) fn click(&self, find: Find<'_>) {
        for _ in 0..CLICKS {
            let (element, x, y) = self.point(find);
            let hears = self.on(&element, HEAR_CLICK, &[]).is_ok();
            self.mouse("mouseMoved", x, y, 0);
            self.mouse("mousePressed", x, y, 1);
            self.mouse("mouseReleased", x, y, 1);
            // If another page was loaded since, the click was received.
            if !hears || self.try_eval("globalThis.kisoMissed === true").is_ok_and(|missed| missed != true) {
                return;
            }
        }
    }

    /// Waits until the element can be reached, and moves the pointer there.
    #[track_caller]
    pub(crate) fn hover(&self, find: Find<'_>) {
        let (_, x, y) = self.point(find);
        self.mouse("mouseMoved", x, y, 0);
    }

    fn mouse(&self, kind: &str, x: f64, y: f64, clicks: u8) {
        let button = if clicks > 0 { "left" } else { "none" };
        let event = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": clicks });
        self.call("Input.dispatchMouseEvent", event);
    }

    #[track_caller]
    fn point(&self, find: Find<'_>) -> (Element, f64, f64) {
        let found = std::cell::Cell::new(None);
        self.wait(&format!("{find} can be clicked"), || {
            let elements = self.elements(find).unwrap_or_default();
            // Twice at the same place: a moving element would not be hit.
            let at = |element: &Element| self.on(element, POINT, &[]).ok().filter(Value::is_array);
            let element = elements.into_iter().find_map(|element| {
                let first = at(&element)?;
                let place = (first[0].as_f64()?, first[1].as_f64()?);
                (at(&element)? == first).then_some((element, place))
            });
            let is_there = element.is_some();
            found.set(element);
            is_there
        });
        let (element, (x, y)) = found.take().unwrap_or_else(|| panic!("{find} is gone"));
        (element, x, y)
    }

    /// Turns the wheel over the element by this many pixels.
    #[track_caller]
    pub(crate) fn scroll(&self, find: Find<'_>, down: i32) {
        let (_, x, y) = self.point(find);
        let event = json!({ "type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": down });
        self.call("Input.dispatchMouseEvent", event);
    }

    #[track_caller]
    pub(crate) fn focus(&self, find: Find<'_>) {
        self.eval_on(find, "it.focus()");
    }

    /// Types into the focused element, key by key.
    pub(crate) fn type_text(&self, text: &str) {
        for c in text.chars() {
            if c == '\n' {
                self.press("Shift+Enter");
                continue;
            }
            let text = c.to_string();
            let key = json!({ "type": "keyDown", "key": text, "text": text, "unmodifiedText": text });
            self.call("Input.dispatchKeyEvent", key);
            self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": text }));
        }
    }

    /// Inserts a text at the focus at once, as an input method does.
    pub(crate) fn insert_text(&self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Presses a key with its modifiers, as in "Control+Enter", "Shift+Tab", "Escape", "k".
    #[track_caller]
    pub(crate) fn press(&self, keys: &str) {
        let mut parts: Vec<&str> = keys.split('+').collect();
        let key = parts.pop().expect("split gives one");
        let modifiers: u8 = parts.iter().map(|part| modifier(part)).sum();
        let (code, number, text) = known(key);
        // Chromium inserts text only if it is given, and shortcuts insert none.
        let text = if modifiers & !modifier("Shift") == 0 { text } else { String::new() };
        for kind in [if text.is_empty() { "rawKeyDown" } else { "keyDown" }, "keyUp"] {
            let key = if key == "Space" { " " } else { key };
            let mut event = json!({
                "type": kind, "key": key, "code": code, "modifiers": modifiers,
                "windowsVirtualKeyCode": number, "nativeVirtualKeyCode": number,
            });
            if kind == "keyDown" {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Drops a file on an element, as from the desktop.
    #[track_caller]
    pub(crate) fn drop_file(&self, find: Find<'_>, file: &Path) {
        self.drop_files(find, &[file]);
    }

    /// Drops several files on an element. The page may change meanwhile and the element under the files may disappear; a person
    /// would then try again, and so does this.
    #[track_caller]
    pub(crate) fn drop_files(&self, find: Find<'_>, files: &[&Path]) {
        self.eval(HEAR_DROP);
        for _ in 0..DROPS {
            let (_, x, y) = self.point(find);
            let data = json!({ "items": [], "files": files, "dragOperationsMask": 1 });
            for kind in ["dragEnter", "dragOver", "drop"] {
                self.call("Input.dispatchDragEvent", json!({ "type": kind, "x": x, "y": y, "data": data }));
            }
            if self.eval("globalThis.kisoDropHeard") == true {
                return;
            }
        }
    }

    /// Chooses a file in a file input.
    #[track_caller]
    pub(crate) fn choose_file(&self, find: Find<'_>, file: &Path) {
        let element = self.wait_for(find);
        self.call("DOM.setFileInputFiles", json!({ "files": [file], "objectId": element.object }));
    }

    /// Pastes a file at the focus, as a copied picture.
    #[track_caller]
    pub(crate) fn paste_file(&self, find: Find<'_>, name: &str, media_type: &str, bytes: &[u8]) {
        let element = self.wait_for(find);
        let paste = "function (name, type, bytes) {
          const data = new DataTransfer();
          data.items.add(new File([new Uint8Array(bytes)], name, { type }));
          this.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
        }";
        self.on(&element, paste, &[json!(name), json!(media_type), json!(bytes)])
            .unwrap_or_else(|error| panic!("{find}: {error}"));
    }
}

/// The modifier's bit in the protocol.
#[track_caller]
fn modifier(name: &str) -> u8 {
    match name {
        "Alt" => 1,
        "Control" => 2,
        "Meta" => 4,
        "Shift" => 8,
        _ => panic!("{name} is not a modifier"),
    }
}

/// Code, number and text of a key.
#[track_caller]
fn known(key: &str) -> (String, u32, String) {
    let (code, number, text) = match key {
        "Enter" => ("Enter", 13, "\r"),
        "Tab" => ("Tab", 9, ""),
        "Escape" => ("Escape", 27, ""),
        "Backspace" => ("Backspace", 8, ""),
        "Delete" => ("Delete", 46, ""),
        "Space" => ("Space", 32, " "),
        "ArrowLeft" => ("ArrowLeft", 37, ""),
        "ArrowUp" => ("ArrowUp", 38, ""),
        "ArrowRight" => ("ArrowRight", 39, ""),
        "ArrowDown" => ("ArrowDown", 40, ""),
        "Home" => ("Home", 36, ""),
        "End" => ("End", 35, ""),
        "PageUp" => ("PageUp", 33, ""),
        "PageDown" => ("PageDown", 34, ""),
        "F2" => ("F2", 113, ""),
        "." => ("Period", 190, "."),
        "/" => ("Slash", 191, "/"),
        "?" => ("Slash", 191, "?"),
        "=" => ("Equal", 187, "="),
        _ => {
            let upper = key.to_ascii_uppercase();
            let byte = match upper.as_bytes() {
                [byte] if byte.is_ascii_alphanumeric() => *byte,
                _ => panic!("{key} is not a key that is known here"),
            };
            let kind = if byte.is_ascii_digit() { "Digit" } else { "Key" };
            return (format!("{kind}{upper}"), u32::from(byte), key.to_owned());
        }
    };
    (code.to_owned(), number, text.to_owned())
}

/// Decodes bytes that the protocol sends as text.
pub(super) fn from_base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(u32::from(byte - b'A')),
        b'a'..=b'z' => Some(u32::from(byte - b'a') + 26),
        b'0'..=b'9' => Some(u32::from(byte - b'0') + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u32> = text.bytes().filter_map(value).collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let bits = group.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - group.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}
