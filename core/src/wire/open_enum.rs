//! The macro for every numbered name on the wire.
//!
//! A wire enum is a newtype over its integer with named constants, so that values which no
//! specification assigns survive a round trip and can be sent on purpose.
//! [`rdmap::Opcode`](crate::wire::rdmap::Opcode) is written without it, because it answers more
//! questions than its name.

/// Declares a newtype over an integer with named constants, `ALL` of them, `name()`,
/// `is_assigned()`, `Display`, `Debug`. Ranges of values that are not assigned may have a name of
/// their own.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        $name:ident($int:ty), otherwise $other:literal $(, $range:pat => $range_text:literal)* {
            $($(#[$doc:meta])* $constant:ident = $value:literal => $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $int);

        impl $name {
            $($(#[$doc])* pub const $constant: $name = $name($value);)+

            /// Every assigned value, in the order of the specification.
            pub const ALL: &'static [$name] = &[$($name::$constant),+];

            /// The specification's name for the value.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($value => $text,)+
                    $($range => $range_text,)*
                    _ => $other,
                }
            }

            /// Does a specification assign this value?
            #[must_use]
            pub const fn is_assigned(self) -> bool {
                match self.0 {
                    $($value => true,)+
                    _ => false,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:#x} ({})", self.0, self.name())
            }
        }
    };
}

pub(crate) use open_enum;
