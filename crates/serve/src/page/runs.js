// Runs: what is under way and what was, what it cost, and one run live.

import { all, get, stream } from "./api.js";
import { bar, columns, progress } from "./charts.js";
import { ago, arrows, chip, command, count, debounce, dollars, empty, failure, h, icon, keyed, more, number, replace, segments, skeleton, span, status } from "./ui.js";
import { openRun } from "./run.js";

const STATES = [["", "All"], ["running", "Running"], ["waiting", "Waiting"], ["queued", "Queued"], ["paused", "Paused"], ["completed", "Completed"], ["failed", "Failed"], ["cancelled", "Cancelled"]];
const KINDS = [["", "All kinds"], ["plan", "Plans"], ["conversation", "Conversations"], ["workflow", "Workflows"], ["review", "Reviews"], ["task", "Tasks"]];

/** Plans that are shown. */
const PLANS = 5;

/** Runs are worth showing without the plans, but not without a word about them. */
const unreadable = (problem) => {
  if (problem.name === "AbortError") throw problem;
  return { items: [], problem };
};

export function mount(root, to) {
  const view = new Runs(root);
  view.update(to);
  return view;
}

class Runs {
  constructor(root) {
    this.root = root;
    this.state = "";
    this.kind = "";
    this.limit = 50;
    const refresh = debounce(() => this.load(), 250);
    this.unlisten = stream.listen((event) => {
      if (this.one) this.one.hear(event);
      else if (event.kind === "run" || event.kind === "resync") refresh();
    });
  }

  update(to) {
    this.one?.destroy();
    this.one = null;
    if (to.parts[0]) {
      this.list = null;
      replace(this.root);
      this.one = openRun(this.root, to.parts[0]);
    } else {
      this.build();
      this.load();
    }
  }

  back() {
    if (this.one) location.hash = "#/runs";
  }

  destroy() {
    this.unlisten();
    this.one?.destroy();
    this.asking?.abort();
  }

  build() {
    document.title = "Runs · Repertoire";
    this.states = segments("Status", STATES, this.state, (state) => {
      this.state = state;
      this.load();
    });
    this.kinds = segments("Kind", KINDS, this.kind, (kind) => {
      this.kind = kind;
      this.load();
    });
    this.costs = h("div", { class: "pair" });
    this.list = arrows(h("ul", { class: "card rows", "aria-label": "Runs" }, h("li", {}, skeleton(5))), "a.run-row");
    this.more = h("p", { class: "list-note" });
    replace(this.root,
      h("div", { class: "view-head" }, h("div", { class: "view-head-text" }, h("h1", {}, "Runs"), h("p", {}, "Everything that agents do: plans, conversations, workflows and reviews, live, with what they cost."))),
      h("div", { class: "stack" }, this.costs, h("div", { class: "scroll-x" }, this.kinds), h("div", { class: "scroll-x" }, this.states), this.list, this.more));
  }

  async load() {
    if (!this.list) return;
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    try {
      const page = await all("/runs", { status: this.state, kind: this.kind }, { max: this.limit, signal: asking.signal });
      this.draw(page);
      let costs = await get("/costs", {}, asking.signal);
      if (costs.points.length < 3) costs = await get("/costs", { bucket: "hour", points: 24 }, asking.signal);
      const plans = await get("/plans", { limit: PLANS }, asking.signal).catch(unreadable);
      this.drawTop(costs, plans);
    } catch (error) {
      if (error.name !== "AbortError") replace(this.list, inItem(failure(error, () => this.load())));
    }
  }

  draw(page) {
    if (!page.items.length) {
      replace(this.more);
      const only = [this.state, this.kind].filter(Boolean).join(" ");
      return replace(this.list, inItem(only
        ? empty(`No ${only} runs`, "Other runs may be there.", h("button", { type: "button", class: "button", onclick: () => this.showAll() }, "Show all"))
        : empty("No runs yet", "Write a plan as a check list in PLAN.md, and let an agent work through it. The run appears here while it works.", command("rep plan run"))));
    }
    keyed(this.list, page.items, (run) => run.id, (run) => runRow(run));
    replace(this.more, more(page, () => { this.limit += 100; this.load(); }));
  }

  showAll() {
    this.states.show("");
    this.kinds.show("");
    this.state = "";
    this.kind = "";
    this.load();
  }

  drawTop(costs, { items: plans, problem, total }) {
    const spent = costs.points.some((point) => point.value > 0);
    replace(this.costs,
      spent && h("section", { class: "card card-pad stack-small" },
        h("div", { class: "spread" }, h("h2", {}, "Cost over time"), h("span", { class: "faint num" }, `${dollars(costs.total, costs.is_partial)} in all`)), columns(costs.points, { wide: plans.length ? 480 : 960 })),
      problem && h("section", { class: "card card-pad stack-small plans-problem" }, h("h2", {}, "The plans cannot be shown"), h("p", { class: "note bad" }, icon("warn", 15), h("span", {}, problem.detail)), problem.hint && h("p", { class: "hint" }, problem.hint)),
      plans.length > 0 && h("section", { class: "card card-pad stack-small" }, plans.map(plan), total > plans.length && h("p", { class: "hint" }, `${count(total - plans.length, "other plan")} not shown here.`)));
  }
}

/** A plan of the project: how far it is, and what comes next. */
function plan(one) {
  if (one.broken) return h("div", { class: "stack-small plans-problem" }, h("h2", {}, `${one.plan} cannot be read`), h("p", { class: "note bad" }, icon("warn", 15), h("span", {}, one.broken)));
  const drawn = progress(one.progress);
  const next = one.tasks.find((task) => task.id === one.next);
  return h("div", { class: "stack-small" },
    h("div", { class: "spread" }, h("h2", {}, one.title ?? one.plan), h("span", { class: "path" }, one.plan)), drawn.bar, drawn.legend,
    one.fallback ? h("p", { class: "note warn" }, h("span", {}, one.fallback)) : next ? h("p", { class: "soft" }, h("b", {}, "Next: "), next.text ?? next.label) : h("p", { class: "hint" }, "Nothing is open."),
    one.errors > 0 && h("p", { class: "hint" }, chip(count(one.errors, "error"), "bad"), " ", h("code", {}, "rep plan check"), " shows where."));
}

const inItem = (what) => h("li", {}, what);

function runRow(run) {
  return h("a", { class: "run-row", href: `#/runs/${run.id}` },
    h("span", { class: "run-status" }, status(run.interrupted ? "interrupted" : run.status)),
    h("span", { class: "run-main" },
      h("span", { class: "row" }, h("span", { class: "item-name" }, run.name), chip(run.kind, "line"), h("span", { class: "faint mono" }, run.short)),
      run.reason && h("span", { class: "item-about" }, run.reason)),
    h("span", { class: "run-progress" }, run.tasks && [bar([["done", run.tasks.done, "c3"], ["left", run.tasks.all - run.tasks.done, "cnone"]], { thin: true, label: "Tasks" }), h("span", { class: "faint num" }, `${run.tasks.done} of ${run.tasks.all} tasks`)]),
    h("span", { class: "run-numbers num" }, h("span", {}, dollars(run.cost_usd, run.cost_is_partial)), h("span", { class: "faint" }, `${span(run.time_ms)} · ${number(run.steps)} steps`)),
    h("span", { class: "run-when faint" }, ago(run.updated_ms)));
}
