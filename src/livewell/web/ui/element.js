/**
 * Elements by name, class and content. Content is always text or other elements: nothing that came from a source is ever read as markup.
 * @module element
 */

/**
 * element("p.note", "Hello"); element("button.plain", { type: "button", onclick }, "Remove")
 * @param {string} kind            a tag with classes
 * @param {...any} parts           an object with attributes and handlers first, if any; then text and elements, of which null is left out
 * @returns {HTMLElement}
 */
export function element(kind, ...parts) {
  const [tag, ...classes] = kind.split(".");
  return filled(document.createElement(tag), classes, parts);
}

/** The same for SVG. @param {string} kind @param {...any} parts @returns {SVGElement} */
export function drawing(kind, ...parts) {
  const [tag, ...classes] = kind.split(".");
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), classes, parts);
}

function filled(node, classes, parts) {
  if (classes.length) node.setAttribute("class", classes.join(" "));
  const [first] = parts;
  if (first && typeof first === "object" && !(first instanceof Node) && !Array.isArray(first)) {
    for (const [name, value] of Object.entries(parts.shift())) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value != null) node.setAttribute(name, value);
    }
  }
  node.append(...parts.flat().filter((part) => part != null));
  return node;
}
