//! The initial directory in definitions of tools: command lines and file tools start in the session's first open folder, skills
//! see only its workspace.

use super::EXEC;
use kiso_llm::ToolSpec;
use serde_json::Value;

/// Text in descriptions that are written for sessions without a folder.
const IN_WORK: &str = "in /work";

/// Returns the definitions for a session whose first folder is at this path.
pub(super) fn in_folder(specs: Vec<ToolSpec>, folder: &str) -> Vec<ToolSpec> {
    specs.into_iter().map(|spec| ToolSpec { description: described(&spec, folder), ..spec }).collect()
}

fn described(spec: &ToolSpec, folder: &str) -> String {
    let text = &spec.description;
    if takes_file(&spec.parameters) {
        // A relative path of the folder would not resolve.
        return format!("{text}. Sees files of /work only: copy others there with {EXEC}");
    }
    if spec.name != EXEC {
        return text.replace(IN_WORK, &format!("in {folder} (or /work, by its whole path)"));
    }
    let both = format!("in {folder} and /work");
    match text.split_once(IN_WORK) {
        Some((before, rest)) => format!("{before}in {folder}{}", rest.replace(IN_WORK, &both)),
        None => text.clone(),
    }
}

/// Returns whether an argument of a skill is a file.
fn takes_file(parameters: &Value) -> bool {
    let is_file = |schema: &Value| schema["format"] == "file" || schema["items"]["format"] == "file";
    parameters["properties"].as_object().is_some_and(|all| all.values().any(is_file))
}

#[cfg(test)]
mod tests {
    use super::super::{editor, exec_spec};
    use super::*;
    use kiso_base::config;
    use serde_json::json;

    #[test]
    fn the_definitions_say_where_relative_paths_begin() {
        let skill = ToolSpec {
            name: "data".to_owned(),
            description: "Query a CSV file".to_owned(),
            parameters: json!({ "properties": { "file": { "type": "string", "format": "file" } } }),
        };
        let other = ToolSpec {
            name: "memory_search".to_owned(),
            description: "Search what is remembered".to_owned(),
            parameters: json!({ "properties": { "query": { "type": "string" } } }),
        };
        let mut specs = vec![exec_spec::spec(&[], &config::Exec::default())];
        specs.extend(editor::specs());
        specs.extend([skill, other.clone()]);
        for (before, after) in specs.iter().zip(in_folder(specs.clone(), "/project")) {
            let text = &after.description;
            let says = match before.name.as_str() {
                EXEC => "Run a bash command line in /project. curl,",
                "data" => "Query a CSV file. Sees files of /work only: copy others there with exec",
                "memory_search" => "Search what is remembered",
                _ => "in /project (or /work, by its whole path)",
            };
            assert!(text.contains(says), "{}: {text}", before.name);
            assert_eq!(before.parameters, after.parameters);
        }
        let exec = &in_folder(specs, "/project")[0].description;
        assert!(exec.contains("Only files in /project and /work outlive the line"), "{exec}");
    }
}
