/**
 * How a person gets a login: the command that prints a link for this very server, and a button that copies it.
 * @module way-in
 */

import { element } from "./element.js";

const ANSWER_SECONDS_MAX = 5;
const COPIED_MS = 2000;

/** What the server says: the command without its address, and how long a login lasts. */
export async function wayIn() {
  const response = await fetch("/login/how", { cache: "no-store", signal: AbortSignal.timeout(ANSWER_SECONDS_MAX * 1000) }).catch(() => null);
  return response?.ok ? response.json() : { command: "livewell keys login", login_seconds: null };
}

/** Fill a box with the command and its button. @param {HTMLElement} box */
export async function offerCommand(box) {
  const { command } = await wayIn();
  const code = element("code", `${command} --address ${location.origin}`); // the server may not be where the command would look for it
  const button = element("button.copy", { type: "button", onclick: () => copy(code, button) }, "Copy");
  box.replaceChildren(code, button);
}

async function copy(code, button) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), COPIED_MS);
  } catch {
    getSelection().selectAllChildren(code); // a page without https may not copy; whoever reads it can
  }
}
