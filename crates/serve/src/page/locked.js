// No token, or one that is too old: what to do, and a place to paste another.

import { session } from "./api.js";
import { command, h, icon, replace } from "./ui.js";

export function mount(root, problem, unlocked) {
  const field = h("input", { id: "paste", type: "password", autocomplete: "off", spellcheck: "false", placeholder: "http://127.0.0.1:…/#code=…", "aria-describedby": "paste-problem", "data-search": "" });
  const wrong = h("p", { class: "field-problem", id: "paste-problem", role: "alert" }, problem && problem.status !== 401 ? problem.detail : "");
  const enter = async (event) => {
    event.preventDefault();
    wrong.textContent = "";
    if (!field.value.trim()) {
      wrong.textContent = "Paste the link that `rep serve link` has printed, or the token of its file.";
      return field.focus();
    }
    try {
      await session.enter(field.value);
      unlocked();
    } catch (error) {
      wrong.textContent = [error.detail, error.hint].filter(Boolean).join(" ");
      field.select();
    }
  };
  replace(root, h("section", { class: "locked" },
    h("div", { class: "locked-mark" }, icon("lock", 26)),
    h("h1", {}, problem ? "This page needs a new link" : "This page needs a link"),
    h("p", {}, problem
      ? "The token of this page has expired, or its link was used before. Nothing is lost: runs go on, and the page shows them again once it is open."
      : "The daemon answers only those who show a token. A link that works once brings one."),
    h("p", {}, "Run this in a terminal on the same machine, and open what it prints:"),
    command("rep serve link"),
    h("form", { class: "locked-form", onsubmit: enter },
      h("label", { for: "paste" }, "Or paste a link or a token"),
      h("div", { class: "field-row" }, field, h("button", { class: "button primary" }, "Open")),
      wrong)));
  field.focus();
}
