//! Questions to the user: asked by sub-agents, relayed, and answered to the same step.

use repertoire_flow::engine::{EngineInput, PersonChoice};
use repertoire_flow::state::UserQuestion;
use repertoire_flow::step::{StepAddressing, build_view};

use crate::support::{Run, about, answer, ask, question};

const ASKING: &str = "
steps:
  - id: one
    title: One
    actions: ['{% if state.answers.colour is defined %}It is {{ state.answers.colour }}.{% endif %}']
    next: two
  - { id: two, title: Two, actions: [Go], next: end }
";

#[test]
fn a_question_stops_the_run_and_its_answer_is_seen_by_the_same_step() {
    let mut run = Run::of(ASKING);
    run.says(&ask(vec![question("colour", 2)]));
    assert_eq!(run.at(), "one: questions are open (colour)");
    assert!(
        run.refuses(&EngineInput::leave_step())
            .starts_with("the run waits for a person: questions")
    );
    run.says(&answer(&[("colour", "blue, of course")]));
    assert_eq!((run.at().as_str(), run.state.turn, run.state.visit_count()), ("one", 1, 1));
    let seen = build_view(&run.flow, &run.state, &StepAddressing::Run).expect("it can be shown");
    assert_eq!(seen.answers[0].answer, "blue, of course");
    assert!(format!("{:?}", seen.actions).contains("It is blue, of course."));
    run.done();
    assert!(run.state.answers.is_empty() && run.state.asked == 0);
}

#[test]
fn questions_and_answers_that_come_twice_count_once() {
    let mut run = Run::of(ASKING);
    let asked = about(1, ask(vec![question("colour", 3)]));
    run.says(&asked).says(&asked);
    assert_eq!(run.state.asked, 1);
    let answered = about(1, answer(&[("colour", "red")]));
    run.says(&answered);
    let after = run.state.clone();
    run.says(&answered).says(&asked);
    assert_eq!(run.state, after);
    assert_eq!(run.refuses(&answer(&[("colour", "blue")])), "the run waits for no such decision");
}

#[test]
fn questions_have_limits() {
    let run = Run::of(ASKING);
    let says = |questions: Vec<UserQuestion>| run.refuses(&ask(questions));
    assert_eq!(says(vec![]), "ask 1 to 3 questions at once, not 0");
    let four = ["a", "b", "c", "d"].map(|id| question(id, 2)).to_vec();
    assert_eq!(says(four), "ask 1 to 3 questions at once, not 4");
    assert_eq!(says(vec![question("a", 1)]), "question `a` has 1 options; give 2 or 3");
    assert_eq!(says(vec![question("a", 4)]), "question `a` has 4 options; give 2 or 3");
    assert_eq!(says(vec![question("a", 2), question("a", 2)]), "question `a` is there twice");
    let silent = UserQuestion { ask: " ".into(), ..question("a", 2) };
    assert_eq!(says(vec![silent]), "question `a` asks nothing");
    assert!(!says(vec![question("a\nb", 2)]).is_empty());
    assert_eq!(
        says(vec![question("accept-gate", 2)]),
        "question `accept-gate`: names that begin with `accept-` are reserved for the engine; choose another name"
    );
    let long = UserQuestion { ask: "x".repeat(9000), ..question("a", 2) };
    assert_eq!(says(vec![long]), "question `a` is longer than 8192 bytes");
}

#[test]
fn the_user_is_asked_three_times_during_one_step() {
    let mut run = Run::of(ASKING);
    for id in ["a", "b", "c"] {
        run.says(&ask(vec![question(id, 2)])).says(&answer(&[(id, "yes")]));
    }
    assert_eq!(
        run.refuses(&ask(vec![question("d", 2)])),
        "the user was asked 3 times during this step; decide with what is known"
    );
    assert_eq!(run.state.answers.len(), 3);
    run.done().says(&ask(vec![question("d", 2)]));
    assert_eq!(run.at(), "two: questions are open (d)");
}

#[test]
fn every_question_is_answered_and_nothing_else() {
    let mut run = Run::of(ASKING);
    run.says(&ask(vec![question("a", 2), question("b", 2)]));
    assert_eq!(run.refuses(&answer(&[("a", "x")])), "not answered: `b`");
    assert_eq!(run.refuses(&answer(&[("a", "x"), ("b", " ")])), "not answered: `b`");
    assert_eq!(
        run.refuses(&answer(&[("a", "x"), ("b", "y"), ("c", "z")])),
        "there is no open question `c`"
    );
    let long = "x".repeat(20_000);
    assert!(run.refuses(&answer(&[("a", "x"), ("b", &long)])).contains("is the limit"));
    run.chooses(PersonChoice::Abort);
    assert_eq!(run.at(), "aborted");
}
