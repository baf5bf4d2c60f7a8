//! The API's description, OpenAPI 3.1: its schemas are JSON Schema, as `schemars` makes them from the types that are sent.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};
use weft_suites::diff::Diff;
use weft_suites::model::CaseResult;

use super::control::{Again, Start};
use super::model::{Accepted, Baseline, Cases, Matrix, Pairs, Run, Runs, Sections, Targets, Trend};
use super::{MOST_RUNS, RUNS};
use crate::app::Problem;

/// The document.
pub(super) fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = "/components/schemas".into();
    // It stands at the document's top.
    settings.meta_schema = None;
    let mut made = settings.into_generator();
    let run = parameter("run", "path", "Id of a run", &json!({"type": "string"}));
    let case = parameter("case", "path", "The `path` of a case, slashes and all", &json!({"type": "string"}));
    let list = [
        parameter("target", "query", "Runs of this target alone", &json!({"type": "string"})),
        parameter("before", "query", "Runs older than the one with this id", &json!({"type": "string"})),
        parameter(
            "limit",
            "query",
            "So many at most",
            &json!({"type": "integer", "minimum": 1, "maximum": MOST_RUNS, "default": RUNS}),
        ),
    ];
    let problem = made.subschema_for::<Problem>();
    let target = parameter("target", "path", "Name of a target", &json!({"type": "string"}));
    let job =
        parameter("job", "path", "Number of a job", &json!({"type": "integer", "minimum": 0, "maximum": u64::MAX}));
    let two = ["before", "after"].map(|name| {
        let mut one = parameter(name, "query", "Id of a run", &json!({"type": "string"}));
        one["required"] = true.into();
        one
    });
    let shown = [
        parameter("target", "query", "Part of the names of targets", &json!({"type": "string"})),
        parameter("case", "query", "Part of the keys of cases", &json!({"type": "string"})),
        parameter(
            "show",
            "query",
            "Which cases: all, those that some target fails, those whose verdicts differ",
            &json!({"type": "string", "enum": ["all", "failing", "differing"], "default": "all"}),
        ),
    ];
    let (one_run, one_target) = (std::slice::from_ref(&run), std::slice::from_ref(&target));
    let made = &mut made;
    let mut paths = json!({
        "/api/runs": path::<Runs>(made, &problem, "Runs, newest first", &list, false),
        "/api/runs/{run}": path::<Run>(made, &problem, "One run", one_run, true),
        "/api/runs/{run}/cases": path::<Cases>(made, &problem, "Its plan and verdicts", one_run, true),
        "/api/runs/{run}/cases/{case}": path::<CaseResult>(made, &problem, "The result of one case", &[run.clone(), case], true),
        "/api/runs/{run}/sections": path::<Sections>(made, &problem, "It, by the sections of the specifications", one_run, true),
        "/api/targets": path::<Targets>(made, &problem, "Targets", &[], false),
        "/api/targets/{target}": path::<Trend>(made, &problem, "One target, from run to run", one_target, true),
        "/api/targets/{target}/baseline": path::<Baseline>(made, &problem, "What its baseline expects", one_target, true),
        "/api/compare": path::<Diff>(made, &problem, "What is different between two runs", &two, true),
        "/api/matrix": path::<Matrix>(made, &problem, "Targets against cases", &shown, false),
        "/api/pairs": path::<Pairs>(made, &problem, "Initiators against responders", &[], false),
    });
    paths["/api/runs/{run}/export.zip"] = zip(&problem, one_run);
    paths["/api/runs/{run}/again"] = act::<Again>(made, &problem, "Runs it, or some of its cases, once more", one_run);
    paths["/api/targets/{target}/runs"] = act::<Start>(made, &problem, "Starts a run", one_target);
    paths["/api/targets/{target}/jobs/{job}"] = stop(&problem, &[target, job]);
    if let Some(paths) = paths.as_object_mut() {
        paths.extend(super::captures::describe::paths(made, &problem));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "weft",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs, cases and targets of a results store; runs that are started and stopped; captures.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": made.take_definitions(true),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": crate::access::COOKIE},
            },
        },
        // Without tokens the server asks for none.
        "security": [{"token": []}, {"session": []}, {}],
    })
}

pub(super) fn parameter(name: &str, place: &str, about: &str, schema: &Value) -> Value {
    json!({"name": name, "in": place, "description": about, "required": place == "path", "schema": schema})
}

/// A resource that can be read. `is_named`: its address may name something that is not there.
pub(super) fn path<T: JsonSchema>(
    made: &mut SchemaGenerator,
    problem: &Schema,
    about: &str,
    parameters: &[Value],
    is_named: bool,
) -> Value {
    let mut answers = refusals(problem);
    answers["200"] = json!({"description": about, "content": json_of(&made.subschema_for::<T>())});
    if is_named {
        answers["404"] = told(problem, "There is no such thing");
    }
    if parameters.iter().any(|parameter| parameter["in"] == "query") {
        answers["400"] = told(problem, "The query is not understood");
    }
    json!({"get": {"summary": about, "parameters": parameters, "responses": answers}})
}

/// A run as a file.
fn zip(problem: &Schema, parameters: &[Value]) -> Value {
    let about = "Its report, evidence and hashes";
    let mut answers = refusals(problem);
    answers["200"] = json!({"description": about, "content": {"application/zip": {}}});
    answers["404"] = told(problem, "There is no such run");
    answers["503"] = told(problem, "Others are at it; again in a second (Retry-After)");
    json!({"get": {"summary": about, "parameters": parameters, "responses": answers}})
}

/// Something that an operator asks for by a document.
fn act<T: JsonSchema>(made: &mut SchemaGenerator, problem: &Schema, about: &str, parameters: &[Value]) -> Value {
    let mut answers = refusals(problem);
    answers["202"] = json!({"description": "It will run", "content": json_of(&made.subschema_for::<Accepted>())});
    answers["400"] = told(problem, "The document is not understood");
    answers["404"] =
        told(problem, "There is no such thing, nothing is selected, or the target may not be started from here");
    answers["409"] = told(
        problem,
        "The queue of the target is full, there is no run to resume, or the run to resume has a plan of its own",
    );
    answers["413"] = told(problem, "The document is too long");
    // What somebody sends has defaults; the schemas of answers know none.
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let body = settings.into_generator().into_root_schema_for::<T>();
    let body = json!({"required": true, "content": json_of(&body)});
    json!({"post": {"summary": about, "parameters": parameters, "requestBody": body, "responses": answers}})
}

/// A job that is stopped.
fn stop(problem: &Schema, parameters: &[Value]) -> Value {
    let about = "Stops a run, or takes it out of the queue; finished cases are kept";
    let mut answers = refusals(problem);
    answers["204"] = json!({"description": "It stops"});
    answers["404"] = told(problem, "There is no such target");
    answers["409"] = told(problem, "It is over already");
    json!({"delete": {"summary": about, "parameters": parameters, "responses": answers}})
}

/// What every resource may answer.
fn refusals(problem: &Schema) -> Value {
    json!({
        "401": told(problem, "A token is needed, or the one that was sent is not known"),
        "403": told(problem, "Only an operator may do that, or it was not sent by a page of this server"),
        "429": {
            "description": "Too many wrong tokens came from this address",
            "headers": {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer", "minimum": 1}}},
            "content": json_of(problem),
        },
    })
}

fn told(problem: &Schema, about: &str) -> Value {
    json!({"description": about, "content": json_of(problem)})
}

fn json_of(schema: &Schema) -> Value {
    json!({"application/json": {"schema": schema}})
}
