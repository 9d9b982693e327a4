// Light and dark: as the system has it, until the button says otherwise.

import { byId } from "./elements";

function setTheme(theme: "dark" | "light"): void {
  document.documentElement.dataset.theme = theme;
  byId("theme").setAttribute("aria-pressed", String(theme === "dark"));
}

// `repaint` draws again what does not take its colours from the style.
export function startTheme(repaint: () => void): void {
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => setTheme(prefersDark.matches ? "dark" : "light");
  follow();
  prefersDark.addEventListener("change", () => {
    follow();
    repaint();
  });
  byId("theme").addEventListener("click", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    repaint();
  });
}
