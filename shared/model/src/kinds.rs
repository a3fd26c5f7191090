//! Enums of kinds that are stored or sent, each with its name.

/// Declares an enum of kinds, with `ALL` and their names. Each kind is one row, so no list can lack
/// one: `tests/golden` has a file for each.
#[macro_export]
macro_rules! kinds {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $kind:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $kind,)+
        }

        impl $name {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// Its name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $text,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
