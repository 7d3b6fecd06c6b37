// Events: everything that happens, as it happens. It can be filtered, and held still while somebody reads.

import { get, lastEvents, stream } from "./api.js";
import { sentence } from "./eventwords.js";
import { append, clock, command, count, debounce, empty, failure, h, icon, replace, skeleton, words } from "./ui.js";

const KEPT_MAX = 1000;
const SHOWN_MAX = 300;

export function mount(root) {
  return new Events(root);
}

class Events {
  constructor(root) {
    this.events = [];
    this.held = null;
    this.filter = "";
    this.names = new Map();
    this.search = h("input", { type: "search", placeholder: "Filter by words, type or run", "aria-label": "Filter events", "data-search": "", autocomplete: "off", spellcheck: "false" });
    this.instead = h("div", {}, skeleton(6));
    this.search.addEventListener("input", debounce(() => {
      this.filter = this.search.value.trim().toLowerCase();
      this.draw();
    }, 80));
    this.hold = h("button", { type: "button", class: "button", "aria-pressed": "false", onclick: () => this.toggle() });
    this.list = h("ol", { class: "event-list live-list", "aria-label": "Events", tabindex: "0", hidden: true });
    this.note = h("p", { class: "list-note", role: "status" });
    append(root,
      h("div", { class: "view-head" }, h("div", { class: "view-head-text" }, h("h1", {}, "Events"), h("p", {}, "Everything that happens to runs and skills, the newest first.")), h("div", { class: "buttons" }, this.hold)),
      h("div", { class: "stack-small" }, h("label", { class: "search" }, icon("search"), this.search, h("kbd", { "aria-hidden": "true" }, "/")), this.note, h("div", { class: "card card-pad" }, this.list, this.instead)));
    this.label();
    this.unlisten = stream.listen((event) => this.hear(event));
    this.load();
  }

  update() {}

  destroy() {
    this.unlisten();
    this.gone = true;
  }

  /** What happened before the page was opened: the last events of the latest runs. */
  async load() {
    try {
      const runs = (await get("/runs", { limit: 8 })).items;
      const lists = await Promise.all(runs.map((run) => lastEvents(run.id, 200).then((last) => last.items, () => [])));
      for (const run of runs) this.names.set(run.id, run.name);
      const known = new Set(this.events.map(identity));
      const before = lists.flat().filter((event) => !known.has(identity(event)));
      this.events = [...this.events, ...before].sort((a, b) => b.at_ms - a.at_ms || (b.seq ?? 0) - (a.seq ?? 0)).slice(0, KEPT_MAX);
      if (!this.gone) this.draw();
    } catch (error) {
      if (!this.gone) this.say(failure(error, () => this.load()));
    }
  }

  hear(event) {
    let one = null;
    if (event.kind === "run") one = event.data;
    else if (event.kind === "skills") one = { type: "SKILLS_RELOADED", at_ms: Date.now(), ...event.data };
    if (!one) return;
    if (one.type === "RUN_CREATED") this.names.set(one.run, one.name);
    const place = this.held ?? this.events;
    place.unshift(one);
    place.length = Math.min(place.length, KEPT_MAX);
    if (this.held) {
      this.missed += 1;
      return this.label();
    }
    this.redraw ??= requestAnimationFrame(() => {
      this.redraw = null;
      if (!this.gone) this.draw();
    });
  }

  toggle() {
    if (this.held) {
      this.events = [...this.held, ...this.events].slice(0, KEPT_MAX);
      this.held = null;
      this.draw();
    } else {
      this.held = [];
      this.missed = 0;
    }
    this.label();
  }

  label() {
    this.hold.setAttribute("aria-pressed", String(Boolean(this.held)));
    const waiting = this.held?.length ? ` (${this.missed} new)` : "";
    replace(this.hold, icon(this.held ? "go" : "pause", 15), h("span", {}, this.held ? `Go on${waiting}` : "Hold still"));
  }

  draw() {
    const wanted = this.filter ? this.events.filter((event) => this.matches(event)) : this.events;
    const cut = wanted.length > SHOWN_MAX ? `; the newest ${SHOWN_MAX} are shown` : "";
    this.note.textContent = this.filter ? `${count(wanted.length, "event")} of ${this.events.length}${cut}` : cut && `${count(wanted.length, "event")}${cut}`;
    if (!this.events.length) return this.say(empty("Nothing has happened yet", "Events appear here by themselves. A change of a skill is one; so is each step of a run.", command("rep plan run")));
    if (!wanted.length) return this.say(empty("No event fits", `Nothing that was kept has “${this.filter}” in it.`));
    this.say(null);
    replace(this.list, wanted.slice(0, SHOWN_MAX).map((event) => this.row(event)));
  }

  /** Says something in place of the list; a list has nothing but events in it. */
  say(what) {
    this.list.hidden = Boolean(what);
    if (what) replace(this.list);
    replace(this.instead, what);
  }

  matches(event) {
    const text = `${event.type} ${words(event.type)} ${sentence(event).text} ${this.names.get(event.run) ?? ""} ${event.run ?? ""}`.toLowerCase();
    return this.filter.split(/\s+/).every((word) => text.includes(word));
  }

  row(event) {
    const said = event.type === "SKILLS_RELOADED" ? { text: "The skills were read again", tone: "accent" } : sentence(event);
    return h("li", {},
      h("span", { class: "faint num" }, clock(event.at_ms)),
      h("span", { class: `event-type ${said.tone}` }, words(event.type.toLowerCase())),
      h("span", { class: "event-text" }, said.text, event.run && [" ", h("a", { class: "event-run", href: `#/runs/${event.run}` }, this.names.get(event.run) ?? event.run.slice(-8))]));
  }
}

const identity = (event) => `${event.run}:${event.seq}`;
