//! Checks of a screen in light and dark mode, and on a phone.

use super::browser::Tab;

/// Asserts that axe-core finds no violation in light and dark mode, and that the screen fits on a phone.
#[track_caller]
pub(crate) fn audit_in_both(tab: &Tab, screen: &str) {
    // A colour in transition belongs to neither theme.
    tab.set_reduced_motion(true);
    tab.set_theme("dark");
    tab.audit(&format!("{screen}, dark"));
    tab.set_theme("light");
    tab.audit_colours(&format!("{screen}, light"));
    tab.set_viewport(390, 844, true);
    tab.wait(&format!("{screen} fits on a phone"), || tab.eval("document.documentElement.scrollWidth") == 390);
    tab.set_viewport(1280, 800, false);
    // Elements are at their new places one frame later.
    tab.wait_until("innerWidth === 1280");
    tab.eval("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))");
    tab.set_reduced_motion(false);
}
