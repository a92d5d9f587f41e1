//! Typed indices: a rank is never mistaken for a stream.

/// Defines a `u32` index newtype with `new`, `index` and ordering.
#[macro_export]
macro_rules! define_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            $crate::ids::serde::Serialize, $crate::ids::serde::Deserialize,
        )]
        #[serde(transparent, crate = "::foretrain_core::ids::serde")]
        pub struct $name(u32);
        impl $name {
            /// The id with this index.
            pub const fn new(index: u32) -> Self {
                Self(index)
            }
            /// The id with this index.
            ///
            /// # Panics
            /// If the index does not fit in 32 bits; tables refuse to grow that far.
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("more than 4294967295 rows in one table"))
            }
            /// The position this id stands for.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
            /// The raw 32-bit index.
            pub const fn get(self) -> u32 {
                self.0
            }
        }
    };
}

#[doc(hidden)]
pub use serde;
