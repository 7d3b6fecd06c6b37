//! What could not be handled.

use repertoire_journal::letter::{LetterPriority, LetterSource};
use repertoire_journal::{JournalError, LetterFilter, LetterStatus, NewLetter, RunId};
use serde_json::json;

use super::Place;

fn new_letter(title: &str) -> NewLetter {
    NewLetter {
        scope: "github.com/somebody/something".into(),
        source: LetterSource::Event,
        title: title.into(),
        priority: LetterPriority::Medium,
        class: "permanent".into(),
        reason: "the actor may not write".into(),
        question: "May octocat write here?".into(),
        run: None,
        data: json!({ "event": { "action": "opened" } }),
        by: "rep github run".into(),
    }
}

pub(crate) async fn what_could_not_be_handled_waits_for_somebody(place: Place) {
    let journal = place.open().await;
    let letter = journal.bury(new_letter("issue 7")).await.unwrap();
    assert_eq!((letter.status, letter.times, letter.attempts), (LetterStatus::Queued, 1, 0));
    assert_eq!(letter.history[0].what, "given up: the actor may not write");
    for text in [letter.id.as_str(), letter.short(), &letter.id[..13]] {
        assert_eq!(journal.find_letter(text).await.unwrap(), letter);
    }
    for text in ["", "abc", "not-there", "a b c d e"] {
        let none = journal.find_letter(text).await;
        assert!(matches!(none, Err(JournalError::NoLetter { .. })), "{none:?}");
    }
    let other = place.open().await;
    let all = other.list_letters(&LetterFilter::default()).await.unwrap();
    assert_eq!(all.items, [letter]);
}

pub(crate) async fn the_same_twice_is_one_letter(place: Place) {
    let journal = place.open().await;
    let first = journal.bury(new_letter("issue 7")).await.unwrap();
    let again = NewLetter {
        reason: "still not".into(),
        run: Some(RunId::known("run-2")),
        ..new_letter("issue 7")
    };
    let second = journal.bury(again.clone()).await.unwrap();
    assert_eq!((&second.id, second.times, second.reason.as_str()), (&first.id, 2, "still not"));
    // It failed again while somebody tried it: it waits again.
    journal.set_letter_status(&first.id, LetterStatus::Retrying, "me", "").await.unwrap();
    let third = journal.bury(again.clone()).await.unwrap();
    assert_eq!((&third.id, third.status, third.times), (&first.id, LetterStatus::Queued, 3));
    let elsewhere = NewLetter { scope: "elsewhere".into(), ..new_letter("issue 7") };
    let other = NewLetter { data: json!(1), ..new_letter("issue 7") };
    for new in [elsewhere, other] {
        assert_ne!(journal.bury(new).await.unwrap().id, first.id);
    }
    journal
        .set_letter_status(&first.id, LetterStatus::Resolved, "me", "done by hand")
        .await
        .unwrap();
    assert_ne!(journal.bury(again).await.unwrap().id, first.id);
}

pub(crate) async fn of_two_who_try_it_again_one_wins(place: Place) {
    let journal = place.open().await;
    let letter = journal.bury(new_letter("issue 7")).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..4 {
        let (journal, id) = (place.open().await, letter.id.clone());
        tasks.spawn(async move {
            let by = format!("person {number}");
            journal.set_letter_status(&id, LetterStatus::Retrying, &by, "").await
        });
    }
    let (won, lost): (Vec<_>, Vec<_>) = tasks.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 3));
    for error in lost.into_iter().filter_map(Result::err) {
        assert!(error.to_string().contains("already (last, by person"), "{error}");
    }
    let letter = journal.find_letter(&letter.id).await.unwrap();
    assert_eq!((letter.status, letter.attempts), (LetterStatus::Retrying, 1));
}

pub(crate) async fn a_letter_goes_only_where_it_can(place: Place) {
    let journal = place.open().await;
    let id = journal.bury(new_letter("issue 7")).await.unwrap().id;
    let turn = |to| journal.set_letter_status(&id, to, "me", "because");
    turn(LetterStatus::Abandoned).await.unwrap();
    let refused = turn(LetterStatus::Retrying).await.unwrap_err();
    assert!(matches!(refused, JournalError::LetterRefused { .. }), "{refused}");
    turn(LetterStatus::Queued).await.unwrap();
    turn(LetterStatus::Retrying).await.unwrap();
    let letter = turn(LetterStatus::Resolved).await.unwrap();
    let told: Vec<_> = letter.history.iter().skip(1).map(|line| line.what.as_str()).collect();
    let expected =
        ["abandoned: because", "queued: because", "retrying: because", "resolved: because"];
    assert_eq!(told, expected);
    assert!(turn(LetterStatus::Queued).await.is_err());
    let none = journal.set_letter_status("nothing", LetterStatus::Queued, "me", "").await;
    assert!(matches!(none, Err(JournalError::NoLetter { .. })), "{none:?}");
}

pub(crate) async fn letters_are_listed_by_urgency_in_pages(place: Place) {
    let journal = place.open().await;
    for (title, priority) in [
        ("a", LetterPriority::Low),
        ("b", LetterPriority::Critical),
        ("c", LetterPriority::Medium),
        ("d", LetterPriority::Critical),
    ] {
        journal.bury(NewLetter { priority, ..new_letter(title) }).await.unwrap();
    }
    let titles = |filter: LetterFilter| {
        let journal = journal.clone();
        async move {
            let page = journal.list_letters(&filter).await.unwrap();
            let titles: Vec<String> = page.items.into_iter().map(|letter| letter.title).collect();
            (titles.join(""), page.next)
        }
    };
    assert_eq!(titles(LetterFilter::default()).await, ("bdca".into(), None));
    let part = LetterFilter { limit: 3, ..LetterFilter::default() };
    assert_eq!(titles(part.clone()).await, ("bdc".into(), Some(3)));
    assert_eq!(titles(LetterFilter { after: 3, ..part }).await, ("a".into(), None));
    let first = journal.list_letters(&LetterFilter::default()).await.unwrap().items.remove(0);
    journal.set_letter_status(&first.id, LetterStatus::Resolved, "me", "").await.unwrap();
    let open = LetterFilter { statuses: vec![LetterStatus::Queued], ..LetterFilter::default() };
    assert_eq!(titles(open).await.0, "dca");
    let elsewhere = LetterFilter { scope: Some("elsewhere".into()), ..LetterFilter::default() };
    assert_eq!(titles(elsewhere).await.0, "");
}

pub(crate) async fn a_letter_holds_no_secrets_and_is_not_too_large(place: Place) {
    let journal = place.open().await;
    let secret = "ghp_abcdefghijklmnop1234";
    let leak = NewLetter {
        title: format!("push {secret}"),
        reason: format!("Authorization: Bearer {secret}"),
        data: json!({ "body": format!("see {secret}"), "client_secret": "abcd" }),
        ..new_letter("")
    };
    let letter = journal.bury(leak).await.unwrap();
    assert!(!format!("{letter:?}").contains(secret), "{letter:?}");
    assert_eq!(letter.data["client_secret"], "[redacted]");
    let huge = NewLetter { data: json!("x".repeat(300_000)), ..new_letter("huge") };
    let refused = journal.bury(huge).await;
    assert!(matches!(refused, Err(JournalError::TooLarge { .. })), "{refused:?}");
}
