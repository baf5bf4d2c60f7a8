//! Parses options whose values have names.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Parses one of these names. Each name has a value and a help text. The help text can be empty.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    named: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let names = named.map(|(name, help, _)| PossibleValue::new(name).help((!help.is_empty()).then_some(help)));
    PossibleValuesParser::new(names).try_map(move |word| {
        let found = named.iter().find(|(name, ..)| *name == word);
        found.map(|(.., value)| *value).ok_or("unknown name")
    })
}
