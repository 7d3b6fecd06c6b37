use proptest::prelude::*;
use repertoire_agent::event::{TodoItem, TodoStatus};
use repertoire_journal::RunId;
use repertoire_model::{ToolResult, UserPart};

use super::*;

fn event(seq: u64, payload: Payload) -> Event {
    Event { v: EVENT_VERSION, run: RunId::known("c"), seq, at_ms: 1_000 + seq, payload }
}

fn created(request: Value) -> Payload {
    Payload::RunCreated {
        kind: RunKind::Conversation.as_str().into(),
        name: "hello".into(),
        workspace: "/project".into(),
        labels: Default::default(),
        priority: 0,
        limits: Default::default(),
        request,
        attended: true,
    }
}

fn request() -> Value {
    serde_json::json!(ConversationRequest { version: 1, agent: "default".into() })
}

fn saved(kept: usize, messages: Vec<ModelMessage>) -> Payload {
    ConversationEvent::Saved(SavedConversation { kept, messages, state: None, more: false })
        .to_payload()
}

fn started(prompt: &str) -> Payload {
    ConversationEvent::TurnStarted { prompt: prompt.into() }.to_payload()
}

fn agent(seq: u64, depth: u32, rest: Value) -> Payload {
    let mut json = serde_json::json!({
        "v": 1, "seq": seq, "at_ms": 1, "run": "r", "agent": "default", "depth": depth
    });
    json.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    Payload::KindEvent { name: AGENT_EVENT.into(), data: json }
}

fn called(seq: u64, depth: u32) -> Payload {
    let call = serde_json::json!({
        "type": "tool_call", "id": "1", "tool": "bash", "subject": "ls", "arguments": {}
    });
    agent(seq, depth, call)
}

fn folded(payloads: Vec<Payload>) -> Result<ConversationState, ConversationFoldError> {
    let mut state = ConversationState::default();
    for (seq, payload) in (1..).zip(payloads) {
        state.apply(event(seq, payload))?;
    }
    Ok(state)
}

#[test]
fn a_turn_in_progress_has_its_prompt_and_what_came_since_the_messages_were_saved() {
    let unknown = agent(9, 0, serde_json::json!({ "type": "dreamed", "of": "sheep" }));
    let state = folded(vec![
        created(request()),
        started("hello"),
        called(1, 0),
        saved(0, vec![ModelMessage::user("hello")]),
        called(2, 0),
        called(3, 1),
        unknown,
    ])
    .unwrap();
    let turn = state.unfinished.unwrap();
    assert_eq!(
        (turn.prompt.as_str(), turn.events.len(), turn.events_before_saved),
        ("hello", 2, 1)
    );
    assert_eq!(state.conversation.messages, [ModelMessage::user("hello")]);
    assert_eq!(state.conversation.id, "c");
}

#[test]
fn a_turn_that_ended_adds_its_tokens_and_leaves_nothing_behind() {
    let usage = TokenUsage { input_tokens: 3, cache_read_tokens: 4, ..TokenUsage::default() };
    let ended = ConversationEvent::TurnEnded { usage, cost_usd: None }.to_payload();
    let turn = [started("one"), called(1, 0), ended];
    let payloads = [vec![created(request())], turn.to_vec(), turn.to_vec()].concat();
    let state = folded(payloads).unwrap();
    assert_eq!(state.unfinished, None);
    assert_eq!((state.usage.input_tokens, state.usage.cache_read_tokens), (6, 8));
}

#[test]
fn the_metadata_is_that_of_the_run() {
    let state = folded(vec![created(request()), started("hello")]).unwrap();
    let head = ConversationMetadata::from_run(state.run().unwrap()).unwrap();
    let expected = ConversationMetadata {
        id: "c".into(),
        agent: "default".into(),
        first: "hello".into(),
        folder: "/project".into(),
        begun_ms: 1_001,
        updated_ms: 1_002,
        at_work: true,
        ..ConversationMetadata::default()
    };
    assert_eq!(head, expected);
}

#[track_caller]
fn check_refused(payloads: Vec<Payload>, expected: ConversationFoldError) {
    assert_eq!(folded(payloads).unwrap_err(), expected);
}

#[test]
fn a_later_version_is_refused_and_an_earlier_one_is_not_called_later() {
    let newer = |what: &str| ConversationFoldError::Newer(what.into());
    let damaged = |what: &str| ConversationFoldError::Damaged(what.into());
    let of_version = |version: u32| serde_json::json!({ "version": version, "agent": "a" });
    check_refused(vec![created(of_version(2))], newer("version 2, and 1 is the latest known here"));
    check_refused(vec![created(of_version(0))], damaged("there is no version 0"));
    let forked = Payload::KindEvent { name: "forked".into(), data: Value::Null };
    check_refused(
        vec![created(request()), forked],
        newer("event 2 is `forked`, which is not known here"),
    );
    for (version, expected) in [
        (2, newer("version 2, and 1 is the latest known here")),
        (0, damaged("event 2: there is no version 0")),
    ] {
        let state = Conversation { version, ..Conversation::new("c") };
        let state = Some(Box::new(state));
        let saved = SavedConversation { kept: 0, messages: Vec::new(), state, more: false };
        let saved = ConversationEvent::Saved(saved).to_payload();
        check_refused(vec![created(request()), saved], expected);
    }
}

#[test]
fn events_that_contradict_each_other_are_refused() {
    check_refused(
        vec![created(request()), saved(1, Vec::new())],
        ConversationFoldError::Damaged("event 2: it keeps 1 messages, and there are 0".into()),
    );
    let unreadable = Payload::Note { name: "unknown:KIND_EVENT".into(), data: Value::Null };
    check_refused(
        vec![created(request()), unreadable],
        ConversationFoldError::Damaged("event 2 cannot be read".into()),
    );
    let error = folded(vec![started("no beginning")]).unwrap_err();
    assert!(matches!(error, ConversationFoldError::Damaged(_)), "{error}");
    let garbled = Payload::KindEvent { name: "saved".into(), data: Value::Bool(true) };
    let error = folded(vec![created(request()), garbled]).unwrap_err();
    assert!(error.to_string().starts_with("event 2: `saved`: "), "{error}");
}

#[test]
fn many_messages_are_split_over_events() {
    let large = ModelMessage::user("x".repeat(SAVED_TOKENS_MAX as usize * 3));
    let messages = vec![ModelMessage::user("a"), large.clone(), large, ModelMessage::user("b")];
    let conversation = Conversation { messages, ..Conversation::new("c") };
    let increments = RecordedBaseline::default().advance(conversation.clone());
    let sizes: Vec<_> = increments.iter().map(|one| (one.kept, one.messages.len())).collect();
    assert_eq!(sizes, [(0, 2), (2, 2)]);
    assert!(increments[0].state.is_none() && increments[1].state.is_some());
    assert!(increments[0].more && !increments[1].more);
}

#[test]
fn parts_of_a_difference_count_only_with_the_last_one() {
    let part = |kept, text: &str, more| {
        let messages = vec![ModelMessage::user(text)];
        let saved = SavedConversation { kept, messages, state: None, more };
        ConversationEvent::Saved(saved).to_payload()
    };
    let mut payloads = vec![created(request()), started("one"), part(0, "before", false)];
    payloads.push(called(1, 0));
    payloads.push(part(0, "new", true));
    let cut = folded(payloads.clone()).unwrap();
    assert_eq!(cut.conversation.messages, [ModelMessage::user("before")]);
    assert_eq!(cut.unfinished.unwrap().events_before_saved, 0, "the call is not in the messages");
    let whole = folded([payloads.clone(), vec![part(1, "newer", false)]].concat()).unwrap();
    let expected = [ModelMessage::user("new"), ModelMessage::user("newer")];
    assert_eq!(whole.conversation.messages, expected);
    assert_eq!(whole.unfinished.unwrap().events_before_saved, 1);
    // The process was killed between the parts, and the next turn continues after `before`.
    payloads.extend([started("two"), part(1, "after", false)]);
    let resumed = folded(payloads).unwrap();
    let expected = [ModelMessage::user("before"), ModelMessage::user("after")];
    assert_eq!(resumed.conversation.messages, expected);
}

#[test]
fn a_long_conversation_is_recorded_once_and_not_with_every_turn() {
    let mut baseline = RecordedBaseline::default();
    let mut conversation = Conversation::new("c");
    let mut recorded = 0;
    for turn in 0..100 {
        conversation.messages.push(ModelMessage::user(format!("{turn}")));
        recorded += baseline
            .advance(conversation.clone())
            .iter()
            .map(|increment| increment.messages.len())
            .sum::<usize>();
    }
    assert_eq!(recorded, 100);
    assert!(baseline.advance(conversation).is_empty(), "nothing changed");
}

fn any_message() -> impl Strategy<Value = ModelMessage> {
    let text = "[a-c\0]{0,3}";
    prop_oneof![
        text.prop_map(ModelMessage::user),
        text.prop_map(ModelMessage::assistant),
        text.prop_map(|text| ModelMessage::User {
            content: vec![UserPart::ToolResult(ToolResult {
                call_id: text.clone(),
                text,
                is_error: false
            })]
        }),
    ]
}

/// A change of a conversation: how many messages stay, which follow, and the rest of the state.
type Change = (usize, Vec<ModelMessage>, Vec<String>, Option<String>);

fn any_change() -> impl Strategy<Value = Change> {
    let messages = proptest::collection::vec(any_message(), 0..4);
    (0_usize..8, messages, proptest::collection::vec("[a-b]", 0..2), proptest::option::of("[a-b]"))
}

fn change(conversation: &mut Conversation, (stay, messages, todos, session): Change) {
    conversation.messages.truncate(stay);
    conversation.messages.extend(messages);
    let todo = |content| TodoItem { content, status: TodoStatus::Pending };
    conversation.todos = todos.into_iter().map(todo).collect();
    conversation.session = session;
}

proptest! {
    #[test]
    fn the_fold_of_increments_is_the_whole_conversation(
        changes in proptest::collection::vec(any_change(), 0..12)
    ) {
        let mut baseline = RecordedBaseline::default();
        let mut conversation = Conversation::new("c");
        let mut payloads = vec![created(request())];
        for one in changes {
            change(&mut conversation, one);
            let increments = baseline.advance(conversation.clone());
            payloads.extend(
                increments.into_iter().map(|one| ConversationEvent::Saved(one).to_payload()),
            );
            let state = folded(payloads.clone()).unwrap();
            prop_assert_eq!(
                serde_json::json!(state.conversation),
                serde_json::json!(conversation)
            );
            // A process that resumes the conversation continues from the same place.
            let mut resumed = RecordedBaseline::new(&state.conversation);
            prop_assert!(resumed.advance(conversation.clone()).is_empty());
        }
    }
}
