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
  try {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = "Copy"), COPIED_MS);
}
