//! The routes, and what stands behind each. docs/api.md describes them; `GET /openapi.json` does so for programs.

mod board;
mod export;
mod figures;
mod files;
mod input;
mod login;
mod memory;
mod messages;
mod metrics;
mod pills;
mod range;
mod runs;
mod schedules;
mod search;
mod sessions;
mod settings;
mod skills;
mod state;
mod upload;
mod workspace;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware;
use axum::routing::{MethodFilter, MethodRouter, on};

use super::auth::Access;
use super::error::ApiError;
use super::{App, auth, events, form, page};

pub(super) use self::messages::whole_message;
pub(super) use self::sessions::status_of;

/// From one table: the list of what there is, which a test compares with the document, and the router that serves it.
macro_rules! routes {
    ($( $method:ident $path:literal $access:ident $handler:path; )*) => {
        /// Method, path and who may ask.
        #[cfg(test)]
        const ROUTES: &[(&str, &str, Access)] = &[$( (stringify!($method), $path, Access::$access), )*];

        fn served(app: &App) -> Router<App> {
            Router::new()$( .route($path, guarded(app, Access::$access, on(MethodFilter::$method, $handler))) )*
        }
    };
}

routes! {
    GET "/" Open page::index;
    GET "/page/{digest}/{*file}" Open page::file;
    POST "/login" Open login::log_in;
    POST "/logout" Chat login::log_out;
    GET "/me" Chat login::me;
    POST "/msg" Chat messages::send;
    GET "/messages/{id}" Chat messages::job;
    GET "/sessions" Chat sessions::list;
    PATCH "/sessions/{session}" Chat sessions::change;
    DELETE "/sessions/{session}" Admin sessions::delete;
    POST "/sessions/{session}/read" Chat sessions::read;
    GET "/sessions/{session}/messages" Chat sessions::of_session;
    GET "/sessions/{session}/export" Chat export::export;
    GET "/sessions/{session}/files" Chat workspace::list;
    GET "/sessions/{session}/files/{*path}" Chat workspace::show;
    PUT "/sessions/{session}/files/{*path}" Chat workspace::put;
    DELETE "/sessions/{session}/files/{*path}" Chat workspace::remove;
    GET "/search" Chat search::search;
    GET "/status/{session}" Chat sessions::status;
    GET "/runs" Chat runs::list;
    GET "/runs/{run}" Chat board::show;
    GET "/runs/{run}/trace" Chat runs::trace;
    POST "/runs/{run}/cancel" Chat runs::cancel;
    POST "/runs/{run}/retry" Chat runs::retry;
    GET "/schedules" Chat schedules::list;
    POST "/schedules" Chat schedules::add;
    PATCH "/schedules/{name}" Chat schedules::change;
    DELETE "/schedules/{name}" Chat schedules::remove;
    GET "/schedules/{name}/receipts" Chat schedules::receipts;
    POST "/schedules/{name}/run" Chat schedules::run;
    POST "/schedules/{name}/pause" Chat schedules::pause;
    POST "/schedules/{name}/resume" Chat schedules::resume;
    GET "/pills" Chat pills::list;
    PUT "/pills/{name}" Chat pills::put;
    DELETE "/pills/{name}" Chat pills::remove;
    GET "/events" Chat events::follow;
    GET "/skills" Chat skills::list;
    POST "/skills" Admin skills::add;
    GET "/skills/{name}" Chat skills::show;
    DELETE "/skills/{name}" Admin skills::remove;
    PUT "/skills/{name}/grants" Admin skills::grant;
    POST "/skills/{name}/call" Chat skills::call;
    GET "/memory" Admin memory::show;
    PATCH "/memory/core" Admin memory::change_core;
    DELETE "/memory/{id}" Admin memory::forget;
    GET "/facts" Admin memory::facts;
    POST "/facts" Admin memory::add_fact;
    PUT "/facts/{id}" Admin memory::change_fact;
    DELETE "/facts/{id}" Admin memory::forget_fact;
    GET "/input" Chat input::show;
    GET "/models" Chat settings::models;
    POST "/models/check" Admin settings::check;
    GET "/usage" Chat settings::usage;
    GET "/config" Admin settings::config;
    GET "/metrics" Chat metrics::metrics;
    GET "/health" Open state::health;
    GET "/health/details" Chat state::details;
    GET "/health/live" Open state::live;
    GET "/openapi.json" Open state::openapi;
    // Who knows the id may see the file.
    GET "/pub/{id}" Open files::published;
}

/// Everything that is served.
pub(super) fn router(app: App) -> Router {
    served(&app)
        .fallback(nothing)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(app.clone(), form::check))
        .with_state(app)
}

fn guarded(app: &App, access: Access, route: MethodRouter<App>) -> MethodRouter<App> {
    match access {
        Access::Open => route,
        access => route.route_layer(middleware::from_fn_with_state((app.clone(), access), auth::authenticate)),
    }
}

async fn nothing(request: Request) -> ApiError {
    ApiError::not_found(format!("there is nothing at {}", request.uri().path()))
        .hint("GET /openapi.json lists what there is")
}

async fn wrong_method(request: Request) -> ApiError {
    let what = format!("{} does not support {}", request.uri().path(), request.method());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The document names every route and no other, each with who may ask.
    #[test]
    fn the_document_is_the_table_of_routes() {
        let document: Value = serde_json::from_str(state::OPENAPI).unwrap();
        let mut documented = Vec::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let access = match &operation["security"] {
                    Value::Null => Access::Chat,
                    Value::Array(ways) if ways.is_empty() => Access::Open,
                    ways => {
                        assert_eq!(ways[0]["token"][0], "admin", "{method} {path}");
                        Access::Admin
                    }
                };
                documented.push((method.to_uppercase(), path.clone(), access));
            }
        }
        // What is the rest of a path has a mark in the table that the document does not know.
        let mut served: Vec<_> = ROUTES
            .iter()
            .map(|(method, path, access)| (method.to_string(), path.replace("{*", "{"), *access))
            .collect();
        documented.sort();
        served.sort();
        assert_eq!(documented, served);
    }
}
