//! These tests check the layers of the crate. A file is allowed to import only from its own layer
//! and from lower layers. Files must not import each other in a circle.
//!
//! `ARCHITECTURE.md` has the table of the layers. An import is a path in a source file that begins
//! with `crate`, `super`, `self` or a child module. Tests are allowed to import everything.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The path of a module in the crate.
type Module = Vec<String>;
/// For each file, the files that it imports from.
type Imports = BTreeMap<Module, BTreeSet<Module>>;
/// For each module at the root of the crate, the number of its layer. The lowest layer is 0.
type Layers = BTreeMap<String, usize>;

/// The first line of the table in `ARCHITECTURE.md`.
const TABLE: &str = "| layer | modules |";

#[test]
fn no_file_imports_from_a_higher_layer() {
    let broken = upward(&imports(&sources()), &table(&architecture()));
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    assert_eq!(circle(&imports(&sources())), None);
}

#[test]
fn table_is_read_from_the_page() {
    let layers = table(&architecture());
    let order = ["source", "link", "ip", "tcp", "parse", "framing", "follow", "rules", "dissector", "output"];
    let numbers: Vec<usize> = order.iter().map(|module| layers[*module]).collect();
    assert!(numbers.is_sorted_by(|low, high| low < high), "{numbers:?}");
}

#[test]
fn import_from_a_higher_layer_is_found() {
    let layers = table("| layer | modules |\n| --- | --- |\n| low | `tcp`, `ip` |\n| high | `rules` |\n");
    for upward_import in [
        "use crate::rules::Rule;",
        "use crate::{ip::Segment, rules::{self, Rule}};",
        "fn f(rule: &super::rules::Rule) {}",
    ] {
        let tree = tree(&[("ip", ""), ("tcp", upward_import), ("rules", "use crate::tcp::Half;")]);
        assert_eq!(upward(&imports(&tree), &layers), ["tcp imports from rules, which is in a higher layer"]);
    }
    for allowed in ["use crate::ip::Segment;", "/// See [`crate::rules`].\nstruct Half;", "pub(crate) struct Half;"] {
        let tree = tree(&[("ip", ""), ("tcp", allowed), ("rules", "use crate::tcp::Half;")]);
        assert_eq!(upward(&imports(&tree), &layers), [""; 0], "{allowed}");
    }
}

#[test]
fn import_through_the_root_is_found() {
    let layers = table("| layer | modules |\n| --- | --- |\n| low | `tcp` |\n| high | `rules` |\n");
    let tree = tree(&[("", "pub use rules::{Rule, sdp};"), ("tcp", "use crate::{Rule};"), ("rules", "mod sdp;")]);
    assert_eq!(upward(&imports(&tree), &layers), ["tcp imports from rules, which is in a higher layer"]);
}

#[test]
fn module_without_a_layer_is_found() {
    let layers = table("| layer | modules |\n| --- | --- |\n| low | `tcp` |\n| high | `rules` |\n");
    let tree = tree(&[("tcp", ""), ("rumours", "")]);
    assert_eq!(
        upward(&imports(&tree), &layers),
        ["rules has a layer, but is not a module of the crate", "rumours has no layer in the table"]
    );
}

#[test]
fn circle_is_found() {
    let tree = tree(&[
        ("tcp", "mod half;\nuse half::Half;\nconst FAR: u32 = 1;"),
        ("tcp::half", "use super::FAR;"),
        ("ip", ""),
        ("rules", "use crate::{ip, tcp};"),
    ]);
    assert_eq!(circle(&imports(&tree)).as_deref(), Some("tcp -> tcp::half -> tcp"));
}

#[test]
fn circle_far_above_files_without_imports_is_found() {
    let tree = tree(&[
        ("format", ""),
        ("ip", "use crate::format::Format;"),
        ("link", "use crate::ip::Segment;"),
        ("rules", "mod ddp;\nuse crate::link;\nuse ddp::Ddp;\npub(crate) struct Rule;"),
        ("rules::ddp", "use crate::{link, rules::Rule};"),
        ("source", "use crate::rules;"),
    ]);
    assert_eq!(circle(&imports(&tree)).as_deref(), Some("rules -> rules::ddp -> rules"));
}

#[test]
fn visibility_is_no_import() {
    let tree = tree(&[("tcp", "mod half;\nuse half::Half;"), ("tcp::half", "pub(in crate::tcp) struct Half;")]);
    assert_eq!(circle(&imports(&tree)), None);
}

#[test]
fn tests_may_import_everything() {
    let tree = tree(&[
        ("tcp", "use crate::ip;\n#[cfg(test)]\nmod odd;\n#[cfg(test)]\nmod tests {\n    use crate::rules::Rule;\n}\n"),
        ("tcp::odd", "use crate::rules::Rule;"),
        ("ip", "#[cfg(test)]\n#[path = \"ip_tests.rs\"]\nmod tests;\n"),
        ("ip_tests", "use crate::rules::Rule;"),
        ("rules", "use crate::tcp::Half;"),
    ]);
    let found = imports(&tree);
    assert_eq!(found.keys().map(|module| module.join("::")).collect::<Vec<_>>(), ["ip", "rules", "tcp"]);
    assert_eq!(found[&module("tcp")], BTreeSet::from([module("ip")]));
    assert_eq!(circle(&found), None);
}

/// Returns messages about every import from a higher layer, every module without a layer, and every
/// module in the table that does not exist.
fn upward(imports: &Imports, layers: &Layers) -> Vec<String> {
    let modules: BTreeSet<&String> = imports.keys().map(|file| &file[0]).collect();
    let unused = layers.keys().filter(|module| !modules.contains(module));
    let mut found: Vec<String> =
        unused.map(|module| format!("{module} has a layer, but is not a module of the crate")).collect();
    let unlisted = modules.iter().filter(|module| !layers.contains_key(**module));
    found.extend(unlisted.map(|module| format!("{module} has no layer in the table")));
    for (file, used) in imports {
        for used in used.iter().filter(|used| layers.get(&used[0]) > layers.get(&file[0])) {
            let (file, used) = (file.join("::"), used.join("::"));
            found.push(format!("{file} imports from {used}, which is in a higher layer"));
        }
    }
    found
}

/// Returns a circle of files that import each other, as a line of text. Returns `None` if there is
/// no circle.
fn circle(imports: &Imports) -> Option<String> {
    let mut left = imports.clone();
    left.values_mut().for_each(|used| used.retain(|file| imports.contains_key(file)));
    loop {
        // A file that imports only from files without imports is not in a circle either.
        let leaves: BTreeSet<Module> =
            left.iter().filter(|(_, used)| used.is_empty()).map(|(file, _)| file.clone()).collect();
        if leaves.is_empty() {
            break;
        }
        left.retain(|file, _| !leaves.contains(file));
        left.values_mut().for_each(|used| used.retain(|file| !leaves.contains(file)));
    }
    let mut way = vec![left.keys().next()?];
    loop {
        let next = left[*way.last()?].first()?;
        let first = way.iter().position(|file| *file == next);
        way.push(next);
        if let Some(first) = first {
            return Some(way[first..].iter().map(|file| file.join("::")).collect::<Vec<_>>().join(" -> "));
        }
    }
}

/// The imports of each file, except those of tests and of the root.
fn imports(sources: &BTreeMap<Module, String>) -> Imports {
    let tests: Vec<Module> = sources.iter().flat_map(|(file, text)| test_modules(file, text)).collect();
    let root = sources.get(&Module::new()).map(|text| reexports(&tokens(text))).unwrap_or_default();
    let files = sources.iter().filter(|(file, _)| !file.is_empty() && !tests.iter().any(|test| file.starts_with(test)));
    files
        .map(|(file, text)| {
            let mut used = BTreeSet::new();
            for path in paths(file, &tokens(without_tests(text)), sources) {
                let path = match path.first().and_then(|first| root.get(first)) {
                    Some(reexported) => [reexported, &path[1..]].concat(),
                    None => path,
                };
                let of = (1..=path.len()).rev().map(|len| &path[..len]).find(|module| sources.contains_key(*module));
                used.extend(of.filter(|of| of != file).map(<[String]>::to_vec));
            }
            (file.clone(), used)
        })
        .collect()
}

/// The modules that a file declares for tests only.
fn test_modules(file: &Module, text: &str) -> Vec<Module> {
    let lines: Vec<&str> = text.lines().collect();
    let declared = lines.windows(2).filter(|lines| lines[0] == "#[cfg(test)]").filter_map(|lines| {
        let beside = lines[1].strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix(".rs\"]"));
        let child = lines[1].strip_suffix(';').and_then(|rest| rest.rsplit_once("mod "));
        match (beside, child) {
            (Some(name), _) => Some([&file[..file.len() - 1], &[name.to_owned()]].concat()),
            (None, Some((_, name))) => Some([file, [name.to_owned()].as_slice()].concat()),
            (None, None) => None,
        }
    });
    declared.collect()
}

/// The text of a file without its module of tests, which is the last item of the file.
fn without_tests(text: &str) -> &str {
    text.split_once("#[cfg(test)]\nmod tests {").map_or(text, |(code, _)| code)
}

/// The names and the punctuation marks in a source text, without comments.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for line in text.lines() {
        let mut rest = line.split("//").next().unwrap_or_default();
        while let Some(first) = rest.chars().next() {
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            let len = match first {
                c if is_name(c) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                c => c.len_utf8(),
            };
            let (token, after) = rest.split_at(len);
            if !token.trim().is_empty() {
                tokens.push(token.to_owned());
            }
            rest = after;
        }
    }
    tokens
}

/// The paths in a file that lead to modules of the crate, as paths from the root.
fn paths(file: &Module, tokens: &[String], sources: &BTreeMap<Module, String>) -> Vec<Module> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if at > 0 && tokens[at - 1] == "::" || tokens.get(at + 1).is_none_or(|next| next != "::") {
            continue;
        }
        // The path in `pub(in crate::rules)` is no import.
        if at > 1 && tokens[at - 2] == "(" && tokens[at - 1] == "in" {
            continue;
        }
        let is_child = || sources.contains_key(&[file, [token.clone()].as_slice()].concat());
        match token.as_str() {
            "crate" => spread(&Module::new(), &tokens[at + 2..], &mut found),
            "super" => {
                let levels = tokens[at..].chunks(2).take_while(|pair| *pair == ["super", "::"]).count();
                spread(&file[..file.len() - levels].to_vec(), &tokens[at + 2 * levels..], &mut found)
            }
            "self" => spread(file, &tokens[at + 2..], &mut found),
            _ if is_child() => spread(file, &tokens[at..], &mut found),
            _ => continue,
        };
    }
    found
}

/// Adds the paths that start with `prefix` and continue with `tokens`. These tokens are a name, or
/// a list of names in braces. Returns the number of tokens that belong to the paths.
fn spread(prefix: &Module, tokens: &[String], found: &mut Vec<Module>) -> usize {
    match tokens.first().map(String::as_str) {
        Some("{") => {
            let mut at = 1;
            while tokens.get(at).is_some_and(|token| token != "}") {
                at += if tokens[at] == "," { 1 } else { spread(prefix, &tokens[at..], found) };
            }
            at + 1
        }
        Some(name) if name.chars().all(|c| c.is_alphanumeric() || c == '_') => {
            let path = if name == "self" { prefix.clone() } else { [prefix, [name.to_owned()].as_slice()].concat() };
            if tokens.get(1).is_some_and(|next| next == "::") {
                return 2 + spread(&path, &tokens[2..], found);
            }
            found.push(path);
            1
        }
        _ => {
            found.push(prefix.clone());
            1
        }
    }
}

/// For each name that the root re-exports with `pub use`, the path of its item.
fn reexports(tokens: &[String]) -> BTreeMap<String, Module> {
    let uses = tokens.windows(2).enumerate().filter(|(_, pair)| *pair == ["pub", "use"]);
    let mut found = Vec::new();
    for (at, _) in uses {
        spread(&Module::new(), &tokens[at + 2..], &mut found);
    }
    found.into_iter().filter_map(|path| Some((path.last()?.clone(), path))).collect()
}

/// The table of the layers, from the lowest to the highest layer. Module names are in backquotes.
fn table(page: &str) -> Layers {
    let rows = page.lines().skip_while(|line| *line != TABLE).skip(2).take_while(|line| line.starts_with('|'));
    let modules = |row: &str| row.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    rows.enumerate().flat_map(|(number, row)| modules(row).into_iter().map(move |module| (module, number))).collect()
}

fn architecture() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md")).unwrap()
}

/// The source files of the crate by their modules.
fn sources() -> BTreeMap<Module, String> {
    let mut sources = BTreeMap::new();
    add(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &Module::new(), &mut sources);
    assert!(sources.len() > 200, "{}", sources.len());
    sources
}

fn add(folder: &Path, prefix: &Module, sources: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let module = match name.as_str() {
            "mod" | "lib" => prefix.clone(),
            _ => [prefix.as_slice(), &[name]].concat(),
        };
        if path.is_dir() {
            add(&path, &module, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.insert(module, fs::read_to_string(&path).unwrap());
        }
    }
}

fn tree(files: &[(&str, &str)]) -> BTreeMap<Module, String> {
    files.iter().map(|(path, text)| (module(path), (*text).to_owned())).collect()
}

fn module(path: &str) -> Module {
    path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
