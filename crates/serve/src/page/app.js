// The frame: which view is shown, how the daemon is, and keys that work everywhere.

import { get, meant, session, stream } from "./api.js";
import { dialog, failure, h, icon, isTyping, replace, skeleton, agoText } from "./ui.js";

/** All views, in their order. A line here is the link, its picture, the key after `g`, and the title; the rest of a view is its own file. */
const VIEWS = {
  skills: { title: "Skills", key: "s", icon: "M4 5.5h5.5v5.5H4zM13 5.5h7M13 10.5h7M4 14.5h5.5V20H4zM13 14.5h7M13 19.5h7", load: () => import("./skills.js") },
  play: { title: "Playground", key: "p", icon: "play", load: () => import("./playground.js") },
  runs: { title: "Runs", key: "r", icon: "M4 12h3l2.5-7 5 14L17 12h3", load: () => import("./runs.js") },
  workflows: { title: "Workflows", key: "w", icon: "M4 4.5h6v5H4zM14 14.5h6v5h-6zM14 4.5h6v5h-6zM10 7h4M17 9.5v5", load: () => import("./workflows.js") },
  reviews: { title: "Reviews", key: "v", icon: "M12 5c5 0 8 4.6 8.5 7-.5 2.4-3.5 7-8.5 7S4 14.4 3.5 12C4 9.6 7 5 12 5zM12 9.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5z", load: () => import("./reviews.js") },
  events: { title: "Events", key: "e", icon: "M5 6h14M5 10.5h14M5 15h9M5 19.5h6", load: () => import("./events.js") },
};
const FIRST = Object.keys(VIEWS)[0];
const LIVE = {
  connecting: "Connecting",
  live: "Connected",
  reconnecting: "Reconnecting",
  expired: "Token expired",
  locked: "Locked",
};

const main = document.getElementById("main");
let shown = null;
let turn = 0;

/** The route in the address bar: view, the parts after it, and a query. */
export function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map(meant);
  const parts = rest.filter((one) => one !== "");
  return { name: Object.hasOwn(VIEWS, name) ? name : FIRST, parts, query: new URLSearchParams(query ?? "") };
}

async function show() {
  if (!session.token) return lock();
  const to = route();
  const mine = ++turn;
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.dataset.view === to.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (shown?.name === to.name && shown.view) return shown.view.update(to);
  leave();
  const title = VIEWS[to.name].title;
  document.title = `${title} · Repertoire`;
  const root = h("div", { class: `view view-${to.name}` });
  const waiting = setTimeout(() => mine === turn && !root.isConnected && replace(main, skeleton()), 120);
  try {
    const module = await VIEWS[to.name].load();
    if (mine !== turn) return;
    replace(main, root);
    main.scrollTop = 0;
    shown = { name: to.name, view: module.mount(root, to) };
  } catch (error) {
    if (mine === turn) replace(main, failure(error, () => location.reload()));
  } finally {
    clearTimeout(waiting);
  }
}

function leave() {
  shown?.view?.destroy?.();
  shown = null;
}

async function lock(problem) {
  if (document.body.classList.contains("is-locked")) return;
  turn += 1;
  leave();
  stream.stop(problem ? "expired" : "locked");
  session.forget();
  document.body.classList.add("is-locked");
  document.title = "Locked · Repertoire";
  const { mount } = await import("./locked.js");
  mount(main, problem, unlock);
}

function unlock() {
  document.body.classList.remove("is-locked");
  begin();
}

async function begin() {
  stream.start();
  show();
  try {
    const about = await get("/status");
    const place = document.getElementById("place");
    place.textContent = about.project.split("/").pop();
    place.title = `${about.project} · Repertoire ${about.version}`;
  } catch {
    // The view says what is wrong.
  }
}

/** A code in the address is good for one session; it does not stay where somebody could see it. */
async function open() {
  const code = location.hash.match(/^#code=([^&]+)(?:&to=(.*))?$/);
  if (!code) return session.token ? begin() : lock();
  history.replaceState(null, "", code[2] ? `#${meant(code[2])}` : `#/${FIRST}`);
  try {
    await session.redeem(meant(code[1]));
    begin();
  } catch (error) {
    if (session.token) begin();
    else lock(error);
  }
}

const KEYS = [
  ["/", "Search or filter"],
  ...Object.values(VIEWS).map((view) => [`g ${view.key}`, view.title]),
  ["↑ ↓  or  j k", "Move in a list"],
  ["Enter", "Open what is focused"],
  ["Esc", "Leave the field, or go back to the list"],
  ["t", "Light or dark"],
  ["?", "These keys"],
];

function showKeys() {
  if (document.querySelector("dialog[open]")) return;
  dialog("Keys", h("dl", { class: "keys" }, KEYS.map(([key, what]) => [h("dt", {}, key.split(/ {2,}or {2,}/).map((one, at) => [at > 0 && " or ", one.split(" ").map((k) => h("kbd", {}, k))])), h("dd", {}, what)])));
}

function switchTheme() {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.dispatchEvent(new CustomEvent("choose-theme", { detail: next }));
}

let awaiting = 0;

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  const jump = event.timeStamp - awaiting < 1200 && Object.entries(VIEWS).find(([, view]) => view.key === event.key);
  awaiting = event.key === "g" ? event.timeStamp : 0;
  if (jump) location.hash = `#/${jump[0]}`;
  else if (event.key === "/") document.querySelector("main [data-search]")?.focus();
  else if (event.key === "?") showKeys();
  else if (event.key === "t") switchTheme();
  else if (event.key === "Escape") shown?.view?.back?.();
  else return;
  event.preventDefault();
}

function frame() {
  replace(document.getElementById("nav"), Object.entries(VIEWS).map(([name, view]) => h("a", { href: `#/${name}`, "aria-keyshortcuts": `g ${view.key}`, data: { view: name } }, icon(view.icon, 18), view.title)));
  const theme = h("button", { type: "button", class: "icon-button", title: "Light or dark (t)", "aria-label": "Switch between light and dark", onclick: switchTheme });
  const paint = () => replace(theme, icon(document.documentElement.dataset.theme === "dark" ? "sun" : "moon", 18));
  document.addEventListener("theme", paint);
  paint();
  const keys = h("button", { type: "button", class: "icon-button", title: "Keys (?)", "aria-label": "Show keys", onclick: showKeys }, icon("keys", 18));
  document.getElementById("foot-buttons").append(theme, keys);
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  stream.watch((state) => {
    document.getElementById("live").dataset.state = state;
    document.getElementById("live-text").textContent = LIVE[state];
  });
  addEventListener("keydown", onKey);
  addEventListener("hashchange", () => (location.hash.startsWith("#code=") ? open() : show()));
  setInterval(() => {
    for (const time of document.querySelectorAll("time[data-ms]")) time.textContent = agoText(Number(time.dataset.ms));
  }, 15_000);
  session.whenLocked(lock);
}

frame();
open();
