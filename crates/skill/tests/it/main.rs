//! Tests of the crate from outside, on real folders.
#![expect(
    clippy::unwrap_used,
    reason = "clippy spares tests, but not the functions that they share"
)]

mod reload;
