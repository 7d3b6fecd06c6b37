// The parts that every view is made of. Text of skills, models and diffs is hostile: it becomes text nodes, never markup.

import { INVISIBLE } from "./invisible.js";

const SVG = "http://www.w3.org/2000/svg";

/** Text with invisible characters shown by number, as ⟨U+E0041⟩. */
export function visible(text) {
  return text.replace(INVISIBLE, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** An element. Props that are functions listen (`onclick`), `data` is the dataset, `vars` are custom CSS properties. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** An element of a picture. */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) set(element, name, value);
  append(element, children);
  return element;
}

function set(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (typeof value === "function" && name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "data") Object.assign(element.dataset, value);
  else if (name === "vars") for (const [key, one] of Object.entries(value)) element.style.setProperty(`--${key}`, one);
  else if (name === "value" || name === "checked" || name === "disabled" || name === "indeterminate") element[name] = value;
  else if (name === "href" || name === "src") setAddress(element, name, String(value));
  else element.setAttribute(name === "className" ? "class" : name, value === true ? "" : String(value));
}

/** Addresses lead within the page only, so that no text can bring its own. */
function setAddress(element, name, value) {
  const ours = value.startsWith("#") || (value.startsWith("/") && !value.startsWith("//"));
  const picture = name === "src" && value.startsWith("data:image/svg+xml,");
  if (ours || picture) element.setAttribute(name, value);
}

/** Adds children: nodes, text, lists of them; nothing for null, undefined and false. */
export function append(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === true) continue;
    element.append(child instanceof Node ? child : document.createTextNode(visible(String(child))));
  }
  return element;
}

/** Puts other children in place of those that are there. */
export function replace(element, ...children) {
  element.replaceChildren();
  return append(element, ...children);
}

/**
 * Shows a list, keeping rows that have not changed: scroll position, focus and selection stay where they are.
 * `render(item)` makes a row; rows are told apart by `key(item)`.
 */
export function keyed(container, items, key, render, mark = JSON.stringify) {
  const before = new Map();
  for (const row of container.children) if (row.dataset.key !== undefined) before.set(row.dataset.key, row);
  const focused = container.contains(document.activeElement) ? document.activeElement.closest("[data-key]")?.dataset.key : null;
  let at = container.firstElementChild;
  for (const item of items) {
    const id = String(key(item));
    const sign = mark(item);
    let row = before.get(id);
    before.delete(id);
    if (!row || row.sign !== sign) {
      const made = render(item);
      const fresh = container.tagName === "UL" ? h("li", {}, made) : made;
      fresh.dataset.key = id;
      fresh.sign = sign;
      if (row) {
        if (at === row) at = fresh;
        row.replaceWith(fresh);
      }
      row = fresh;
    }
    if (row === at) at = at.nextElementSibling;
    else container.insertBefore(row, at);
  }
  while (at) {
    const next = at.nextElementSibling;
    at.remove();
    at = next;
  }
  if (focused && !container.contains(document.activeElement)) {
    const row = [...container.children].find((one) => one.dataset.key === focused);
    focusable(row)?.focus({ preventScroll: true });
  }
}

function focusable(row) {
  if (!row) return null;
  return row.matches("a, button, [tabindex]") ? row : row.querySelector("a, button, [tabindex]");
}

/** Arrow keys, Home and End move among the rows of a list. */
export function arrows(container, selector = "a, button") {
  container.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const rows = [...container.querySelectorAll(selector)].filter((row) => row.offsetParent !== null);
    const at = rows.indexOf(document.activeElement.closest(selector));
    if (at < 0) return;
    event.preventDefault();
    rows[Math.max(0, Math.min(rows.length - 1, at + step))]?.focus();
  });
  return container;
}

/** Whether keys belong to a field at the moment. */
export function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}

const ICONS = {
  play: "M5 4.5h14v11H9.5L5 19.5zM9 8.5h6M9 11.5h4",
  sun: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4",
  moon: "M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z",
  keys: "M3.5 6.5h17v11h-17zM7 10h.01M10.3 10h.01M13.6 10h.01M17 10h.01M8 14h8",
  search: "M10.5 4.5a6 6 0 1 1 0 12 6 6 0 0 1 0-12zM15 15l5 5",
  back: "M14.5 5.5 8 12l6.5 6.5",
  lock: "M6 10.5h12V20H6zM8.5 10.5V8a3.5 3.5 0 0 1 7 0v2.5",
  copy: "M8.5 8.5H20V20H8.5zM15.5 8.5V4H4v11.5h4.5",
  ok: "M5 12.5l4.5 4.5L19 7.5",
  no: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  warn: "M12 4 2.8 19.5h18.4zM12 10v4.5M12 17h.01",
  info: "M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17zM12 11v5M12 8h.01",
  pause: "M8.5 5.5v13M15.5 5.5v13",
  go: "M7.5 5v14l11-7z",
  stop: "M6.5 6.5h11v11h-11z",
  again: "M19 12a7 7 0 1 1-2.1-5M19 4v4.5h-4.5",
  steer: "M4 12h10M10.5 7l5 5-5 5M20 5v14",
  merge: "M7 4v16M7 8c0 5 10 3 10 8M17 16v4M4.5 6.5 7 4l2.5 2.5",
  file: "M6 3.5h8l4 4V20.5H6zM14 3.5v4h4",
  clock: "M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17zM12 7.5V12l3 2",
};

/** A small picture of our own, by its name or as a path of 24 by 24. It says nothing that the words beside it do not say. */
export function icon(name, size = 16) {
  return s("svg", { viewBox: "0 0 24 24", width: size, height: size, class: "icon", "aria-hidden": "true" }, s("path", { d: ICONS[name] ?? (name.startsWith("M") ? name : ICONS.info) }));
}

/** A small word on coloured ground. */
export function chip(text, tone = "", title = undefined) {
  return h("span", { class: `chip ${tone}`.trim(), title }, text);
}

const TONES = {
  error: "bad", failed: "bad", fail: "bad", critical: "bad", aborted: "bad", broken: "bad", FAIL: "bad", MUST: "bad",
  warning: "warn", waiting: "warn", important: "warn", major: "warn", blocked: "warn", sent_back: "warn", shadowed: "warn", untrusted: "warn", changed: "warn", SHOULD: "warn", interrupted: "warn", high: "warn",
  completed: "ok", ok: "ok", done: "ok", pass: "ok", PASS: "ok", reviewed: "ok", trusted: "ok", implemented: "ok",
  running: "live", active: "live",
};

/** The colour of a status or a severity. */
export const tone = (word) => TONES[word] ?? "";

/** The word for a status, in its colour. */
export function status(word) {
  return h("span", { class: `status ${tone(word)}`, data: { status: word } }, h("span", { class: "status-dot" }), words(word));
}

/** `sent_back` as people write it. */
export const words = (text) => String(text ?? "").replaceAll("_", " ");

/** A button that does something once at a time, and says what went wrong. */
export function action(label, run, { tone = "", icon: picture, title, key } = {}) {
  const button = h("button", { type: "button", class: `button ${tone}`.trim(), title, "aria-keyshortcuts": key }, picture && icon(picture, 15), h("span", {}, label));
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-busy") === "true") return;
    button.setAttribute("aria-busy", "true");
    try {
      await run(button);
    } catch (error) {
      toast(error.detail ?? error.message ?? String(error), "bad", error.hint);
    } finally {
      button.removeAttribute("aria-busy");
    }
  });
  return button;
}

/** Copies a text, and says so. */
export function copier(text, label = "Copy") {
  return action(label, async () => {
    await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
    toast("Copied");
  }, { icon: "copy", tone: "quiet" });
}

/** A short note at the edge, gone after a while. */
export function toast(text, tone = "", hint = undefined) {
  const place = document.getElementById("toasts");
  const note = h("div", { class: `toast ${tone}` }, h("p", {}, text), hint && h("p", { class: "hint" }, hint));
  place.append(note);
  while (place.children.length > 3) place.firstElementChild.remove();
  setTimeout(() => note.remove(), tone === "bad" ? 9000 : 3000);
}

/** Nothing is there: why, and what to do next. */
export function empty(title, about, ...more) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), about && h("p", {}, about), ...more);
}

/** A command that people can copy. */
export function command(text) {
  return h("p", { class: "command" }, h("code", {}, text), copier(text));
}

/** Something went wrong: what, and what to do. */
export function failure(error, retry) {
  return h("div", { class: "failure", role: "alert" },
    h("p", { class: "failure-title" }, icon("warn"), error.title ?? "That did not work"),
    h("p", {}, error.detail ?? error.message ?? String(error)),
    error.hint && h("p", { class: "hint" }, error.hint),
    retry && action("Try again", retry, { icon: "again" }));
}

/** Grey bars of about the size of what comes. */
export function skeleton(rows = 6) {
  return h("div", { class: "skeleton", "aria-busy": "true", "aria-label": "Loading" }, Array.from({ length: rows }, (_, at) =>
    h("div", { class: "skeleton-row" }, h("span", { vars: { w: `${30 + ((at * 37) % 40)}%` } }), h("span", { vars: { w: `${60 + ((at * 23) % 35)}%` } }))));
}

/** What is under a list that is longer than what is shown of it: how much that is, and the way to more. */
export function more({ items, more: isLonger, total }, show) {
  if (!isLonger) return null;
  return [h("span", {}, `${total ? `${number(items.length)} of ${number(total)}` : `The latest ${number(items.length)}`} shown. `), h("button", { type: "button", class: "button", onclick: show }, "Show more")];
}

/** One of several, as buttons beside each other. */
export function segments(label, options, current, choose) {
  const group = h("div", { class: "segments", role: "group", "aria-label": label });
  const show = (value) => {
    for (const button of group.children) button.setAttribute("aria-pressed", String(button.dataset.value === value));
  };
  for (const [value, text] of options) {
    group.append(h("button", { type: "button", data: { value }, onclick: () => { show(value); choose(value); } }, text, h("span", { class: "count", data: { count: value } })));
  }
  show(current);
  group.show = show;
  group.count = (value, number) => {
    const place = group.querySelector(`[data-count="${value}"]`);
    if (place) place.textContent = number === undefined ? "" : String(number);
  };
  return group;
}

/** Tabs with panels that are made when they are first looked at. */
export function tabs(label, entries, start) {
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": label });
  const panel = h("div", { class: "tab-panel", role: "tabpanel", tabindex: "0" });
  const made = new Map();
  let shown = null;
  const open = (id) => {
    shown = id;
    for (const tab of list.children) {
      const here = tab.dataset.tab === id;
      tab.setAttribute("aria-selected", String(here));
      tab.tabIndex = here ? 0 : -1;
    }
    if (!made.has(id)) made.set(id, entries.find(([one]) => one === id)[2]());
    panel.setAttribute("aria-labelledby", `tab-${id}`);
    replace(panel, made.get(id));
  };
  for (const [id, text] of entries) {
    list.append(h("button", { type: "button", role: "tab", id: `tab-${id}`, data: { tab: id }, onclick: () => open(id) }, text));
  }
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const ids = entries.map(([id]) => id);
    const next = ids[(ids.indexOf(shown) + step + ids.length) % ids.length];
    open(next);
    list.querySelector(`[data-tab="${next}"]`).focus();
    event.preventDefault();
  });
  open(start ?? entries[0][0]);
  return { element: h("div", { class: "tabbed" }, list, panel), open, current: () => shown, forget: (id) => made.delete(id), refresh: () => open(shown) };
}

/** Waits until nothing was asked for a moment. */
export function debounce(run, wait) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...args), wait);
  };
}

/** How long ago, in a word; the exact time stands in its title. */
export function ago(ms, now = Date.now()) {
  if (!ms) return h("span", { class: "faint" }, "never");
  const date = new Date(ms);
  return h("time", { datetime: date.toISOString(), title: date.toLocaleString(), data: { ms: String(ms) } }, agoText(ms, now));
}

export function agoText(ms, now = Date.now()) {
  const seconds = Math.round((now - ms) / 1000);
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h ago`;
  const days = Math.round(seconds / 86400);
  return days < 30 ? `${days} d ago` : new Date(ms).toLocaleDateString();
}

/** The time of day. */
export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

/** A span of time, in its two largest units. */
export function span(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Dollars. */
export function dollars(usd, partial = false) {
  if (usd === null || usd === undefined) return "";
  const text = usd === 0 ? "$0" : usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
  return partial ? `≥ ${text}` : text;
}

/** A number with its thousands apart. */
export const number = (value) => Number(value ?? 0).toLocaleString("en-GB");

/** A size in bytes or characters, for people. */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1000).toFixed(bytes < 1e4 ? 1 : 0)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** `1 skill`, `2 skills`. */
export const count = (value, noun, many = `${noun}s`) => `${number(value)} ${value === 1 ? noun : many}`;

/** The end of a path, with all of it in the title. */
export function path(text, base = "") {
  const short = base && text.startsWith(`${base}/`) ? text.slice(base.length + 1) : text;
  return h("span", { class: "path", title: text }, short);
}

/** A dialog that is closed by Escape, by its button or from outside. */
export function dialog(title, body, ...buttons) {
  const box = h("dialog", { class: "dialog", "aria-label": title },
    h("form", { method: "dialog" }, h("h2", {}, title), body, h("div", { class: "dialog-buttons" }, buttons.length ? buttons : h("button", { class: "button", value: "close" }, "Close"))));
  box.addEventListener("close", () => box.remove());
  box.addEventListener("click", (event) => event.target === box && box.close());
  document.body.append(box);
  box.showModal();
  return box;
}
