// Workflows: their graphs, and runs of them with the step they are at, the items of the gate, and what waits for a person.

import { all, get, isAttended, part, post, stream, text } from "./api.js";
import { finding } from "./findings.js";
import { graph } from "./graph.js";
import { action, ago, arrows, chip, command, count, debounce, empty, failure, h, icon, keyed, more, replace, skeleton, status, tone, toast, words } from "./ui.js";

export function mount(root, to) {
  const view = new Workflows(root);
  view.update(to);
  return view;
}

/** Runs that are shown at first, and how many more each time. */
const RUNS = 100;

class Workflows {
  constructor(root) {
    this.root = root;
    this.most = RUNS;
    // What a person is typing is not drawn over; the view catches up when they leave the field.
    const refresh = debounce(() => {
      this.isBehind = this.isBusy();
      if (!this.isBehind && !this.gone) this.load();
    }, 300);
    root.addEventListener("focusout", () => this.isBehind && refresh());
    this.unlisten = stream.listen((event) => {
      if (event.kind === "skills" || event.kind === "resync" || isAttended(event)) refresh();
    });
  }

  update(to) {
    const [first, second] = to.parts;
    this.at = second && first === "run" ? { kind: "run", id: second } : first ? { kind: "workflow", id: first } : { kind: "list" };
    this.sign = null;
    this.most = RUNS;
    replace(this.root, skeleton(6));
    this.load();
  }

  isBusy() {
    return this.root.contains(document.activeElement) && ["INPUT", "TEXTAREA"].includes(document.activeElement.tagName);
  }

  back() {
    if (this.at.kind !== "list") location.hash = "#/workflows";
  }

  destroy() {
    this.unlisten();
    this.gone = true;
    this.asking?.abort();
  }

  async load() {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    const at = this.at;
    try {
      const data = await this.fetch(at, asking.signal);
      const sign = JSON.stringify(data);
      if (asking.signal.aborted || sign === this.sign) return;
      this.sign = sign;
      if (at.kind === "list") this.list(data);
      else if (at.kind === "workflow") this.workflow(data);
      else this.run(data);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.sign = null;
      replace(this.root, at.kind !== "list" && this.backLink(), failure(error, () => this.load()));
    }
  }

  fetch(at, signal) {
    if (at.kind === "list") return Promise.all([all("/workflows", {}, { signal }), all("/workflow-runs", {}, { max: this.most, signal })]);
    if (at.kind === "workflow") return Promise.all([get(`/workflows/${part(at.id)}`, {}, signal), text(`/workflows/${part(at.id)}/graph.svg`, {}, signal).catch(noGraph), all("/workflow-runs", { workflow: at.id }, { max: this.most, signal })]);
    return get(`/workflow-runs/${part(at.id)}`, {}, signal).then(async (run) => {
      const name = run.run.workflow;
      const [about, svg] = await Promise.all([get(`/workflows/${part(name)}`, {}, signal).catch(noGraph), text(`/workflows/${part(name)}/graph.svg`, { run: at.id }, signal).catch(noGraph)]);
      return [run, about, svg];
    });
  }

  backLink() {
    return h("a", { class: "back-link", href: "#/workflows" }, icon("back"), "All workflows");
  }

  /** The way to runs that are not shown. */
  rest(runs) {
    return runs.more && h("p", { class: "list-note" }, more(runs, () => { this.most += RUNS; this.load(); }));
  }

  list([workflows, runs]) {
    document.title = "Workflows · Repertoire";
    const running = arrows(h("ul", { class: "card rows", "aria-label": "Runs of workflows" }), "a.flow-run");
    if (runs.items.length) keyed(running, runs.items, (run) => run.run, runRow);
    else running.append(h("li", {}, empty("No workflow was started yet", "An agent starts one over MCP, or you do in a terminal.", command(`rep workflow start ${workflows.items[0]?.name ?? "NAME"}`))));
    const flows = arrows(h("ul", { class: "flow-grid", "aria-label": "Workflows" }), "a.flow-card");
    keyed(flows, workflows.items, (one) => `${one.scope}/${one.name}`, card);
    replace(this.root,
      h("div", { class: "view-head" }, h("div", { class: "view-head-text" }, h("h1", {}, "Workflows"), h("p", {}, "Steps as data. The engine decides what comes next, and gates are computed from what was recorded."))),
      h("div", { class: "stack" }, h("section", { class: "stack-small" }, h("h2", {}, "Runs"), running, this.rest(runs)),
        h("section", { class: "stack-small" }, h("div", { class: "section-title" }, h("h2", {}, "All workflows"), h("span", { class: "count" }, workflows.more ? `${workflows.items.length} of ${workflows.total}` : String(workflows.items.length))), workflows.items.length ? flows : empty("No workflows", "A skill that has a workflow.yaml beside it is one."))));
  }

  workflow([about, svg, runs]) {
    const flow = about.workflow;
    document.title = `${flow.name} · Repertoire`;
    const own = runs.items;
    replace(this.root, this.backLink(),
      h("div", { class: "view-head" }, h("div", { class: "view-head-text stack-small" }, h("div", { class: "row" }, h("h1", {}, flow.name), !about.can_run && chip("cannot run", "bad")), h("p", {}, flow.description), command(startCommand(flow)))),
      h("div", { class: "flow-columns" },
        svg ? h("section", { class: "card card-pad" }, graph(svg, { name: flow.name })) : null,
        h("div", { class: "stack" },
          about.diagnostics?.length > 0 && h("section", { class: "stack-small" }, h("h2", {}, "Findings"), about.diagnostics.map((one) => finding(one))),
          own.length > 0 && h("section", { class: "stack-small" }, h("h2", {}, "Runs"), h("ul", { class: "card rows" }, own.map((run) => h("li", {}, runRow(run)))), this.rest(runs)),
          h("section", { class: "stack-small" }, h("h2", {}, "Steps"), steps(flow)))));
  }

  run([data, about, svg]) {
    const run = data.run;
    document.title = `${run.run} · Repertoire`;
    const flow = about?.workflow;
    const number = flow ? flow.steps.findIndex((step) => step.id === run.step) + 1 : 0;
    const passed = flow ? flow.steps.map((step, at) => (data.history.some((one) => one.step === step.id) ? at + 1 : 0)).filter(Boolean) : [];
    const step = flow?.steps[number - 1];
    replace(this.root, this.backLink(),
      h("div", { class: "view-head" }, h("div", { class: "view-head-text stack-small" }, h("div", { class: "row" }, h("h1", {}, run.run), status(run.state)), h("p", { class: "row" }, h("a", { href: `#/workflows/${part(run.workflow)}` }, run.workflow), h("span", { class: "faint" }, `turn ${run.turn}`), ago(run.updated_ms)))),
      this.decide(data),
      h("div", { class: "flow-columns" },
        svg ? h("section", { class: "card card-pad" }, graph(svg, { name: run.workflow, at: run.state === "done" ? 0 : number, passed })) : null,
        h("div", { class: "stack" },
          h("section", { class: "card card-pad stack-small current-step" }, h("div", { class: "spread" }, h("h2", {}, number ? `${number}. ${step?.title ?? run.step}` : run.step), run.state === "active" && chip("now", "live")), stepText(data, step)),
          gates(data),
          parameters(data),
          history(data))));
  }

  /** What a person has to decide or answer. */
  decide(data) {
    const waiting = data.status?.waiting;
    if (!waiting) return null;
    const [kind, what] = Object.entries(waiting)[0];
    const send = async (path, body, said) => {
      await post(`/workflow-runs/${part(data.run.run)}/${path}`, body);
      toast(said);
      this.load();
    };
    if (kind === "questions") {
      const fields = what.questions.map((question) => {
        const field = h("input", { type: "text", id: `answer-${question.id}`, autocomplete: "off" });
        return { question, field, row: h("div", { class: "stack-small" }, h("label", { for: `answer-${question.id}`, class: "question" }, question.ask), h("div", { class: "row" }, question.options.map((option) => h("button", { type: "button", class: "button", onclick: () => (field.value = option) }, option))), field) };
      });
      return h("section", { class: "card card-pad stack decide first" }, h("h2", {}, icon("warn"), " Questions for you"), fields.map((one) => one.row),
        h("div", {}, action("Answer", () => send("answers", { answers: Object.fromEntries(fields.map((one) => [one.question.id, one.field.value])) }, "Answered."), { tone: "primary" })));
    }
    const note = h("input", { type: "text", "aria-label": "Why", placeholder: "Why (it is kept)" });
    const text = { limit: "The gate has failed as often as it may.", bound: "A loop was gone through as often as it may.", error: what?.message }[kind] ?? data.run.waiting_for;
    return h("section", { class: "card card-pad stack-small decide first" }, h("h2", {}, icon("warn"), " A person has to decide"), h("p", {}, text), what?.blocking?.length > 0 && h("p", { class: "row" }, "Blocked by ", what.blocking.map((id) => chip(id, "bad"))),
      note, h("div", { class: "row" }, (data.choices ?? []).map((choice) => {
        const [label, about] = CHOICES[choice] ?? [choice.replace(/^take:/, "Go on with "), "The step ends with this outcome."];
        const button = action(label, () => send("choice", { choice, note: note.value || undefined }, "Decided."), { tone: choice === "abort" ? "danger" : "", title: about });
        button.dataset.choice = choice;
        return button;
      })));
  }
}

const CHOICES = {
  continue: ["Once more", "The loop is gone through once more."],
  "must-only": ["Only what must hold", "Only what has to hold blocks; the rest is accepted."],
  skip: ["Accept as it is", "What failed is accepted as it is, except declared checks."],
  abort: ["End the run", "The run ends here."],
};

const noGraph = (error) => {
  if (error.name === "AbortError") throw error;
  return null;
};

function startCommand(flow) {
  const needed = Object.entries(flow.parameters ?? {}).filter(([, arg]) => arg.required).map(([name]) => `--param ${name}=…`);
  return ["rep workflow start", flow.name, ...needed].join(" ");
}

function runRow(run) {
  if (run.broken) return h("div", { class: "flow-run" }, status("broken"), h("span", { class: "item-name" }, run.run), h("span", { class: "soft broken-why" }, run.broken));
  return h("a", { class: "flow-run", href: `#/workflows/run/${part(run.run)}` },
    status(run.state), h("span", { class: "item-name" }, run.run), h("span", { class: "soft" }, run.workflow), h("span", { class: "faint flow-step" }, run.waiting_for ?? `at ${run.step}`), h("span", { class: "faint run-when" }, ago(run.updated_ms)));
}

function card(one) {
  return h("a", { class: "card card-pad flow-card", href: `#/workflows/${part(one.name)}` },
    h("span", { class: "row" }, h("span", { class: "item-name" }, one.name), !one.can_run && chip("cannot run", "bad")),
    h("span", { class: "item-about" }, one.description),
    h("span", { class: "row faint" }, h("span", {}, one.kind === "script" ? "script" : count(one.steps, "step")), one.gates > 0 && chip(count(one.gates, "gate"), "warn"), h("span", {}, one.scope)));
}

function nextWords(next) {
  if (!next) return "end";
  if (typeof next === "string") return next;
  return Object.entries(next).map(([outcome, to]) => `${words(outcome)} → ${typeof to === "string" ? to : JSON.stringify(to)}`).join(", ");
}

function steps(flow) {
  return h("ol", { class: "card flow-steps" }, flow.steps.map((step, at) => h("li", {},
    h("span", { class: "flow-number" }, at + 1), h("div", {}, h("div", { class: "row" }, h("b", {}, step.title ?? step.id), step.decide?.gate && chip("gate", "warn"), step.role && chip(words(typeof step.role === "string" ? step.role : Object.keys(step.role)[0]))), h("p", { class: "faint" }, nextWords(step.next))))));
}

function stepText(data, step) {
  const blocks = data.view?.actions ?? step?.actions ?? [];
  const shown = blocks.map((block) => (typeof block === "string" ? block : (block.text ?? null))).filter(Boolean);
  const forbidden = blocks.flatMap((block) => block?.forbidden ?? []);
  return [shown.map((one) => h("p", { class: "pre" }, one.trim())), forbidden.length > 0 && h("p", { class: "note bad" }, icon("no", 14), h("span", {}, `Not in this step: ${forbidden.join("; ")}`)), !shown.length && !forbidden.length && h("p", { class: "hint" }, "The engine decides here.")];
}

function gates(data) {
  const all = Object.entries(data.reviews ?? {});
  return all.map(([id, review]) => h("section", { class: "stack-small" },
    h("div", { class: "section-title" }, h("h2", {}, `Gate: ${data.gate?.gate === id ? data.gate.name : id}`), h("span", { class: "count" }, `round ${review.iteration}`), data.gate?.gate === id && chip({ pass: "would pass", fail: "would fail", open: "still open" }[data.gate.verdict], { pass: "ok", fail: "bad", open: "warn" }[data.gate.verdict]), review.items.length > 0 && selfReviewed(review)),
    items(review.items, review.checks),
    review.rounds?.length > 0 && h("details", { class: "more" }, h("summary", {}, count(review.rounds.length, "earlier round")), review.rounds.map((round) => h("div", { class: "stack-small" }, h("h3", { class: "row" }, `Round ${round.iteration}`, chip(round.passed ? "passed" : "failed", round.passed ? "ok" : "bad")), items(round.items, round.checks))))));
}

// Items are recorded by the agent that does the work; only checks are run by the engine.
function selfReviewed(review) {
  const confirmed = Object.values(review.checks ?? {}).some((one) => one.status === "PASS" && one.proof?.run);
  return chip(confirmed ? "self-reviewed, checks green" : "self-reviewed, no check", confirmed ? "line" : "warn");
}

function items(list, checks = {}) {
  const declared = Object.entries(checks).map(([id, one]) => ({ id, check: one.proof?.run ? one.proof.run.command : "declared check", severity: "MUST", status: one.status, finding: one.note }));
  return h("div", { class: "card table-wrap" }, h("table", { class: "items" }, h("tbody", {}, [...list, ...declared].map((item) => h("tr", {}, h("td", {}, chip(item.status.toLowerCase(), tone(item.status))), h("td", {}, h("b", {}, item.check), item.finding && h("p", { class: "soft" }, item.finding)), h("td", {}, chip(item.severity, "line")))))));
}

function parameters(data) {
  const given = Object.entries(data.parameters ?? {});
  return given.length > 0 && h("dl", { class: "facts card card-pad" }, given.map(([name, value]) => [h("dt", {}, name), h("dd", {}, typeof value === "string" ? value : JSON.stringify(value))]));
}

function history(data) {
  if (!data.history.length && !data.decisions.length) return null;
  return h("section", { class: "stack-small" }, h("h2", {}, "The way so far"),
    h("ol", { class: "card flow-steps" }, data.history.map((one) => h("li", {}, h("span", { class: "flow-number" }, one.turn), h("div", { class: "row" }, h("b", {}, one.step), one.outcome && chip(words(one.outcome), tone(one.outcome)), h("span", { class: "faint" }, `→ ${one.to}`))))),
    data.decisions.map((one) => h("p", { class: "note" }, icon("info", 15), h("span", {}, `A person decided at turn ${one.turn}: ${words(one.choice)}${one.note ? `, “${one.note}”` : ""}`))));
}
