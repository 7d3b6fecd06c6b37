// Events of runs as sentences.

import { dollars, span, words } from "./ui.js";

const task = (one) => (one ? `“${one.label}”` : "");
const because = (reason) => (reason ? `: ${words(reason)}` : "");
const step = (event) => `Step ${event.step}`;
const cost = (spent) => (spent?.cost_micro_usd ? `, ${dollars(spent.cost_micro_usd / 1e6, spent.unpriced)}` : "");
const took = (spent) => (spent?.time_ms ? ` after ${span(spent.time_ms)}` : "");
const OUTCOMES = { ok: ["ended well", "ok"], failed: ["failed", "bad"], sent_back: ["was sent back", "warn"], stopped: ["was stopped", "warn"] };

/** An event of a kind of runs: its name, and those of its fields that are short. */
function ofKind(name, data) {
  const fields = Object.entries(data ?? {}).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value) && String(value).length <= 80);
  const text = words(name);
  return text.charAt(0).toUpperCase() + text.slice(1) + (fields.length ? `: ${fields.map(([key, value]) => `${words(key)} ${value}`).join(", ")}` : "");
}

const SENTENCES = {
  RUN_CREATED: (e) => [`Created: ${e.name}`, ""],
  LEASE_TAKEN: (e) => [`Taken by ${e.worker}`, ""],
  LEASE_RELEASED: (e) => [`Given back by ${e.worker}${because(e.reason)}`, ""],
  LEASE_EXPIRED: (e) => [`${e.worker} was not heard of in time; back in the queue`, "warn"],
  RUN_STARTED: (e) => [`Begun by ${e.worker}`, "live"],
  STEP_STARTED: (e) => [`${step(e)}: ${words(e.kind)} ${task(e.task)}${e.attempt > 1 ? `, attempt ${e.attempt}` : ""}`, "live"],
  STEP_FINISHED: (e) => [`${step(e)} ${OUTCOMES[e.outcome]?.[0] ?? e.outcome}${took(e.spent)}${cost(e.spent)}${because(e.reason)}`, OUTCOMES[e.outcome]?.[1] ?? ""],
  STEP_INTERRUPTED: (e) => [`${step(e)} did not end: its worker is gone`, "warn"],
  WATCHDOG_SIGNAL: (e) => [`Going round in circles (${words(e.signal)}): ${e.evidence}`, "warn"],
  WATCHDOG_REWRITE: (e) => [`The next prompt begins with other words (${words(e.signal)})`, "warn"],
  RUN_COMPLETED: (e) => [`Completed: ${e.summary}`, "ok"],
  RUN_FAILED: (e) => [`Failed${because(e.reason)}`, "bad"],
  RUN_WAITING: (e) => [`Waits for a person${because(e.reason)}`, "warn"],
  RUN_DEFERRED: (e) => [`Goes on at ${new Date(e.until_ms).toLocaleTimeString()}${because(e.reason)}`, "warn"],
  PAUSE_REQUESTED: (e) => [`${e.by} asks for a pause after this step`, "warn"],
  RUN_PAUSED: (e) => [`Paused${because(e.reason)}`, "warn"],
  RUN_RESUMED: (e) => [`Resumed by ${e.by}`, "live"],
  RUN_RETRIED: (e) => [`${e.by} has failed tasks tried again`, "live"],
  CANCEL_REQUESTED: (e) => [`${e.by} asks for it to end`, "warn"],
  RUN_CANCELLED: (e) => [`Cancelled${because(e.reason)}`, "bad"],
  STEERED: (e) => [`${e.by} says for the next prompt: “${e.note}”`, "accent"],
  WORKTREE_PROVIDER_SELECTED: (e) => [`Worktrees are made by ${e.provider}`, ""],
  WORKTREE_CREATED: (e) => [`Works on ${e.branch}, from ${e.base_branch}`, ""],
  WORKTREE_REMOVED: () => ["The worktree is gone", ""],
  DELIVERED: (e) => [`Delivered (${e.strategy}) to ${e.branch}`, "ok"],
  POSTMORTEM_START: (e) => [`A report is being put together${because(e.reason)}`, ""],
  POSTMORTEM_END: (e) => [`The report is ${e.status === "ok" ? "there" : e.status}`, ""],
  SKILLS_DISCOVERED: (e) => [`${e.count} skills found`, ""],
  SKILLS_SELECTED: (e) => [e.skills.length ? `Skills: ${e.skills.map((one) => one.name).join(", ")}` : "No skill was chosen", ""],
  SKILLS_LOAD_FAILED: (e) => [`${e.name} could not be loaded${because(e.error)}`, "bad"],
  SKILLS_TRUNCATED: (e) => [`${e.name} was cut to ${e.max_chars} characters`, "warn"],
  PLAN_READ: (e) => [`Plan read: ${e.tasks.length} tasks`, ""],
  PLAN_FALLBACK: (e) => [`The tasks of the plan cannot be told, so the agent chooses${because(e.reason)}`, "warn"],
  PLAN_RESTORED: (e) => [`The plan was put right${because(e.reason)}`, "warn"],
  TASK_MARKED: (e) => [`${task(e.task)} is ${words(e.mark)}${because(e.reason)}`, { failed: "bad", reviewed: "ok", implemented: "ok" }[e.mark] ?? ""],
  LEARNED: (e) => [`Learnt: ${e.note}`, "accent"],
  KIND_EVENT: (e) => [ofKind(e.name, e.data), ""],
  NOTE: (e) => [`${words(e.name)}`, ""],
};

/** An event in words, and its colour. */
export function sentence(event) {
  const known = SENTENCES[event.type];
  try {
    const [text, tone] = known ? known(event) : [words(event.type?.toLowerCase()), ""];
    return { text, tone };
  } catch {
    return { text: words(event.type?.toLowerCase()), tone: "" };
  }
}
