//! One variant of a case: the case with one value for each parameter. A key has two spellings:
//! `id[octet=3]` in texts, `id/octet=3` for folders.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::old_ids;

/// The parameters of a case, by name.
pub type Parameters = BTreeMap<String, ParameterValue>;

/// Identifies one variant of a case. The text form ([`Display`](fmt::Display), [`FromStr`]) is
/// stable across releases.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct CaseKey {
    /// Id of the case.
    pub case: String,
    /// Values of the parameters. Empty for a case without parameters.
    pub parameters: Parameters,
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ParameterValue {
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// Any other text.
    Text(String),
}

impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterValue::Bool(value) => value.fmt(f),
            ParameterValue::Integer(value) => value.fmt(f),
            // A text is written without quotes if `bare` reads it back as the same text. Otherwise
            // it is written with quotes, as in JSON.
            ParameterValue::Text(text) if is_plain(text) && bare(text) == *self => f.write_str(text),
            ParameterValue::Text(text) => write!(f, "{}", serde_json::Value::from(text.as_str())),
        }
    }
}

impl CaseKey {
    /// A case without parameters.
    #[must_use]
    pub fn new(case: &str) -> Self {
        CaseKey { case: case.to_owned(), parameters: Parameters::new() }
    }

    /// Returns the folder of the variant's evidence below `cases/`, with `/` between the parts. The
    /// first parts are the parts of the id. The last part has all parameters (`octet=3`,
    /// `crc=true,octet=3`). Without parameters, the last part is `default`. Bytes other than
    /// letters, digits, `.`, `_` and `-` are percent-encoded (`%2F`). A part that is too long for a
    /// file name is shortened, and ends with `~` and a hash of the complete part.
    #[must_use]
    pub fn path(&self) -> String {
        let mut path: String = self.case.split('/').map(|part| shortened(path_safe(part)) + "/").collect();
        path.push_str(&shortened(self.folder_of_parameters()));
        path
    }

    fn folder_of_parameters(&self) -> String {
        if self.parameters.is_empty() {
            return "default".to_owned();
        }
        let mut folder = String::new();
        for (i, (name, value)) in self.parameters.iter().enumerate() {
            let separator = if i == 0 { "" } else { "," };
            let value = match value {
                // Quotes are left out, because they would be written as %22.
                ParameterValue::Text(text) => path_safe(text),
                other => path_safe(&other.to_string()),
            };
            folder.push_str(&format!("{separator}{}={value}", path_safe(name)));
        }
        folder
    }
}

impl fmt::Display for CaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.case)?;
        for (i, (name, value)) in self.parameters.iter().enumerate() {
            write!(f, "{}{name}={value}", if i == 0 { "[" } else { "," })?;
        }
        if self.parameters.is_empty() { Ok(()) } else { f.write_str("]") }
    }
}

/// A text that is not a [`CaseKey`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a case key; expected a key such as mpa/7.1.1-key/wrong-octet[octet=3]")]
pub struct InvalidKey(pub String);

impl<'de> Deserialize<'de> for CaseKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields {
            case: String,
            parameters: Parameters,
        }
        let Fields { case, parameters } = Fields::deserialize(deserializer)?;
        Ok(old_ids::current(CaseKey { case, parameters }))
    }
}

impl FromStr for CaseKey {
    type Err = InvalidKey;
    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        parse(text).map(old_ids::current).ok_or_else(|| InvalidKey(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<CaseKey> {
    let Some((case, rest)) = text.split_once('[') else {
        return (!text.is_empty()).then(|| CaseKey::new(text));
    };
    let mut key = CaseKey::new(case);
    let mut rest = rest.strip_suffix(']')?;
    loop {
        let (name, after) = rest.split_once('=')?;
        let value;
        (value, rest) = if after.starts_with('"') {
            let mut stream = serde_json::Deserializer::from_str(after).into_iter::<String>();
            let text = stream.next()?.ok()?;
            (ParameterValue::Text(text), after.get(stream.byte_offset()..)?)
        } else {
            let end = after.find(',').unwrap_or(after.len());
            (bare(&after[..end]), &after[end..])
        };
        if case.is_empty() || name.is_empty() || key.parameters.insert(name.to_owned(), value).is_some() {
            return None;
        }
        if rest.is_empty() {
            return Some(key);
        }
        rest = rest.strip_prefix(',')?;
    }
}

/// Returns the value of a text without quotes.
fn bare(text: &str) -> ParameterValue {
    match (text, text.parse()) {
        ("true", _) => ParameterValue::Bool(true),
        ("false", _) => ParameterValue::Bool(false),
        (_, Ok(integer)) => ParameterValue::Integer(integer),
        _ => ParameterValue::Text(text.to_owned()),
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-'))
}

fn path_safe(text: &str) -> String {
    // A part that has only dots could mean another folder.
    if text.bytes().all(|c| c == b'.') {
        return text.bytes().map(|_| "%2E").collect();
    }
    text.bytes()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-') {
                char::from(c).to_string()
            } else {
                format!("%{c:02X}")
            }
        })
        .collect()
}

/// Maximum length in bytes of a part of a path. Most file systems allow 255 bytes, but some
/// encrypting file systems allow only 143.
const LONGEST_PART: usize = 140;
/// Number of bytes that a shortened part keeps in front of `~` and the hash.
const KEPT: usize = LONGEST_PART - 1 - 16;

/// Shortens a part of a path so that every file system accepts it. `part` is ASCII and has no `~`.
fn shortened(part: String) -> String {
    if part.len() <= LONGEST_PART {
        return part;
    }
    format!("{}~{:016x}", &part[..KEPT], fnv1a(part.as_bytes()))
}

/// FNV-1a. The hash must be the same in every release, because the names of existing folders depend
/// on it.
fn fnv1a(octets: &[u8]) -> u64 {
    octets
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, octet| (hash ^ u64::from(*octet)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parameters: &[(&str, ParameterValue)]) -> CaseKey {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        CaseKey { case: "mpa/7.1.1-key/wrong-octet".into(), parameters }
    }

    #[test]
    fn both_spellings() {
        let plain = key(&[]);
        assert_eq!(plain.to_string(), "mpa/7.1.1-key/wrong-octet");
        assert_eq!(plain.path(), "mpa/7.1.1-key/wrong-octet/default");
        let octet = key(&[("octet", ParameterValue::Integer(3)), ("crc", ParameterValue::Bool(true))]);
        assert_eq!(octet.to_string(), "mpa/7.1.1-key/wrong-octet[crc=true,octet=3]");
        assert_eq!(octet.path(), "mpa/7.1.1-key/wrong-octet/crc=true,octet=3");
    }

    #[test]
    fn the_text_form_is_read_back() {
        for text in ["swapped", "true", "3", "", "a,b", "x]y", "a \"quoted\" text", "ünder", "+3"] {
            let key = key(&[("a", ParameterValue::Text(text.into())), ("b", ParameterValue::Integer(-1))]);
            assert_eq!(key.to_string().parse(), Ok(key.clone()), "{key}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", "a[", "a[]", "a[x]", "a[x=1", "a[x=1,]", "[x=1]", "a[x=1,x=2]", "a[x=\"1]", "a[=1]"] {
            assert!(text.parse::<CaseKey>().is_err(), "{text}");
        }
    }

    #[test]
    fn shortens_a_part_of_a_path_that_is_no_file_name() {
        let long = |last: &str| key(&[("text", ParameterValue::Text("ü".repeat(300) + last))]);
        let path = long("a").path();
        assert!(path.starts_with("mpa/7.1.1-key/wrong-octet/text=%C3%BC%C3%BC") && path.contains('~'), "{path}");
        assert!(path.split('/').all(|part| part.len() <= LONGEST_PART), "{path}");
        // The two texts differ only at the end.
        assert_ne!(path, long("b").path());
        // The text form has the complete text.
        assert_eq!(long("a").to_string().parse(), Ok(long("a")));
        let name = "n".repeat(300);
        let other = CaseKey::new(&name).path();
        assert!(other.split('/').all(|part| part.len() <= LONGEST_PART), "{other}");
        let fits = key(&[("text", ParameterValue::Text("x".repeat(LONGEST_PART - "text=".len())))]);
        assert!(!fits.path().contains('~'));
    }

    /// weft finds the folders of earlier releases by this hash.
    #[test]
    fn hash_of_a_shortened_part_never_changes() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn no_part_of_a_path_leaves_its_folder() {
        let up = CaseKey { case: "../..".into(), ..key(&[("a", ParameterValue::Text("/../b".into()))]) };
        assert_eq!(up.path(), "%2E%2E/%2E%2E/a=%2F..%2Fb");
    }
}
