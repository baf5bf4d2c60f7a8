//! Captures in the API's description.

use schemars::Schema;
use schemars::generate::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::super::describe::{parameter, path};
use super::model::{Capture, Captures, FilterRead, Findings, Made, Packet, Packets};
use super::{LINES, MOST_LINES, TYPES};

/// Their addresses.
pub(in crate::routes::api) fn paths(made: &mut SchemaGenerator, problem: &Schema) -> Map<String, Value> {
    let id =
        parameter("id", "path", "Id of a capture, or RUN~PLACE of what a case recorded", &json!({"type": "string"}));
    let number = parameter("number", "path", "Number of a packet", &json!({"type": "integer", "minimum": 1}));
    let text = |name: &str, about: &str| parameter(name, "query", about, &json!({"type": "string"}));
    let from = parameter(
        "from",
        "query",
        "So many lines are left out",
        &json!({"type": "integer", "minimum": 0, "maximum": usize::MAX, "default": 0}),
    );
    let limit = json!({"type": "integer", "minimum": 1, "maximum": MOST_LINES, "default": LINES});
    let limit = parameter("limit", "query", "So many at most", &limit);
    let filter = text("filter", "Packets that pass this display filter alone");
    let one = [id.clone()];
    let packets = [id.clone(), filter, from.clone(), limit.clone()];
    let mut wanted = text("text", "What may be a display filter");
    wanted["required"] = true.into();
    let mut all = path::<Captures>(made, problem, "Captures of the folder", &[], false);
    all["post"] = add(made, problem, &text("name", "A name for the file"));
    let mut single = path::<Capture>(made, problem, "What is in a capture", &one, true);
    single["delete"] = remove(problem, &one);
    let mut paths = Map::from_iter([
        ("/api/captures".to_owned(), all),
        ("/api/captures/{id}".to_owned(), single),
        ("/api/captures/{id}/packets".to_owned(), path::<Packets>(made, problem, "Its packets", &packets, true)),
        (
            "/api/captures/{id}/packets/{number}".to_owned(),
            path::<Packet>(made, problem, "One packet", &[id.clone(), number], true),
        ),
        (
            "/api/captures/{id}/findings".to_owned(),
            path::<Findings>(made, problem, "Its findings", &[id, from, limit], true),
        ),
        ("/api/filter".to_owned(), path::<FilterRead>(made, problem, "Is it a display filter?", &[wanted], false)),
    ]);
    // What is about the octets of a capture may have to wait until they are read, or find that they cannot be.
    for (_, path) in paths.iter_mut().filter(|(name, _)| name.contains("{id}")) {
        for (code, about) in [
            ("422", "The capture cannot be read, or the filter is none"),
            ("503", "It is being read; again in a second (Retry-After)"),
        ] {
            path["get"]["responses"][code] = told(problem, about);
        }
    }
    paths
}

fn told(problem: &Schema, about: &str) -> Value {
    json!({"description": about, "content": {"application/json": {"schema": problem}}})
}

/// What everybody is told who is not an operator.
fn forbidden(answers: &mut Value, problem: &Schema) {
    answers["403"] = told(problem, "Only an operator may do that");
    answers["401"] = told(problem, "A token is needed");
}

fn add(made: &mut SchemaGenerator, problem: &Schema, name: &Value) -> Value {
    let schema = made.subschema_for::<Made>();
    let mut answers = json!({
        "201": {"description": "It is taken", "content": {"application/json": {"schema": schema}}},
    });
    for (code, about) in [
        ("400", "It ended early"),
        ("404", "There is no folder for captures"),
        ("408", "It came too slowly"),
        ("409", "There are too many of that name"),
        ("413", "It is too long"),
        ("415", "Its media type is none of these"),
        ("422", "It is no capture"),
        ("503", "Others are at it"),
    ] {
        answers[code] = told(problem, about);
    }
    forbidden(&mut answers, problem);
    let octets = TYPES.map(|kind| (kind.to_owned(), json!({})));
    json!({
        "summary": "Adds a capture to the folder",
        "parameters": [name],
        "requestBody": {"required": true, "content": Map::from_iter(octets)},
        "responses": answers,
    })
}

fn remove(problem: &Schema, parameters: &[Value]) -> Value {
    let mut answers = json!({"204": {"description": "It is gone"}, "404": told(problem, "There is no such capture")});
    forbidden(&mut answers, problem);
    json!({"summary": "Takes a capture out of the folder", "parameters": parameters, "responses": answers})
}
