//! `rep plan run --self-improve`: what was learnt is used, and what a killed worker was trying is taken back.

use std::os::unix::fs::PermissionsExt;

use repertoire_journal::Payload;

use super::field::{APPROVES, Field, Store};

const PLAN: &str = "# Plan\n\n- [ ] Write alpha\n- [ ] Write beta\n";

/// A program that workers find before those of the machine.
fn program(field: &mut Field, name: &str, script: &str) {
    let path = format!("bin/{name}");
    field.ws.write(&path, format!("#!/bin/sh\n{script}\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(field.ws.path(&path), mode).unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", field.ws.path("bin"));
    field.ws.set("PATH", &path);
}

fn backend(field: &Field, transcript: &str) -> String {
    field.ws.write("agent.yaml", transcript);
    format!("scripted:{}", field.ws.path("agent.yaml"))
}

#[test]
fn what_an_agent_mended_once_is_mended_without_one_when_it_comes_again() {
    let field = Field::new(Store::Sqlite);
    let files = [
        ("PLAN.md".to_owned(), PLAN.to_owned()),
        ("settings.txt".to_owned(), "value = GOOD\n".to_owned()),
    ];
    let dir = field.repository("mended", &files);
    let mut transcript = APPROVES.to_owned();
    for name in ["alpha", "beta"] {
        let when = format!("- when: \"# Selected task\\n\\nWrite {name}\"\n");
        transcript.push_str(&format!("{when}  write: {name}.txt\n  content: \"{name}\\n\"\n"));
    }
    for (word, value) in [("unless", "BAD"), ("when", "GOOD")] {
        transcript.push_str(&format!(
            "- {word}: Notes from the last step\n  write: settings.txt\n  content: \"value = {value}\\n\"\n"
        ));
    }
    let backend = backend(&field, &transcript);
    let check = "if grep BAD settings.txt; then echo 'error: a setting is bad'; exit 1; fi";
    let args =
        ["plan", "run", "PLAN.md", "--self-improve", "--backend", &backend, "--check", check];
    let output = field.rep(&dir, &args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = field.runs().remove(0);
    let steps = field.block(field.journal.steps(&run.id)).unwrap();
    let recovered: Vec<String> = steps
        .iter()
        .filter(|step| step.kind == "recovery")
        .map(|step| format!("{:?}", step.outcome.unwrap()))
        .collect();
    assert_eq!(recovered, ["SentBack", "Ok"], "an agent the first time, and nobody the second");
    let memory = field.rep(&dir, &["memory"]).output().unwrap();
    let memory = String::from_utf8(memory.stdout).unwrap();
    assert!(memory.contains("automatic 0.76"), "{memory}");
}

#[test]
fn what_a_killed_worker_was_trying_is_taken_back_before_anybody_goes_on() {
    let mut field = Field::new(Store::Sqlite);
    // The first time it takes for ever, after it did more than it should.
    let script = "case \"$1\" in\n-l) grep -l BAD *.go ;;\n-w) sed -i s/BAD/GOOD/ a.go\n\
        if [ ! -e .hold ]; then touch .hold; echo 'package junk' > junk.go; sleep 600; fi ;;\nesac\ntrue";
    program(&mut field, "gofmt", script);
    let files = [
        ("PLAN.md".to_owned(), "# Plan\n\n- [ ] Write alpha\n".to_owned()),
        (".gitignore".to_owned(), ".hold\n".to_owned()),
    ];
    let dir = field.repository("killed", &files);
    let backend =
        backend(&field, &format!("{APPROVES}- write: a.go\n  content: \"package a // BAD\\n\"\n"));
    let check = "said=$(gofmt -l .); echo \"$said\"; test -z \"$said\"";
    let args = ["--self-improve", "--backend", &backend, "--check", check];
    let id = field.queue(&dir, "PLAN.md", &args);
    let mut worker = field.worker(&["worker"]);
    let junk = |field: &Field| {
        let worktree = field.run(&id).worktree?;
        Some(std::path::Path::new(&worktree.path).join("junk.go"))
    };
    field.until("the attempt to be under way", |field| {
        junk(field).is_some_and(|path| path.exists())
    });
    let branch = field.run(&id).worktree.unwrap().branch;
    worker.kill();
    let name = |step: u32| format!("refs/repertoire/backup/{id}-{step}");
    let step = field.run(&id).open_step.unwrap();
    let before = field.git(&dir, &["rev-parse", &format!("{}^{{tree}}", name(step))]);
    let _next = field.worker(&["worker"]);
    field.until_completed(std::slice::from_ref(&id));
    let taken_back = field.events(&id).into_iter().find_map(|event| match event.payload {
        Payload::Note { name, data } if name == "attempt_taken_back" => Some(data),
        _ => None,
    });
    let taken_back = taken_back.expect("it is noted");
    // The checks that came next have seen the files as they were.
    let restored = taken_back["backup"].as_str().unwrap();
    assert_eq!(field.git(&dir, &["rev-parse", &format!("{restored}^{{tree}}")]), before);
    let found = taken_back["found"].as_str().unwrap();
    assert!(field.git(&dir, &["ls-tree", "--name-only", found]).contains("junk.go"));
    let log = field.git(&dir, &["log", "--format=", "--name-only", &branch]);
    assert!(!log.contains("junk.go"), "{log}");
    assert_eq!(field.git(&dir, &["show", &format!("{branch}:a.go")]), "package a // GOOD\n");
    let refs = field.git(&dir, &["for-each-ref", "--format=%(refname)", "refs/repertoire/backup"]);
    assert_eq!(refs.trim(), format!("{}-found", name(step)));
}
