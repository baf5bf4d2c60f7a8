//! The macro that declares enumerations of wire values, for example message types.
//!
//! Such an enumeration is a newtype over an integer with named constants. It therefore also
//! expresses values that no specification assigns. Such a value stays unchanged when it is read and
//! written, and a test can send it.

/// Declares a newtype over an integer with named constants, a list `ALL` of the constants,
/// `name()`, `is_assigned()`, `Display` and `Debug`. The text after `debug` is the format for
/// `Debug`; its arguments are the value and the name. The text after `otherwise` is the name of
/// unassigned values. A range of unassigned values can have its own name.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        $name:ident($int:ty), debug $debug:literal, otherwise $other:literal $(, $range:pat => $range_text:literal)* {
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

            /// Returns whether a specification assigns this value.
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
                write!(f, $debug, self.0, self.name())
            }
        }
    };
}

pub(crate) use open_enum;
