//! Binds the methods of the objects that scripts use. One entry of [`surface!`] is a method and its
//! description in the annotations for editors:
//!
//! ```text
//! surface! {
//!     CONNECTION = Connection, bind_connection |conn, stage, lua|;
//!
//!     /// Expects that the target sends no byte.
//!     async expect_silence() { expect_silence as (expectation, open) } =>
//!         stage.rdma(conn.number).expect_silence(&expectation, open).await?;
//! }
//! ```
//!
//! The first line names the list of [`Method`]s, the function that binds the methods, and three
//! variables for the entries. The variables are the object (a copy), the locked stage, and the Lua
//! state. The stage knows the line of the script. An entry has these parts:
//!
//! - `async`, or `fn` for a method that does not use the stage. In a `fn`, the stage is missing, and
//!   the object is a reference.
//! - The parameters before the options, each with its type in Rust and in the annotations:
//!   `message: Value = "weft.Message|string"`.
//! - The options, the last parameter, as `{ TABLE: READER as PATTERN }`. `READER` is a method of
//!   [`Reader`] that reads the fields of the table `TABLE`. `READER` may be omitted if its name is
//!   the name of the table. If `TABLE` is a string, `PATTERN` is the table itself.
//! - `-> "TYPE"`: what the method returns, in the annotations.
//! - The value that the method returns. In the expression of the value, `?` also accepts a
//!   [`Stop`].

use mlua::Lua;

use super::fields::Fields;
use super::objects::Context;
use super::options::{Declared, Reader};
use crate::stage::Stop;

impl Context {
    pub(super) fn reader<'a>(&'a self, lua: &'a Lua) -> Reader<'a> {
        Reader { lua, target: &self.target, declared: Declared(&self.requirements) }
    }
}

/// Converts the end of a case to a Lua error.
impl From<Stop> for mlua::Error {
    fn from(stop: Stop) -> Self {
        mlua::Error::external(stop)
    }
}

/// A method with its description for the annotations.
pub(super) struct Method {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The parameters before the options, and their types.
    pub(super) parameters: &'static [(&'static str, &'static str)],
    pub(super) options: Option<Options>,
    /// The type of the returned value.
    pub(super) returns: Option<&'static str>,
}

/// The last parameter of a method: a table.
pub(super) struct Options {
    /// The name of the table.
    pub(super) name: &'static str,
    /// Reads the fields of the table. `None` if a constructor of messages reads them.
    pub(super) read: Option<ReadFields>,
}

pub(super) type ReadFields = fn(&Reader<'_>, &mut Fields<'_>) -> mlua::Result<()>;

macro_rules! surface {
    (
        $list:ident = $object:ident, $bind:ident |$this:ident, $stage:ident, $lua:ident|;
        $(
            $(#[doc = $about:literal])+
            $kind:ident $name:ident($($argument:ident: $type:ty = $lua_type:literal),*)
            $({ $($options:tt)+ })? $(-> $returns:literal)? => $value:expr;
        )*
    ) => {
        pub(in crate::script) const $list: &[crate::script::bind::Method] = &[$(crate::script::bind::Method {
            name: stringify!($name),
            about: concat!($($about),+),
            parameters: &[$((stringify!($argument), $lua_type)),*],
            options: crate::script::bind::options!($($($options)+)?),
            returns: crate::script::bind::optional!($($returns)?),
        }),*];

        #[allow(unused_variables, unused_mut, reason = "an entry uses only the variables that it needs")]
        pub(in crate::script) fn $bind<M: mlua::UserDataMethods<$object>>(methods: &mut M) {
            $(crate::script::bind::method!(
                $kind methods $object $name |$this, $stage, $lua|
                ($($argument: $type),*) {$($($options)+)?} $value
            );)*
        }
    };
}

/// Binds one method of [`surface!`].
macro_rules! method {
    ($kind:ident $methods:ident $object:ident $name:ident |$this:ident, $stage:ident, $lua:ident|
        ($($argument:ident: $type:ty),*) { $table:ident as $pattern:pat } $value:expr) => {
        crate::script::bind::method!($kind $methods $object $name |$this, $stage, $lua|
            ($($argument: $type),*) { $table: $table as $pattern } $value)
    };
    (async $methods:ident $object:ident $name:ident |$this:ident, $stage:ident, $lua:ident|
        ($($argument:ident: $type:ty),*) { $table:ident: $reader:ident as $pattern:pat } $value:expr) => {
        $methods.add_async_method(
            stringify!($name),
            |$lua, this, ($($argument,)* table,): ($($type,)* Option<mlua::Table>,)| {
                let ($this, at) = ($object::clone(&this), crate::script::location::here(&$lua));
                let read = $this.context.reader(&$lua).read(
                    stringify!($table),
                    table,
                    crate::script::options::Reader::$reader,
                );
                async move {
                    let $pattern = read?;
                    let locked = $this.context.stage.clone();
                    let mut $stage = locked.lock().await;
                    $stage.connections.at = at;
                    Ok($value)
                }
            },
        )
    };
    (async $methods:ident $object:ident $name:ident |$this:ident, $stage:ident, $lua:ident|
        ($($argument:ident: $type:ty),*) { $($class:literal as $table:ident)? } $value:expr) => {
        $methods.add_async_method(
            stringify!($name),
            |$lua, this, ($($argument,)* $($table,)?): ($($type,)* $(crate::script::bind::table!($table),)?)| {
                let ($this, at) = ($object::clone(&this), crate::script::location::here(&$lua));
                async move {
                    let locked = $this.context.stage.clone();
                    let mut $stage = locked.lock().await;
                    $stage.connections.at = at;
                    Ok($value)
                }
            },
        )
    };
    (fn $methods:ident $object:ident $name:ident |$this:ident, $stage:ident, $lua:ident|
        ($($argument:ident: $type:ty),*) { $table:ident: $reader:ident as $pattern:pat } $value:expr) => {
        $methods.add_method(
            stringify!($name),
            |$lua, $this, ($($argument,)* table,): ($($type,)* Option<mlua::Table>,)| {
                let $pattern = $this.context.reader($lua).read(
                    stringify!($table),
                    table,
                    crate::script::options::Reader::$reader,
                )?;
                Ok($value)
            },
        )
    };
    (fn $methods:ident $object:ident $name:ident |$this:ident, $stage:ident, $lua:ident|
        ($($argument:ident: $type:ty),*) { $($class:literal as $table:ident)? } $value:expr) => {
        $methods.add_method(
            stringify!($name),
            |$lua, $this, ($($argument,)* $($table,)?): ($($type,)* $(crate::script::bind::table!($table),)?)| Ok($value),
        )
    };
}

/// The type of a table that no reader reads.
macro_rules! table {
    ($table:ident) => { Option<mlua::Table> };
}

/// The options of a method, for the annotations.
macro_rules! options {
    () => { None };
    ($table:ident as $pattern:pat) => { crate::script::bind::options!($table: $table as $pattern) };
    ($table:ident: $reader:ident as $pattern:pat) => {
        Some(crate::script::bind::Options {
            name: stringify!($table),
            read: Some(|reader, fields| reader.$reader(fields).map(|_| ())),
        })
    };
    ($class:literal as $table:ident) => { Some(crate::script::bind::Options { name: $class, read: None }) };
}

macro_rules! optional {
    () => {
        None
    };
    ($value:literal) => {
        Some($value)
    };
}

pub(super) use {method, optional, options, surface, table};
