// A diff in its colours, file by file. It is shown in parts, so that a long one does not hold up the page.

import { chip, count, h } from "./ui.js";

const LINES_AT_ONCE = 800;

/** The files of a unified diff: `{path, added, removed, lines: [{kind, old, now, text}]}`. */
export function parse(text) {
  const files = [];
  let file = null;
  let [old, now] = [0, 0];
  for (const line of String(text ?? "").split("\n")) {
    const start = line.match(/^diff --git a\/(.*) b\/(.*)$/);
    const hunk = line.match(/^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/);
    if (start) {
      file = { path: start[2], from: start[1] === start[2] ? null : start[1], added: 0, removed: 0, lines: [] };
      files.push(file);
    } else if (hunk && file) {
      [old, now] = [Number(hunk[1]), Number(hunk[2])];
      file.inHunk = true;
      if (file.lines.length || now > 1) file.lines.push({ kind: "hunk", text: hunk[3].trim() });
    } else if (file?.inHunk && /^[ +\-\\]/.test(line)) {
      const kind = { "+": "add", "-": "del", " ": "same", "\\": "note" }[line[0]];
      file.lines.push({ kind, old: kind === "add" ? null : old, now: kind === "del" ? null : now, text: line.slice(1) });
      if (kind === "add") file.added += 1;
      if (kind === "del") file.removed += 1;
      if (kind === "same" || kind === "del") old += 1;
      if (kind === "same" || kind === "add") now += 1;
    }
  }
  return files;
}

/** One file: its head, and its lines; `below(line)` may put something under a line. */
export function fileDiff(file, { below, open = true } = {}) {
  const body = h("div", { class: "diff-lines" });
  let shown = 0;
  const more = h("button", { type: "button", class: "button quiet diff-more", onclick: () => add() });
  const add = () => {
    const part = file.lines.slice(shown, shown + LINES_AT_ONCE);
    shown += part.length;
    for (const line of part) {
      body.append(lineRow(line));
      const extra = below?.(line);
      if (extra) body.append(...extra);
    }
    const left = file.lines.length - shown;
    more.hidden = left === 0;
    more.textContent = `Show ${count(Math.min(left, LINES_AT_ONCE), "more line")} of ${left}`;
  };
  const details = h("details", { class: "diff-file card", open },
    h("summary", {}, h("span", { class: "path" }, file.from ? `${file.from} → ${file.path}` : file.path),
      h("span", { class: "diff-counts" }, file.badge, h("span", { class: "plus" }, `+${file.added}`), h("span", { class: "minus" }, `−${file.removed}`))),
    h("div", { class: "diff-scroll" }, body, more));
  if (open) add();
  else details.addEventListener("toggle", () => shown === 0 && add(), { once: true });
  return details;
}

function lineRow(line) {
  if (line.kind === "hunk") return h("div", { class: "diff-line hunk" }, h("span"), h("span"), h("span", {}, line.text || "…"));
  const sign = { add: "+", del: "−", same: " ", note: " " }[line.kind];
  return h("div", { class: `diff-line ${line.kind}` }, h("span", { class: "at" }, line.old ?? ""), h("span", { class: "at" }, line.now ?? ""),
    h("span", { class: "text" }, h("span", { class: "sign", "aria-hidden": "true" }, sign), line.text));
}

/** A whole diff. */
export function diff(text, { cut = false } = {}) {
  const files = parse(text);
  const [added, removed] = files.reduce(([plus, minus], file) => [plus + file.added, minus + file.removed], [0, 0]);
  return h("div", { class: "stack-small" },
    h("p", { class: "row soft" }, count(files.length, "file"), h("span", { class: "plus" }, `+${added}`), h("span", { class: "minus" }, `−${removed}`), cut && chip("cut: not all of it is shown", "warn")),
    files.map((file, at) => fileDiff(file, { open: at < 12 })));
}
