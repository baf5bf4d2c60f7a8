//! The part of the OpenAPI document about captures.

use schemars::Schema;
use schemars::generate::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::super::openapi::{parameter, path, problem_answer};
use super::model::{
    Answers, Capture, CaptureProblems, Captures, FilterRead, Findings, Made, Packet, Packets, StorageCommands,
};
use super::{DEFAULT_LINES, MAX_LINES, TYPES};
use crate::view::captures::{CommandOrder, ShownCommands};

/// Describes the paths of the resources about captures.
pub(in crate::routes::api) fn paths(made: &mut SchemaGenerator, problem: &Schema) -> Value {
    let id =
        parameter("id", "path", "Id of a capture, or RUN~INDEX for the capture of a case", &json!({"type": "string"}));
    let number = parameter("number", "path", "Number of a packet", &json!({"type": "integer", "minimum": 1}));
    let text = |name: &str, about: &str| parameter(name, "query", about, &json!({"type": "string"}));
    let from = parameter(
        "from",
        "query",
        "Number of entries to skip",
        &json!({"type": "integer", "minimum": 0, "maximum": usize::MAX, "default": 0}),
    );
    let limit = json!({"type": "integer", "minimum": 1, "maximum": MAX_LINES, "default": DEFAULT_LINES});
    let limit = parameter("limit", "query", "Maximum number of entries", &limit);
    let filter = text("filter", "Only packets that pass this display filter");
    let one = [id.clone()];
    let packets = [id.clone(), filter, from.clone(), limit.clone()];
    let commands = [
        id.clone(),
        text("kind", "Only commands with this name"),
        choice(
            "show",
            "Which commands: all, those with an error, or those without a response",
            ShownCommands::ALL.map(ShownCommands::name),
        ),
        choice(
            "sort",
            "The order: by time, or the slowest or largest command first",
            CommandOrder::ALL.map(CommandOrder::name),
        ),
        from.clone(),
        limit.clone(),
    ];
    let part = [id.clone(), from, limit];
    let mut wanted = text("text", "A display filter to check");
    wanted["required"] = true.into();
    let mut all = path::<Captures>(made, problem, "Lists the captures of the folder", &[], false);
    all["post"] = add(made, problem, &text("name", "Name of the file"));
    let mut single = path::<Capture>(made, problem, "Summarizes a capture", &one, true);
    single["delete"] = remove(problem, &one);
    let mut paths = json!({
        "/api/captures": all,
        "/api/captures/{id}": single,
        "/api/captures/{id}/packets": path::<Packets>(made, problem, "Lists the packets of a capture", &packets, true),
        "/api/captures/{id}/packets/{number}": path::<Packet>(made, problem, "Returns one packet with its fields", &[id, number], true),
        "/api/captures/{id}/findings": path::<Findings>(made, problem, "Lists the findings of a capture", &part, true),
        "/api/captures/{id}/problems": path::<CaptureProblems>(made, problem, "Lists the problems of a capture: groups of findings with one root", &part, true),
        "/api/captures/{id}/answers": path::<Answers>(made, problem, "Explains what happened on each connection of a capture", &part, true),
        "/api/captures/{id}/io": path::<StorageCommands>(made, problem, "Lists the storage commands of a capture", &commands, true),
        "/api/filter": path::<FilterRead>(made, problem, "Checks a display filter", &[wanted], false),
    });
    // The server is perhaps still reading the capture, or cannot read the capture.
    for (_, path) in paths.as_object_mut().into_iter().flatten().filter(|(name, _)| name.contains("{id}")) {
        for (code, about) in [
            ("422", "The capture cannot be read, or the filter is invalid"),
            ("503", "The capture is being read; try again (Retry-After)"),
        ] {
            path["get"]["responses"][code] = problem_answer(problem, about);
        }
    }
    paths
}

/// Describes a parameter of a query with these values. The first value is the default.
fn choice(name: &str, about: &str, values: [&str; 3]) -> Value {
    parameter(name, "query", about, &json!({"type": "string", "enum": values, "default": values[0]}))
}

/// Adds the responses for clients that are not operators.
fn forbidden(answers: &mut Value, problem: &Schema) {
    answers["403"] = problem_answer(problem, "Only an operator is allowed to do that");
    answers["401"] = problem_answer(problem, "A token is required");
}

fn add(made: &mut SchemaGenerator, problem: &Schema, name: &Value) -> Value {
    let schema = made.subschema_for::<Made>();
    let mut answers = json!({
        "201": {"description": "The capture was added", "content": {"application/json": {"schema": schema}}},
    });
    for (code, about) in [
        ("400", "The upload is incomplete"),
        ("404", "There is no folder for captures"),
        ("408", "The upload was too slow"),
        ("409", "The folder has too many captures with this name"),
        ("413", "The capture is too long"),
        ("415", "The media type is not supported"),
        ("422", "The file is not a capture"),
        ("503", "Too many uploads are in progress"),
    ] {
        answers[code] = problem_answer(problem, about);
    }
    forbidden(&mut answers, problem);
    let content = TYPES.map(|kind| (kind.to_owned(), json!({})));
    json!({
        "summary": "Adds a capture to the folder",
        "parameters": [name],
        "requestBody": {"required": true, "content": Map::from_iter(content)},
        "responses": answers,
    })
}

fn remove(problem: &Schema, parameters: &[Value]) -> Value {
    let missing = problem_answer(problem, "There is no such capture");
    let mut answers = json!({"204": {"description": "The capture was deleted"}, "404": missing});
    forbidden(&mut answers, problem);
    json!({"summary": "Deletes a capture of the folder", "parameters": parameters, "responses": answers})
}
