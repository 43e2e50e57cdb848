//! A screen as different people have it before them: in the light, in the dark, on a phone.

use super::browser::Tab;

/// Asserts that axe-core finds nothing against the screen, in the light and in the dark, and that a phone has room for it.
#[track_caller]
pub(crate) fn audit_in_both(tab: &Tab, screen: &str) {
    // A colour that is on its way from one theme to the other belongs to neither.
    tab.set_reduced_motion(true);
    tab.set_theme("dark");
    tab.audit(&format!("{screen}, dark"));
    tab.set_theme("light");
    tab.audit_colours(&format!("{screen}, light"));
    tab.set_viewport(390, 844, true);
    tab.wait(&format!("{screen} fits on a phone"), || tab.eval("document.documentElement.scrollWidth") == 390);
    tab.set_viewport(1280, 800, false);
    // What is clicked next stands where it is drawn, and that is a frame later.
    tab.wait_until("innerWidth === 1280");
    tab.eval("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))");
    tab.set_reduced_motion(false);
}
