/**
 * The photo of a résumé: made small here, before it is kept, and described in words for those who cannot see it.
 * @module photo
 */

import { element } from "./element.js";

const SIDE_MAX = 480;
const QUALITY = 0.82;
const BYTES_MAX = 120_000;

/** A picture that is a part of the basics: `image` is a data URL, `imageAlt` describes it. */
export class Photo {
  constructor(basics, onChange) {
    this.basics = basics;
    this.onChange = onChange;
    this.canvas = element("canvas", { role: "img", "aria-label": "Your photo", width: 1, height: 1, hidden: "" });
    this.file = element("input", { type: "file", accept: "image/jpeg,image/png,image/webp", hidden: "", "aria-label": "A photo" });
    this.file.addEventListener("change", () => this.#chosen());
    this.choose = element("button.plain", { type: "button", onclick: () => this.file.click() }, "Choose a photo");
    this.remove = element("button.plain", { type: "button", onclick: () => this.#remove() }, "Remove it");
    this.alt = element("input", { id: "photo-alt", maxlength: 200, "data-place": "basics.imageAlt" });
    this.alt.value = basics.imageAlt ?? "";
    this.alt.addEventListener("input", () => {
      basics.imageAlt = this.alt.value.trim();
      onChange();
    });
    this.words = element("label.wide", { for: "photo-alt" }, element("span", "What the photo shows"), this.alt, element("small", "for those who cannot see it"));
    this.note = element("p.note", { role: "alert" });
    this.node = element("div.photo", this.canvas, element("div", element("div.acts", this.choose, this.remove, this.file), this.words, this.note));
    this.#show();
  }

  async #chosen() {
    const [file] = this.file.files;
    this.file.value = "";
    if (!file) return;
    this.note.textContent = "";
    try {
      this.basics.image = await small(await createImageBitmap(file));
    } catch {
      this.note.textContent = "This file is no picture that the browser can read.";
      return;
    }
    this.#show();
    this.onChange();
    this.alt.focus();
  }

  #remove() {
    delete this.basics.image;
    delete this.basics.imageAlt;
    this.alt.value = "";
    this.#show();
    this.onChange();
    this.choose.focus();
  }

  async #show() {
    const image = this.basics.image;
    this.remove.hidden = this.words.hidden = !image;
    this.canvas.hidden = true;
    this.choose.textContent = image ? "Choose another photo" : "Choose a photo";
    if (!image?.startsWith("data:")) return;
    try {
      const bytes = Uint8Array.from(atob(image.slice(image.indexOf(",") + 1)), (letter) => letter.charCodeAt(0));
      const picture = await createImageBitmap(new Blob([bytes]));
      this.canvas.width = picture.width;
      this.canvas.height = picture.height;
      this.canvas.getContext("2d").drawImage(picture, 0, 0);
      this.canvas.hidden = false;
    } catch {
      this.note.textContent = "The photo of this document cannot be shown here.";
    }
  }
}

/** As a JPEG of a bounded size. */
async function small(picture) {
  const scale = Math.min(1, SIDE_MAX / Math.max(picture.width, picture.height));
  const canvas = element("canvas", { width: Math.round(picture.width * scale), height: Math.round(picture.height * scale) });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  for (let quality = QUALITY; quality > 0.2; quality -= 0.15) {
    const made = canvas.toDataURL("image/jpeg", quality);
    if (made.length <= BYTES_MAX) return made;
  }
  throw new Error("too large");
}
