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

pub use answer::{Answer, AnswerFault, FailedQuery};
pub use compare::EvalComparison;
pub use labels::{LabelFile, LabelPosition, LabelProblem, LabelledQuery, QueryLabels};
pub use report::{EvalMetric, EvalReport, MetricValues};
