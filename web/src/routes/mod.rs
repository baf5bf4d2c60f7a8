//! The addresses of the dashboard, one file for each page or resource.
//!
//! | address | content |
//! | --- | --- |
//! | `/` | runs, newest first, paged |
//! | `/compare` | the differences between two runs |
//! | `/matrix` | the newest complete run of each target, by case |
//! | `/pairs` | initiators against responders |
//! | `/targets` | the targets with their current runs |
//! | `/targets/{target}` | the runs of a target |
//! | `/targets/{target}/baseline` | the entries of its baseline, and which are stale |
//! | `/targets/{target}/start`, `/targets/{target}/stop` | an operator starts and stops runs |
//! | `/runs/{run}` | a run, live until it ends |
//! | `/runs/{run}/again` | an operator reruns all or some of its cases |
//! | `/runs/{run}/sections` | the run by sections of the specifications |
//! | `/runs/{run}/export.zip` | its report, evidence and hashes as one file |
//! | `/runs/{run}/events` | its Server-Sent Events |
//! | `/runs/{run}/cases/{case}` | one case; `{case}` is [`CaseKey::path`](weft_suites::model::CaseKey::path) |
//! | `/runs/{run}/evidence/{kind}/{case}` | its `pcapng` or `transcript` |
//! | `/captures` | captures of the folder; a POST adds one |
//! | `/captures/{id}` | packets of a capture, filtered, paged; `{id}` is a hash of the file name, or names a case |
//! | `/captures/{id}/packets/{number}` | fields and bytes of a packet |
//! | `/captures/{id}/findings`, `connections`, `connections/{stream}`, `operations`, `statistics` | other pages of a capture |
//! | `/captures/{id}/live`, `events` | the live page of a growing capture; its Server-Sent Events |
//! | `/captures/{id}/file`, `delete` | downloads the file; deletes it |
//! | `/assets/{name}` | style sheet and scripts |
//! | `/login`, `/logout` | signing in and out |
//! | `/api/...` | the same as JSON; `/api/openapi.json` describes it |
//! | `/metrics` | metrics for Prometheus |
//! | `/healthz` | the health check |

mod api;
mod ask;
mod assets;
mod captures;
mod case;
mod compare;
mod control;
mod events;
mod evidence;
mod export;
mod find;
mod health;
mod login;
mod matrix;
mod metrics;
mod pairs;
mod run;
mod runs;
mod sections;
mod targets;
mod unless_gone;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::app::App;
use crate::door::door;
use crate::failure::Failure;
use crate::guard::guard;
use unless_gone::unless_gone;

pub(crate) use events::READERS;

/// All routes.
pub(crate) fn router(app: App) -> Router {
    of_store(&app)
        .merge(of_captures())
        .route("/targets/{target}/start", post(control::start))
        .route("/targets/{target}/stop", post(control::stop))
        .route("/runs/{run}/again", post(control::again))
        .route("/assets/{name}", get(assets::file))
        .route("/login", get(login::page).post(login::sign_in))
        .route("/logout", post(login::sign_out))
        .nest("/api", api::routes(&app))
        .route("/healthz", get(health::check))
        .fallback(|| async { Failure::NotFound("There is no such page.") })
        // A request passes the layers in reverse order.
        .layer(from_fn_with_state(app.clone(), door))
        .layer(from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

/// Pages that read the store.
fn of_store(app: &App) -> Router<App> {
    Router::new()
        .route("/", get(runs::page))
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
        .route_layer(from_fn_with_state(app.clone(), unless_gone))
}

fn of_captures() -> Router<App> {
    Router::new()
        .route("/captures", get(captures::list::page).post(captures::upload::form))
        // Uploads have a limit of their own.
        .layer(DefaultBodyLimit::disable())
        .route("/captures/{id}", get(captures::packets::list))
        .route("/captures/{id}/packets/{number}", get(captures::packets::one))
        .route("/captures/{id}/findings", get(captures::parts::findings))
        .route("/captures/{id}/connections", get(captures::parts::connections))
        .route("/captures/{id}/connections/{stream}", get(captures::parts::connection))
        .route("/captures/{id}/operations", get(captures::parts::operations))
        .route("/captures/{id}/statistics", get(captures::parts::statistics))
        .route("/captures/{id}/live", get(captures::live::page))
        .route("/captures/{id}/events", get(captures::live::events))
        .route("/captures/{id}/file", get(captures::file::file))
        .route("/captures/{id}/delete", post(captures::delete::form))
}
