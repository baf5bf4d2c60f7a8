//! The description of the API in OpenAPI 3.1. `schemars` makes the schemas from the Rust types.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};
use weft_suites::diff::Diff;
use weft_suites::model::CaseResult;

use super::control::{Again, Start};
use super::model::{Accepted, Baseline, Cases, Matrix, Pairs, Run, Runs, Sections, Targets, Trend};
use super::openapi::{json_of, parameter, path, problem_answer, refusals};
use super::{DEFAULT_RUNS, MAX_RUNS, captures};
use crate::failure::Problem;

/// Makes the OpenAPI document.
pub(super) fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = "/components/schemas".into();
    // OpenAPI sets the dialect of all schemas.
    settings.meta_schema = None;
    let mut made = settings.into_generator();
    let run = parameter("run", "path", "Id of a run", &json!({"type": "string"}));
    let case = parameter("case", "path", "The `path` of a case, with its slashes", &json!({"type": "string"}));
    let list = [
        parameter("target", "query", "Only runs against this target", &json!({"type": "string"})),
        parameter(
            "label",
            "query",
            "Only runs with this label, as KEY=VALUE",
            &json!({"type": "string", "pattern": "="}),
        ),
        parameter("before", "query", "Only runs older than the run with this id", &json!({"type": "string"})),
        parameter(
            "limit",
            "query",
            "Maximum number of runs",
            &json!({"type": "integer", "minimum": 1, "maximum": MAX_RUNS, "default": DEFAULT_RUNS}),
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
        parameter("target", "query", "Only targets whose name contains this text", &json!({"type": "string"})),
        parameter("case", "query", "Only cases whose key contains this text", &json!({"type": "string"})),
        parameter(
            "show",
            "query",
            "Which cases: all, those that a target fails, or those whose verdicts differ between targets",
            &json!({"type": "string", "enum": ["all", "failing", "differing"], "default": "all"}),
        ),
    ];
    let (one_run, one_target) = (std::slice::from_ref(&run), std::slice::from_ref(&target));
    let made = &mut made;
    let mut paths = json!({
        "/api/runs": path::<Runs>(made, &problem, "Lists runs, newest first", &list, false),
        "/api/runs/{run}": path::<Run>(made, &problem, "Returns a run", one_run, true),
        "/api/runs/{run}/cases": path::<Cases>(made, &problem, "Returns the plan of a run with its verdicts", one_run, true),
        "/api/runs/{run}/cases/{case}": path::<CaseResult>(made, &problem, "Returns the result of a case", &[run.clone(), case], true),
        "/api/runs/{run}/sections": path::<Sections>(made, &problem, "Counts the requirements of a run by section of the specifications", one_run, true),
        "/api/targets": path::<Targets>(made, &problem, "Lists the targets", &[], false),
        "/api/targets/{target}": path::<Trend>(made, &problem, "Returns the newest runs of a target", one_target, true),
        "/api/targets/{target}/baseline": path::<Baseline>(made, &problem, "Returns the baseline of a target", one_target, true),
        "/api/compare": path::<Diff>(made, &problem, "Compares two runs", &two, true),
        "/api/matrix": path::<Matrix>(made, &problem, "Returns the verdicts of all targets by case", &shown, false),
        "/api/pairs": path::<Pairs>(made, &problem, "Returns the results of each pair of initiator and responder", &[], false),
    });
    paths["/api/runs/{run}/export.zip"] = zip(&problem, one_run);
    paths["/api/runs/{run}"]["delete"] = removal(&problem, one_run);
    paths["/api/runs/{run}/again"] = act::<Again>(made, &problem, "Reruns all or some cases of a run", one_run);
    paths["/api/targets/{target}/runs"] = act::<Start>(made, &problem, "Starts a run", one_target);
    paths["/api/targets/{target}/jobs/{job}"] = stop(&problem, &[target, job]);
    if let (Some(paths), Value::Object(others)) = (paths.as_object_mut(), captures::describe::paths(made, &problem)) {
        paths.extend(others);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "weft",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Reads runs, cases and targets of a results store, starts, stops and deletes runs, and reads captures.",
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
        // A server without tokens needs no credentials.
        "security": [{"token": []}, {"session": []}, {}],
    })
}

/// Describes the export of a run.
fn zip(problem: &Schema, parameters: &[Value]) -> Value {
    let about = "Returns the report, evidence and hashes of a run as a zip file";
    let mut answers = refusals(problem);
    answers["200"] = json!({"description": about, "content": {"application/zip": {}}});
    answers["404"] = problem_answer(problem, "There is no such run");
    answers["503"] = problem_answer(problem, "Too many runs are being exported; try again (Retry-After)");
    json!({"get": {"summary": about, "parameters": parameters, "responses": answers}})
}

/// Describes an operator's request, which has a document in its body.
fn act<T: JsonSchema>(made: &mut SchemaGenerator, problem: &Schema, about: &str, parameters: &[Value]) -> Value {
    let mut answers = refusals(problem);
    answers["202"] = json!({"description": "The run is queued", "content": json_of(&made.subschema_for::<Accepted>())});
    answers["400"] = problem_answer(problem, "The document is invalid");
    answers["404"] = problem_answer(
        problem,
        "There is no such run, case or target, the selection is empty, or runs against the target are not allowed",
    );
    answers["409"] = problem_answer(
        problem,
        "The queue of the target is full, there is no run to resume, or the document changes the plan of that run",
    );
    answers["413"] = problem_answer(problem, "The document is too long");
    // The schema of a request has default values, unlike the schemas of responses.
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let body = settings.into_generator().into_root_schema_for::<T>();
    let body = json!({"required": true, "content": json_of(&body)});
    json!({"post": {"summary": about, "parameters": parameters, "requestBody": body, "responses": answers}})
}

/// Describes the request that deletes a run.
fn removal(problem: &Schema, parameters: &[Value]) -> Value {
    let about = "Deletes a run that is over, with its results and files";
    let mut answers = refusals(problem);
    answers["204"] = json!({"description": "The run is deleted"});
    answers["404"] = problem_answer(problem, "There is no such run");
    answers["409"] = problem_answer(problem, "The run is not over");
    json!({"summary": about, "parameters": parameters, "responses": answers})
}

/// Describes the request that stops a job.
fn stop(problem: &Schema, parameters: &[Value]) -> Value {
    let about = "Stops a run or removes it from the queue; the results of finished cases remain";
    let mut answers = refusals(problem);
    answers["204"] = json!({"description": "The run stops"});
    answers["404"] = problem_answer(problem, "There is no such target");
    answers["409"] = problem_answer(problem, "The run is over");
    json!({"delete": {"summary": about, "parameters": parameters, "responses": answers}})
}
