//! Streams of events: nothing is lost, nothing comes twice, and nobody who is slow holds up the rest.

use std::time::Duration;

use repertoire_journal::Payload;
use repertoire_serve::http::events::{RING_BYTES_MAX, RING_EVENTS_MAX};

use crate::serve_state::{Field, Listening, Served, Work};

#[tokio::test]
async fn events_come_as_they_happen_and_a_lost_connection_goes_on_where_it_was() {
    let served = Field::with_skills().serve().await;
    let work = Work::begin(served.serve_state.journal().await.unwrap(), "a", "/a").await;
    let mut live = served.listen("", None).await;
    let hello = live.next().await.unwrap();
    assert_eq!((hello.event.as_str(), &hello.data["generation"]), ("hello", &1.into()));
    assert_eq!(hello.id.as_deref(), hello.data["cursor"].as_str());
    for number in 1..=5 {
        work.note(number).await;
    }
    let mut ids = Vec::new();
    for number in 1..=5 {
        let (id, found) = live.note().await;
        assert_eq!(found, number);
        ids.push(id);
    }
    drop(live);
    work.note(6).await;
    for (query, header) in
        [(String::new(), Some(ids[2].as_str())), (format!("?after={}", ids[2]), None)]
    {
        let mut again = served.listen(&query, header).await;
        for number in 4..=6 {
            assert_eq!(again.note().await.1, number, "{query}");
        }
    }
}

#[tokio::test]
async fn a_client_from_before_the_daemon_catches_up_from_the_journal() {
    let field = Field::with_skills();
    let serve_state = field.serve_state().await;
    let work = Work::begin(serve_state.journal().await.unwrap(), "a", "/a").await;
    for number in 1..=700 {
        work.note(number).await;
    }
    let served = field.serve().await;
    let mut client = served.listen("?after=0-0", None).await;
    for number in 1..=700 {
        assert_eq!(client.note().await.1, number);
    }
    work.note(701).await;
    assert_eq!(client.note().await.1, 701);
}

#[tokio::test]
async fn one_run_can_be_listened_to_alone() {
    let served = Field::with_skills().serve().await;
    let mine = Work::begin(served.serve_state.journal().await.unwrap(), "mine", "/a").await;
    let other = Work::begin(served.serve_state.journal().await.unwrap(), "other", "/b").await;
    let mut client = served.listen("?run=mine", None).await;
    other.note(1).await;
    mine.note(2).await;
    assert_eq!(client.note().await.1, 2);
    served.get("/api/v1/events?run=nobody").await.refused(404);
    served.get("/api/v1/events?after=soon").await.refused(400);
    served.get("/api/v1/events?since=1").await.refused(400);
}

#[tokio::test]
async fn a_hot_reload_is_news() {
    let served = Field::with_skills().serve().await;
    let _watching = served.serve_state.watch();
    let mut client = served.listen("", None).await;
    assert_eq!(client.next().await.unwrap().event, "hello");
    let text = "---\nname: fresh\ndescription: Just written.\n---\nbody\n";
    served.field.write("project/.agents/skills/fresh/SKILL.md", text);
    let news = tokio::time::timeout(Duration::from_secs(20), client.next()).await;
    let news = news.expect("news in time").expect("the stream goes on");
    assert_eq!((news.event.as_str(), &news.data["added"][0]), ("skills", &"fresh".into()));
    assert_eq!(news.id, None, "news are in no journal, so there is no place to go on from");
}

/// How many clients there are, how many events each of them hears, and how many large ones of another run come before each.
const CLIENTS: usize = 1_000;
const EVENTS: u64 = 60;
const LARGE: u64 = 105;

/// More than the ring holds, and more than a socket takes.
const LAST: u64 = EVENTS * LARGE;

/// What a thousand clients on real sockets went through.
struct Heard {
    served: Served,
    took: Duration,
    slow: Option<Listening>,
}

/// A thousand clients hear everything of a quiet run, while a loud one fills the ring more than once. Where there is a slow
/// client, it listens to both and reads nothing all the while.
async fn a_thousand_hear(is_one_slow: bool) -> Heard {
    let served = Field::with_skills().serve().await;
    let journal = served.serve_state.journal().await.unwrap();
    let quiet = Work::begin(journal, "quiet", "/a").await;
    let loud = Work::begin(journal, "loud", "/b").await;
    let mut slow = None;
    if is_one_slow {
        let mut client = served.listen("", None).await;
        assert_eq!(client.next().await.unwrap().event, "hello");
        slow = Some(client);
    }
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let mut client = served.listen("?run=quiet", None).await;
        clients.spawn(async move {
            assert_eq!(client.next().await.unwrap().event, "hello");
            for number in 1..=EVENTS {
                assert_eq!(client.note().await.1, number);
            }
        });
    }
    let hub = served.serve_state.hub().await.unwrap();
    let padding = "x".repeat(4_000);
    let large = |number| Payload::Note {
        name: "test".into(),
        data: serde_json::json!({ "number": number, "padding": padding }),
    };
    let start = std::time::Instant::now();
    for number in 1..=EVENTS {
        loud.add(((number - 1) * LARGE + 1..=number * LARGE).map(large)).await;
        quiet.note(number).await;
        assert!(hub.ring_bytes() <= RING_BYTES_MAX, "{}", hub.ring_bytes());
    }
    clients.join_all().await;
    Heard { took: start.elapsed(), served, slow }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_client_costs_the_others_nothing_and_goes_on_without_loss() {
    const { assert!(LAST > RING_EVENTS_MAX as u64 + 2_000) };
    // A machine that allows fewer files still allows these.
    let _ =
        repertoire_serve::http::raise_file_limit(&repertoire_serve::limits::HttpLimits::default());
    let alone = a_thousand_hear(false).await.took;
    let Heard { served, took, slow } = a_thousand_hear(true).await;
    // Machines have moods; whoever waited for the slow one would wait for ever.
    assert!(took < alone * 3 + Duration::from_secs(3), "{took:?}, and {alone:?} without it");
    let mut slow = slow.expect("there is one");
    let (mut heard, mut cursor) = (0, None);
    while let Some(came) = slow.next().await {
        match came.event.as_str() {
            "dropped" => cursor = came.data["cursor"].as_str().map(str::to_owned),
            "run" if came.data["data"]["padding"].is_string() => {
                heard += 1;
                let number = &came.data["data"]["number"];
                assert_eq!(*number, heard, "nothing is left out or comes twice");
            }
            _ => {}
        }
    }
    let cursor = cursor.expect("a client that was too slow is told so");
    assert!(heard < LAST, "it was not too slow");
    let mut again = served.listen("?run=loud", Some(&cursor)).await;
    for number in heard + 1..=LAST {
        assert_eq!(again.note().await.1, number);
    }
}
