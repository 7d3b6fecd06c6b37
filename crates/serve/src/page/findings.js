// A finding of the checker, with the lines of the file that it is about.

import { part } from "./api.js";
import { chip, h, tone } from "./ui.js";

/** What is longer is marked by its line alone. */
const UNDERLINED_MAX = 60;

/** A finding. */
export function finding(one, { link = false } = {}) {
  const place = one.path_short ? `${one.path_short}${one.line ? `:${one.line}:${one.column}` : ""}` : null;
  return h("article", { class: "card finding" },
    h("div", { class: "card-pad stack-small" },
      h("div", { class: "row" }, chip(one.severity, tone(one.severity)), h("span", { class: "finding-message" }, one.message)),
      source(one),
      one.help && h("p", { class: "hint" }, h("b", {}, "Next: "), one.help, one.fixable && !one.help.includes("--fix") && [" ", h("code", {}, "rep lint --fix"), " does it."]),
      h("p", { class: "row faint finding-place" }, h("span", { class: "mono", title: one.name }, one.code), place && h("span", { class: "path" }, place),
        link && one.skill && h("a", { href: `#/skills/${part(one.skill)}` }, one.skill))));
}

/** The lines, with what is meant underlined. */
function source(one) {
  if (!one.lines?.length) return null;
  const bad = one.severity === "error" ? " bad" : "";
  return h("div", { class: "source" }, one.lines.map((line) =>
    h("div", { class: `source-line${line.is_marked ? ` marked${bad}` : ""}` }, h("span", {}, line.number), h("span", {}, marked(one, line)))));
}

function marked(one, line) {
  const text = [...line.text];
  if (!line.is_marked || line.number !== one.line || !one.end || one.end.line !== one.line || one.end.column <= one.column || one.end.column - one.column > UNDERLINED_MAX) return line.text || " ";
  const [from, to] = [one.column - 1, one.end.column - 1];
  return [text.slice(0, from).join(""), h("mark", {}, text.slice(from, to).join("")), text.slice(to).join("")];
}
