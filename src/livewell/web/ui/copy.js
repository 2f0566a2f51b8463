/**
 * Buttons that copy the command before them. They are shown only if the browser can: a page without https may not.
 * @module copy
 */

const COPIED_MS = 2000;

/** From here on, for buttons that are there now and for those of panels that come later. */
export function offerCopies() {
  if (!navigator.clipboard) return;
  document.documentElement.classList.add("can-copy");
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-copy]");
    if (button) copy(button);
  });
}

async function copy(button) {
  const command = button.previousElementSibling.textContent;
  try {
    await navigator.clipboard.writeText(command);
    say(button, "Copied");
  } catch {
    say(button, "Not allowed");
  }
  setTimeout(() => say(button, "Copy", ` ${command}`), COPIED_MS);
}

/** What the button says; for those who hear it, also of which command. */
function say(button, words, of = "") {
  button.textContent = words;
  button.ariaLabel = words + of;
}
