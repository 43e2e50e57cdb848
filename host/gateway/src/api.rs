//! The API's routes: each file has a table of routes beside its handlers. docs/api.md describes them; `GET /openapi.json` is
//! generated from these tables and the handlers' types.

mod approvals;
mod audit;
mod board;
mod calls;
mod export;
mod figures;
mod files;
mod fleet;
mod folders;
mod indexes;
mod input;
mod listed_folders;
mod login;
mod memory;
mod messages;
mod metrics;
mod network;
mod pills;
mod preview;
mod providers;
mod range;
mod runs;
mod schedules;
mod search;
mod sessions;
mod settings;
mod shared_files;
mod skills;
mod state;
mod undo;
mod upload;
mod versions;
mod workspace;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware;
use axum::routing::MethodRouter;

use super::auth::Access;
use super::document::Route;
use super::error::ApiError;
use super::{App, auth, events, form, hook, mcp, openai, page};

pub(super) use self::providers::ProviderCalls;
pub(super) use self::sessions::status_of;
pub use self::undo::UndoLine;

/// All tables of routes, in the order of the document.
const TABLES: [&[Route]; 37] = [
    page::ROUTES,
    login::ROUTES,
    messages::ROUTES,
    versions::ROUTES,
    hook::ROUTES,
    openai::models::ROUTES,
    openai::chat::ROUTES,
    openai::responses::ROUTES,
    mcp::ROUTES,
    sessions::ROUTES,
    export::ROUTES,
    workspace::ROUTES,
    preview::ROUTES,
    search::ROUTES,
    runs::ROUTES,
    folders::ROUTES,
    listed_folders::ROUTES,
    shared_files::ROUTES,
    undo::ROUTES,
    approvals::ROUTES,
    network::ROUTES,
    board::ROUTES,
    calls::ROUTES,
    schedules::ROUTES,
    pills::ROUTES,
    events::ROUTES,
    skills::ROUTES,
    audit::ROUTES,
    indexes::ROUTES,
    memory::ROUTES,
    input::ROUTES,
    settings::ROUTES,
    providers::ROUTES,
    metrics::ROUTES,
    state::ROUTES,
    fleet::ROUTES,
    files::ROUTES,
];

fn routes() -> impl Iterator<Item = &'static Route> {
    TABLES.into_iter().flatten()
}

/// The router with all routes.
pub(super) fn router(app: App) -> Router {
    let router = routes()
        .fold(Router::new(), |router, route| router.route(route.path, guarded(&app, route.access, (route.router)())));
    router
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

    #[test]
    fn every_route_for_chats_says_which_sessions_it_shows() {
        for route in routes().filter(|route| route.access == Access::Chat) {
            assert!(auth::own::is_known(route.path), "{} is not in auth/own.rs", route.path);
        }
    }

    /// docs/openapi.json is generated from the routes and their handlers' types. `KISO_OPENAPI=1` writes it.
    #[test]
    fn the_document_in_docs_is_this_versions() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let made = format!("{:#}\n", serde_json::Value::from(crate::document::document(routes())));
        if std::env::var_os("KISO_OPENAPI").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap();
        assert!(made == kept, "docs/openapi.json is old: run `KISO_OPENAPI=1 cargo test -p kiso-gateway the_document`");
    }
}
