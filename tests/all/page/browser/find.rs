//! Finding elements as a screen reader does: by role and name in the browser's accessibility tree.

use super::tab::Tab;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fmt::{Display, Formatter};

/// A search for elements.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Find<'a> {
    Role(&'a str, &'a str),
    Css(&'a str),
}

/// Finds an element by its role and a part of its name, ignoring case; exact matches come first. An empty name matches any.
pub(crate) fn role<'a>(role: &'a str, name: &'a str) -> Find<'a> {
    Find::Role(role, name)
}

/// Finds an element by a selector, if it has no role.
pub(crate) fn css(selector: &str) -> Find<'_> {
    Find::Css(selector)
}

impl Display for Find<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Find::Role(role, name) => write!(f, "{role} {name:?}"),
            Find::Css(selector) => f.write_str(selector),
        }
    }
}

/// An element of the page, valid while its document exists.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    pub(super) object: String,
}

impl Tab {
    /// The elements found now, in document order.
    pub(super) fn elements(&self, find: Find<'_>) -> Result<Vec<Element>, String> {
        match find {
            Find::Role(role, name) => self.by_role(role, name),
            Find::Css(selector) => {
                let list = json!({ "expression": format!("[...document.querySelectorAll({})]", json!(selector)) });
                self.items(&self.try_call("Runtime.evaluate", list)?)
            }
        }
    }

    /// The elements of an array in the page.
    fn items(&self, answer: &Value) -> Result<Vec<Element>, String> {
        let Some(list) = answer["result"]["objectId"].as_str() else {
            return Err(format!("no list: {answer}"));
        };
        let properties = self.try_call("Runtime.getProperties", json!({ "objectId": list, "ownProperties": true }))?;
        let properties = properties["result"].as_array().cloned().unwrap_or_default();
        let numbered = properties.iter().filter(|one| one["name"].as_str().is_some_and(|n| n.parse::<u32>().is_ok()));
        let objects = numbered.filter_map(|one| one["value"]["objectId"].as_str());
        Ok(objects.map(|object| Element { object: object.to_owned() }).collect())
    }

    fn by_role(&self, role: &str, name: &str) -> Result<Vec<Element>, String> {
        let found = self.nodes(role)?;
        let wanted = name.to_lowercase();
        let called = |node: &&Value| node["name"]["value"].as_str().unwrap_or_default().to_lowercase();
        let mut fits: Vec<&Value> = found.iter().filter(|node| called(node).contains(&wanted)).collect();
        if fits.iter().any(|node| called(node) == wanted) {
            fits.retain(|node| called(node) == wanted);
        }
        fits.iter().map(|node| self.element(&node["backendDOMNodeId"])).collect()
    }

    /// The visible nodes of a role in the accessibility tree.
    fn nodes(&self, role: &str) -> Result<Vec<Value>, String> {
        let document = self.try_call("Runtime.evaluate", json!({ "expression": "document" }))?;
        // The tree has another word for pictures.
        let role = if role == "img" { "image" } else { role };
        let asked = json!({ "objectId": document["result"]["objectId"], "role": role });
        let answer = self.try_call("Accessibility.queryAXTree", asked)?;
        let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
        Ok(nodes.into_iter().filter(|node| node["ignored"] != true).collect())
    }

    fn element(&self, node: &Value) -> Result<Element, String> {
        let resolved = self.try_call("DOM.resolveNode", json!({ "backendNodeId": node }))?;
        let object = resolved["object"]["objectId"].as_str().ok_or("it is gone")?;
        Ok(Element { object: object.to_owned() })
    }

    /// The names of all elements of a role, in order.
    #[track_caller]
    pub(crate) fn names(&self, role: &str) -> Vec<String> {
        let nodes = self.nodes(role).unwrap_or_else(|error| panic!("{role}: {error}"));
        nodes.iter().map(|node| node["name"]["value"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub(crate) fn count(&self, find: Find<'_>) -> usize {
        self.elements(find).map_or(0, |elements| elements.len())
    }

    pub(crate) fn has(&self, find: Find<'_>) -> bool {
        self.count(find) > 0
    }

    /// Waits until there is such an element.
    #[track_caller]
    pub(crate) fn wait_for(&self, find: Find<'_>) -> Element {
        // Returns the element of the first look: text that is still being written may be replaced before a second look.
        let found = RefCell::new(None);
        self.wait(&format!("there is {find}"), || {
            let first = self.elements(find).ok().and_then(|elements| elements.into_iter().next());
            let there = first.is_some();
            found.replace(first);
            there
        });
        found.into_inner().expect("it was waited for")
    }

    /// Waits until there is no such element.
    #[track_caller]
    pub(crate) fn wait_gone(&self, find: Find<'_>) {
        self.wait(&format!("{find} is gone"), || self.elements(find).is_ok_and(|elements| elements.is_empty()));
    }

    /// The result of a page function for an element: `function (a, b) { return this… }`.
    pub(super) fn on(&self, element: &Element, function: &str, args: &[Value]) -> Result<Value, String> {
        let args: Vec<Value> = args.iter().map(|value| json!({ "value": value })).collect();
        let asked = json!({
            "functionDeclaration": function, "objectId": element.object, "arguments": args,
            "awaitPromise": true, "returnByValue": true,
        });
        let mut answer = self.try_call("Runtime.callFunctionOn", asked)?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(super::record::thrown(details)),
            None => Ok(answer["result"]["value"].take()),
        }
    }

    /// The value of an expression with the first such element as `it`.
    #[track_caller]
    pub(crate) fn eval_on(&self, find: Find<'_>, expression: &str) -> Value {
        let element = self.wait_for(find);
        let function = format!("function () {{ const it = this; return ({expression}); }}");
        self.on(&element, &function, &[]).unwrap_or_else(|error| panic!("{find}: {error}\n{}", self.describe()))
    }

    /// Waits until an expression with the first such element as `it` is true.
    #[track_caller]
    pub(crate) fn wait_of(&self, find: Find<'_>, expression: &str) {
        let function = format!("function () {{ const it = this; return !!({expression}); }}");
        self.wait(&format!("{expression}, of {find}"), || {
            let found = self.elements(find).ok().and_then(|elements| elements.into_iter().next());
            found.is_some_and(|element| self.on(&element, &function, &[]).is_ok_and(|value| value == true))
        });
    }

    /// Role and name of the focused element, as in `button "Send"`.
    pub(crate) fn focused(&self) -> String {
        let focused = || -> Result<String, String> {
            let active = self.try_call("Runtime.evaluate", json!({ "expression": "document.activeElement" }))?;
            let asked = json!({ "objectId": active["result"]["objectId"], "fetchRelatives": false });
            let tree = self.try_call("Accessibility.getPartialAXTree", asked)?;
            let node = &tree["nodes"][0];
            let [role, name] = ["role", "name"].map(|key| node[key]["value"].as_str().unwrap_or_default());
            Ok(format!("{role} {name:?}"))
        };
        focused().unwrap_or_else(|error| error)
    }
}
