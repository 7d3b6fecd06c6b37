//! Measuring selection against labelled queries.

pub mod metrics;
