//! The words of an enum, in JSON, in output and on the command line.

/// Adds `ALL`, `as_str`, `Display` and `FromStr` to an enum. `all` is the doc comment of `ALL`.
/// `unknown` is the format of the error for an unknown word.
macro_rules! words {
    ($name:ident, all: $all:literal, unknown: $unknown:literal, { $($value:ident => $word:literal),+ $(,)? }) => {
        impl $name {
            #[doc = $all]
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$value),+];

            /// Name of the value in JSON and in output.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$value => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(word: &str) -> Result<Self, String> {
                let known = $name::ALL.into_iter().find(|value| value.as_str() == word);
                known.ok_or_else(|| format!($unknown, word))
            }
        }
    };
}

pub(super) use words;
