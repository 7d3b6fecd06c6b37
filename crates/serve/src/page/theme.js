// Light or dark, before anything is painted: what somebody chose here, or else what the system says.
(function () {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // Without a place to keep it, the choice lasts as long as the page.
  let memory = null;
  const chosen = () => {
    try {
      return localStorage.getItem("theme") ?? memory;
    } catch {
      return memory;
    }
  };
  const apply = () => {
    const theme = chosen() ?? (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    document.dispatchEvent(new CustomEvent("theme", { detail: theme }));
  };
  dark.addEventListener("change", apply);
  document.addEventListener("choose-theme", (event) => {
    memory = event.detail ?? null;
    try {
      if (event.detail) localStorage.setItem("theme", event.detail);
      else localStorage.removeItem("theme");
    } catch {
      // Then it is kept here alone.
    }
    apply();
  });
  apply();
})();
