// One skill: what it says, what it needs, whether it is trusted, what is wrong with it, and what agents show of it.

import { get, part } from "./api.js";
import { finding } from "./findings.js";
import { markdown } from "./md.js";
import { chip, copier, count, failure, h, icon, number, replace, segments, size, skeleton, tabs, tone, words } from "./ui.js";

/** Shows a skill in a pane; asked again with the same skill, it changes only what has changed. */
export async function detail(pane, ask, signal) {
  const id = `${ask.name} ${ask.file ?? ""}`;
  if (pane.shown !== id) {
    const waiting = setTimeout(() => signal.aborted || replace(pane, skeleton(5)), 120);
    signal.addEventListener("abort", () => clearTimeout(waiting));
    pane.waiting = waiting;
  }
  try {
    const [what, agents] = await Promise.all([ask.file ? other(ask, signal) : get(`/skills/${part(ask.name)}`, {}, signal), inLists(ask, signal)]);
    clearTimeout(pane.waiting);
    if (signal.aborted) return;
    const sign = JSON.stringify([what, agents]);
    if (pane.shown === id && pane.sign === sign) return;
    const [scroll, tab] = pane.shown === id ? [pane.scrollTop, pane.tabs?.current()] : [0, undefined];
    Object.assign(pane, { shown: id, sign });
    const body = ask.file ? otherBody(what, ask) : wholeBody(what, agents, ask, tab, pane);
    replace(pane, h("a", { class: "back-link narrow-only", href: ask.back }, icon("back"), "All skills"), body);
    pane.scrollTop = scroll;
  } catch (error) {
    clearTimeout(pane.waiting);
    if (error.name === "AbortError") return;
    pane.shown = null;
    replace(pane, h("a", { class: "back-link narrow-only", href: ask.back }, icon("back"), "All skills"), failure(error));
  }
}

/** How each agent lists the skill. */
async function inLists(ask, signal) {
  if (ask.file) return [];
  const rooms = await ask.rooms();
  const lists = await Promise.all(rooms.map((room) => get(`/budgets/${part(room.agent)}/skills`, { limit: 500 }, signal).catch(() => ({ items: [] }))));
  return rooms.map((room, at) => ({ client: room.client, agent: room.agent, ...(lists[at].items.find((one) => one.name === ask.name) ?? {}) })).filter((one) => one.shown);
}

/** A file that is not in use: what is known of it without the record. */
async function other(ask, signal) {
  const [rows, found] = await Promise.all([get("/skills", { q: ask.name, limit: 500 }, signal), get("/diagnostics", { q: ask.file, limit: 100 }, signal)]);
  return { row: rows.items.find((row) => row.path === ask.file) ?? null, found: found.items.filter((one) => one.path === ask.file) };
}

function otherBody({ row, found }, ask) {
  const state = row?.state ?? "broken";
  return h("div", { class: "stack" },
    h("header", { class: "stack-small" },
      h("h1", {}, ask.name),
      h("div", { class: "row" }, chip(state, tone(state)), row && chip(row.scope, "line")),
      h("p", { class: "soft" }, row?.description ?? (state === "broken" ? "This file could not be loaded, so no agent is offered it." : ""))),
    row?.shadowed_by && h("p", { class: "card card-pad" }, "Another skill of this name stands before it: ", h("a", { href: `#/skills/${part(ask.name)}` }, h("span", { class: "path" }, row.shadowed_by))),
    h("dl", { class: "facts" }, fact("File", h("span", { class: "path" }, row?.path_short ?? ask.file)), row?.trust && fact("Trust", row.trust)),
    h("section", { class: "stack-small" }, h("h2", {}, found.length ? "What is wrong" : "No findings"),
      found.map((one) => finding(one)),
      !found.length && row?.reason && finding(row.reason)));
}

function wholeBody(what, agents, ask, tab, pane) {
  const skill = what.skill;
  const files = skill.resources ?? [];
  pane.tabs = tabs("Parts of the skill", [
    ["body", "Instructions", () => instructions(what)],
    ["front", "Frontmatter", () => frontmatter(what)],
    ["files", files.length ? `Files ${files.length}` : "Files", () => resources(skill, files, what.left_out)],
    ["facts", "Details", () => facts(what)],
  ], tab);
  const wrong = what.diagnostics.filter((one) => one.severity !== "info");
  const notes = what.diagnostics.filter((one) => one.severity === "info");
  return h("div", { class: "stack" },
    h("header", { class: "stack-small" },
      h("div", { class: "spread" }, h("h1", { class: "skill-name" }, skill.id),
        h("div", { class: "row" }, h("a", { class: "button", href: `#/play?skill=${part(skill.id)}` }, icon("play", 15), "Try it"), copier(`rep read ${skill.id}`, "Copy command"))),
      h("div", { class: "row" },
        chip(skill.scope, "line"), skill.plugin && chip(`plugin ${skill.plugin.name ?? skill.plugin}`, "line"),
        chip(skill.trust, tone(skill.trust), skill.trust === "trusted" ? "It may be given capabilities." : "It can be read, and gets no capability."),
        skill.kind && skill.kind !== "custom" && chip(skill.kind), skill.version && chip(`v${skill.version}`), skill.dialect !== "agent-skills" && chip(words(skill.dialect)),
        what.has_workflow && h("a", { class: "chip accent", href: `#/workflows/${part(skill.id)}` }, "workflow"),
        skill.claude.disable_model_invocation && chip("only when named", "warn")),
      h("p", { class: "lead" }, skill.description)),
    agents.length > 0 && h("div", { class: "in-lists" }, agents.map((one) => listed(one))),
    skill.trust !== "trusted" && h("p", { class: "note warn" }, icon("lock", 15), h("span", {}, "Not trusted: it is matched and read, and gets no tools, hooks or commands. ", h("code", {}, `rep trust ${skill.id}`), " says that you have read it.")),
    wrong.length > 0 && h("section", { class: "stack-small" }, h("h2", {}, count(wrong.length, "finding")), wrong.map((one) => finding(one))),
    what.stands_before.length > 0 && h("section", { class: "stack-small" }, h("h2", {}, "Stands before"),
      h("ul", { class: "plain" }, what.stands_before.map((twin) => h("li", {}, h("a", { href: `#/skills/${part(twin.name)}?file=${part(twin.path)}` }, h("span", { class: "path" }, twin.path)), " ", chip(twin.scope, "line"))))),
    pane.tabs.element,
    notes.length > 0 && h("details", { class: "more" }, h("summary", {}, count(notes.length, "note")), h("div", { class: "stack-small" }, notes.map((one) => finding(one)))));
}

const SHOWN = { whole: ["whole", "ok"], shortened: ["shortened", "warn"], "name-only": ["name only", "warn"], hidden: ["hidden", "bad"] };

function listed(one) {
  const [word, look] = SHOWN[one.shown] ?? [one.shown, ""];
  const title = one.shown === "shortened" ? `${number(one.chars_shown)} of ${number(one.chars)} characters` : `${number(one.chars)} characters`;
  return h("span", { class: "row", title }, h("span", { class: "faint" }, one.client), chip(word, look));
}

function instructions(what) {
  const place = h("div", {});
  const show = (how) => replace(place, how === "source" ? h("pre", { class: "code" }, what.body) : markdown(what.body));
  show("read");
  return h("div", { class: "stack-small" },
    h("div", { class: "spread" }, segments("How to show it", [["read", "Text"], ["source", "Source"]], "read", show), h("span", { class: "row faint" }, `about ${number(what.body_tokens)} tokens`, copier(what.body))),
    what.body.trim() ? place : h("p", { class: "hint" }, "There are no instructions: the file ends with its frontmatter."));
}

function frontmatter(what) {
  const lines = what.frontmatter.replace(/\n$/, "").split("\n");
  const from = Math.min(...Object.values(what.skill.fields).map((place) => place.line), 2);
  const bad = new Map(what.diagnostics.filter((one) => one.line).map((one) => [one.line, one]));
  return h("div", { class: "source" }, lines.map((line, at) => {
    const found = bad.get(at + from);
    const look = found ? ` marked${found.severity === "error" ? " bad" : ""}` : "";
    return h("div", { class: `source-line${look}`, title: found?.message }, h("span", {}, at + from), h("span", {}, line || " "));
  }));
}

function resources(skill, files, leftOut) {
  if (!files.length && !leftOut.length) return h("p", { class: "hint" }, "There are no files beside it.");
  return h("div", { class: "stack-small" },
    h("ul", { class: "plain files" }, files.map((file) => {
      const text = h("div", {});
      const open = async () => {
        if (text.childElementCount) return;
        try {
          const got = await get(`/skills/${part(skill.id)}/file`, { path: file.path });
          replace(text, got.encoding === "base64" ? h("p", { class: "hint" }, "This file is not text.") : h("pre", { class: "code tall" }, got.content),
            got.next && h("p", { class: "hint" }, `This is the first part: ${size(got.next)} of ${size(got.bytes)}.`));
        } catch (error) {
          replace(text, failure(error));
        }
      };
      return h("li", {}, h("details", { ontoggle: (event) => event.target.open && open() }, h("summary", {}, icon("file", 15), h("span", { class: "path" }, file.path), h("span", { class: "faint" }, `${file.group} · ${size(file.bytes)}`)), text));
    })),
    leftOut.map((one) => finding(one)));
}

const fact = (name, ...value) => [h("dt", {}, name), h("dd", {}, ...value)];
const list = (name, values) => values?.length > 0 && fact(name, h("span", { class: "row" }, values.map((one) => chip(one))));

function facts(what) {
  const skill = what.skill;
  const triggers = skill.triggers ?? {};
  const needState = { met: "ok", missing: "bad", "other-version": "warn" };
  return h("dl", { class: "facts" },
    fact("File", h("span", { class: "path", title: skill.path }, what.path_short)),
    fact("Digest", h("code", {}, skill.digest)),
    fact("Dialect", words(skill.dialect)),
    skill.original_name !== skill.id && fact("Name as written", skill.original_name),
    skill.author && fact("Author", skill.author),
    skill.license && fact("Licence", skill.license),
    skill.compatibility && fact("Works with", skill.compatibility),
    list("Tags", skill.tags),
    Object.entries(triggers).map(([key, value]) => Array.isArray(value) && value.length > 0 && list(`Triggers: ${words(key)}`, value.map((one) => (typeof one === "string" ? one : JSON.stringify(one))))),
    list("Tools it may use", skill.tools.allowed), list("Tools it needs", skill.tools.required), list("Tools it must not use", skill.tools.disallowed), list("Can", skill.capabilities),
    what.needs.length > 0 && fact("Needs", h("span", { class: "row" }, what.needs.map((need) => [h("a", { href: `#/skills/${part(need.by ?? need.name)}` }, need.name), need.requirement && h("code", {}, need.requirement), chip(words(need.state), needState[need.state])]))),
    what.needed_by.length > 0 && fact("Needed by", h("span", { class: "row" }, what.needed_by.map((name) => h("a", { href: `#/skills/${part(name)}` }, name)))),
    skill.claude.when_to_use && fact("When to use", skill.claude.when_to_use),
    skill.claude.argument_hint && fact("Arguments", h("code", {}, skill.claude.argument_hint)),
    skill.claude.model && fact("Model", skill.claude.model),
    Object.keys(skill.unknown_fields ?? {}).length > 0 && fact("Other fields", h("pre", { class: "code" }, JSON.stringify(skill.unknown_fields, null, 2))),
    skill.metadata && fact("Metadata", h("pre", { class: "code" }, JSON.stringify(skill.metadata, null, 2))));
}
