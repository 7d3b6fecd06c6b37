// The playground: a task, which skills it would be given and why, those that were nearly given, and the exact prompt.

import { all, get, part, post, stream } from "./api.js";
import { meter } from "./charts.js";
import { isAgainst, lacked, reason } from "./reasons.js";
import { append, chip, copier, count, debounce, empty, failure, h, icon, number, replace, skeleton, tabs, tone } from "./ui.js";

const KEPT = "task";
const EXAMPLES = ["Is the index of this migration safe to add while people order?", "Write the release notes for version 2", "Why is the nightly build slow?"];

export function mount(root, to) {
  const view = new Playground(root);
  view.update(to);
  return view;
}

class Playground {
  constructor(root) {
    this.root = root;
    this.task = h("textarea", { rows: "4", placeholder: "Describe a task as you would to an agent", "aria-label": "Task", "data-search": "", spellcheck: "false" });
    this.paths = h("input", { type: "text", placeholder: "src/orders.rs, migrations/0042.sql", autocomplete: "off", spellcheck: "false" });
    this.agent = h("select", {}, h("option", { value: "" }, "The default agent"));
    this.max = h("input", { type: "number", min: "0", max: "50", placeholder: "as configured", inputmode: "numeric" });
    this.threshold = h("input", { type: "number", min: "0", max: "1", step: "0.05", placeholder: "as configured", inputmode: "decimal" });
    this.result = h("div", { class: "stack" });
    this.said = h("p", { class: "visually-hidden", role: "status" });
    this.prompt = h("div", { class: "stack-small" });
    const ask = debounce(() => this.ask(), 140);
    for (const field of [this.task, this.paths, this.max, this.threshold]) field.addEventListener("input", ask);
    this.agent.addEventListener("change", () => this.ask());
    try {
      this.task.value = sessionStorage.getItem(KEPT) ?? "";
    } catch {
      // Nothing is kept.
    }
    append(root,
      h("div", { class: "view-head" }, h("div", { class: "view-head-text" }, h("h1", {}, "Playground"), h("p", {}, "Type a task, and see what an agent would be given for it. Nothing is sent to a model."))),
      h("div", { class: "play" },
        h("div", { class: "stack" },
          h("section", { class: "card card-pad stack-small" }, this.task,
            h("details", { class: "more" }, h("summary", {}, "More about the task"),
              h("div", { class: "form-grid" },
                h("label", { class: "field" }, "Paths it touches", this.paths), h("label", { class: "field" }, "Agent", this.agent),
                h("label", { class: "field" }, "Most skills", this.max), h("label", { class: "field" }, "Threshold", this.threshold)))),
          this.said, this.result),
        h("section", { class: "stack-small play-prompt", "aria-label": "The exact prompt" }, this.prompt)));
    this.loadAgents();
    this.unlisten = stream.listen((event) => {
      if (event.kind === "skills" || event.kind === "resync") this.ask();
    });
  }

  update(to) {
    const skill = to.query.get("skill");
    const task = to.query.get("task");
    if (task) this.task.value = task;
    if (skill) this.task.value = `@${skill} ${this.task.value.replace(/^(@\S+\s+)+/, "")}`;
    if (task || skill) history.replaceState(null, "", "#/play");
    this.ask();
    if (!skill) this.task.focus({ preventScroll: true });
  }

  destroy() {
    this.unlisten();
    this.asking?.abort();
  }

  async loadAgents() {
    try {
      const { items } = await all("/skills", { kind: "agent", state: "used" });
      append(this.agent, items.map((one) => h("option", { value: one.name }, one.name)));
    } catch {
      // Then there is the default one.
    }
  }

  body() {
    const paths = this.paths.value.split(/[,\n]/).map((one) => one.trim()).filter(Boolean);
    const numeric = (field) => (field.value === "" ? undefined : Number(field.value));
    return { task: this.task.value.trim(), paths, agent: this.agent.value || undefined, max: numeric(this.max), threshold: numeric(this.threshold), explain: true };
  }

  async ask() {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    const body = this.body();
    try {
      sessionStorage.setItem(KEPT, this.task.value);
    } catch {
      // Nothing is kept.
    }
    if (!body.task && !body.paths.length) return this.invite();
    if (!this.result.childElementCount) replace(this.result, skeleton(3));
    try {
      const found = await post("/select", body, asking.signal);
      if (!asking.signal.aborted) this.show(found);
    } catch (error) {
      if (error.name !== "AbortError") replace(this.result, failure(error, () => this.ask()));
      return;
    }
    this.askPrompt(body, asking.signal);
  }

  invite() {
    replace(this.prompt);
    replace(this.result, empty("What would an agent be given?", "The answer appears as you type. Try one of these:",
      EXAMPLES.map((text) => h("button", { type: "button", class: "button", onclick: () => { this.task.value = text; this.ask(); } }, text))));
  }

  show(found) {
    const why = new Map((found.explained ?? []).map((one) => [one.name, one]));
    const most = new Map();
    for (const one of why.values()) for (const stage of one.stages) most.set(stage.stage, Math.max(most.get(stage.stage) ?? 0, Math.abs(stage.score)));
    const line = `${count(found.picks.length, "skill")} of ${number(found.skills)} in ${(found.took_us / 1000).toFixed(1)} ms`;
    this.said.textContent = found.abstained ? "No skill fits" : found.picks.map((pick) => pick.name).join(", ");
    replace(this.result,
      h("div", { class: "spread" }, h("h2", {}, found.abstained ? "No skill" : "Picked"), h("span", { class: "faint num" }, line)),
      found.abstained && this.abstention(found),
      found.unresolved.map((one) => h("p", { class: "note warn" }, icon("warn", 15), h("span", {}, `There is no skill “${one.named}”.`, one.nearest && [" Did you mean ", h("a", { href: `#/skills/${part(one.nearest)}` }, one.nearest), "?"]))),
      found.picks.map((pick) => this.pick(pick, why.get(pick.name), most, found)),
      found.near_misses.length > 0 && h("section", { class: "stack-small" },
        h("div", { class: "section-title" }, h("h2", {}, "Near misses"), h("span", { class: "count" }, "what was nearly picked, and what it lacked")),
        h("div", { class: "card" }, found.near_misses.map((miss) => this.miss(miss, why.get(miss.name), most, found)))));
  }

  abstention(found) {
    return h("div", { class: "card card-pad stack-small abstained" },
      h("p", {}, "No skill fits well enough, so the agent is given none. That is better than a wrong one."),
      found.nearest && h("p", { class: "row" }, "Nearest: ", h("a", { href: `#/skills/${part(found.nearest)}` }, found.nearest), meter(found.best, { threshold: found.threshold, width: "120px" }), h("span", { class: "num" }, found.best.toFixed(2)), h("span", { class: "faint" }, lacked(found.lacked))));
  }

  pick(pick, why, most, found) {
    const looks = { hint: "accent", trigger: "ok", match: "", need: "line" };
    return h("article", { class: "card card-pad stack-small pick" },
      h("div", { class: "spread" },
        h("div", { class: "row" }, h("a", { class: "pick-name", href: `#/skills/${part(pick.name)}` }, pick.name), chip(pick.strategy, looks[pick.strategy]), found.untrusted?.includes(pick.name) && chip("not trusted", tone("untrusted"))),
        h("span", { class: "score" }, meter(pick.score, { threshold: found.threshold, width: "120px" }), h("b", { class: "num" }, pick.score.toFixed(2)))),
      h("ul", { class: "reasons" }, pick.reasons.slice(0, 6).map(reasonRow)),
      pick.reasons.length > 6 && h("p", { class: "faint" }, `and ${pick.reasons.length - 6} more reasons`),
      why && stages(why, most, true));
  }

  miss(miss, why, most, found) {
    return h("details", { class: "miss" },
      h("summary", {}, h("span", { class: "item-name" }, miss.name), meter(miss.score, { threshold: found.threshold, width: "90px" }), h("span", { class: "num" }, miss.score.toFixed(2)), h("span", { class: "faint miss-why" }, lacked(miss.lacked))),
      h("div", { class: "stack-small miss-body" },
        miss.missing.length > 0 && h("p", { class: "row" }, h("span", { class: "faint" }, "does not have"), miss.missing.map((word) => chip(word))),
        h("ul", { class: "reasons" }, miss.reasons.slice(0, 6).map(reasonRow)),
        why && stages(why, most),
        h("a", { href: `#/skills/${part(miss.name)}` }, "Open the skill")));
  }

  async askPrompt(body, signal) {
    if (!this.prompt.childElementCount) replace(this.prompt, h("h2", {}, "The exact prompt"), skeleton(5));
    try {
      // The prompt is that of the selection beside it, so it is asked for in the same words.
      const { explain, paths, ...same } = body;
      const made = await post("/prompt", paths.length ? { ...same, paths } : same, signal);
      if (!signal.aborted) this.showPrompt(made);
    } catch (error) {
      if (error.name !== "AbortError") replace(this.prompt, h("h2", {}, "The exact prompt"), failure(error));
    }
  }

  showPrompt(made) {
    const messages = made.messages.map(partsOf);
    const chars = messages.reduce((sum, one) => sum + one.text.length, 0);
    const open = this.promptTabs?.current();
    this.promptTabs = tabs("The exact prompt", [
      ["messages", "Messages", () => h("div", { class: "stack-small" }, messages.map((one) => h("section", { class: "message" }, h("div", { class: "spread" }, chip(one.role, one.role === "system" ? "accent" : "line"), h("span", { class: "faint num" }, `${number(one.text.length)} characters`)), h("pre", { class: "code tall" }, one.text))))],
      ["tools", `Tools ${made.tools.length}`, () => h("dl", { class: "tools" }, made.tools.map((tool) => [h("dt", {}, h("code", {}, tool.name)), h("dd", {}, tool.description?.split("\n")[0] ?? "")]))],
      ["body", "Request", () => h("pre", { class: "code tall" }, JSON.stringify(made.body ?? made, null, 2))],
    ], open ?? undefined);
    replace(this.prompt,
      h("div", { class: "spread" }, h("h2", {}, "The exact prompt"), copier(() => messages.map((one) => one.text).join("\n\n"))),
      h("p", { class: "hint" }, `${made.model ? `For ${made.model}. ` : ""}About ${number(made.tokens ?? Math.ceil(chars / 4))} tokens. Nothing was sent.`),
      this.promptTabs.element);
  }
}

function partsOf(message) {
  const content = message.text ?? message.content ?? "";
  const text = Array.isArray(content) ? content.map((one) => one.text ?? JSON.stringify(one)).join("\n") : String(content);
  return { role: message.role ?? "message", text };
}

const reasonRow = (one) => h("li", { class: isAgainst(one) ? "against" : "" }, reason(one));

/** What each stage says. Words have no upper bound: their bar is measured by the best of the skills shown. */
function stages(why, most, open = false) {
  const rows = why.stages.filter((stage) => stage.score !== 0);
  return h("details", { class: "more stages", open }, h("summary", {}, "Score by stage"),
    h("div", { class: "stage-grid" },
      stageRow("by triggers", why.by_triggers, 1), stageRow("by text", why.by_text, 1),
      rows.map((stage) => stageRow(stage.stage, stage.score, stage.stage === "words" ? most.get("words") : 1)),
      !rows.length && h("span", { class: "faint" }, "no stage has anything to say")));
}

function stageRow(name, score, best) {
  return [h("span", {}, name), meter(Math.abs(score) / best, { width: "100%", label: `${name}: ${score.toFixed(2)}` }), h("span", { class: "num" }, score.toFixed(2))];
}
