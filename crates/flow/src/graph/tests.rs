//! Whole diagrams: their content, and that nothing overlaps.

use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::Event;

use super::layers::NodeLayers;
use super::layout::{DiagramLayout, LabelAnchor, PlacedBox};
use super::model::{DiagramGraph, NodeKind};
use super::{render_dot, render_mermaid, render_svg, samples};
use crate::workflow::{StepDef, Workflow, WorkflowOutcome};

/// The elements of an XML text with their classes, and all its text.
#[track_caller]
fn read(xml: &str) -> (Vec<(String, String)>, String) {
    let mut reader = Reader::from_str(xml);
    let (mut elements, mut text) = (Vec::new(), String::new());
    let mut depth = 0;
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Start(start) => {
                depth += 1;
                elements.push(element(&start));
            }
            Event::Empty(start) => elements.push(element(&start)),
            Event::End(_) => depth -= 1,
            Event::Text(part) => text.push_str(&part),
            Event::GeneralRef(name) => match &*name {
                "lt" => text.push('<'),
                "gt" => text.push('>'),
                "amp" => text.push('&'),
                "quot" => text.push('"'),
                "#39" => text.push('\''),
                other => panic!("an unknown reference: {other}"),
            },
            Event::Eof => break,
            other => panic!("neither element nor text: {other:?}"),
        }
    }
    assert_eq!(depth, 0);
    (elements, text)
}

fn element(start: &quick_xml::events::BytesStart<'_>) -> (String, String) {
    let name = start.name().as_ref().to_owned();
    let class = start.attributes().map(|attribute| attribute.expect("an attribute"));
    let mut class = class.filter(|attribute| attribute.key.as_ref() == "class");
    let class = class.next().map(|attribute| attribute.value.into_owned());
    (name, class.unwrap_or_default())
}

fn count(elements: &[(String, String)], class: &str) -> usize {
    elements.iter().filter(|(_, classes)| classes.split(' ').any(|one| one == class)).count()
}

#[test]
fn every_step_has_one_shape_and_the_legend_has_only_what_occurs() {
    let (elements, text) = read(&render_svg(&samples::every_feature()));
    // Seven steps, the start and the end.
    assert_eq!(count(&elements, "shape"), 9);
    assert_eq!(count(&elements, "node"), 9);
    assert_eq!(count(&elements, "band"), 2);
    assert!(text.contains("To look") && text.contains("fail ≤3") && text.contains("iterate ≤4"));
    assert!(text.contains("2 × explore, 1 × skeptic"));
    for words in
        ["the engine computes", "until sure enough", "gate:", "sub-agents", "loop (", "carried out"]
    {
        assert!(text.contains(words), "{words}");
    }
    let (elements, text) = read(&render_svg(&samples::linear_workflow(5)));
    assert_eq!(count(&elements, "shape"), 7);
    assert!(!text.contains("gate:") && !text.contains("loop ("));
}

#[test]
fn what_a_title_says_stays_text() {
    let bad = "</title><script>alert('1 & 2')</script>\u{1b}[31m ]]> \u{202e}";
    let mut workflow = samples::every_feature();
    workflow.name = bad.into();
    workflow.description = bad.into();
    workflow.steps[0].title = bad.into();
    workflow.phases[0] = bad.into();
    let (elements, text) = read(&render_svg(&workflow));
    assert!(!elements.iter().any(|(name, _)| name == "script"));
    assert!(text.contains("</title><script>alert('1 & 2')</script>"));
    assert!(!text.contains(['\u{1b}', '\u{202e}']));
    assert!(!render_mermaid(&workflow).contains("<script"));
    assert!(dot("\\\" & end").contains("label=\"1. \\\\\\\" &amp; end\""));

    fn dot(title: &str) -> String {
        let steps = vec![StepDef::new("a", title)];
        super::render_dot(&Workflow { steps, ..Workflow::default() })
    }
}

#[test]
fn the_same_workflow_gives_the_same_picture() {
    for workflow in [samples::every_feature(), samples::track_workflow(8)] {
        assert_eq!(render_svg(&workflow), render_svg(&workflow.clone()));
        assert_eq!(render_dot(&workflow), render_dot(&workflow.clone()));
        assert_eq!(render_mermaid(&workflow), render_mermaid(&workflow.clone()));
    }
}

#[test]
fn a_workflow_that_is_wrong_is_drawn_as_far_as_it_goes() {
    read(&render_svg(&Workflow::default()));
    let steps = vec![
        StepDef::new("a", "").next("nowhere"),
        StepDef::new("a", "Twice")
            .next([(WorkflowOutcome::Ok, "end"), (WorkflowOutcome::Fail, "gone")]),
    ];
    let workflow = Workflow { steps, entry: Some("none".into()), ..Workflow::default() };
    let (elements, _) = read(&render_svg(&workflow));
    assert_eq!(count(&elements, "shape"), 4);
    assert!(render_mermaid(&workflow).contains("step2"));
}

#[test]
fn the_largest_workflow_is_drawn() {
    let ways: Vec<Vec<usize>> =
        (0..crate::limits::STEPS_MAX).map(|at| vec![at * 37 % 200, at * 91 % 200]).collect();
    let (elements, _) = read(&render_svg(&samples::tangled_workflow(&ways, 4)));
    assert_eq!(count(&elements, "shape"), crate::limits::STEPS_MAX + 2);
}

#[test]
fn steps_stand_below_what_leads_to_them_and_phases_are_bands() {
    let graph = DiagramGraph::new(&samples::every_feature());
    let layers = NodeLayers::new(&graph);
    assert_eq!(layers.of, [1, 2, 3, 4, 5, 6, 7, 0, 8]);
    let bands: Vec<_> = layers.bands.iter().map(|b| (b.phase, b.first, b.last)).collect();
    assert_eq!(bands, [(None, 0, 0), (Some(0), 1, 3), (Some(1), 4, 6), (None, 7, 7), (None, 8, 8)]);
}

#[test]
fn a_step_that_repairs_stands_in_its_phase_above_the_review_that_sent_it_there() {
    let step =
        |id: &str, phase: &str| StepDef { phase: Some(phase.into()), ..StepDef::new(id, id) };
    let steps = vec![
        step("plan", "write"),
        step("draft", "write").next("review"),
        step("review", "judge")
            .next([(WorkflowOutcome::Ok, "end"), (WorkflowOutcome::Fail, "repair")]),
        step("repair", "write").next("review"),
    ];
    let mut workflow = Workflow { steps, ..Workflow::default() };
    workflow.steps[0].next = "draft".into();
    workflow.phases = [("write", "Write"), ("judge", "Judge")]
        .map(|(id, title)| (id.to_owned(), title.to_owned()))
        .into_iter()
        .collect();
    let graph = DiagramGraph::new(&workflow);
    assert_eq!(NodeLayers::new(&graph).of[..4], [1, 2, 3, 2]);
    let back: Vec<_> =
        graph.edges.iter().filter(|edge| edge.is_back).map(|edge| (edge.from, edge.to)).collect();
    assert_eq!(back, [(2, 3)]);
}

#[test]
fn a_loop_is_the_way_up_the_list_even_if_a_skip_is_tried_first() {
    let mut workflow = samples::linear_workflow(3);
    workflow.steps[0].next = [(WorkflowOutcome::Skip, "s3"), (WorkflowOutcome::Ok, "s2")].into();
    workflow.steps[2].next =
        [(WorkflowOutcome::Iterate, "s2"), (WorkflowOutcome::Ok, "end")].into();
    let graph = DiagramGraph::new(&workflow);
    let back: Vec<_> =
        graph.edges.iter().filter(|edge| edge.is_back).map(|edge| (edge.from, edge.to)).collect();
    assert_eq!(back, [(2, 1)]);
    assert_eq!(graph.nodes[0].kind, NodeKind::Choice);
}

#[test]
fn a_row_of_steps_is_straight() {
    let layout = DiagramLayout::new(&DiagramGraph::new(&samples::linear_workflow(30)));
    let middle = |placed: &PlacedBox| placed.x + placed.look.width / 2;
    assert!(layout.boxes.iter().all(|placed| middle(placed) == middle(&layout.boxes[0])));
    assert!(layout.lines.iter().all(|line| line.points.len() == 2));
}

/// The left, top, right and bottom of a box, with the cards above it.
fn area(placed: &PlacedBox) -> (i32, i32, i32, i32) {
    let look = &placed.look;
    (placed.x, placed.y - look.cards, placed.x + look.width, placed.y + look.height)
}

fn overlap(a: (i32, i32, i32, i32), b: (i32, i32, i32, i32)) -> bool {
    a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3
}

/// Nothing overlaps a box: no other box, and no line except at its ends.
#[track_caller]
fn check_layout(workflow: &Workflow) {
    let graph = DiagramGraph::new(workflow);
    let layout = DiagramLayout::new(&graph);
    check_labels(&graph, &layout);
    for (at, a) in layout.boxes.iter().enumerate() {
        let (left, top, right, bottom) = area(a);
        assert!(left >= 0 && top >= 0 && right <= layout.width && bottom <= layout.height);
        for b in &layout.boxes[at + 1..] {
            assert!(!overlap(area(a), area(b)), "{:?} and {:?}", a.look.title, b.look.title);
        }
    }
    for (edge, line) in graph.edges.iter().zip(&layout.lines) {
        for pair in line.points.windows(2) {
            let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
            assert!(x1 == x2 || y1 == y2, "a line that is not straight: {:?}", line.points);
            let stretch = (x1.min(x2), y1.min(y2), x1.max(x2) + 1, y1.max(y2) + 1);
            for (node, placed) in layout.boxes.iter().enumerate() {
                let (left, top, right, bottom) = area(placed);
                let inner = (left + 1, top + 1, right - 1, bottom - 1);
                // The sides of a gate slant inwards: a line to its own gate ends within its area.
                let is_own = node == edge.from || node == edge.to;
                assert!(
                    is_own && graph.nodes[node].kind == NodeKind::Gate || !overlap(stretch, inner),
                    "{} → {} runs through {}: {:?}",
                    edge.from,
                    edge.to,
                    node,
                    line.points
                );
            }
        }
    }
}

/// No label overlaps a box or another label.
#[track_caller]
fn check_labels(graph: &DiagramGraph, layout: &DiagramLayout) {
    let mut areas: Vec<(i32, i32, i32, i32)> = Vec::new();
    for (edge, line) in graph.edges.iter().zip(&layout.lines) {
        let Some(label) = &line.label else { continue };
        let width = super::text::text_width(&label.text, super::ports::LABEL_SIZE);
        let left = match label.anchor {
            LabelAnchor::Start => label.x,
            LabelAnchor::End => label.x - width,
        };
        let area = (left, label.y - 9, left + width, label.y + 2);
        for (node, placed) in layout.boxes.iter().enumerate() {
            let is_own_gate = node == edge.from && graph.nodes[node].kind == NodeKind::Gate;
            let lies_on = overlap(area, self::area(placed));
            assert!(is_own_gate || !lies_on, "`{}` of {} lies on {node}", label.text, edge.from);
        }
        let on = areas.iter().find(|other| overlap(area, **other));
        assert_eq!(on, None, "`{}` of {} lies on another label", label.text, edge.from);
        areas.push(area);
    }
}

#[test]
fn nothing_lies_on_a_box_in_the_samples() {
    check_layout(&samples::every_feature());
    for count in 1..=9 {
        check_layout(&samples::track_workflow(count));
    }
}

fn ways() -> impl Strategy<Value = Vec<Vec<usize>>> {
    (1..16_usize)
        .prop_flat_map(|count| prop::collection::vec(prop::collection::vec(0..count, 0..4), count))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_lies_on_a_box_in_any_workflow(ways in ways(), phases in 0..4_usize) {
        let workflow = samples::tangled_workflow(&ways, phases);
        check_layout(&workflow);
        let (elements, _) = read(&render_svg(&workflow));
        prop_assert_eq!(count(&elements, "shape"), DiagramGraph::new(&workflow).nodes.len());
    }

    #[test]
    fn any_title_can_be_read_back(title in "\\PC{1,40}") {
        let mut workflow = samples::linear_workflow(1);
        workflow.steps[0].title = title.clone();
        let (_, text) = read(&render_svg(&workflow));
        prop_assert!(text.contains(&super::text::clean_text(&title)));
    }
}

#[test]
fn a_workflow_as_mermaid() {
    insta::assert_snapshot!(render_mermaid(&samples::every_feature()), @r##"
    flowchart TD
        step7["7 · Report"]:::step
        run_start(["start"]):::terminal
        run_end(["end"]):::terminal
        subgraph phase1["To look"]
            step1["1 · Scope"]:::decision
            step2[["2 · Survey #34;the#34; #60;code#62; #38; #91;docs#93;<br/>2 × explore, 1 × skeptic"]]:::dispatch
            step3("3 · Dig<br/>until high, ≤4 times"):::confidence
        end
        subgraph phase2["To make"]
            step4["4 · Plan"]:::step
            step5[["5 · Review<br/>1 × quality-reviewer"]]:::dispatch
            step6{{"6 · Plan gate<br/>≤3 rounds"}}:::gate
        end
        run_start --> step1
        step1 -->|"ok"| step2
        step1 -->|"skip"| step4
        step2 --> step3
        step3 -->|"ok"| step4
        step3 -->|"iterate ≤4"| step3
        step4 --> step5
        step4 -.->|"error"| step7
        step5 --> step6
        step6 -->|"ok"| step7
        step6 -->|"fail ≤3"| step4
        step7 --> run_end
        linkStyle 5,10 stroke:#b45309
        linkStyle 7 stroke:#dc2626
        classDef step fill:#f8fafc,stroke:#64748b,color:#0f172a
        classDef choice fill:#f5f3ff,stroke:#7c3aed,color:#0f172a
        classDef decision fill:#ede9fe,stroke:#7c3aed,color:#0f172a
        classDef confidence fill:#ccfbf1,stroke:#0f766e,color:#0f172a
        classDef gate fill:#fef3c7,stroke:#b45309,color:#0f172a,stroke-width:2px
        classDef dispatch fill:#dbeafe,stroke:#1d4ed8,color:#0f172a
        classDef terminal fill:#334155,stroke:#334155,color:#ffffff
    "##);
}

#[test]
fn a_workflow_as_dot() {
    insta::assert_snapshot!(render_dot(&samples::every_feature()), @r##"
    digraph "every\"thing" {
      rankdir=TB;
      graph [fontname="sans-serif", color="#94a3b8", style=rounded, labeljust=l];
      node [fontname="sans-serif", shape=box, style="filled,rounded", fillcolor="#f8fafc", color="#64748b"];
      edge [fontname="sans-serif", fontsize=11, color="#475569"];
      "step7" [label="7. Report"];
      "start" [label="start", shape=oval, fillcolor="#334155", fontcolor=white];
      "end" [label="end", shape=oval, fillcolor="#334155", fontcolor=white];
      subgraph "cluster_1" {
        label="To look";
        "step1" [label="1. Scope", fillcolor="#ede9fe", color="#7c3aed"];
        "step2" [label="2. Survey \"the\" <code> &amp; [docs]\n2 × explore, 1 × skeptic", peripheries=3];
        "step3" [label="3. Dig\nuntil high, ≤4 times", fillcolor="#ccfbf1", color="#0f766e"];
      }
      subgraph "cluster_2" {
        label="To make";
        "step4" [label="4. Plan"];
        "step5" [label="5. Review\n1 × quality-reviewer", peripheries=2];
        "step6" [label="6. Plan gate\n≤3 rounds", shape=hexagon, style=filled, fillcolor="#fef3c7", color="#b45309"];
      }
      "start" -> "step1";
      "step1" -> "step2" [label="ok"];
      "step1" -> "step4" [label="skip"];
      "step2" -> "step3";
      "step3" -> "step4" [label="ok"];
      "step3" -> "step3" [label="iterate ≤4", constraint=false, color="#b45309"];
      "step4" -> "step5";
      "step4" -> "step7" [label="error", style=dashed, color="#dc2626"];
      "step5" -> "step6";
      "step6" -> "step7" [label="ok"];
      "step6" -> "step4" [label="fail ≤3", constraint=false, color="#b45309"];
      "step7" -> "end";
    }
    "##);
}
