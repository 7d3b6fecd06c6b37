"use strict";
(function () {
  const cards = Array.from(document.querySelectorAll("article.card[id]"));
  let at = -1;
  function show(index) {
    if (index === -1 || index === cards.length) return;
    at = index;
    const card = cards[at];
    let outer = card.closest("details");
    while (outer) {
      outer.open = true;
      outer = outer.parentElement.closest("details");
    }
    card.focus({ preventScroll: true });
    card.scrollIntoView({ block: "start" });
    history.replaceState(null, "", "#" + card.id);
  }
  function follow() {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    if (target.matches("details")) target.open = true;
    const found = cards.indexOf(target);
    if (found !== -1) show(found);
  }
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select")) return;
    if (event.key === "j") show(at + 1);
    if (event.key === "k") show(Math.max(at - 1, 0));
  });
  window.addEventListener("hashchange", follow);
  if (location.hash) follow();
})();
