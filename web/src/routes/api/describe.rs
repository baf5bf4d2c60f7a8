//! The API's description, OpenAPI 3.1: its schemas are JSON Schema, as `schemars` makes them from the types that are sent.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};
use weft_suites::model::CaseResult;

use super::model::{Cases, Problem, Run, Runs, Targets};
use super::{MOST_RUNS, RUNS};

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
    let mut paths = json!({
        "/api/runs": path::<Runs>(&mut made, &problem, "Runs, newest first", &list, false),
        "/api/runs/{run}": path::<Run>(&mut made, &problem, "One run", std::slice::from_ref(&run), true),
        "/api/runs/{run}/cases": path::<Cases>(&mut made, &problem, "Its plan and verdicts", std::slice::from_ref(&run), true),
        "/api/runs/{run}/cases/{case}": path::<CaseResult>(&mut made, &problem, "The result of one case", &[run, case], true),
        "/api/targets": path::<Targets>(&mut made, &problem, "Targets that there are runs of", &[], false),
    });
    if let Some(paths) = paths.as_object_mut() {
        paths.extend(super::captures::describe::paths(&mut made, &problem));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "weft",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs, cases and targets of a results store; captures.",
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
    let json = |schema: &Schema| json!({"application/json": {"schema": schema}});
    let text = json!({"text/plain": {"schema": {"type": "string"}}});
    let mut answers = json!({
        "200": {"description": about, "content": json(&made.subschema_for::<T>())},
        "401": {"description": "A token is needed", "content": text},
    });
    if is_named {
        answers["404"] = json!({"description": "There is no such thing", "content": json(problem)});
    }
    if parameters.iter().any(|parameter| parameter["in"] == "query") {
        answers["400"] = json!({"description": "The query is not understood", "content": text});
    }
    json!({"get": {"summary": about, "parameters": parameters, "responses": answers}})
}
