// A text beside the pointer.

import { byId, element } from "../elements";

const AWAY = 14;

export function showTip(event: MouseEvent, lines: string[]): void {
  const tip = byId("tip");
  tip.replaceChildren(...lines.filter(Boolean).map((line, place) => element(place ? "span" : "b", "", line)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const right = event.clientX + AWAY, below = event.clientY + AWAY;
  tip.style.left = `${Math.max(4, right + width > innerWidth ? event.clientX - AWAY - width : right)}px`;
  tip.style.top = `${Math.max(4, below + height > innerHeight ? event.clientY - AWAY - height : below)}px`;
}

export const hideTip = (): void => void (byId("tip").hidden = true);
