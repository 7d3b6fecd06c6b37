//! Measures selection against labelled queries: from labels and answers to figures, a plot and a comparison.
//! This module does not read files, print or use the clock.

pub mod answer;
pub mod calibration;
pub mod compare;
pub mod labels;
pub mod metrics;
pub mod plot;
pub mod report;
pub mod skills;

pub use answer::{Answer, Failed, Fault};
pub use compare::Comparison;
pub use labels::{LabelFile, LabelProblem, Labels, Place, Query};
pub use report::{Figures, Metric, Report};
