// Skills: search as you type with reasons, filters, what an agent's room makes of them, and one of them in full.

import { get, part, stream } from "./api.js";
import { bar, legend, meter } from "./charts.js";
import { finding } from "./findings.js";
import { append, arrows, chip, count, debounce, empty, failure, command, h, icon, keyed, number, replace, segments, skeleton, tone, words } from "./ui.js";
import { detail } from "./skill.js";

const PAGE = 100;
const LIMIT_MAX = 500;
const SCOPES = ["project", "user", "plugin", "extra", "builtin"];
const AGENT = "agent";

const keptAgent = () => {
  try {
    return localStorage.getItem(AGENT);
  } catch {
    return null;
  }
};

export function mount(root, to) {
  root.classList.add("panes");
  const view = new Skills(root);
  view.update(to);
  return view;
}

class Skills {
  constructor(root) {
    this.root = root;
    this.filter = { q: "", state: "", scope: "" };
    this.limit = PAGE;
    this.agent = keptAgent() ?? "claude";
    this.build();
    this.unlisten = stream.listen((event) => {
      if (event.kind === "skills" || event.kind === "resync") this.refresh();
    });
  }

  build() {
    this.total = h("span", { class: "faint num" });
    this.search = h("input", { type: "search", placeholder: "Search skills by name or by what they do", "aria-label": "Search skills", "aria-keyshortcuts": "/", "data-search": "", autocomplete: "off", spellcheck: "false" });
    const typed = debounce(() => this.change({ q: this.search.value }), 110);
    this.search.addEventListener("input", typed);
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" && event.key !== "Enter") return;
      const first = this.list.querySelector("a.item");
      if (!first) return;
      event.preventDefault();
      first.focus();
      if (event.key === "Enter") first.click();
    });
    this.states = segments("Which skills", [["", "All"], ["used", "In use"], ["shadowed", "Shadowed"], ["broken", "Broken"], ["findings", "Findings"]], "", (state) => this.change({ state }));
    this.scopes = h("select", { "aria-label": "Scope", onchange: () => this.change({ scope: this.scopes.value }) }, h("option", { value: "" }, "All scopes"), SCOPES.map((scope) => h("option", { value: scope }, words(scope))));
    this.budget = h("div", { class: "budget" });
    this.list = arrows(h("ul", { "aria-label": "Skills" }), "a.item");
    this.rest = h("div", {}, skeleton(9));
    this.scroll = h("div", { class: "pane-scroll", onscroll: () => this.grow() }, this.list, this.rest);
    this.detail = h("div", { class: "pane-detail", role: "region", "aria-label": "Skill" });
    append(this.root,
      h("div", { class: "pane-list" },
        h("div", { class: "pane-top" },
          h("div", { class: "spread" }, h("h1", {}, "Skills and agents ", this.total), this.scopes),
          h("label", { class: "search" }, icon("search"), this.search, h("kbd", { "aria-hidden": "true" }, "/")),
          this.states, this.budget),
        this.scroll),
      this.detail);
  }

  update(to) {
    this.chosen = to.parts[0] ?? null;
    this.file = to.query.get("file");
    const asked = { q: to.query.get("q") ?? this.filter.q, state: to.query.get("state") ?? this.filter.state, scope: to.query.get("scope") ?? this.filter.scope };
    const same = this.items && Object.keys(asked).every((key) => asked[key] === this.filter[key]);
    this.filter = asked;
    if (this.search.value !== asked.q && document.activeElement !== this.search) this.search.value = asked.q;
    this.scopes.value = asked.scope;
    this.states.show(asked.state);
    this.root.classList.toggle("has-choice", Boolean(this.chosen));
    if (same) this.mark();
    else this.load();
    this.ready ??= this.loadBudget();
    this.showDetail();
  }

  change(what) {
    Object.assign(this.filter, what);
    this.limit = PAGE;
    this.scroll.scrollTop = 0;
    const query = new URLSearchParams(Object.entries(this.filter).filter(([, value]) => value));
    const place = this.chosen ? `#/skills/${part(this.chosen)}` : "#/skills";
    history.replaceState(null, "", query.size ? `${place}?${query}` : place);
    this.load();
  }

  refresh() {
    this.load();
    this.loadBudget();
    this.showDetail();
  }

  back() {
    if (this.chosen) location.hash = this.address(null);
  }

  destroy() {
    this.unlisten();
    this.asking?.abort();
    this.asking = null;
    this.showing?.abort();
  }

  address(item) {
    const query = new URLSearchParams(Object.entries(this.filter).filter(([, value]) => value));
    if (item && item.state && item.state !== "used") query.set("file", item.path);
    const place = item ? `#/skills/${part(item.name)}` : "#/skills";
    return query.size ? `${place}?${query}` : place;
  }

  async load() {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    const { q, state, scope } = this.filter;
    try {
      const wanted = state === "findings" ? ["/diagnostics", { q, limit: this.limit }] : ["/skills", { q, state, scope, limit: this.limit }];
      const [about, page] = await Promise.all([get("/status", {}, asking.signal), get(...wanted, asking.signal)]);
      this.showCounts(about);
      this.items = page.items;
      this.more = Boolean(page.next);
      this.total.textContent = number(page.total);
      this.draw(page.total);
    } catch (error) {
      if (error.name !== "AbortError") this.instead(failure(error, () => this.load()));
    }
  }

  showCounts(about) {
    this.states.count("shadowed", about.skills.shadowed);
    this.states.count("broken", about.skills.broken);
    this.states.count("findings", about.findings.errors + about.findings.warnings);
  }

  draw(total) {
    if (!this.items.length) return this.instead(this.nothing());
    const isFindings = this.filter.state === "findings";
    keyed(this.list, this.items,
      (item) => (isFindings ? `${item.path}:${item.code}:${item.line}:${item.column}:${item.message}` : `${item.state}:${item.path}:${item.name}`),
      (item) => (isFindings ? this.findingRow(item) : this.row(item)),
      (item) => JSON.stringify([item, this.filter]));
    replace(this.rest, this.more && h("p", { class: "list-note" }, `${number(this.items.length)} of ${number(total)} shown${this.limit < LIMIT_MAX ? "; scroll on for more" : "; search for the others"}.`));
    this.mark();
  }

  instead(what) {
    replace(this.list);
    replace(this.rest, what);
  }

  grow() {
    const place = this.scroll;
    if (!this.more || this.growing || place.scrollTop + place.clientHeight < place.scrollHeight - 400 || this.limit >= LIMIT_MAX) return;
    this.growing = true;
    this.limit = Math.min(LIMIT_MAX, this.limit + PAGE);
    this.load().finally(() => (this.growing = false));
  }

  row(item) {
    const found = item.found;
    const about = item.description ?? item.reason?.message ?? "";
    const why = found && (found.why.length ? found.why.join(" · ") : found.in_name ? "its name has these letters" : "its text has these letters");
    return h("a", { class: `item${item.state === "shadowed" ? " dim" : ""}`, href: this.address(item) },
      h("div", { class: "item-top" },
        h("span", { class: "item-name" }, item.name),
        item.state === "shadowed" && chip("shadowed", "warn", `${item.shadowed_by} stands before it`),
        item.state === "broken" && chip("broken", "bad"),
        item.is_agent && chip("agent", "line"),
        h("span", { class: "item-end" }, item.trust && item.trust !== "trusted" && h("span", { title: `not trusted: ${item.trust}` }, icon("lock", 14)), item.scope)),
      h("p", { class: "item-about" }, about),
      found && h("p", { class: "item-why" }, meter(found.score, { label: `score ${found.score.toFixed(2)}` }), h("span", { class: "num" }, found.score.toFixed(2)), h("span", { title: why }, why)));
  }

  findingRow(item) {
    const href = item.skill ? this.address({ name: item.skill, state: "used" }) : this.address({ name: item.path?.split("/").slice(-2)[0] ?? "file", state: "broken", path: item.path });
    return h("a", { class: "item", href },
      h("div", { class: "item-top" }, chip(item.severity, tone(item.severity)), h("span", { class: "item-name" }, item.skill ?? item.path_short?.split("/").slice(-2)[0] ?? "skills"), h("span", { class: "item-end mono" }, item.code)),
      h("p", { class: "item-about" }, item.message),
      item.path_short && h("p", { class: "item-why" }, h("span", { class: "path" }, `${item.path_short}${item.line ? `:${item.line}` : ""}`)));
  }

  nothing() {
    const { q, state, scope } = this.filter;
    const clear = h("button", { type: "button", class: "button", onclick: () => { this.search.value = ""; this.scopes.value = ""; this.states.show(""); this.change({ q: "", state: "", scope: "" }); } }, "Show all skills");
    if (q) return empty("Nothing fits", `No skill has to do with “${q}”${state || scope ? " among those that the filter shows" : ""}.`, clear);
    if (state === "broken") return empty("No broken skills", "Every file that was found could be loaded.", clear);
    if (state === "shadowed") return empty("No shadowed skills", "No two skills want the same name.", clear);
    if (state === "findings") return empty("No findings", "Nothing is wrong with any skill.", clear);
    if (scope) return empty(`No ${scope} skills`, "No skill comes from such a folder.", clear);
    return empty("No skills yet", "Make one, and it appears here at once.", command("rep new my-skill"));
  }

  mark() {
    for (const row of this.list.querySelectorAll("a.item")) {
      const [place, query] = row.getAttribute("href").split("?");
      const here = place === `#/skills/${part(this.chosen ?? "")}` && (new URLSearchParams(query).get("file") ?? null) === this.file;
      if (here) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }

  async loadBudget() {
    try {
      this.rooms = (await get("/budgets")).items;
    } catch (error) {
      this.rooms = this.rooms ?? [];
      return;
    }
    if (!this.rooms.some((room) => room.agent === this.agent)) this.agent = this.rooms[0]?.agent;
    this.drawBudget();
    if (!this.chosen) this.showDetail();
  }

  drawBudget() {
    const room = this.rooms.find((one) => one.agent === this.agent);
    if (!room) return;
    const had = this.budget.contains(document.activeElement);
    const choose = h("select", { class: "quiet-select", "aria-label": "Agent whose room is shown", onchange: () => this.chooseAgent(choose.value) }, this.rooms.map((one) => h("option", { value: one.agent }, one.client)));
    choose.value = this.agent;
    const parts = roomParts(room);
    replace(this.budget, h("div", { class: "spread" }, choose, h("span", { class: "faint num" }, `${number(room.chars_used)} of ${number(room.chars_max)} chars`)), bar(parts, { label: `What ${room.client} lists`, thin: true }), legend(parts.filter(([, value], at) => value || at === 0)));
    if (had) choose.focus();
  }

  chooseAgent(agent) {
    this.agent = agent;
    try {
      localStorage.setItem(AGENT, agent);
    } catch {
      // Then it lasts as long as the page.
    }
    this.drawBudget();
    this.showDetail();
  }

  async showDetail() {
    this.showing?.abort();
    const showing = (this.showing = new AbortController());
    if (!this.chosen) return this.overview(showing.signal);
    await detail(this.detail, { name: this.chosen, file: this.file, back: this.address(null), agent: this.agent, rooms: () => this.ready.then(() => this.rooms) }, showing.signal);
  }

  async overview(signal) {
    if (!this.rooms) return;
    let found;
    let about;
    try {
      [found, about] = await Promise.all([get("/diagnostics", { limit: 20 }, signal), get("/status", {}, signal)]);
    } catch (error) {
      if (error.name !== "AbortError") replace(this.detail, failure(error, () => this.showDetail()));
      return;
    }
    this.detail.shown = null;
    const sums = about.skills;
    replace(this.detail, h("div", { class: "stack overview" },
      h("div", { class: "stats" },
        stat(sums.skills, "skills in use"), stat(sums.agents, sums.agents === 1 ? "agent" : "agents"), stat(sums.shadowed, "shadowed"), stat(sums.broken, "broken"), stat(about.untrusted, "not trusted")),
      h("section", { class: "card" },
        h("div", { class: "card-head" }, h("h2", {}, "What agents would list"), h("span", { class: "hint" }, "An agent has so much room for its list of skills, and cuts what does not fit.")),
        h("div", { class: "card-pad stack" }, this.rooms.map((room) => {
          const parts = roomParts(room);
          return h("div", { class: "stack-small" },
            h("div", { class: "spread" }, h("h3", {}, room.client), h("span", { class: "faint num" }, `needs ${number(room.chars_needed)} of ${number(room.chars_max)} characters`)),
            bar(parts, { label: `What ${room.client} lists` }), legend(parts.filter(([, value]) => value)));
        }))),
      h("section", {},
        h("div", { class: "section-title" }, h("h2", {}, "Findings"), h("span", { class: "count" }, count(found.total ?? found.items.length, "finding"))),
        found.items.length ? h("div", { class: "stack-small" }, found.items.map((one) => finding(one, { link: true })), found.next && h("p", { class: "list-note" }, `The first ${found.items.length} are shown. `, h("a", { href: "#/skills?state=findings" }, "List all findings"))) : h("p", { class: "hint" }, "Nothing is wrong with any skill.")),
      h("section", {},
        h("div", { class: "section-title" }, h("h2", {}, "Where skills come from"), h("span", { class: "count" }, `profile ${about.profile}`)),
        h("div", { class: "card table-wrap" }, h("table", {}, h("tbody", {}, about.roots.filter((root) => root.found > 0 || root.scope === "project").map((root) => h("tr", {}, h("td", {}, h("span", { class: "path" }, root.path)), h("td", {}, root.scope), h("td", { class: "num" }, root.found ? count(root.found, "file") : words(root.state))))))))));
  }
}

const roomParts = (room) => [["whole", room.whole, "c3"], ["shortened", room.shortened, "c1"], ["by name only", room.names_only, "c2"], ["hidden", room.hidden, "cbad"]];

const stat = (value, text) => h("div", { class: "stat" }, h("b", {}, number(value)), h("span", {}, text));
