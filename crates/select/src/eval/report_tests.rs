use insta::assert_snapshot;

use super::*;
use crate::eval::labels::{LabelFile, parse_labels};
use crate::selection::{
    NearMiss, PickStrategy, RejectionReason, Selection, SelectionPick, SelectionReason,
};
use crate::{SelectionModel, SelectionSettings, SkillDocument, SkillSelector};

/// Lines of `query | gold,-not | picked=score,… | near=score,…`.
fn read(table: &str) -> (Vec<LabelledQuery>, Vec<Answer>) {
    let rows = table.trim().lines().map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        (query(cells[0], cells[1]), answer(cells[2], cells[3]))
    });
    rows.unzip()
}

fn list(cell: &str) -> impl Iterator<Item = &str> {
    cell.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn query(text: &str, labels: &str) -> LabelledQuery {
    let not: Vec<&str> = list(labels).filter_map(|name| name.strip_prefix('-')).collect();
    let gold: Vec<&str> = list(labels).filter(|name| !name.starts_with('-')).collect();
    let line = serde_json::json!({"query": text, "gold": gold, "not": not}).to_string();
    parse_labels(&LabelFile { path: "q.jsonl".into(), text: &line, skill: None }).queries.remove(0)
}

fn scored(cell: &str) -> Vec<(String, f32)> {
    let scored = list(cell).map(|part| part.split_once('=').unwrap());
    scored.map(|(name, score)| (name.to_owned(), score.parse().unwrap())).collect()
}

fn answer(picks: &str, misses: &str) -> Answer {
    let (picks, misses) = (scored(picks), scored(misses));
    let ranked = [picks.clone(), misses.clone()].concat();
    let reasons = vec![SelectionReason::Meaning { closeness: 0.5 }];
    let pick = |(name, score): (String, f32)| SelectionPick {
        strategy: if score == 0.0 { PickStrategy::Need } else { PickStrategy::Match },
        name,
        score,
        reasons: reasons.clone(),
    };
    let miss = |(name, score)| NearMiss {
        name,
        score,
        lacked: RejectionReason::Score { threshold: 0.6 },
        missing: Vec::new(),
        reasons: Vec::new(),
    };
    let selection = Selection {
        picks: picks.into_iter().map(pick).collect(),
        near_misses: misses.into_iter().map(miss).collect(),
        ..Selection::default()
    };
    Answer { selection, ranked, ..Answer::default() }
}

const TABLE: &str = "
fill the form    | pdf        | pdf=0.9, base=0.0 | docx=0.3
merge pages      | pdf        | docx=0.8          | pdf=0.5
split pages      | pdf        | docx=0.7          | pdf=0.4, xlsx=0.2
sum the column   | xlsx       |                   | xlsx=0.5
write a letter   | docx,-pdf  | docx=0.9, pdf=0.6 |
what time is it  |            | xlsx=0.7          |
bake bread       |            |                   | pdf=0.1
just chat        | -pdf       | docx=0.9          |
sign the form    | -pdf       | pdf=0.8           |
";

#[test]
fn figures_by_hand() {
    let (queries, answers) = read(TABLE);
    let report = EvalReport::from_answers(&queries, &answers);
    assert_snapshot!(serde_json::to_string_pretty(&report.counts).unwrap(), @r#"
    {
      "queries": 9,
      "right": 3,
      "positive": 5,
      "negative": 3,
      "empty": 2,
      "silent": 1,
      "picks": 7
    }
    "#);
    let figures: String = EvalMetric::ALL
        .map(|metric| format!("{metric} {:.3}\n", report.figures.get(metric).unwrap()))
        .concat();
    assert_snapshot!(figures, @"
    accuracy 0.333
    trigger 0.400
    abstention 0.400
    precision 0.286
    recall@1 0.600
    recall@3 1.000
    recall@5 1.000
    ndcg@5 0.852
    mrr 0.800
    ");
}

#[test]
fn skills_and_who_steals_from_whom() {
    let (queries, answers) = read(TABLE);
    let report = EvalReport::from_answers(&queries, &answers);
    let row = |row: &SkillFigures| {
        let SkillFigures { skill, positives, picked, false_picks, .. } = row;
        let (stolen, forbidden, unasked) = (row.stolen, row.forbidden, row.unasked);
        format!(
            "{skill} {picked}/{positives} false {false_picks}: {stolen} {forbidden} {unasked}\n"
        )
    };
    assert_snapshot!(report.skills.iter().map(row).collect::<String>(), @"
    docx 1/1 false 2: 2 0 0
    pdf 1/3 false 2: 0 2 0
    xlsx 0/1 false 1: 0 0 1
    ");
    assert_eq!(report.confusions.len(), 1);
    let pair = &report.confusions[0];
    assert_eq!((pair.right.as_str(), pair.picked.as_str(), pair.count), ("pdf", "docx", 2));
    assert_eq!(pair.example, "merge pages");
}

#[test]
fn failures_say_what_was_picked() {
    let (queries, answers) = read(TABLE);
    let line = |failed: &FailedQuery| {
        let picked: Vec<&str> = failed.picked.iter().map(|pick| pick.name.as_str()).collect();
        format!("{}: {} {picked:?}\n", failed.query, failed.fault)
    };
    let report = EvalReport::from_answers(&queries, &answers);
    assert_snapshot!(report.failures.iter().map(line).collect::<String>(), @r#"
    merge pages: stolen ["docx"]
    split pages: stolen ["docx"]
    sum the column: silent []
    write a letter: forbidden ["docx", "pdf"]
    what time is it: unasked ["xlsx"]
    sign the form: forbidden ["pdf"]
    "#);
}

#[test]
fn a_selector_that_is_asked_says_what_the_right_skill_lacked() {
    let skills = [
        SkillDocument::new("invoices", "invoices", "Checks invoices against purchase orders", ""),
        SkillDocument::new("photos", "photos", "Sorts photographs by date and place", ""),
    ];
    let selector =
        SkillSelector::new(&skills, SelectionModel::embedded(), SelectionSettings::default(), None);
    let ask = |text, labels| {
        let query = query(text, labels);
        let answer = Answer::from_selector(&query, &selector);
        (FailedQuery::from_answer(&query, &answer), answer)
    };
    let text = "check this invoice against the purchase order";
    assert_eq!(ask(text, "invoices").0, None);
    let failed = ask(text, "photos").0.unwrap();
    assert_eq!((failed.fault, failed.picked[0].name.as_str()), (AnswerFault::Stolen, "invoices"));
    assert!(!failed.picked[0].reasons.is_empty());
    let near = failed.nearest.unwrap();
    assert_eq!((near.name.as_str(), near.lacked.is_some()), ("photos", true));
    assert_eq!(ask("what's for lunch?", "photos").0.unwrap().fault, AnswerFault::Silent);
}

#[test]
fn only_scores_whose_truth_is_known_are_calibrated() {
    let (queries, answers) =
        read("a | -pdf | docx=0.9, pdf=0.85 |\nb | pdf | pdf=0.95, base=0.0 |");
    let report = EvalReport::from_answers(&queries, &answers);
    assert_eq!((report.calibration.count, report.calibration.bins[8].count), (3, 1));
    assert_eq!(report.calibration.bins[9].share_right, Some(1.0));
}

#[test]
fn nothing_measured_is_nothing_claimed() {
    let report = EvalReport::from_answers(&[], &[]);
    assert!(EvalMetric::ALL.iter().all(|metric| report.figures.get(*metric).is_none()));
    assert_eq!(report.latency, None);
    for metric in EvalMetric::ALL {
        assert_eq!(EvalMetric::from_name(metric.as_str()), Some(metric));
        assert!(serde_json::to_value(&report.figures).unwrap().get(metric.as_str()).is_some());
    }
}

#[test]
fn percentiles_are_times_that_were_measured() {
    let times = |times: &[u64]| {
        let answer = |us: &u64| Answer { elapsed_us: Some(*us), ..Answer::default() };
        compute_latency(&times.iter().map(answer).collect::<Vec<_>>()).unwrap()
    };
    let all: Vec<u64> = (1..=200).rev().collect();
    let expect = LatencyPercentiles { p50_us: 100, p95_us: 190, p99_us: 198, max_us: 200 };
    assert_eq!(times(&all), expect);
    assert_eq!(times(&[7]), LatencyPercentiles { p50_us: 7, p95_us: 7, p99_us: 7, max_us: 7 });
}

#[test]
fn a_comparison_names_what_changed() {
    let (queries, before) = read(TABLE);
    let (_, mut after) = read(TABLE);
    after[1] = answer("pdf=0.8", "");
    after[0] = answer("docx=0.8", "");
    after[2] = answer("pdf=0.8", "");
    let comparison = crate::eval::EvalComparison::from_answers(&queries, &before, &after);
    let names = |changes: &[crate::eval::compare::QueryChange]| {
        changes.iter().map(|change| change.query.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&comparison.gained), ["merge pages", "split pages"]);
    assert_eq!(names(&comparison.lost), ["fill the form"]);
    assert_eq!(comparison.p_value, 1.0);
    let trigger = comparison.metrics.iter().find(|row| row.metric == "trigger").unwrap();
    assert!((trigger.difference.unwrap() - 0.2).abs() < 1e-12);
}
