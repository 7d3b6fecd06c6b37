// Talking to the daemon: a session, requests with their problems, and one stream of events that mends itself.

const BASE = "/api/v1";
const KEPT = "token";
/** The daemon says something every 15 seconds; who has heard nothing for longer than this has lost it. */
const SILENCE_MS = 45_000;
/** The daemon hands out no more items at once. */
const PAGE_MAX = 500;
const BACKOFF_MS = [300, 800, 2000, 5000, 10_000];

/** What went wrong with a request, as the daemon said it. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `The daemon answered ${status}.`);
    this.status = status;
    this.title = body.title ?? "That did not work";
    this.detail = this.message;
    this.hint = body.hint;
  }
}

let memory = null;

function kept() {
  try {
    return sessionStorage.getItem(KEPT);
  } catch {
    return memory;
  }
}

function keep(token) {
  memory = token;
  try {
    if (token) sessionStorage.setItem(KEPT, token);
    else sessionStorage.removeItem(KEPT);
  } catch {
    // Then it lasts as long as the page.
  }
}

/** Told when the token is refused. */
let onLocked = () => {};

export const session = {
  get token() {
    return kept();
  },
  forget() {
    keep(null);
  },
  whenLocked(tell) {
    onLocked = tell;
  },
  /** Exchanges a code for a session. */
  async redeem(code) {
    const { token } = await request("POST", "/session", { body: { code }, open: true });
    keep(token);
  },
  /** Takes what somebody pasted: a link with a code, a code, or a token. */
  async enter(text) {
    const pasted = text.trim();
    const code = pasted.match(/#code=([^&\s]+)/)?.[1];
    if (code) return session.redeem(meant(code));
    keep(pasted);
    try {
      await get("/status");
    } catch (error) {
      keep(null);
      if (error.status !== 401) throw error;
      return session.redeem(pasted);
    }
  },
};

async function request(method, path, { body, query, signal, open = false, as = "json" } = {}) {
  const url = new URL(BASE + path, location.origin);
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(key, value);
  }
  const headers = { Accept: as === "json" ? "application/json" : "*/*" };
  if (!open) headers.Authorization = `Bearer ${session.token ?? ""}`;
  if (method !== "GET") headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(url, { method, headers, signal, body: method === "GET" ? undefined : JSON.stringify(body ?? {}), cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { title: "The daemon does not answer", detail: "Nobody listens at this address any more.", hint: "Is `rep serve` still running? The page goes on by itself once it is." });
  }
  if (response.ok) {
    if (as === "text") return response.text();
    return response.status === 204 ? null : response.json();
  }
  const problem = new Problem(response.status, await response.json().catch(() => ({})));
  if (response.status === 401 && !open) onLocked(problem);
  throw problem;
}

/** Asks for something. */
export const get = (path, query, signal) => request("GET", path, { query, signal });
/** Asks for a text. */
export const text = (path, query, signal) => request("GET", path, { query, signal, as: "text" });
/** Asks for something to be done. */
export const post = (path, body, signal) => request("POST", path, { body, signal });

/** The items of a list, page by page up to a bound; `more` says whether there are others, and `total` how many where that is known. */
export async function all(path, query = {}, { max = 2000, signal } = {}) {
  const items = [];
  let cursor;
  let total;
  do {
    const page = await get(path, { ...query, cursor, limit: Math.min(PAGE_MAX, max - items.length) }, signal);
    items.push(...page.items);
    cursor = page.next;
    total = page.total ?? total;
  } while (cursor && items.length < max);
  return { items, more: Boolean(cursor), total };
}

/** The last events of a run, in their order, and how many there are. */
export async function lastEvents(run, most = 500, signal = undefined) {
  const path = `/runs/${part(run)}/events`;
  const first = await get(path, { limit: most }, signal);
  if (!first.next) return { items: first.items, total: first.items.length };
  const last = await get(path, { limit: most, cursor: first.total - most }, signal);
  return { items: last.items, total: last.total ?? first.total };
}

/** A part of an address as it was meant; one that is no such thing means itself. */
export function meant(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A part of an address. */
export const part = (text) => encodeURIComponent(text);

/** The stream of events, for everybody on the page. */
class Stream {
  #listeners = new Set();
  #watchers = new Set();
  #cursor = null;
  #tries = 0;
  #abort = null;
  #timer = null;
  #stopped = true;
  state = "connecting";

  listen(hear) {
    this.#listeners.add(hear);
    return () => this.#listeners.delete(hear);
  }

  watch(tell) {
    this.#watchers.add(tell);
    tell(this.state);
    return () => this.#watchers.delete(tell);
  }

  start() {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#connect();
  }

  stop(state = "locked") {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#set(state);
  }

  #set(state) {
    if (state === this.state) return;
    this.state = state;
    for (const tell of this.#watchers) tell(state);
  }

  #say(event) {
    for (const hear of [...this.#listeners]) {
      try {
        hear(event);
      } catch (error) {
        console.error(error);
      }
    }
  }

  async #connect() {
    const abort = new AbortController();
    this.#abort = abort;
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => abort.abort(), SILENCE_MS);
    };
    try {
      heard();
      const headers = { Accept: "text/event-stream", Authorization: `Bearer ${session.token ?? ""}` };
      if (this.#cursor) headers["Last-Event-ID"] = this.#cursor;
      const response = await fetch(`${BASE}/events`, { headers, signal: abort.signal, cache: "no-store", credentials: "omit" });
      if (response.status === 401) {
        onLocked(new Problem(401, await response.json().catch(() => ({}))));
        return;
      }
      if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
      const again = this.state === "reconnecting";
      this.#tries = 0;
      this.#set("live");
      if (again) this.#say({ kind: "resync" });
      await this.#read(response.body, heard);
    } catch {
      // Whatever it was, the answer is to try again.
    } finally {
      clearTimeout(silence);
    }
    if (this.#stopped || this.#abort !== abort) return;
    this.#set("reconnecting");
    const wait = BACKOFF_MS[Math.min(this.#tries, BACKOFF_MS.length - 1)] * (0.8 + Math.random() * 0.4);
    this.#tries += 1;
    this.#timer = setTimeout(() => this.#connect(), wait);
  }

  async #read(body, heard) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      heard();
      rest += value;
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) this.#take(block);
    }
  }

  #take(block) {
    let kind = "message";
    const data = [];
    for (const line of block.split(/\r?\n/)) {
      const at = line.indexOf(":");
      if (at === 0) continue;
      const field = at < 0 ? line : line.slice(0, at);
      const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
      if (field === "event") kind = value;
      else if (field === "data") data.push(value);
      else if (field === "id") this.#cursor = value;
    }
    if (!data.length) return;
    let parsed = null;
    try {
      parsed = JSON.parse(data.join("\n"));
    } catch {
      return;
    }
    this.#say({ kind, data: parsed });
  }
}

/** Whether an event may be about a run that its own process carries out: a conversation, a workflow or a review. */
export const isAttended = (event) => event.kind === "run" && /^(KIND_EVENT|RUN_)/.test(event.data?.type ?? "");

export const stream = new Stream();
