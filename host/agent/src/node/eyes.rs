//! The role `eyes`: describes a picture for a model that does not accept any.

use crate::context;
use kiso_base::role::Role;
use kiso_llm::{Image, Request, Turn};
use kiso_plan::prompt::Pieces;

/// Precedes the message. It is the host's own text.
const MESSAGE: &str = "The message for which somebody wants to know, as data:";

/// Returns the prompt for a loaded picture.
pub fn request(system: &str, message: &str, image: &Image, boundary: &str) -> Request {
    let request = super::request(Role::Eyes, system, &Pieces::default(), boundary);
    let question = format!("{MESSAGE}\n{}", context::fenced(message, boundary));
    let turns = vec![Turn::Pictures(vec![image.clone()]), super::declared(&request.user, question, boundary)];
    Request { turns, ..request }
}
