// The picture of a workflow, with the step that a run is at lit. It is drawn by the daemon and shown as a picture, so that
// nothing in it can be more than that.

import { h } from "./ui.js";

const NODE = '<g class="node ';
const LIT = { light: "#2f5bb7", dark: "#94b4f7" };

/** Shows the SVG text in our colours; `at` is the number of a step, `passed` those of the steps before. */
export function graph(text, { name, at, passed = [] } = {}) {
  const picture = h("img", { class: "graph-picture", alt: at ? `The graph of ${name}, at step ${at}` : `The graph of ${name}` });
  const paint = () => picture.setAttribute("src", `data:image/svg+xml,${encodeURIComponent(draw(text, at, passed))}`);
  paint();
  document.addEventListener("theme", function again() {
    if (picture.isConnected) paint();
    else document.removeEventListener("theme", again);
  });
  return h("div", { class: "graph", tabindex: "0", role: "group", "aria-label": "Graph" }, picture);
}

/** The picture is changed as text: it is ours, and it stays a picture whatever it says. */
function draw(text, at, passed) {
  const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
  const media = theme === "dark" ? "@media all" : "@media not all";
  const lit = LIT[theme];
  const style = `.page{fill:none}rect.lit{display:none}
    .lit .shape{stroke:${lit};stroke-width:4}.lit .title{fill:${lit}}.lit .badge{fill:${lit};stroke:${lit}}.lit .number{fill:${theme === "dark" ? "#10192e" : "#ffffff"}}
    .past{opacity:.6}</style>`;
  const [head, ...nodes] = text.replace(/@media \(prefers-color-scheme:\s*dark\)/g, media).replace("</style>", style).split(NODE);
  return head + nodes.map((node) => {
    const number = Number(node.match(/class="mid number"[^>]*>(\d+)</)?.[1]);
    const look = number && number === at ? "lit " : passed.includes(number) ? "past " : "";
    return `${NODE}${look}${node}`;
  }).join("");
}
