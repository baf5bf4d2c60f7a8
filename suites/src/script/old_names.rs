//! Names that functions and fields of the surface had in earlier versions. They still work, and the
//! log has a warning for each line of a script that uses one.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use mlua::{AnyUserData, Lua, LuaString, MetaMethod, ObjectLike, UserDataMethods, Value};

use super::location::here;
use crate::model::SourceLocation;

/// Lines that the log has already named. A script is loaded again for each case.
static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Keeps the old names of the methods of an object: `(old, new)`.
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
    use mlua::UserData;

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
}
