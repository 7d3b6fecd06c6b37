//! The cost of runs over time.

use std::collections::BTreeMap;

use http::Method;
use repertoire_journal::{Filter, Journal, JournalError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::runs::journal_problem;
use super::{ApiBuilder, ApiCall, ApiResult, Nothing};

const HOUR_MS: u64 = 60 * 60 * 1000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// The maximum number of points of a curve.
const POINTS_MAX: u64 = 200;
/// The maximum number of runs considered, newest first.
const RUNS_MAX: usize = 2_000;

/// Costs over time.
#[derive(Debug, Serialize, JsonSchema)]
struct CostCurve {
    /// The period of a point.
    bucket: CostBucket,
    /// The points in chronological order, without gaps; a period without data is 0.
    points: Vec<CostPoint>,
    /// The sum of all points, in US dollars.
    total: f64,
    /// True if some usage has no known price.
    is_partial: bool,
    /// True if there are more runs than were considered.
    is_cut: bool,
}

/// The costs in a period.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
struct CostPoint {
    /// The start of the period, in milliseconds since 1970.
    at_ms: u64,
    /// The start as a short text, in UTC.
    label: String,
    /// The start with the costs, as a text.
    title: String,
    /// Costs in US dollars.
    value: f64,
    /// Tokens used.
    tokens: u64,
    /// The number of steps that ended in the period.
    steps: u64,
}

/// The period of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CostBucket {
    /// An hour.
    Hour,
    /// A day.
    #[default]
    Day,
}

/// The requested range of costs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct CostQuery {
    /// The period of a point; a day by default.
    bucket: Option<CostBucket>,
    /// The maximum number of points; 30 by default.
    #[schemars(range(min = 1, max = 200))]
    points: Option<u64>,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    api.add(Method::GET, "/api/v1/costs", "runs", "What runs have cost, over time", show_costs)
}

async fn show_costs(call: ApiCall<Nothing, CostQuery>) -> ApiResult<CostCurve> {
    let bucket = call.query.bucket.unwrap_or_default();
    let points = call.query.points.unwrap_or(30);
    if !(1..=POINTS_MAX).contains(&points) {
        let problem = format!("`points` is 1 to {POINTS_MAX}");
        return Err(crate::http::problem::HttpProblem::bad_request(problem));
    }
    let length = match bucket {
        CostBucket::Hour => HOUR_MS,
        CostBucket::Day => DAY_MS,
    };
    let last = call.serve_state.now_ms() / length;
    let first = last.saturating_sub(points - 1);
    let spent = CostsByPeriod::read_journal(
        call.serve_state.journal().await.map_err(journal_problem)?,
        first * length,
        length,
    )
    .await
    .map_err(journal_problem)?;
    // Leave out empty periods at the start.
    let start = spent.points.keys().next().copied().unwrap_or(last).max(first);
    let points: Vec<CostPoint> = (start..=last).map(|at| spent.cost_point(at, length)).collect();
    Ok(CostCurve {
        bucket,
        total: points.iter().map(|point| point.value).sum(),
        points,
        is_partial: spent.is_partial,
        is_cut: spent.is_cut,
    })
}

/// The usage of steps, by the period in which they ended.
#[derive(Default)]
struct CostsByPeriod {
    /// Micro-dollars, tokens and steps.
    points: BTreeMap<u64, (u64, u64, u64)>,
    is_partial: bool,
    is_cut: bool,
}

impl CostsByPeriod {
    async fn read_journal(
        journal: &Journal,
        from_ms: u64,
        length: u64,
    ) -> Result<Self, JournalError> {
        let mut out = CostsByPeriod::default();
        let mut filter = Filter::default();
        let mut looked_at = 0;
        loop {
            let page = journal.runs(&filter).await?;
            // The costs of a damaged run are unknown.
            out.is_partial |= !page.damaged.is_empty();
            for run in page.items.iter().filter(|run| run.updated_ms >= from_ms) {
                let steps = match journal.steps(&run.id).await {
                    Err(error) if error.run_problem().is_some() => {
                        out.is_partial = true;
                        continue;
                    }
                    steps => steps?,
                };
                for step in steps {
                    let at_ms = step.ended_ms.unwrap_or(step.started_ms);
                    if at_ms < from_ms {
                        continue;
                    }
                    let (cost, tokens, steps) = out.points.entry(at_ms / length).or_default();
                    *cost = cost.saturating_add(step.spent.cost_micro_usd);
                    *tokens = tokens.saturating_add(step.spent.total_tokens());
                    *steps += 1;
                    out.is_partial |= step.spent.unpriced;
                }
            }
            looked_at += page.items.len() + page.damaged.len();
            match page.next {
                Some(next) if looked_at < RUNS_MAX => filter.before = Some(next),
                next => {
                    out.is_cut = next.is_some();
                    return Ok(out);
                }
            }
        }
    }

    fn cost_point(&self, at: u64, length: u64) -> CostPoint {
        let (cost, tokens, steps) = self.points.get(&at).copied().unwrap_or_default();
        let at_ms = at * length;
        let value = cost as f64 / 1e6;
        let (year, month, day) = date_of_day(at_ms / DAY_MS);
        let label = match length {
            HOUR_MS => format!("{:02}:00", at_ms / HOUR_MS % 24),
            _ => format!("{month:02}-{day:02}"),
        };
        let title = match length {
            HOUR_MS => format!("{year}-{month:02}-{day:02} {label}: ${value:.4}"),
            _ => format!("{year}-{month:02}-{day:02}: ${value:.4}"),
        };
        CostPoint { at_ms, label, title, value, tokens, steps }
    }
}

/// Converts a day since 1970 to year, month and day (Gregorian, UTC). The internal year begins in March, so that a
/// leap day is its last day.
fn date_of_day(day: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // Counted from 1 March of the year 0.
    let day = day + 719_468;
    let (era, day) = (day / DAYS_OF_400_YEARS, day % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        for (day, expected) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (19_723, (2024, 1, 1)),
            (19_782, (2024, 2, 29)),
            (20_773, (2026, 11, 16)),
        ] {
            assert_eq!(date_of_day(day), expected, "{day}");
        }
    }
}
