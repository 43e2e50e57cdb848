//! A screen as it is in the light and in the dark.

use super::browser::Tab;

/// Asserts that axe-core finds nothing against the screen, in the light and in the dark.
#[track_caller]
pub fn audit_in_both(tab: &Tab, screen: &str) {
    // A colour that is on its way from one theme to the other belongs to neither.
    tab.set_reduced_motion(true);
    for theme in ["dark", "light"] {
        tab.set_theme(theme);
        tab.audit(&format!("{screen}, {theme}"));
    }
    tab.set_reduced_motion(false);
}
