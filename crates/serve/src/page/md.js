// Markdown as skills write it, drawn with our own elements: headings, lists, fences, tables as they stand. Nothing in it can
// become markup, and links are shown, not followed.

import { h } from "./ui.js";

/** Blocks of a text. */
export function markdown(text) {
  const lines = String(text ?? "").split(/\r?\n/);
  const out = h("div", { class: "prose" });
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const fence = line.match(/^\s*(```+|~~~+)/);
    if (fence) {
      const end = lines.findIndex((one, index) => index > at && one.trim().startsWith(fence[1]));
      const stop = end < 0 ? lines.length : end;
      out.append(h("pre", { class: "code" }, h("code", {}, lines.slice(at + 1, stop).join("\n"))));
      at = stop + 1;
    } else if (/^\s*$/.test(line)) {
      at += 1;
    } else if (/^#{1,6}\s/.test(line)) {
      const level = Math.min(4, line.match(/^#+/)[0].length);
      out.append(h(`h${level}`, {}, inline(line.replace(/^#+\s+/, "").replace(/\s+#+\s*$/, ""))));
      at += 1;
    } else if (/^\s*>/.test(line)) {
      const stop = until(lines, at, (one) => !/^\s*>/.test(one));
      out.append(h("blockquote", {}, inline(lines.slice(at, stop).map((one) => one.replace(/^\s*>\s?/, "")).join(" "))));
      at = stop;
    } else if (/^\s*\|/.test(line)) {
      const stop = until(lines, at, (one) => !/^\s*\|/.test(one));
      out.append(h("pre", { class: "code" }, lines.slice(at, stop).join("\n")));
      at = stop;
    } else if (isItem(line)) {
      const [list, stop] = listAt(lines, at);
      out.append(list);
      at = stop;
    } else {
      const stop = until(lines, at, (one) => /^\s*$|^#{1,6}\s|^\s*(```|~~~)|^\s*[>|]/.test(one) || isItem(one));
      out.append(h("p", {}, inline(lines.slice(at, Math.max(stop, at + 1)).join(" "))));
      at = Math.max(stop, at + 1);
    }
  }
  return out;
}

const isItem = (line) => /^\s*([-*+]|\d+[.)])\s+/.test(line);

function until(lines, from, ends) {
  const at = lines.findIndex((line, index) => index > from && ends(line));
  return at < 0 ? lines.length : at;
}

function listAt(lines, from) {
  const deep = lines[from].match(/^\s*/)[0].length;
  const list = h(/^\s*\d/.test(lines[from]) ? "ol" : "ul");
  let at = from;
  let item = null;
  while (at < lines.length) {
    const line = lines[at];
    const indent = line.match(/^\s*/)[0].length;
    if (isItem(line) && indent > deep && item) {
      const [inner, stop] = listAt(lines, at);
      item.append(inner);
      at = stop;
    } else if (isItem(line) && indent >= deep) {
      item = h("li", {}, inline(line.replace(/^\s*([-*+]|\d+[.)])\s+/, "")));
      list.append(item);
      at += 1;
    } else if (item && indent > deep && line.trim() && !/^\s*(```|~~~)/.test(line)) {
      item.append(" ", ...inline(line.trim()));
      at += 1;
    } else {
      break;
    }
  }
  return [list, at];
}

/** Longer lines stay as they are: nobody reads them, and looking for marks in them takes time. */
const MARKED_CHARS_MAX = 4000;

/**
 * Code, strong, emphasis and links within a line. Every part of the pattern has a bound, and no two parts can share the same
 * letters, so that a hostile line costs no more than it is long.
 */
function inline(text) {
  if (text.length > MARKED_CHARS_MAX) return [text];
  const out = [];
  const pattern =
    /(`{1,3})([^`]{1,400})\1|\*\*([^*]{1,400})\*\*|(?<![\w*])\*([^*\s][^*]{0,400})\*(?!\w)|!?\[([^[\]]{0,300})\]\(([^()\s]{0,400})(?:\s[^()]{0,200})?\)/g;
  let from = 0;
  for (const found of text.matchAll(pattern)) {
    out.push(text.slice(from, found.index));
    if (found[2] !== undefined) out.push(h("code", {}, found[2]));
    else if (found[3] !== undefined) out.push(h("strong", {}, inline(found[3])));
    else if (found[4] !== undefined) out.push(h("em", {}, found[4]));
    else out.push(h("span", { class: "link-like", title: found[6] }, found[5] || found[6]));
    from = found.index + found[0].length;
  }
  out.push(text.slice(from));
  return out.filter((one) => one !== "");
}
