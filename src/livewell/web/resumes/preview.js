/**
 * A picture of page one while somebody types. The server renders it as it renders exports.
 *
 * It is drawn on a canvas: the page's policy allows no picture but those of this server's addresses.
 * @module preview
 */

import { askPicture } from "./ask.js";
import { element } from "./element.js";

const CALM_MS = 400;

/** The picture beside the form. */
export class Preview {
  #timer = null;
  #asking = null;
  #wanted = null;

  /** @param {() => ?{document: object, options: object}} content what to show; null: nothing new @param {(place: string) => boolean} onPlace leads to a field */
  constructor(content, onPlace) {
    this.content = content;
    this.onPlace = onPlace;
    this.canvas = element("canvas", { role: "img", "aria-label": "Page one, as it will be exported", width: 8, height: 11 });
    this.words = element("p.muted", { role: "status" }, "The first picture is being made…");
    this.trouble = element("p.notice", { "data-tone": "warn", hidden: "" });
    this.node = element("div.preview", this.trouble, element("div.sheet-of-paper", this.canvas), this.words);
  }

  /** Something has changed; the picture follows when the typing rests. */
  soon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.now(), CALM_MS);
  }

  async now() {
    clearTimeout(this.#timer);
    const content = this.content();
    if (!content) return;
    const wanted = JSON.stringify(content);
    if (wanted === this.#wanted) return;
    this.#wanted = wanted;
    this.#asking?.abort();
    const asking = new AbortController();
    this.#asking = asking;
    this.node.toggleAttribute("data-late", true);
    try {
      const { blob, pages } = await askPicture("/v1/resumes/preview", content, asking.signal);
      await this.#draw(blob);
      this.trouble.hidden = true;
      this.words.textContent = pages ? `Page 1 of ${pages}` : "Page 1";
    } catch (error) {
      if (asking.signal.aborted) return;
      this.#wanted = null;
      if (error.status === 429 || error.status === 503 || error.status === 0) this.#timer = setTimeout(() => this.now(), 3 * CALM_MS + 1000);
      else this.#say(error);
    } finally {
      if (this.#asking === asking) this.node.toggleAttribute("data-late", false);
    }
  }

  stop() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
  }

  async #draw(blob) {
    const picture = await createImageBitmap(blob);
    this.canvas.width = picture.width;
    this.canvas.height = picture.height;
    this.canvas.getContext("2d").drawImage(picture, 0, 0);
    picture.close();
    this.node.toggleAttribute("data-drawn", true);
  }

  #say(error) {
    const place = error.place.replace(/^document\./, "");
    const words = error.problem.reason && error.problem.detail_of_reason ? `${error.message} ${error.problem.detail_of_reason}` : error.message;
    const lead = place && this.onPlace(place, true) ? element("button.plain", { type: "button", onclick: () => this.onPlace(place) }, "Show me where") : null;
    this.trouble.replaceChildren(element("span.dot"), element("span", words, " ", lead ?? ""));
    this.trouble.hidden = false;
    this.words.textContent = this.node.hasAttribute("data-drawn") ? "The picture is from before." : "";
  }
}
