//! Tests `compose.yaml`: the rights that it gives to its services, and where the tokens and the
//! password of the database are. These tests only read the file. `.ci/docker.sh` starts the
//! services.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::collections::BTreeMap;
use std::path::Path;

const COMPOSE: &str = include_str!("../../../compose.yaml");

/// The entries of a mapping. The value of an entry is the rest of its line, and all following lines
/// with a larger indent.
type Mapping = BTreeMap<String, String>;

/// Reads a mapping in the block style of YAML. It supports only what `compose.yaml` uses.
fn mapping(text: &str) -> Mapping {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let indent_of = |line: &str| line.len() - line.trim_start().len();
    let (mut entries, mut indent, mut last) = (Mapping::new(), None, "");
    for line in lines {
        if indent_of(line) == *indent.get_or_insert(indent_of(line)) {
            let (key, value) = line.trim().split_once(':').unwrap();
            assert!(entries.insert(key.to_owned(), value.trim().to_owned()).is_none(), "{key} occurs twice");
            last = key;
        } else {
            let value = entries.get_mut(last).unwrap();
            value.push('\n');
            value.push_str(line);
        }
    }
    entries
}

/// Returns the services, each with its entries.
fn services() -> BTreeMap<String, Mapping> {
    let services = mapping(&mapping(COMPOSE)["services"]);
    let services: BTreeMap<_, _> = services.into_iter().map(|(name, text)| (name, mapping(&text))).collect();
    assert_eq!(services.keys().collect::<Vec<_>>(), ["store", "test", "web"]);
    services
}

/// Returns the items of a list in flow style: `["a", "b"]`.
fn items(list: &str) -> Vec<&str> {
    let list = list.strip_prefix('[').unwrap().strip_suffix(']').unwrap();
    list.split(',').map(|item| item.trim().trim_matches('"')).collect()
}

/// Returns the environment of a service. The first line of the text is skipped. It has an anchor of
/// YAML (`&store`), or is empty.
fn environment(service: &Mapping) -> Mapping {
    let variables = mapping(service["environment"].split_once('\n').unwrap().1);
    variables.into_iter().map(|(key, value)| (key, value.trim_matches('"').to_owned())).collect()
}

#[test]
fn each_service_has_only_the_rights_that_it_needs() {
    for (name, service) in services() {
        for (key, value) in
            [("read_only", "true"), ("cap_drop", "[ALL]"), ("security_opt", "[\"no-new-privileges:true\"]")]
        {
            assert_eq!(service.get(key).map(String::as_str), Some(value), "{name}: {key}");
        }
        // PostgreSQL starts as root, and changes to its own user.
        assert_eq!(service.contains_key("cap_add"), name == "store", "{name}");
        assert!(!service.contains_key("privileged") && !service.contains_key("user"), "{name}");
    }
}

/// The dashboard serves the folder of the evidence to its viewers, so this folder must not contain
/// the tokens.
#[test]
fn the_tokens_are_in_no_folder_of_a_service() {
    let secrets = mapping(&mapping(COMPOSE)["secrets"])["tokens"].clone();
    let secret = secrets.strip_prefix("{ file: ").unwrap().strip_suffix(" }").unwrap();
    let in_container = "/run/secrets/tokens";
    for (name, service) in services() {
        let has_tokens = service.get("secrets").is_some_and(|secrets| items(secrets).contains(&"tokens"));
        assert_eq!(has_tokens, name == "web", "{name}");
        for volume in items(&service["volumes"]) {
            let (outside, inside) = volume.split_once(':').unwrap();
            let inside = inside.split(':').next().unwrap();
            assert!(!Path::new(secret).starts_with(outside), "{name}: {volume} has {secret}");
            assert!(!Path::new(in_container).starts_with(inside), "{name}: {volume} has {in_container}");
        }
    }
    let web = &services()["web"];
    assert!(web["command"].contains(&format!(" --token-file {in_container} ")), "{}", web["command"]);
    assert_eq!(items(&web["volumes"]), ["./lab/report:/var/lib/weft:ro"], "the dashboard only reads the evidence");
}

#[test]
fn postgresql_requires_a_password_from_the_environment() {
    let services = services();
    // Compose stops with an error if the variable is not set or empty.
    let is_required = |value: &str| value.starts_with("${WEFT_STORE_PASSWORD:?") && value.ends_with('}');
    let store = environment(&services["store"]);
    assert!(is_required(&store["POSTGRES_PASSWORD"]), "{store:?}");
    // This variable could permit connections without a password.
    assert!(!store.contains_key("POSTGRES_HOST_AUTH_METHOD"), "{store:?}");
    let client = environment(&services["web"]);
    assert!(is_required(&client["PGPASSWORD"]), "{client:?}");
    assert_eq!(client["WEFT_STORE"], "postgres://weft@store/weft", "the URL has no password");
    assert!(services["web"]["environment"].starts_with("&store\n"));
    assert_eq!(services["test"]["environment"], "*store", "the variables of the dashboard");
    // The database has no port on the host, so only the other services can connect to it.
    assert!(!services["store"].contains_key("ports"));
    assert_eq!(items(&services["store"]["networks"]), ["inside"]);
    assert_eq!(mapping(&mapping(COMPOSE)["networks"])["inside"], "{ internal: true }");
}
