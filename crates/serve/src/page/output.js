// What agents said in a run, step by step, the newest first. The step that is under way is open and grows while one looks; an
// older one is asked for when somebody opens it, and once.

import { get, part } from "./api.js";
import { chip, copier, count, empty, failure, h, replace, skeleton, words } from "./ui.js";

/** Steps that are listed until somebody asks for older ones. */
const LISTED = 100;
const LOG = /(?:^|[\\/])(\d+)-([^\\/]+)\.jsonl$/;

export class Output {
  constructor(run) {
    this.run = run;
    this.most = LISTED;
    this.rows = new Map();
    this.element = h("div", { class: "stack-small" });
    this.list = h("div", { class: "stack-small outputs" });
    this.rest = h("div");
  }

  /** Shows the steps of a run as it is now. */
  show(data) {
    this.data = data;
    const logs = logsOf(data);
    if (!logs.length) return replace(this.element, empty("Nothing was said yet", "What agents say appears here while they work."));
    if (!this.list.isConnected) replace(this.element, this.list, this.rest);
    const listed = logs.slice(0, this.most).map((log) => this.row(log));
    if (listed[0] !== this.newest) {
      this.newest = listed[0];
      this.newest.element.open = true;
    }
    listed.forEach((row, at) => {
      if (this.list.children[at] !== row.element) this.list.insertBefore(row.element, this.list.children[at] ?? null);
      row.state(this.isRunning(row.log));
    });
    const left = logs.length - listed.length;
    replace(this.rest, left > 0 && h("p", { class: "list-note" }, `${count(left, "older step")} not listed. `, h("button", { type: "button", class: "button", onclick: () => { this.most += LISTED; this.show(this.data); } }, "List older steps")));
    this.refresh();
  }

  /** Asks again for what is open and may have grown. */
  refresh() {
    for (const row of this.rows.values()) if (row.element.open && !row.isWhole) row.load();
  }

  isRunning(log) {
    return this.data.run.status === "running" && this.data.steps.some((step) => step.number === log.step && step.status === "running");
  }

  row(log) {
    const key = `${log.step}-${log.kind}`;
    if (!this.rows.has(key)) this.rows.set(key, new Row(this.run, log, () => this.isRunning(log)));
    return this.rows.get(key);
  }
}

/** The steps that have a log, and the one that is about to, the newest first. */
function logsOf({ files, steps }) {
  const logs = new Map();
  for (const file of files ?? []) {
    const found = file.path.match(LOG);
    if (found) logs.set(`${Number(found[1])}-${found[2]}`, { step: Number(found[1]), kind: found[2] });
  }
  const last = steps.at(-1);
  if (last?.status === "running") logs.set(`${last.number}-${last.kind}`, { step: last.number, kind: last.kind });
  return [...logs.values()].sort((a, b) => b.step - a.step || a.kind.localeCompare(b.kind));
}

/** A step. */
class Row {
  constructor(run, log, isRunning) {
    this.run = run;
    this.log = log;
    this.isRunning = isRunning;
    this.now = h("span", { class: "row" });
    this.body = h("div", { class: "stack-small card-pad" });
    this.element = h("details", { class: "card diff-file said", data: { said: String(log.step) } }, h("summary", {}, h("h3", {}, `Step ${log.step}: ${words(log.kind)}`), this.now), this.body);
    this.element.addEventListener("toggle", () => this.element.open && !this.isWhole && this.load());
  }

  state(isRunning) {
    replace(this.now, isRunning && chip("running", "live"));
  }

  async load() {
    if (this.busy) return;
    this.busy = true;
    if (!this.body.childElementCount) replace(this.body, skeleton(2));
    // What is said between the question and the answer must not be missed.
    const grows = this.isRunning();
    try {
      const { items } = await get(`/runs/${part(this.run)}/output`, { step: this.log.step });
      this.draw(items.find((one) => one.kind === this.log.kind));
      this.isWhole = !grows;
    } catch (error) {
      if (!this.text) replace(this.body, failure(error, () => this.load()));
    } finally {
      this.busy = false;
    }
  }

  /** Whoever reads stays where they are, and whoever is at the end of what grows stays at the end. */
  draw(said) {
    if (!said?.text) return replace(this.body, h("p", { class: "hint" }, "Nothing was said."));
    if (!this.text) this.text = h("pre", { class: "code tall" });
    const place = this.text;
    const atEnd = place.isConnected ? place.scrollTop + place.clientHeight >= place.scrollHeight - 8 : this.isRunning();
    const top = place.scrollTop;
    if (place.textContent !== said.text.trimEnd()) place.textContent = said.text.trimEnd();
    if (!place.isConnected) {
      this.about = h("div", { class: "row" });
      replace(this.body, h("div", { class: "spread" }, this.about, copier(() => place.textContent)), place);
    }
    replace(this.about, said.tool_calls > 0 && h("span", { class: "faint" }, count(said.tool_calls, "tool call")), said.cut && chip("only its end is shown", "warn"));
    place.scrollTop = atEnd ? place.scrollHeight : top;
  }
}
