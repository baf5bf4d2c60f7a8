//! Tests of the API against its description, and of the metrics.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

async fn json(site: &Site, path: &str) -> Value {
    let mut response = site.get(path).await;
    // The status is 503 while the server reads a capture.
    while response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response = site.get(path).await;
    }
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json", "{path}");
    serde_json::from_slice(&octets(response).await).unwrap()
}

/// Checks values against the schemas of an OpenAPI document. Supports only the JSON Schema keywords
/// that weft uses, and panics on other keywords.
struct Checker<'a> {
    document: &'a Value,
    /// `schema.property` of each property that occurred.
    seen: BTreeSet<String>,
}

impl Checker<'_> {
    fn resolve<'s>(&'s self, schema: &'s Value) -> (&'s Value, Option<&'s str>) {
        match schema["$ref"].as_str() {
            None => (schema, None),
            Some(reference) => {
                let name = reference.strip_prefix("#/components/schemas/").unwrap();
                (&self.document["components"]["schemas"][name], Some(name))
            }
        }
    }

    /// Checks `value` against `schema`. `name` is the name of the schema that contains `schema`.
    fn check(&mut self, schema: &Value, value: &Value, name: &str) -> Result<(), String> {
        let (schema, named) = self.resolve(schema);
        let (schema, name) = (schema.clone(), named.unwrap_or(name).to_owned());
        assert!(!schema.is_null(), "{name} is not described");
        for all in schema["allOf"].as_array().into_iter().flatten() {
            self.check(all, value, &name)?;
        }
        for any in ["anyOf", "oneOf"] {
            let Some(choices) = schema[any].as_array() else { continue };
            let fits = choices.iter().filter(|choice| self.check(choice, value, &name).is_ok()).count();
            if fits == 0 || (any == "oneOf" && fits > 1) {
                return Err(format!("{name}: {value} fits {fits} of {any}"));
            }
        }
        if schema["const"] != Value::Null && schema["const"] != *value {
            return Err(format!("{name}: {value} is not {}", schema["const"]));
        }
        if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
            return Err(format!("{name}: {value} is none of {}", schema["enum"]));
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let fits = |kind: &&str| match *kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_u64() || value.is_i64(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            kind => panic!("{kind} is not supported"),
        };
        if !kinds.is_empty() && !kinds.iter().any(fits) {
            return Err(format!("{name}: {value} is not of type {kinds:?}"));
        }
        if schema["minimum"].as_i64().is_some_and(|least| value.as_i64().is_some_and(|value| value < least)) {
            return Err(format!("{name}: {value} is less than {}", schema["minimum"]));
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            if value.get(required.as_str().unwrap()).is_none() {
                return Err(format!("{name} without {required}"));
            }
        }
        for (property, value) in value.as_object().into_iter().flatten() {
            match &schema["properties"][property] {
                Value::Null if schema["additionalProperties"].is_object() => {
                    self.check(&schema["additionalProperties"], value, &name)?;
                }
                Value::Null if schema["properties"].is_object() => {
                    return Err(format!("{name}.{property}: not described"));
                }
                Value::Null => {}
                known => {
                    self.check(known, value, &name)?;
                    self.seen.insert(format!("{name}.{property}"));
                }
            }
        }
        for item in value.as_array().into_iter().flatten() {
            self.check(&schema["items"], item, &name)?;
        }
        Ok(())
    }

    fn answer(&mut self, path: &str, code: &str, value: &Value) {
        let document = self.document;
        let schema = &document["paths"][path]["get"]["responses"][code]["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{path} {code}");
        if let Err(why) = self.check(schema, value, path) {
            panic!("{path}: {why}");
        }
    }
}

#[tokio::test]
async fn every_described_field_occurs_in_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = failing_run(folder.path()).await;
    let second = pages::passing_run(folder.path()).await;
    let store = Store::open(&folder.path().join(FILE_NAME)).await.unwrap();
    (first.run.id, first.run.rerun_of) = ("29990101".into(), Some(second.run.id.clone()));
    let keys: Vec<CaseKey> = first.results.iter().map(|result| result.key.clone()).collect();
    store.begin(&first.run, &first.cases, &keys).await.unwrap();
    for result in &first.results {
        store.finish_case(&first.run.id, result).await.unwrap();
    }
    store.finish(&first.run.id, &first.summary).await.unwrap();
    store.close().await;
    let site = captures::capture_folder(folder.path(), &["siw/violations-6-kinds-crc.pcap"]).await;
    let document = json(&site, "/api/openapi.json").await;
    let mut checker = Checker { document: &document, seen: BTreeSet::new() };

    let run = format!("/api/runs/{}", first.run.id);
    for (path, address) in [
        ("/api/runs", "/api/runs?limit=1".to_owned()),
        ("/api/runs/{run}", run.clone()),
        ("/api/runs/{run}/cases", format!("{run}/cases")),
        ("/api/runs/{run}/sections", format!("{run}/sections")),
        ("/api/targets", "/api/targets".to_owned()),
        ("/api/targets/{target}", "/api/targets/builtin".to_owned()),
        ("/api/targets/{target}/baseline", "/api/targets/builtin/baseline".to_owned()),
        ("/api/compare", format!("/api/compare?before={}&after={}", first.run.id, second.run.id)),
        ("/api/matrix", "/api/matrix?show=all".to_owned()),
        ("/api/pairs", "/api/pairs".to_owned()),
    ] {
        let answer = json(&site, &address).await;
        checker.answer(path, "200", &answer);
    }
    for case in json(&site, &format!("{run}/cases")).await["cases"].as_array().unwrap() {
        let address = format!("{run}/cases/{}", case["path"].as_str().unwrap().replace('%', "%25").replace('=', "%3D"));
        let answer = json(&site, &address).await;
        assert_eq!((&answer["key"], &answer["verdict"]), (&case["key"], &case["verdict"]));
        checker.answer("/api/runs/{run}/cases/{case}", "200", &answer);
    }
    let all = json(&site, "/api/captures").await;
    checker.answer("/api/captures", "200", &all);
    let capture = format!("/api/captures/{}", all["captures"][0]["id"].as_str().unwrap());
    for (path, address) in [
        ("/api/captures/{id}", capture.clone()),
        ("/api/captures/{id}/packets", format!("{capture}/packets?limit=8&filter=tcp")),
        ("/api/captures/{id}/packets/{number}", format!("{capture}/packets/12")),
        ("/api/captures/{id}/findings", format!("{capture}/findings?from=1")),
        ("/api/captures/{id}/problems", format!("{capture}/problems?limit=8")),
        ("/api/captures/{id}/answers", format!("{capture}/answers?limit=8")),
        ("/api/captures/{id}/io", format!("{capture}/io?show=errors&sort=bytes")),
        ("/api/filter", "/api/filter?text=tcp.steam".to_owned()),
    ] {
        let answer = json(&site, &address).await;
        checker.answer(path, "200", &answer);
    }
    for (path, code, address) in [
        ("/api/captures/{id}", 404, "/api/captures/none".to_owned()),
        ("/api/captures/{id}/packets", 422, format!("{capture}/packets?filter=x+%3D")),
        ("/api/captures/{id}/packets/{number}", 404, format!("{capture}/packets/99999")),
    ] {
        let answer = site.get(&address).await;
        assert_eq!(answer.status(), code, "{address}");
        checker.answer(path, &code.to_string(), &serde_json::from_slice(&octets(answer).await).unwrap());
    }
    for (path, address) in [
        ("/api/runs/{run}", "/api/runs/none".to_owned()),
        ("/api/runs/{run}/cases", "/api/runs/none/cases".to_owned()),
        ("/api/runs/{run}/cases/{case}", format!("{run}/cases/none")),
        ("/api/runs/{run}/sections", "/api/runs/none/sections".to_owned()),
        ("/api/runs/{run}/export.zip", "/api/runs/none/export.zip".to_owned()),
        ("/api/targets/{target}", "/api/targets/none".to_owned()),
        ("/api/targets/{target}/baseline", "/api/targets/none/baseline".to_owned()),
        ("/api/compare", "/api/compare?before=x&after=y".to_owned()),
    ] {
        let answer = site.get(&address).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{address}");
        checker.answer(path, "404", &serde_json::from_slice(&octets(answer).await).unwrap());
    }

    // No run of the builtin target has these properties. The tests of `suites` check them.
    let elsewhere = |name: &str| {
        matches!(
            name,
            "Capture.note"
                | "Made.id"
                | "RunInfo.labels"
                | "RunInfo.suites"
                | "TargetEntry.control"
                | "TargetEntry.next_unix_ms"
                | "TargetInfo.device"
                | "TargetInfo.file"
                | "TargetInfo.identity"
                | "TargetInfo.probed"
                | "TargetInfo.probed_facts"
                | "TargetInfo.lost_capabilities"
                | "Trend.control"
                | "Summary.expected"
                | "Summary.stale"
                | "Summary.unmatched"
                | "Summary.declared_otherwise"
                | "Summary.lost_capabilities"
                | "Summary.boundaries"
                | "Summary.not_stored"
                | "Summary.target_down"
                | "CaseResult.program_ends"
                | "Evidence.dropped"
                | "Evidence.source"
                | "Evidence.without_wire"
        ) || [
            "Accepted.",
            "BaselineEntry.",
            "Boundary.",
            "DroppedTraffic.",
            "ExchangeAnswer.",
            "ExpectedResult.",
            "Job.",
            "LaneState.",
            "Observed.",
            "ProbedFacts.",
            "ProbedSdp.",
            "ProgramEnd.",
            "Seen.",
        ]
        .iter()
        .any(|schema| name.starts_with(schema))
    };
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let described = schemas.iter().flat_map(|(name, schema)| {
        let properties = schema["properties"].as_object().into_iter().flatten();
        properties.map(move |(property, _)| format!("{name}.{property}"))
    });
    let missing: Vec<String> = described.filter(|name| !checker.seen.contains(name) && !elsewhere(name)).collect();
    assert!(missing.is_empty(), "described but never sent: {missing:?}");
    assert!(checker.seen.len() > 60, "{:?}", checker.seen);
}

#[tokio::test]
async fn targets_have_the_time_of_their_next_scheduled_run() {
    let folder = tempfile::tempdir().unwrap();
    let url = Store::url(&folder.path().join(FILE_NAME)).unwrap();
    let (access, captures) = (Access::default(), CaptureOptions::default());
    let (app, stop) = app_on(&url, folder.path(), access, Some(runs::start()), captures, Exports::default()).await;
    let schedule = "[[run]]\ntarget = \"bad\"\nat = \"12:00\"\n".parse().unwrap();
    // Shortly after midnight of 2026-01-31.
    let (_time, now) = watch::channel(1_769_817_600_001);
    let site = site_of(App { schedule, clock: Clock::Manual(now), ..app }, stop);
    let document = json(&site, "/api/openapi.json").await;
    let mut checker = Checker { document: &document, seen: BTreeSet::new() };
    let targets = json(&site, "/api/targets").await;
    checker.answer("/api/targets", "200", &targets);
    let next = |name: &str| {
        let target = targets["targets"].as_array().unwrap().iter().find(|target| target["name"] == name);
        target.unwrap()["next_unix_ms"].as_u64()
    };
    assert_eq!((next("bad"), next("builtin")), (Some(1_769_860_800_000), None));
}

#[tokio::test]
async fn the_checker_rejects_wrong_values() {
    let document = serde_json::json!({"components": {"schemas": {"a": {
        "type": "object", "required": ["b"], "properties": {"b": {"type": "integer", "minimum": 0}}
    }}}});
    let mut checker = Checker { document: &document, seen: BTreeSet::new() };
    let schema = serde_json::json!({"$ref": "#/components/schemas/a"});
    assert_eq!(checker.check(&schema, &serde_json::json!({"b": 1}), ""), Ok(()));
    for wrong in [r#"{}"#, r#"{"b": "x"}"#, r#"{"b": -1}"#, r#"{"b": 1, "c": 2}"#, "[]", "null"] {
        assert!(checker.check(&schema, &serde_json::from_str(wrong).unwrap(), "").is_err(), "{wrong}");
    }
}

/// Sends a request with a JSON body as a program does: without the headers of a browser.
async fn send(site: &Site, method: &str, path: &str, document: &str) -> (StatusCode, Value) {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    let request = request.header(header::CONTENT_TYPE, "application/json").body(Body::from(document.to_owned()));
    let answer = site.router.clone().oneshot(request.unwrap()).await.unwrap();
    let status = answer.status();
    (status, serde_json::from_slice(&octets(answer).await).unwrap_or_default())
}

#[tokio::test]
async fn programs_start_and_stop_runs() {
    let folder = tempfile::tempdir().unwrap();
    let site = runs::startable(folder.path()).await;
    let document = json(&site, "/api/openapi.json").await;
    let mut checker = Checker { document: &document, seen: BTreeSet::new() };
    let start = r#"{"select": ["mpa/7.1.1-key"], "seed": 3}"#;
    let (status, accepted) = send(&site, "POST", "/api/targets/bad/runs", start).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{accepted}");
    let schemas = &document["paths"]["/api/targets/{target}/runs"]["post"]["responses"];
    checker.check(&schemas["202"]["content"]["application/json"]["schema"], &accepted, "").unwrap();
    site.starter.idle("bad").await;
    let trend = json(&site, "/api/targets/bad").await;
    checker.answer("/api/targets/{target}", "200", &trend);
    let run = trend["runs"][0]["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        (&trend["runs"][0]["run"]["seed"], &trend["runs"][0]["summary"]["counts"]["fail"]),
        (&3.into(), &16.into())
    );
    assert_eq!(trend["runs"][0]["score"]["must"]["broken"], 1, "{trend}");
    let (status, _) = send(&site, "POST", &format!("/api/runs/{run}/again"), r#"{"which": "failed"}"#).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    site.starter.idle("bad").await;
    assert_eq!(json(&site, "/api/runs?limit=1").await["runs"][0]["planned"], 16);

    // The first run is active for a long time, and the second run waits. Both are stopped.
    for _ in 0..2 {
        assert_eq!(
            send(&site, "POST", "/api/targets/builtin/runs", r#"{"tier": "full"}"#).await.0,
            StatusCode::ACCEPTED
        );
    }
    for job in [1, 0] {
        let path = format!("/api/targets/builtin/jobs/{job}");
        assert_eq!(send(&site, "DELETE", &path, "").await.0, StatusCode::NO_CONTENT, "{job}");
    }
    site.starter.idle("builtin").await;
    for (method, path, document, status) in [
        ("DELETE", "/api/targets/builtin/jobs/0", "", 409),
        ("DELETE", "/api/targets/none/jobs/0", "", 404),
        ("DELETE", "/api/targets/builtin/jobs/x", "", 404),
        ("POST", "/api/targets/none/runs", "{}", 404),
        ("POST", "/api/targets/builtin/runs", "{\"select\": [\"no/such\"]}", 404),
        ("POST", "/api/targets/builtin/runs", "{\"sellect\": []}", 400),
        ("POST", "/api/targets/builtin/runs", "{\"resume\": true, \"select\": [\"mpa\"]}", 409),
        ("POST", "/api/targets/builtin/runs", "[", 400),
        ("POST", "/api/runs/none/again", "{\"which\": \"all\"}", 404),
        ("POST", "/api/none", "{}", 404),
    ] {
        let (code, problem) = send(&site, method, path, document).await;
        assert_eq!(code.as_u16(), status, "{method} {path} {document}");
        assert!(problem["error"].is_string(), "{method} {path}: {problem}");
    }
    // A browser sends a form of another site without a preflight request.
    let form = Request::post("/api/targets/builtin/runs").header(header::HOST, "localhost");
    let form = form.header(header::CONTENT_TYPE, "text/plain").body(Body::from("{}")).unwrap();
    assert_eq!(site.router.clone().oneshot(form).await.unwrap().status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn lists_runs_in_pages_and_by_target() {
    let folder = tempfile::tempdir().unwrap();
    let report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    for number in 0..5u64 {
        let mut run = report.run.clone();
        // Runs that started in the same millisecond are ordered by their ids.
        run.id = format!("29990101-{number}");
        run.started_unix_ms += 1000 + number / 2;
        run.target.name = ["odd", "even"][usize::from(number % 2 == 0)].into();
        if number < 3 {
            run.labels.insert("lab".into(), "\"3\" = east".into());
        }
        site.store.begin(&run, &[], &[]).await.unwrap();
    }
    let ids = |answer: &Value| -> Vec<String> {
        let runs = answer["runs"].as_array().unwrap().iter();
        runs.map(|run| run["run"]["id"].as_str().unwrap().replace("29990101-", "")).collect()
    };
    let (mut all, mut next) = (Vec::new(), "/api/runs?limit=2".to_owned());
    loop {
        let answer = json(&site, &next).await;
        assert!(ids(&answer).len() <= 2);
        all.extend(ids(&answer));
        let Some(older) = answer["older"].as_str() else { break };
        next = format!("/api/runs?limit=2&before={older}");
    }
    assert_eq!(all, ["4", "3", "2", "1", "0", &report.run.id]);
    assert_eq!(ids(&json(&site, "/api/runs?target=odd").await), ["3", "1"]);
    assert_eq!(ids(&json(&site, "/api/runs?target=even&before=29990101-4").await), ["2", "0"]);
    let label = "label=lab%3D%223%22%20%3D%20east";
    assert_eq!(ids(&json(&site, &format!("/api/runs?{label}")).await), ["2", "1", "0"]);
    let page = json(&site, &format!("/api/runs?{label}&target=even&limit=1")).await;
    assert_eq!((ids(&page), page["older"].as_str()), (vec!["2".to_owned()], Some("29990101-2")));
    assert_eq!(page["runs"][0]["run"]["labels"]["lab"], "\"3\" = east");
    for unknown in ["target=none", "before=none", "target='%20OR%201=1", "label=lab%3D3", "label=la%25%3D3"] {
        assert!(ids(&json(&site, &format!("/api/runs?{unknown}")).await).is_empty(), "{unknown}");
    }
    for wrong in ["limit=x", "limit=0", "limit=201", "limit=-1", "limit=99999999999", "limit=1&limit=2", "label=lab"] {
        assert_eq!(site.get(&format!("/api/runs?{wrong}")).await.status(), StatusCode::BAD_REQUEST, "{wrong}");
    }
    // No run of the target has finished, so the newest run represents the target.
    let targets = json(&site, "/api/targets").await["targets"].clone();
    let even = serde_json::json!({"name": "even", "runs": 3, "last": "29990101-4"});
    let odd = serde_json::json!({"name": "odd", "runs": 2, "last": "29990101-3"});
    assert_eq!(targets.as_array().unwrap()[1..], [even, odd]);
    assert_eq!(targets[0]["last"], report.run.id);
}

#[tokio::test]
async fn exports_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let report = failing_run(folder.path()).await;
    let site = site(folder.path()).await;
    let mut later = report.run.clone();
    (later.id, later.started_unix_ms, later.target.name) = ("2999".into(), 4_000_000_000_012, "a\"b\\c\nd".into());
    site.store.begin(&later, &[], &[]).await.unwrap();
    site.store.finish("2999", &report.summary).await.unwrap();
    let text = site.text("/metrics").await;
    let name = report.run.target.name.as_str();
    for line in [
        "weft_runs{status=\"done\"} 2",
        "weft_runs{status=\"running\"} 0",
        &format!("weft_last_run_cases{{target=\"{name}\",verdict=\"fail\"}} 16"),
        &format!("weft_last_run_exit_code{{target=\"{name}\"}} 1"),
        "weft_last_run_started_seconds{target=\"a\\\"b\\\\c\\nd\"} 4000000000.012",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
    }
    // Each metric family has exactly one `# TYPE` line.
    let mut heads: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let families = heads.len();
    heads.sort_unstable();
    heads.dedup();
    assert_eq!(heads.len(), families);
}
