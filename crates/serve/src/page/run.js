// One run, live: its steps, what the agent said, how far the plan is, what it costs, what it changed, and what a person can do.

import { all, get, lastEvents, part, post } from "./api.js";
import { costLine, progress } from "./charts.js";
import { diff } from "./diff.js";
import { sentence } from "./eventwords.js";
import { Output } from "./output.js";
import { action, ago, chip, clock, command, count, debounce, dialog, dollars, empty, failure, h, icon, number, replace, skeleton, span, status, tabs, toast, tone, words } from "./ui.js";

const OVER = ["completed", "failed", "cancelled"];
/** What a person can do in which state. */
const ORDERS = [
  { id: "pause", label: "Pause", icon: "pause", in: ["running", "queued"] },
  { id: "resume", label: "Resume", icon: "go", tone: "primary", in: ["paused", "waiting", "failed"] },
  { id: "retry", label: "Retry", icon: "again", in: ["waiting", "failed", "paused", "cancelled"] },
  { id: "steer", label: "Steer", icon: "steer", in: ["running", "queued", "paused", "waiting"] },
  { id: "merge", label: "Merge", icon: "merge", in: ["completed", "waiting", "failed", "cancelled"] },
  { id: "cancel", label: "Cancel", icon: "stop", tone: "danger", in: ["running", "queued", "paused", "waiting"] },
];
/** No run has as many steps. */
const STEPS_MAX = 20_000;
/** What the choices of a run that waits ask for, by their words; the first that fits. */
const CHOICES = [[/^steer/i, "steer"], [/^retry/i, "retry"], [/^cancel/i, "cancel"], [/^merge/i, "merge"], [/\bresume\b/i, "resume"]];
const LIMITS = /higher limits|larger budget/i;
/** Events that say something which the steps do not. */
const TOLD = new Set(["WATCHDOG_SIGNAL", "RUN_COMPLETED", "RUN_FAILED", "RUN_WAITING", "RUN_DEFERRED", "PAUSE_REQUESTED", "RUN_PAUSED", "RUN_RESUMED", "RUN_RETRIED", "CANCEL_REQUESTED", "RUN_CANCELLED", "STEERED", "DELIVERED", "PLAN_FALLBACK", "PLAN_RESTORED", "LEARNED", "LEASE_EXPIRED", "SKILLS_LOAD_FAILED", "KIND_EVENT"]);
/** The view that knows more of a run of a kind. */
const ELSEWHERE = { review: (run) => run.status === "completed" && ["The review", `#/reviews/${part(run.id)}`], workflow: (run) => ["The workflow", `#/workflows/run/${part(run.id)}`] };

/** Shows a run in a place; it keeps itself up to date with what it hears. */
export function openRun(root, id) {
  return new RunView(root, id);
}

class RunView {
  constructor(root, id) {
    this.root = root;
    this.id = id;
    this.said = new Output(id);
    this.places = { output: h("div"), diff: h("div"), events: h("div") };
    this.fillers = { output: () => this.output(this.places.output), diff: () => this.diff(this.places.diff), events: () => replace(this.places.events, this.eventList(this.data.events)) };
    this.refresh = debounce(() => this.load(), 150);
    this.tick = setInterval(() => this.ticking(), 1000);
    replace(root, skeleton(7));
    this.load();
  }

  destroy() {
    clearInterval(this.tick);
    this.asking?.abort();
    this.gone = true;
  }

  hear(event) {
    if (event.kind === "resync" || (event.kind === "run" && event.data?.run === this.data?.run.id)) this.refresh();
  }

  async load() {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    try {
      const data = await get(`/runs/${part(this.id)}`, {}, asking.signal);
      const [steps, events] = await Promise.all([all(`/runs/${part(this.id)}/steps`, {}, { max: STEPS_MAX, signal: asking.signal }), lastEvents(this.id, 500, asking.signal)]);
      if (this.gone) return;
      this.data = { ...data, steps: steps.items, events: events.items, eventsTotal: events.total };
      this.draw();
    } catch (error) {
      if (error.name !== "AbortError" && !this.gone) replace(this.root, h("a", { class: "back-link", href: "#/runs" }, icon("back"), "All runs"), failure(error, () => this.load()));
    }
  }

  draw() {
    const { run, steps, events, tasks } = this.data;
    document.title = `${run.name} · Repertoire`;
    if (!this.parts) this.build(run);
    const parts = this.parts;
    const sign = JSON.stringify([run, tasks, this.data.interrupted]);
    if (sign !== this.headSign) {
      this.headSign = sign;
      this.drawHead();
    }
    replace(parts.timeline, this.timeline(steps, events));
    const open = this.tabs.current();
    for (const [id, fill] of Object.entries(this.fillers)) {
      if (id === open) fill();
      else this.tabs.forget(id);
    }
    replace(parts.cost, this.cost(steps));
    this.ticking();
  }

  build(run) {
    this.parts = Object.fromEntries(["head", "strip", "timeline", "cost"].map((name) => [name, h("div", { class: `run-${name}` })]));
    const parts = this.parts;
    this.tabs = tabs("Parts of the run", [
      ["timeline", "Timeline", () => h("div", { class: "run-columns" }, parts.timeline, h("div", { class: "stack" }, parts.cost, h("dl", { class: "facts card card-pad", id: "run-facts" })))],
      ["output", "Output", () => this.filled("output")],
      ["diff", "Changes", () => this.filled("diff")],
      ["events", "Events", () => this.filled("events")],
    ]);
    replace(this.root, h("a", { class: "back-link", href: "#/runs" }, icon("back"), "All runs"), parts.head, parts.strip, this.tabs.element);
    this.run = run;
  }

  /** A part that is asked for when somebody looks at it, and again whenever something happens while they do. */
  filled(id) {
    replace(this.places[id], skeleton(4));
    this.fillers[id]();
    return this.places[id];
  }

  drawHead() {
    const { run, tasks, interrupted } = this.data;
    const elsewhere = ELSEWHERE[run.kind]?.(run);
    const orders = ORDERS.filter((order) => order.in.includes(run.status) && this.isPossible(order, run));
    replace(this.parts.head,
      h("div", { class: "view-head" },
        h("div", { class: "view-head-text stack-small" },
          h("div", { class: "row" }, h("h1", {}, run.name), status(interrupted ? "interrupted" : run.status), run.wish && chip(`${run.wish} asked for`, "warn")),
          h("p", { class: "row" }, chip(run.kind, "line"), h("span", { class: "mono" }, run.id.slice(-8)), run.worktree && h("span", { class: "path" }, run.worktree.branch), run.worker && h("span", {}, `with ${run.worker}`), elsewhere && h("a", { href: elsewhere[1] }, elsewhere[0]))),
        h("div", { class: "buttons" }, orders.map((order) => action(order.label, () => this.order(order), { icon: order.icon, tone: order.tone })))),
      run.reason && h("p", { class: `note ${tone(run.status)}` }, icon(run.status === "completed" ? "ok" : "info", 15), h("span", {}, run.reason)),
      run.status === "waiting" && this.decide(run));
    const spent = run.spent;
    const counts = {};
    for (const task of tasks ?? []) counts[task.mark] = (counts[task.mark] ?? 0) + 1;
    const drawn = tasks?.length ? progress(counts) : null;
    replace(this.parts.strip, h("section", { class: "card card-pad run-summary" },
      h("div", { class: "stats" },
        stat(dollars(spent.cost_micro_usd / 1e6, spent.unpriced), run.limits.cost_usd ? `of ${dollars(run.limits.cost_usd)}` : "cost"),
        stat(number(spent.input_tokens + spent.output_tokens), run.limits.tokens ? `of ${number(run.limits.tokens)} tokens` : "tokens"),
        stat(span(spent.time_ms), run.limits.time_ms ? `of ${span(run.limits.time_ms)}` : "at work"),
        stat(number(run.steps), run.steps === 1 ? "step" : "steps")),
      drawn && h("div", { class: "stack-small run-plan" }, drawn.bar, drawn.legend,
        h("details", { class: "more" }, h("summary", {}, `The plan: ${count(tasks.length, "task")}`), h("ol", { class: "tasks" }, tasks.map((task) => h("li", {}, chip(words(task.mark), tone(task.mark)), h("span", {}, task.label), task.attempts > 1 && h("span", { class: "faint" }, `${task.attempts} attempts`))))))));
    const facts = document.getElementById("run-facts");
    if (facts) replace(facts, runFacts(this.data));
  }

  /** What a person has to decide: what the run itself proposes, with a button for what can be done here. */
  decide(run) {
    const rows = run.choices.map((choice) => ({ choice, order: ORDERS.find((order) => order.id === CHOICES.find(([words]) => words.test(choice))?.[1]) }));
    const merge = ORDERS.find((order) => order.id === "merge");
    if (this.isPossible(merge, run) && !rows.some((row) => row.order === merge)) rows.push({ choice: "take over what it has done so far, and leave the rest", order: merge });
    if (!rows.length) return null;
    const row = ({ choice, order }) => {
      const can = order && this.isPossible(order, run);
      const button = can && action(order.label, () => (LIMITS.test(choice) ? this.raise(run.reason) : this.order(order)), { icon: order.icon, tone: order.tone });
      if (button) button.dataset.choice = order.id;
      return h("li", { class: "row" }, button, h("span", {}, choice));
    };
    return h("section", { class: "card card-pad stack-small decide first" }, h("h2", {}, icon("warn"), " A person has to decide"), h("ul", { class: "plain stack-small" }, rows.map(row)));
  }

  isPossible(order, run) {
    if (run.attended) return false;
    if (order.id === "merge") return Boolean(run.worktree) && !["merge", "squash"].includes(this.data.delivered?.strategy);
    if (order.id === "retry") return (this.data.tasks ?? []).some((task) => task.mark === "failed" || task.mark === "blocked");
    if (order.id === "pause") return run.wish !== "pause";
    return true;
  }

  async order(order) {
    if (order.id === "steer") return this.steer();
    if (order.id === "cancel" || order.id === "merge") return this.sure(order);
    try {
      await this.send(order.id, {});
    } catch (error) {
      if (order.id !== "resume" || !/has used its/.test(error.detail)) throw error;
      this.raise(error.detail);
    }
  }

  /** A run that has used what it may goes on with more; what is left as it is stays as it is. */
  raise(why) {
    const { limits, spent } = this.data.run;
    const fields = [
      ["max_cost_usd", "dollars", limits.cost_usd, spent.cost_micro_usd / 1e6, 1],
      ["max_tokens", "tokens", limits.tokens, spent.input_tokens + spent.output_tokens, 1],
      ["max_time_ms", "minutes at work", limits.time_ms, spent.time_ms, 60_000],
    ].map(([name, unit, limit, used, scale]) => {
      const isUsedUp = typeof limit === "number" && used >= limit;
      const proposed = isUsedUp ? Math.max(1, Math.ceil((Math.max(limit, used) * 2) / scale)) : "";
      const input = h("input", { type: "number", name, min: "0", step: name === "max_tokens" ? "1" : "any", value: String(proposed), placeholder: typeof limit === "number" ? `${number(limit / scale)}, as it is` : "no limit" });
      return { name, scale, input, row: h("label", { class: "field" }, `Most ${unit} of the whole run`, input) };
    });
    const go = action("Resume", async () => {
      const said = fields.filter((one) => one.input.value !== "");
      await this.send("resume", Object.fromEntries(said.map((one) => [one.name, one.name === "max_cost_usd" ? Number(one.input.value) : Math.round(Number(one.input.value) * one.scale)])));
      box.close();
    }, { tone: "primary" });
    const box = dialog("What may it use from now on?", h("div", { class: "stack-small" }, h("p", {}, why), fields.map((one) => one.row)), h("button", { class: "button", value: "no" }, "Not now"), go);
    (fields.find((one) => one.input.value !== "") ?? fields[0]).input.select();
  }

  async send(id, body) {
    await post(`/runs/${part(this.id)}/${id}`, body);
    toast({ pause: "It pauses after this step.", resume: "It goes on.", retry: "Failed tasks are tried again.", cancel: "It ends now.", merge: "Merged.", steer: "The next prompt says so." }[id]);
    this.load();
  }

  sure(order) {
    const vouched = this.data.run.status === "completed";
    const about = order.id === "cancel" ? "The step that is under way is stopped. What was committed stays on its branch."
      : vouched ? "The branch of the run is merged into the one that it began on." : "The run is not completed, so nothing vouches for its work. Look at the changes before you take them over.";
    const yes = action(order.label, async () => {
      await this.send(order.id, order.id === "merge" ? { force: !vouched } : {});
      box.close();
    }, { tone: order.id === "cancel" ? "danger" : "primary" });
    const box = dialog(`${order.label} this run?`, h("p", {}, about), h("button", { class: "button", value: "no" }, "Not now"), yes);
  }

  steer() {
    const field = h("textarea", { rows: "4", "aria-label": "What the next prompt says", placeholder: "Leave the public interface as it is." });
    const send = action("Send", async () => {
      if (!field.value.trim()) return field.focus();
      await this.send("steer", { note: field.value.trim() });
      box.close();
    }, { tone: "primary" });
    const box = dialog("A word for the next prompt", h("div", { class: "stack-small" }, field, h("p", { class: "hint" }, "The agent reads it at the start of its next step.")), h("button", { class: "button", value: "no" }, "Not now"), send);
    field.focus();
  }

  timeline(steps, events) {
    const told = events.filter((event) => TOLD.has(event.type)).map((event) => ({ at: event.at_ms, event }));
    const rows = [...steps.map((step) => ({ at: step.started_ms, step })), ...told].sort((a, b) => a.at - b.at);
    if (!rows.length) return empty("Nothing has happened yet", "The run waits for a worker. `rep daemon` on this machine takes it.", command("rep daemon"));
    return h("ol", { class: "timeline", "aria-label": "Steps" }, rows.reverse().map((row) => (row.step ? stepRow(row.step) : toldRow(row.event))));
  }

  eventList(events) {
    const rest = this.data.eventsTotal - events.length;
    return [rest > 0 && h("p", { class: "list-note" }, `The last ${number(events.length)} of ${number(this.data.eventsTotal)} events.`), h("ol", { class: "event-list" }, [...events].reverse().map((event) => {
      const said = sentence(event);
      return h("li", {}, h("span", { class: "faint num" }, clock(event.at_ms)), h("span", { class: `event-type ${said.tone}` }, words(event.type.toLowerCase())), h("span", { class: "event-text" }, said.text));
    }))];
  }

  cost(steps) {
    let total = 0;
    const points = [];
    for (const step of steps.filter((one) => one.ended_ms)) {
      if (!points.length) points.push({ at: step.started_ms, total: 0, label: "start" });
      total += step.spent.cost_micro_usd / 1e6;
      points.push({ at: step.ended_ms, total, label: `step ${step.number} (${words(step.kind)})`, bad: step.outcome === "failed" });
    }
    if (points.length < 2 || total === 0) return null;
    return h("section", { class: "card card-pad stack-small" }, h("div", { class: "spread" }, h("h2", {}, "Cost over time"), h("span", { class: "faint num" }, dollars(total))), costLine(points, { wide: 420 }));
  }

  output(place) {
    if (!place.contains(this.said.element)) replace(place, this.said.element);
    this.said.show(this.data);
  }

  diff(place) {
    get(`/runs/${part(this.id)}/diff`).then((got) => {
      replace(place, got.text ? diff(got.text, { cut: got.cut }) : empty("No changes", "The run has changed no file yet."));
    }, (error) => replace(place, error.status === 409 || error.status === 404 ? empty("No changes to show", error.detail, error.hint && h("p", { class: "hint" }, error.hint)) : failure(error)));
  }

  ticking() {
    if (!this.data || OVER.includes(this.data.run.status)) return;
    // What an agent says is in no journal, so nobody tells of it.
    this.ticks = (this.ticks ?? 0) + 1;
    if (this.ticks % 3 === 0 && this.data.run.status === "running" && this.tabs.current() === "output") this.said.refresh();
    for (const one of this.root.querySelectorAll("[data-since]")) one.textContent = span(Date.now() - Number(one.dataset.since));
  }
}

const stat = (value, text) => h("div", { class: "stat" }, h("b", {}, value), h("span", {}, text));

function stepRow(step) {
  const outcome = step.status === "running" ? "running" : step.status === "interrupted" ? "interrupted" : step.outcome;
  return h("li", { class: `step ${tone(outcome)}`, data: { step: String(step.number) } },
    h("span", { class: "step-dot" }, step.status === "running" ? null : icon({ ok: "ok", failed: "no", sent_back: "back", stopped: "stop" }[step.outcome] ?? "warn", 13)),
    h("div", { class: "step-body" },
      h("div", { class: "spread" },
        h("div", { class: "row" }, h("span", { class: "step-kind" }, words(step.kind)), step.attempt > 1 && chip(`attempt ${step.attempt}`, "warn"), step.outcome && step.outcome !== "ok" && chip(words(step.outcome), tone(step.outcome)), step.status === "running" && chip("running", "live")),
        h("span", { class: "faint num step-numbers" }, step.status === "running" ? h("span", { data: { since: String(step.started_ms) } }, span(Date.now() - step.started_ms)) : [step.spent.cost_micro_usd > 0 && `${dollars(step.spent.cost_micro_usd / 1e6)} · `, span(step.spent.time_ms || (step.ended_ms ?? step.started_ms) - step.started_ms)])),
      step.task && h("p", { class: "step-task" }, step.task.label),
      step.reason && h("p", { class: "soft step-reason" }, step.reason)));
}

function toldRow(event) {
  const said = sentence(event);
  return h("li", { class: `told ${said.tone}` }, h("span", { class: "step-dot" }), h("div", { class: "step-body" }, h("div", { class: "spread" }, h("span", {}, said.text), h("span", { class: "faint num" }, clock(event.at_ms)))));
}

function runFacts({ run, delivered, watchdog, files }) {
  const fact = (name, ...value) => [h("dt", {}, name), h("dd", {}, ...value)];
  return [
    fact("Created", ago(run.created_ms)), run.started_ms && fact("Begun", ago(run.started_ms)), run.ended_ms && fact("Ended", ago(run.ended_ms)),
    fact("Folder", h("span", { class: "path" }, run.workspace)),
    run.worktree && fact("Branch", h("span", { class: "path" }, run.worktree.branch), " from ", h("span", { class: "path" }, run.worktree.base_branch)),
    delivered && fact("Delivered", `${delivered.strategy} to ${delivered.branch}`),
    watchdog?.length > 0 && fact("Watchdog", count(watchdog.length, "signal")),
    files?.length > 0 && fact("Left behind", h("details", { class: "more" }, h("summary", {}, count(files.length, "file")), h("ul", { class: "plain" }, files.map((file) => h("li", { class: "path", title: file.path }, file.path.split("/").pop()))))),
  ];
}
