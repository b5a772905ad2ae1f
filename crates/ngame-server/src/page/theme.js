// Light or dark, before anything is drawn. What the reader chose wins over what the system says.
(() => {
  const root = document.documentElement;
  const remembered = () => {
    try { return localStorage.getItem("theme"); } catch { return null; }
  };
  const chosen = remembered();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
    const say = () => button.setAttribute("aria-pressed", String(isDark()));
    say();
    system.addEventListener("change", say);
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* Not kept, then. */ }
      say();
    });
  });
})();
