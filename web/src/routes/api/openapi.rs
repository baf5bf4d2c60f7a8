//! Functions that make the parts of the OpenAPI document: parameters, resources and errors.

use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// Describes a parameter. `place` is `path` or `query`.
pub(super) fn parameter(name: &str, place: &str, about: &str, schema: &Value) -> Value {
    json!({"name": name, "in": place, "description": about, "required": place == "path", "schema": schema})
}

/// Describes a resource that a client reads with GET. `is_named` is `true` if the path names an
/// object. Such an object can be missing.
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
        answers["404"] = problem_answer(problem, "Not found");
    }
    if parameters.iter().any(|parameter| parameter["in"] == "query") {
        answers["400"] = problem_answer(problem, "The query is invalid");
    }
    json!({"get": {"summary": about, "parameters": parameters, "responses": answers}})
}

/// Describes the errors that every resource can return.
pub(super) fn refusals(problem: &Schema) -> Value {
    json!({
        "401": problem_answer(problem, "The token is missing or not valid"),
        "403": problem_answer(problem, "The client is not an operator, or a page of another site sent the request"),
        "429": {
            "description": "Too many wrong tokens came from this address",
            "headers": {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer", "minimum": 1}}},
            "content": json_of(problem),
        },
    })
}

/// Describes a response whose document has the schema `problem`.
pub(super) fn problem_answer(problem: &Schema, about: &str) -> Value {
    json!({"description": about, "content": json_of(problem)})
}

pub(super) fn json_of(schema: &Schema) -> Value {
    json!({"application/json": {"schema": schema}})
}
