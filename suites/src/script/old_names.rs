//! Names that functions and fields of the surface (the objects of scripts) had in earlier versions.
//! They still work. The log has a warning for each line of a script that uses an old name.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use mlua::{AnyUserData, Lua, LuaString, MetaMethod, ObjectLike, UserDataMethods, Value};

use super::location::here;
use crate::model::SourceLocation;

/// Renamed methods of an SDP connection, as `(old, new)`.
pub(super) const SDP_METHODS: [(&str, &str); 2] = [("tell", "command"), ("books", "counters")];
/// The old name of `terminate`, a field of `expect_terminate`.
pub(super) const TERMINATE: &str = "told";
/// The old name of `trailing`, a field of SDP messages.
pub(super) const TRAILING: &str = "behind";

/// Warnings that are already in the log. A script is loaded again for each case, but each warning
/// is logged only once.
static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Binds the old names of an object's methods. `names` has pairs `(old, new)`.
pub(super) fn keep<T, M: UserDataMethods<T>>(methods: &mut M, names: &'static [(&str, &str)]) {
    methods.add_meta_function(MetaMethod::Index, |lua, (object, name): (AnyUserData, LuaString)| {
        let Some((old, new)) = names.iter().find(|(old, _)| *name.as_bytes() == *old.as_bytes()) else {
            return Ok(Value::Nil);
        };
        warn(lua, old, new);
        object.get(*new)
    });
}

/// Logs that the script uses the name `old`.
pub(super) fn warn(lua: &Lua, old: &str, new: &str) {
    let at = here(lua).unwrap_or_else(|| SourceLocation { file: "a script".to_owned(), line: 0 });
    let warning = format!("{at}: `{old}` is an old name; use `{new}`");
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    if !warned.contains(&warning) {
        tracing::warn!("{warning}");
        warned.insert(warning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Verdict;
    use mlua::UserData;
    use std::sync::Arc;

    struct Thing;

    impl UserData for Thing {
        fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
            methods.add_method("fresh", |_, _, ()| Ok("fresh"));
            keep(methods, &[("stale", "fresh")]);
        }
    }

    #[test]
    fn an_old_name_calls_the_new_method() {
        let lua = Lua::new();
        lua.globals().set("thing", Thing).unwrap();
        assert_eq!(lua.load("return thing:stale()").eval::<String>().unwrap(), "fresh");
        assert_eq!(lua.load("return thing:fresh()").eval::<String>().unwrap(), "fresh");
        assert!(lua.load("return thing.other").eval::<Value>().unwrap().is_nil());
        assert!(WARNED.lock().unwrap().iter().any(|warning| warning.contains("`stale` is an old name; use `fresh`")));
    }

    #[tokio::test]
    async fn old_names_of_methods_and_fields_work() {
        let script = "case { id = 'mpa/x/one', version = 1, title = 'x', requirements = { 'RDMAP-6.2.1-1' }, roles = { 'responder' },
            run = function(t)
            local c = t:start_up {}
            c:send(mpa.fpdu { ulpdu = rdmap.send { opcode = 15 } })
            c:expect_terminate { told = 'RDMAP-6.2.1-1' }
            t:liveness() end }
            case { id = 'mpa/x/two', version = 1, title = 'x', requirements = { 'SDP-8.2.1-21' }, roles = { 'responder' },
            capabilities = { 'sdp-drive' }, run = function(t)
            local s = t:sdp {}
            s:tell 'send 10'
            s:collect(10, { requirement = 'SDP-8.2.1-21' })
            assert(s:books { bufs = 12 }.bufs == 12)
            assert(#sdp.data { payload = 'hi', behind = 'x' } == 19)
            s:close()
            t:liveness() end }";
        let out = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(out.path().join("suites/mpa")).unwrap();
        std::fs::write(out.path().join("suites/mpa/x.lua"), script).unwrap();
        let options = crate::RunOptions {
            target: crate::targets::Target::builtin(),
            suites: crate::script::Suites::from_folder(&out.path().join("suites")).unwrap(),
            filter: crate::Filter::everything(),
            out: out.path().to_owned(),
            seed: Some(1),
            cancel: None,
        };
        let report = crate::run(options, Arc::new(|_: &crate::model::Event| {})).await.unwrap();
        assert_eq!(report.results.len(), 2);
        for result in &report.results {
            assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
        }
        let warned = WARNED.lock().unwrap();
        for (line, new) in [(5, "terminate"), (10, "command"), (12, "counters"), (13, "trailing")] {
            let expected = format!("use `{new}`");
            let is_expected =
                |warning: &String| warning.starts_with(&format!("mpa/x.lua:{line}: ")) && warning.ends_with(&expected);
            assert!(warned.iter().any(is_expected), "{new}: {warned:?}");
        }
    }
}
