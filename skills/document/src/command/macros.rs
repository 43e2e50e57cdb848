//! The macros that scripts have `soffice` run: a few statements of Basic about the document, from the profile's own modules.

use std::io::Write;

use super::{load, save};
use crate::error::{Error, Result};
use crate::kind::extension;
use crate::office::accept;
use crate::sheet::calculate;
use crate::xml::{Node, Xml};

/// Bytes of a module.
const MAX_MODULE: usize = 1 << 20;

/// One step of a macro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Accept,
    Calculate,
    Store,
}

/// Runs the macro that an address such as `vnd.sun.star.script:Standard.Module1.Name?language=Basic` names, on a file.
pub fn run(address: &str, profile: &str, file: &str, out: &mut dyn Write) -> Result<()> {
    let steps = steps(&sub(address, profile)?)?;
    let mut bytes = load(file)?;
    let mut is_stored = false;
    for step in steps {
        let end = extension(file);
        match (step, end.as_str()) {
            (Step::Store, _) => {
                save(file, &bytes, out)?;
                is_stored = true;
            }
            (Step::Accept, "docx" | "docm") => bytes = accept::accept(&bytes).map_err(super::with_path(file))?,
            (Step::Calculate, "xlsx" | "xlsm") => {
                bytes = calculate::calculate(&bytes).map_err(super::with_path(file))?.0
            }
            (Step::Accept, _) => return Err(Error::new(format!("{file}: changes are accepted in DOCX files only"))),
            (Step::Calculate, _) => {
                return Err(Error::new(format!("{file}: formulas are calculated in XLSX files only")));
            }
        }
    }
    if !is_stored {
        return Err(Error::new("the macro stores nothing"));
    }
    Ok(())
}

/// The lines of the macro.
fn sub(address: &str, profile: &str) -> Result<Vec<String>> {
    let path = address.split('?').next().unwrap_or_default();
    let path = path.strip_prefix("vnd.sun.star.script:").or_else(|| path.strip_prefix("macro:///")).unwrap_or(path);
    let parts: Vec<&str> = path.trim_end_matches("()").split('.').collect();
    let [library, module, name] = parts[..] else {
        return Err(Error::new(format!("`{address}` is not the address of a macro: LIBRARY.MODULE.NAME")));
    };
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    if ![library, module, name].into_iter().all(is_name) {
        return Err(Error::new(format!("`{address}` is not the address of a macro: LIBRARY.MODULE.NAME")));
    }
    let file = format!("{profile}/user/basic/{library}/{module}.xba");
    let bytes = load(&file)?;
    if bytes.len() > MAX_MODULE {
        return Err(Error::limit(&format!("{file}: it is too long"), MAX_MODULE));
    }
    let text = crate::charset::decode(&bytes, Some("utf-8"));
    let mut basic = String::new();
    let mut xml = Xml::new(&text);
    while let Some(node) = xml.next() {
        if let Node::Text(more) = node {
            basic.push_str(&more);
        }
    }
    let is_begin = |line: &&str| {
        let mut words = line.split(['(', ' ', '\t']).filter(|word| !word.is_empty());
        words.find(|word| !word.eq_ignore_ascii_case("public")).is_some_and(|word| word.eq_ignore_ascii_case("sub"))
            && words.next().is_some_and(|word| word.eq_ignore_ascii_case(name))
    };
    let mut lines = basic.lines().map(str::trim).skip_while(|line| !is_begin(line));
    if lines.next().is_none() {
        return Err(Error::new(format!("{file}: it has no macro `{name}`")));
    }
    Ok(lines.take_while(|line| !line.eq_ignore_ascii_case("end sub")).map(str::to_owned).collect())
}

/// Returns the steps of the lines.
fn steps(lines: &[String]) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for line in lines {
        let lower = line.to_ascii_lowercase();
        let (target, value) =
            lower.split_once('=').map_or(("", lower.as_str()), |(name, value)| (name.trim(), value.trim()));
        let is_variable = !target.is_empty() && target.chars().all(|c| c.is_alphanumeric() || c == '_');
        let known_value = ["thiscomponent", "createunoservice(", "array(", "stardesktop"];
        let call = lower.split('(').next().unwrap_or_default().trim();
        match call.rsplit('.').next().unwrap_or_default() {
            _ if lower.is_empty() || lower.starts_with(['\'']) || lower.starts_with("rem ") => {}
            _ if lower.starts_with("dim ")
                || is_variable && known_value.iter().any(|known| value.starts_with(known)) => {}
            "calculateall" | "calculate" => steps.push(Step::Calculate),
            "store" => steps.push(Step::Store),
            "close" | "dispose" | "terminate" => {}
            "executedispatch" => match lower.split('"').nth(1) {
                Some(".uno:acceptalltrackedchanges") => steps.push(Step::Accept),
                Some(".uno:calculate" | ".uno:calculatehard") => steps.push(Step::Calculate),
                Some(".uno:save") => steps.push(Step::Store),
                Some(".uno:closedoc") => {}
                _ => return Err(unknown(line)),
            },
            _ => return Err(unknown(line)),
        }
    }
    Ok(steps)
}

fn unknown(line: &str) -> Error {
    let there = "a macro can calculate a workbook, accept the changes of a document, and store it";
    Error::new(format!("`{line}` is a statement of Basic that is not available here; {there}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_are_read() {
        let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
        let recalculate = "ThisComponent.calculateAll()\nThisComponent.store()\nThisComponent.close(True)";
        assert_eq!(steps(&lines(recalculate)).unwrap(), [Step::Calculate, Step::Store]);
        let accept = "Dim document As Object\n' words\ndocument = ThisComponent.CurrentController.Frame\n\
            dispatcher = createUnoService(\"com.sun.star.frame.DispatchHelper\")\n\n\
            dispatcher.executeDispatch(document, \".uno:AcceptAllTrackedChanges\", \"\", 0, Array())\nThisComponent.store()";
        assert_eq!(steps(&lines(accept)).unwrap(), [Step::Accept, Step::Store]);
        for wrong in
            ["Shell(\"rm\")", "x = Shell(\"rm\")", "dispatcher.executeDispatch(d, \".uno:Quit\", 0)", "MsgBox 1"]
        {
            assert!(steps(&lines(wrong)).unwrap_err().to_string().contains("not available here"), "{wrong}");
        }
        for wrong in ["macro:///A.B", "macro:///../B.C.D", "vnd.sun.star.script:A.B/../C.D"] {
            assert!(sub(wrong, "/nonexistent").unwrap_err().to_string().contains("address of a macro"), "{wrong}");
        }
    }
}
