// Light and dark: as the system has it, until the button says otherwise.

import { useLayoutEffect, useState } from "preact/hooks";

// The event of the window after which colours of the style are others. What does not take its colours from the style draws again.
export const THEMED = "themed";

const prefersDark = () => matchMedia("(prefers-color-scheme: dark)");

export function ThemeButton() {
  const [isDark, setDark] = useState(() => prefersDark().matches);
  useLayoutEffect(() => {
    const system = prefersDark();
    const follow = () => setDark(system.matches);
    system.addEventListener("change", follow);
    return () => system.removeEventListener("change", follow);
  }, []);
  useLayoutEffect(() => {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    dispatchEvent(new Event(THEMED));
  }, [isDark]);
  return <button id="theme" type="button" aria-pressed={isDark} onClick={() => setDark(!isDark)}>Dark</button>;
}
