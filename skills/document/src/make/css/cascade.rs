//! Which declarations an element gets, and in which order.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use super::apply::apply;
use super::select::Pseudo;
use super::sheet::{Declaration, Sheet, declarations};
use super::style::Style;
use crate::limits;
use crate::make::dom::{Dom, Id};

/// Sheets with an index of their rules.
pub struct Cascade {
    sheet: Sheet,
    /// Rules before this number are the defaults.
    own: usize,
    index: HashMap<(char, String), Vec<usize>>,
    general: Vec<usize>,
    steps: Cell<usize>,
    /// Names of fonts from files, in lower case.
    fonts: Vec<String>,
}

impl Cascade {
    /// `own` is the number of rules that are defaults.
    pub fn new(sheet: Sheet, own: usize, fonts: Vec<String>) -> Self {
        let mut index: HashMap<(char, String), Vec<usize>> = HashMap::new();
        let mut general = Vec::new();
        for (number, rule) in sheet.rules.iter().enumerate() {
            match rule.selector.key() {
                Some((kind, name)) => index.entry((kind, name.to_owned())).or_default().push(number),
                None => general.push(number),
            }
        }
        Self { sheet, own, index, general, steps: Cell::new(limits::SELECTOR_STEPS), fonts }
    }

    pub fn sheet(&self) -> &Sheet {
        &self.sheet
    }

    /// The style of an element.
    pub fn style(&self, dom: &Dom, id: Id, parent: &Style) -> Style {
        let mut ordered = self.matching(dom, id, Pseudo::None);
        let hints = super::hints::hints(dom, id);
        let inline = dom.element(id).and_then(|element| element.get("style")).map(declarations).unwrap_or_default();
        let defaults = ordered.iter().take_while(|(number, _)| *number < self.own).count();
        let rest = ordered.split_off(defaults);
        let all = ordered.iter().flat_map(|(_, found)| found.iter()).chain(&hints);
        let all = all.chain(rest.iter().flat_map(|(_, found)| found.iter())).chain(&inline);
        let mut style = parent.child();
        apply(&mut style, parent, &in_order(all), &self.fonts);
        style
    }

    /// The style of text before or after what an element has, if there is any.
    pub fn pseudo(&self, dom: &Dom, id: Id, parent: &Style, pseudo: Pseudo) -> Option<Style> {
        let found = self.matching(dom, id, pseudo);
        if found.is_empty() {
            return None;
        }
        let mut style = parent.child();
        apply(&mut style, parent, &in_order(found.iter().flat_map(|(_, found)| found.iter())), &self.fonts);
        style.content.is_some().then_some(style)
    }

    /// The rules that fit, those of less weight first: defaults before the page's own.
    fn matching(&self, dom: &Dom, id: Id, pseudo: Pseudo) -> Vec<(usize, Rc<Vec<Declaration>>)> {
        let Some(element) = dom.element(id) else { return Vec::new() };
        let classes = element.get("class").unwrap_or_default().split_whitespace().take(64);
        let keys = classes.map(|class| ('.', class.to_owned()));
        let keys = keys.chain(element.get("id").map(|id| ('#', id.to_owned())));
        let keys = keys.chain([(' ', element.name.clone())]);
        // When the steps are used up, only the defaults count.
        let end = if self.steps.get() > 0 { usize::MAX } else { self.own };
        let until = |numbers: &Vec<usize>| numbers.partition_point(|number| *number < end);
        let mut numbers: Vec<usize> = Vec::new();
        for known in keys.filter_map(|key| self.index.get(&key)).chain([&self.general]) {
            numbers.extend_from_slice(&known[..until(known)]);
        }
        self.steps.set(self.steps.get().saturating_sub(numbers.len()));
        numbers.sort_unstable();
        numbers.dedup();
        let unlimited = Cell::new(usize::MAX);
        numbers.retain(|number| {
            let selector = &self.sheet.rules[*number].selector;
            let steps = if *number < self.own { &unlimited } else { &self.steps };
            selector.pseudo == pseudo && selector.fits(dom, id, steps)
        });
        numbers.sort_by_key(|number| (*number >= self.own, self.sheet.rules[*number].selector.weight, *number));
        numbers.into_iter().map(|number| (number, self.sheet.rules[number].declarations.clone())).collect()
    }
}

/// The important ones last.
fn in_order<'a>(all: impl Iterator<Item = &'a Declaration>) -> Vec<&'a Declaration> {
    let (important, mut plain): (Vec<_>, Vec<_>) = all.partition(|(_, _, important)| *important);
    plain.extend(important);
    plain
}
