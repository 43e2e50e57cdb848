//! Accessibility: on a phone, with the keyboard only, in dark mode, without animations.

use super::browser::{Tab, css, role};
use super::fill;
use super::stage::{MESSAGE, QUICK, Stage, manage};
use crate::harness::Home;

const SCREENS: [&str; 10] = [
    "#/s/talk",
    "#/s/chat-new",
    "#/run",
    "#/skills",
    "#/skills/chart",
    "#/sites",
    "#/schedule",
    "#/files",
    "#/usage",
    "#/health",
];

fn stage() -> Option<Stage> {
    let long = format!(
        "A word that is long: {} and a table:\n\n| {} |\n|{}|\n| {} |\n\n```\n{}\n```",
        "x".repeat(300),
        "head | ".repeat(12),
        "---|".repeat(12),
        "cell | ".repeat(12),
        "code ".repeat(80)
    );
    Stage::prepared(Home::new(), QUICK, |home| fill::session(home, "talk", ["Tell me".to_owned(), long]))
}

/// Nothing is wider than the window, except content that scrolls in its own box.
#[track_caller]
fn fits(tab: &Tab, screen: &str) {
    let wide = tab.eval("[document.documentElement.scrollWidth, innerWidth]");
    assert!(wide[0].as_u64() <= wide[1].as_u64(), "{screen} is {wide} wide\n{}", tab.describe());
}

#[track_caller]
fn show(stage: &Stage, screen: &str) {
    stage.tab.goto(&stage.url(screen));
    stage.tab.wait_for(role("heading", ""));
    stage.tab.wait_until("!document.querySelector('main .busy')");
}

#[test]
fn every_screen_fits_a_phone() {
    let Some(stage) = stage() else { return };
    let tab = &stage.tab;
    tab.set_viewport(390, 844, true);
    for screen in SCREENS {
        show(&stage, screen);
        fits(tab, screen);
        tab.audit(&format!("{screen} on a phone"));
    }
    // One header at a time: a conversation has its own, every other screen has that of the page.
    let heads = "[...document.querySelectorAll('.topbar, .chat-head')].filter((it) => it.checkVisibility()).map((it) => it.className)";
    for (screen, head) in [("#/usage", "topbar"), ("#/s/talk", "chat-head")] {
        show(&stage, screen);
        tab.wait_until(&format!("{heads}.join() === '{head}'"));
    }
    // The menu opens over the screen, and closes after a choice.
    tab.click(role("button", "Open the menu"));
    tab.audit("the menu on a phone");
    manage(tab, "Usage");
    tab.wait_until("location.hash === '#/usage'");
    tab.wait_for(role("button", "Open the menu"));
    tab.wait_for(role("heading", "Usage"));
    // Escape closes it, and returns the focus to its button; nothing behind it takes the focus.
    tab.click(role("button", "Open the menu"));
    tab.wait_until("document.getElementById('main').inert");
    tab.press("Escape");
    tab.wait("the button has the focus", || tab.focused() == "button \"Open the menu\"");
    assert_eq!(tab.eval("document.getElementById('main').inert"), false);
    // In landscape format, everything is still accessible.
    tab.set_viewport(740, 360, true);
    show(&stage, "#/s/talk");
    tab.click(role("link", "talk"));
    tab.click(super::stage::ACCOUNT);
    tab.wait_for(role("menuitem", "Log out"));
    tab.press("Escape");
    // The smallest common screen.
    tab.set_viewport(320, 568, true);
    for screen in SCREENS {
        show(&stage, screen);
        fits(tab, screen);
    }
}

#[test]
fn every_screen_is_readable_in_the_dark() {
    let Some(stage) = stage() else { return };
    let tab = &stage.tab;
    tab.set_theme("dark");
    for screen in SCREENS {
        show(&stage, screen);
        tab.audit(&format!("{screen} in the dark"));
    }
    let brightness = "getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).slice(0, 3).reduce((sum, n) => sum + Number(n), 0)";
    assert!(tab.eval(brightness).as_f64() < Some(200.0), "{}", tab.eval(brightness));
    // A chosen theme overrides the system's, in every tab.
    let other = tab.beside();
    other.set_theme("dark");
    other.goto(&stage.url("#/health"));
    other.wait_until(&format!("{brightness} < 200"));
    tab.click(super::stage::ACCOUNT);
    tab.click(role("menuitemradio", "Light"));
    tab.wait_until(&format!("{brightness} > 600"));
    other.wait_until(&format!("{brightness} > 600"));
    tab.reload();
    tab.wait_until(&format!("{brightness} > 600"));
}

/// Resets the focus, so that the next Tab key goes to the first stop.
const TO_THE_HEAD: &str =
    "document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute('tabindex')";

/// Whether the focused element, or the box around it, shows the focus.
const SHOWS_FOCUS: &str = "(() => {
  const it = document.activeElement;
  const boxes = [it, it.closest('.composer-box, .sessions-search, .skills-search, label')].filter(Boolean).map(getComputedStyle);
  return it === document.body || boxes.some((style) => style.outlineStyle !== 'none' || style.boxShadow !== 'none');
})()";

#[test]
fn all_of_it_is_reached_by_keyboard() {
    let Some(stage) = stage() else { return };
    let tab = &stage.tab;
    show(&stage, "#/s/talk");
    tab.wait_for(MESSAGE);
    // The first stop skips the menu.
    tab.eval(TO_THE_HEAD);
    tab.press("Tab");
    assert!(tab.focused().contains("Skip to the content"), "{}", tab.focused());
    tab.press("Enter");
    tab.wait("the content has the focus", || tab.eval("document.activeElement.id") == "main");
    // A full cycle: every control is a stop, has a name, and shows its focus.
    tab.eval(TO_THE_HEAD);
    let mut stops = Vec::new();
    for _ in 0..80 {
        tab.press("Tab");
        let stop = tab.focused();
        // The last stop is followed by the browser's own.
        if (stop.contains("Skip to the content") || stop.starts_with("none")) && !stops.is_empty() {
            break;
        }
        assert_eq!(tab.eval(SHOWS_FOCUS), true, "{stop} does not show that it has the focus\n{}", tab.describe());
        stops.push(stop);
    }
    for wanted in [
        "button \"New chat\"",
        "searchbox \"Search",
        "button \"Manage\"",
        "button \"Account and theme\"",
        "textbox \"Message\"",
        "log \"Messages\"",
    ] {
        assert!(stops.iter().any(|stop| stop.starts_with(wanted)), "{wanted} is not a stop: {stops:#?}");
    }
    assert!(stops.iter().all(|stop| !stop.ends_with("\"\"")), "something has no name: {stops:#?}");
    // A menu by keyboard.
    tab.focus(css(".chat-head > .menu button"));
    tab.press("Enter");
    tab.wait("its first entry has the focus", || tab.focused().starts_with("menuitem"));
    tab.press("ArrowDown");
    tab.press("Escape");
    tab.wait_gone(role("menu", ""));
    assert!(tab.focused().starts_with("button \"Actions for"), "{}", tab.focused());
}

#[test]
fn nothing_moves_for_who_does_not_want_it() {
    let Some(stage) = stage() else { return };
    let tab = &stage.tab;
    tab.set_reduced_motion(true);
    show(&stage, "#/s/talk");
    tab.click(role("button", "Account and theme"));
    let moving = "document.getAnimations().filter((it) => it.playState === 'running' && it.effect.getComputedTiming().duration > 1
      && !it.effect.target.matches('.spinner')).length";
    tab.wait_until(&format!("{moving} === 0"));
    let declared = tab.eval("[...document.querySelectorAll('*')].filter((it) => getComputedStyle(it).transitionDuration.split(',').some((time) => parseFloat(time) > 0.01)).map((it) => it.className)");
    assert_eq!(declared, serde_json::json!([]), "these still move");
}

/// Announcements for screen readers: the speaker, and a finished reply, but not each piece of it.
#[test]
fn a_reply_is_announced_once() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("heard");
    tab.eval("window.heard = []; new MutationObserver((all) => { for (const { target } of all) { const it = (target.nodeType === 1 ? target : target.parentElement)?.closest('[aria-live=polite], [aria-live=assertive], [role=alert]'); if (it?.textContent && window.heard.at(-1) !== it.textContent) window.heard.push(it.textContent); } }).observe(document.body, { subtree: true, childList: true, characterData: true }), 0");
    stage.say("$ echo hello there");
    tab.wait_for(role("button", "Copy reply"));
    tab.wait_until("window.heard.some((text) => text.includes('kiso replied'))");
    let heard = tab.eval("window.heard.filter((text) => text.includes('hello there')).length");
    assert_eq!(heard, 1, "{}", tab.eval("window.heard"));
    tab.wait_for(role("article", "kiso,"));
    assert_eq!(tab.eval_on(role("log", "Messages"), "it.getAttribute('aria-live')"), "off");
}
