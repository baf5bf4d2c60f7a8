//! `case { ... }`: reads and checks the cases that a script declares.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use mlua::{Function, Lua, LuaSerdeExt, Table, Value};
use serde::de::DeserializeOwned;
use weft_core::RequirementId;

use super::combination::{Combination, Strategy};
use super::fields::Fields;
use super::location;
use super::options::Ids;
use crate::model::{CaseInfo, CaseKey, ParameterValue, Role, SourceLocation};

/// A declared case with its function, which belongs to the Lua state of the script.
pub(crate) struct DeclaredCase {
    pub(crate) info: CaseInfo,
    pub(crate) combination: Combination,
    /// Parameters for which each value between the listed values is valid.
    pub(crate) scales: Vec<String>,
    pub(crate) run: Function,
}

/// The cases that a script declares while it is loaded.
pub(crate) type Declarations = Arc<Mutex<Vec<DeclaredCase>>>;

/// Maximum number of variants of one case.
const MAX_VARIANTS: usize = 100_000;

/// Adds `case` to the globals. The id of each case begins with the name of the script, which is
/// `file`.
pub(crate) fn install(lua: &Lua, file: &str) -> mlua::Result<Declarations> {
    let declarations = Declarations::default();
    let (into, file) = (declarations.clone(), file.to_owned());
    let case = lua.create_function(move |lua, table: Table| {
        let source = location::here(lua).unwrap_or(SourceLocation { file: file.clone(), line: 0 });
        let declared = declare(lua, table, source)?;
        into.lock().unwrap_or_else(PoisonError::into_inner).push(declared);
        Ok(())
    })?;
    lua.globals().set("case", case)?;
    Ok(declarations)
}

fn declare(lua: &Lua, table: Table, source: SourceLocation) -> mlua::Result<DeclaredCase> {
    let mut fields = Fields::new(lua, "case", Some(table));
    let id: String = fields.required("id")?;
    check_id(&id, &source.file).map_err(|why| fields.wrong("id", &why))?;
    let version: u32 = fields.or("version", 1)?;
    let title: String = fields.required("title")?;
    let Ids(names) = fields.required("requirements")?;
    let mut requirements = Vec::new();
    for name in &names {
        let known = name.parse::<RequirementId>().map_err(|error| fields.wrong("requirements", &error.to_string()))?;
        requirements.push(known);
    }
    let roles = words(lua, &mut fields, "roles")?.unwrap_or_else(|| vec![Role::Responder]);
    let capabilities = words(lua, &mut fields, "capabilities")?.unwrap_or_default();
    let tags: Vec<String> = fields.or("tags", Vec::new())?;
    let parameters = parameters(&mut fields)?;
    let combination = combination(lua, &mut fields)?;
    let scales: Vec<String> = fields.or("scales", Vec::new())?;
    let is_scale = |name: &&String| {
        parameters
            .get(*name)
            .is_some_and(|values| values.iter().all(|value| matches!(value, ParameterValue::Integer(_))))
    };
    if let Some(name) = scales.iter().find(|name| !is_scale(name)) {
        return Err(fields.wrong("scales", &format!("{name:?} is not a parameter whose values are integers")));
    }
    let run: Function = fields.required("run")?;
    if requirements.is_empty() {
        return Err(fields.wrong("requirements", "expected at least one requirement id"));
    }
    if roles.is_empty() {
        return Err(fields.wrong(
            "roles",
            "expected the roles that a target can have in this case: \"responder\", \"initiator\" or both",
        ));
    }
    if title.is_empty() || title.contains('\n') || version == 0 {
        return Err(fields.wrong("title, version", "expected a title of one line, and a version of at least 1"));
    }
    fields.done()?;
    let info = CaseInfo { id, version, title, requirements, roles, capabilities, tags, parameters, source };
    Ok(DeclaredCase { info, combination, scales, run })
}

/// Reads a list of words, each of which must be in a fixed set. `None` if the table does not have
/// the field.
fn words<T: DeserializeOwned>(lua: &Lua, fields: &mut Fields<'_>, name: &'static str) -> mlua::Result<Option<Vec<T>>> {
    let Some(words) = fields.optional::<Vec<String>>(name)? else { return Ok(None) };
    let mut known = Vec::new();
    for word in words {
        let value = lua.create_string(&word)?;
        known.push(lua.from_value(Value::String(value)).map_err(|error| {
            let why = location::of_error(&error, "").1;
            fields.wrong(name, why.strip_prefix("deserialize error: ").unwrap_or(&why))
        })?);
    }
    Ok(Some(known))
}

fn parameters(fields: &mut Fields<'_>) -> mlua::Result<BTreeMap<String, Vec<ParameterValue>>> {
    let mut parameters = BTreeMap::new();
    let mut variants = 1usize;
    for (name, values) in fields.or::<BTreeMap<String, Vec<Value>>>("parameters", BTreeMap::new())? {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(fields.wrong("parameters", &format!("{name:?} is not a name: expected a-z, 0-9 and _")));
        }
        let mut read = Vec::new();
        let mut spellings = BTreeSet::new();
        for value in values {
            let value = match value {
                Value::Boolean(value) => ParameterValue::Bool(value),
                Value::Integer(value) => ParameterValue::Integer(value),
                Value::String(value) => ParameterValue::Text(value.to_str()?.to_owned()),
                other => {
                    let why = format!("{name}: expected booleans, integers and strings, found {}", other.type_name());
                    return Err(fields.wrong("parameters", &why));
                }
            };
            let alone = CaseKey { case: String::new(), parameters: [(name.clone(), value.clone())].into() };
            if !spellings.insert(alone.path()) {
                return Err(fields.wrong("parameters", &format!("{name}: the value {value} is listed twice")));
            }
            read.push(value);
        }
        variants = variants.saturating_mul(read.len());
        if variants == 0 || variants > MAX_VARIANTS {
            let why = format!("{name}: expected 1 to {MAX_VARIANTS} variants in total");
            return Err(fields.wrong("parameters", &why));
        }
        parameters.insert(name, read);
    }
    Ok(parameters)
}

/// `tier`: the smallest tier that contains the case. `combine`: for each tier, `"all"`,
/// `"pairwise"`, or a number of variants.
fn combination(lua: &Lua, fields: &mut Fields<'_>) -> mlua::Result<Combination> {
    let mut combination = Combination::default();
    if let Some(word) = fields.optional::<String>("tier")? {
        combination.from = word.parse().map_err(|why: String| fields.wrong("tier", &why))?;
    }
    let mut tiers = Fields::new(lua, "combine", fields.optional("combine")?);
    for (name, strategy) in
        [("smoke", &mut combination.smoke), ("default", &mut combination.default), ("full", &mut combination.full)]
    {
        *strategy = match tiers.or(name, Value::Nil)? {
            Value::Nil => *strategy,
            Value::String(word) if word.as_bytes() == *b"all" => Strategy::All,
            Value::String(word) if word.as_bytes() == *b"pairwise" => Strategy::Pairwise,
            Value::Integer(count) if (1..=100_000).contains(&count) => {
                Strategy::Sample(usize::try_from(count).unwrap_or(usize::MAX))
            }
            _ => return Err(tiers.wrong(name, "expected \"all\", \"pairwise\", or a number of variants, 1 to 100000")),
        };
    }
    tiers.done()?;
    Ok(combination)
}

/// Checks the id of a case. In `mpa/7.1.1-key.lua`, and in each file of a folder `mpa/7.1.1-key`,
/// ids are `mpa/7.1.1-key/<name>`.
fn check_id(id: &str, file: &str) -> Result<(), String> {
    let stem = file.strip_suffix(".lua").unwrap_or(file);
    let stem = stem.match_indices('/').nth(1).map_or(stem, |(end, _)| &stem[..end]);
    let name = id.strip_prefix(stem).and_then(|rest| rest.strip_prefix('/'));
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    match name {
        Some(name) if name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_word) => Ok(()),
        _ => Err(format!(
            "{id:?}: expected \"{stem}/<name>\": the path of the file or its folder, then a name of a-z, 0-9, - and ."
        )),
    }
}

/// Returns every variant of a case, in the order of the names and values of its parameters.
pub(crate) fn variants(info: &CaseInfo) -> Vec<CaseKey> {
    let mut keys = vec![CaseKey::new(&info.id)];
    for (name, values) in &info.parameters {
        keys = keys
            .iter()
            .flat_map(|key| {
                values.iter().map(|value| {
                    let mut key = key.clone();
                    key.parameters.insert(name.clone(), value.clone());
                    key
                })
            })
            .collect();
    }
    keys
}
