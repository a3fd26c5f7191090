//! The common methods of all types that hold a text.

/// Implements `as_str` and `Display` for types that hold a text.
macro_rules! as_text {
    ($($text:ty),*) => {$(
        impl $text {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $text {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}
