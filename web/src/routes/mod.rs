//! The addresses of the dashboard, one file for each page or resource.
//!
//! | address | content |
//! | --- | --- |
//! | `/` | what is not as expected, what changed since yesterday, what is running |
//! | `/runs` | runs, newest first, paged |
//! | `/compare` | the differences between two runs |
//! | `/matrix` | the newest complete run of each target, by case |
//! | `/pairs` | initiators against responders |
//! | `/targets` | the targets with their current runs |
//! | `/targets/{target}` | the runs of a target |
//! | `/targets/{target}/baseline` | the target's baseline, with its stale entries marked |
//! | `/targets/{target}/start`, `/targets/{target}/stop` | an operator starts and stops runs |
//! | `/runs/{run}` | a run, live until it ends |
//! | `/runs/{run}/again` | an operator reruns all or some cases of the run |
//! | `/runs/{run}/delete` | an operator deletes the run |
//! | `/runs/{run}/sections` | the requirements of the run by sections of the specifications |
//! | `/runs/{run}/export.zip` | report, evidence and hashes of the run as one file |
//! | `/runs/{run}/events` | the Server-Sent Events of the run |
//! | `/runs/{run}/cases/{case}` | one case; `{case}` is [`CaseKey::path`](weft_suites::model::CaseKey::path) |
//! | `/runs/{run}/evidence/{kind}/{case}` | a file of the case: `pcapng` or `transcript` |
//! | `/captures` | captures of the folder; a POST adds a capture |
//! | `/captures/{id}` | packets of a capture, filtered, paged |
//! | `/captures/{id}/packets/{number}` | fields and bytes of a packet |
//! | `/captures/{id}/findings`, `connections`, `connections/{stream}`, `operations`, `io`, `statistics` | other pages of a capture |
//! | `/captures/{id}/live`, `events` | the live page of a growing capture, and the page's events |
//! | `/captures/{id}/file`, `delete` | downloads the file, deletes the file |
//! | `/assets/{name}` | style sheet and scripts |
//! | `/login`, `/logout` | signing in and out |
//! | `/api/...` | the content of the pages as JSON; `/api/openapi.json` describes the API |
//! | `/metrics` | metrics for Prometheus |
//! | `/healthz` | the health check |
//!
//! The `{id}` of a capture is a hash of the file name. For the capture of a case it is
//! `RUN~INDEX`, with the index of the case in the plan of the run.

mod api;
mod assets;
mod captures;
mod case;
mod compare;
mod control;
mod events;
mod evidence;
mod export;
mod extract;
mod find;
mod health;
mod home;
mod login;
mod matrix;
mod metrics;
mod pairs;
mod run;
mod runs;
mod sections;
mod store_available;
mod targets;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::app::App;
use crate::authorize::authorize;
use crate::failure::Failure;
use crate::guard::guard;
use store_available::require_store;

pub(crate) use events::READERS;

/// All routes.
pub(crate) fn router(app: App) -> Router {
    of_store(&app)
        .merge(of_captures())
        .route("/targets/{target}/start", post(control::start))
        .route("/targets/{target}/stop", post(control::stop))
        .route("/runs/{run}/again", post(control::again))
        .route("/runs/{run}/delete", post(control::delete))
        .route("/assets/{name}", get(assets::file))
        .route("/login", get(login::page).post(login::sign_in))
        .route("/logout", post(login::sign_out))
        .nest("/api", api::routes(&app))
        .route("/healthz", get(health::check))
        .fallback(|| async { Failure::NotFound("There is no such page.") })
        // A request passes the layers in reverse order: first `guard`, then `authorize`.
        .layer(from_fn_with_state(app.clone(), authorize))
        .layer(from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

/// Pages that read the store.
fn of_store(app: &App) -> Router<App> {
    Router::new()
        .route("/", get(home::page))
        .route("/runs", get(runs::page))
        .route("/compare", get(compare::page))
        .route("/matrix", get(matrix::page))
        .route("/targets", get(targets::list))
        .route("/targets/{target}", get(targets::page))
        .route("/targets/{target}/baseline", get(targets::baseline))
        .route("/runs/{run}", get(run::page))
        .route("/runs/{run}/sections", get(sections::page))
        .route("/runs/{run}/export.zip", get(export::zip))
        .route("/pairs", get(pairs::page))
        .route("/runs/{run}/events", get(events::stream))
        .route("/runs/{run}/cases/{*case}", get(case::page))
        .route("/runs/{run}/evidence/{kind}/{*case}", get(evidence::file))
        .route("/metrics", get(metrics::page))
        .route_layer(from_fn_with_state(app.clone(), require_store))
}

fn of_captures() -> Router<App> {
    Router::new()
        .route("/captures", get(captures::list::page).post(captures::upload::form))
        // The upload route checks the length itself.
        .layer(DefaultBodyLimit::disable())
        .route("/captures/{id}", get(captures::packets::list))
        .route("/captures/{id}/packets/{number}", get(captures::packets::one))
        .route("/captures/{id}/findings", get(captures::parts::findings))
        .route("/captures/{id}/connections", get(captures::parts::connections))
        .route("/captures/{id}/connections/{stream}", get(captures::parts::connection))
        .route("/captures/{id}/operations", get(captures::parts::operations))
        .route("/captures/{id}/io", get(captures::parts::commands))
        .route("/captures/{id}/statistics", get(captures::parts::statistics))
        .route("/captures/{id}/live", get(captures::live::page))
        .route("/captures/{id}/events", get(captures::live::events))
        .route("/captures/{id}/file", get(captures::file::file))
        .route("/captures/{id}/delete", post(captures::delete::form))
}
