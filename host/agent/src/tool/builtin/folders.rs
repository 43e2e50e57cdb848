//! `save_to_folder`: copies a file of the workspace to a folder of the user. It is offered if config.toml lists a folder.

use serde_json::{Value, json};

use super::{Builtins, CallContext, Tool, ToolFault, text, tool};
use crate::tool::deliver::{DeliveredFile, DeliveryError, DeliveryRequest, SHARED_FOLDER};
use kiso_base::config::Config;
use kiso_base::home::FolderRefusal;
use kiso_plan::code::ErrorCode;
use kiso_plan::report::size;

pub(super) const CATEGORY: &str = "folders";
pub(super) const SAVE: &str = "save_to_folder";

pub(super) fn tools(config: &Config) -> Vec<Tool> {
    if !config.folders.iter().any(|folder| folder.write) {
        return Vec::new();
    }
    vec![tool(
        SAVE,
        CATEGORY,
        "Save a file of /work in a folder of the user. A file that is there is never replaced.",
        json!({
            "file": { "type": "string", "minLength": 1, "maxLength": 1_024, "description": "below /work, such as pub/chart.png" },
            "folder": { "type": "string", "minLength": 1, "maxLength": 32, "description": "name of the folder, as the rights list it, or shared, which is /shared" },
            "name": { "type": "string", "minLength": 1, "maxLength": 200, "description": "of the file there, if not its own" },
        }),
        &["file", "folder"],
    )]
}

/// Returns the file that a call names.
pub(super) fn request(args: &Value, at: &CallContext) -> DeliveryRequest {
    let name = args.get("name").and_then(Value::as_str).map(str::to_owned);
    let (file, folder) = (text(args, "file").to_owned(), text(args, "folder").to_owned());
    DeliveryRequest { caller: at.caller, file, folder, name }
}

pub(super) async fn call(builtins: &Builtins, args: &Value, at: &CallContext) -> Result<String, ToolFault> {
    let (request, config, home) = (request(args, at), builtins.config.clone(), builtins.skills.home().clone());
    let (session, folder) = (at.session.clone(), request.folder.clone());
    let listed = config.folders.iter().filter(|folder| folder.write && folder.is_open_to(at.caller));
    let names: Vec<String> = listed.map(|folder| folder.name.clone()).chain([SHARED_FOLDER.to_owned()]).collect();
    let deliver = move || request.deliver(&home, &config, &session);
    let done = tokio::task::spawn_blocking(deliver).await.map_err(|error| ToolFault::new(error.to_string()))?;
    let file = done.map_err(|error| fault(error, &names))?;
    Ok(saved(&file, &format!("the folder {folder}")))
}

/// Returns the result for a model whose file was saved.
pub(crate) fn saved(file: &DeliveredFile, place: &str) -> String {
    format!("Saved as {:?} ({}) in {place}; `kiso undo` takes it back.", file.name, size(file.bytes))
}

/// Returns the error for a model whose file was not saved. `names` are the available folders.
pub(crate) fn fault(error: DeliveryError, names: &[String]) -> ToolFault {
    let fault = ToolFault::new(error.to_string());
    match error {
        DeliveryError::Folder(FolderRefusal::Unlisted(_) | FolderRefusal::ReadOnly(_)) => {
            let hint = match names {
                [] => "config.toml lists no folder to save in".to_owned(),
                names => format!("there are {}", names.join(", ")),
            };
            ToolFault { code: ErrorCode::BadArgs, ..fault }.hint(hint)
        }
        DeliveryError::File { .. } | DeliveryError::Name(_) => ToolFault { code: ErrorCode::BadArgs, ..fault },
        _ => fault,
    }
}
