//! The eyes: say what is on a picture, for a model that takes none.

use kiso_base::role::Role;
use kiso_llm::{Image, Request, Turn};
use kiso_plan::prompt::Pieces;

/// The prompt for a picture that has its content, with the message for which somebody wants to know.
pub fn request(system: &str, message: &str, image: &Image, boundary: &str) -> Request {
    let all = Pieces { original_message: Some(message.to_owned()), ..Pieces::default() };
    let request = super::request(Role::Eyes, system, &all, boundary);
    Request { turns: vec![Turn::Pictures(vec![image.clone()])], ..request }
}
