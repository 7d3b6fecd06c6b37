// Light or dark, before anything is painted: what somebody chose here, or else what the system says.
(function () {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null;
    }
  };
  const apply = () => {
    const theme = chosen() ?? (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    document.dispatchEvent(new CustomEvent("theme", { detail: theme }));
  };
  dark.addEventListener("change", apply);
  document.addEventListener("choose-theme", (event) => {
    try {
      if (event.detail) localStorage.setItem("theme", event.detail);
      else localStorage.removeItem("theme");
    } catch {
      // Without a place to keep it, the choice lasts as long as the page.
      document.documentElement.dataset.theme = event.detail;
    }
    apply();
  });
  apply();
})();
