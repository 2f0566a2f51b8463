/**
 * Charts by uPlot. The server writes a .chart with its points in data-points and, as its content, a line for readers without JavaScript.
 *
 *     <div class="chart" id="fresh-line" data-unit="share" data-top="1" data-points='{"at": […], "lines": {"fresh": […]}}'>…</div>
 * @module plot
 */

import { number, share, size, span } from "./words.js";

const HEIGHT = 140;
const WHOLE_MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * 60);
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const WRITE = { number, share, size, span };
const plots = new WeakMap(); // element → plot

/** Draw every chart below an element that is not drawn yet. @param {ParentNode} root */
export function plotAll(root) {
  for (const box of root.querySelectorAll(".chart[data-points]")) if (!plots.has(box)) plot(box);
}

/** Put the drawn charts of an old element into its successor, with the new points: nothing flickers. @param {ParentNode} old @param {ParentNode} made */
export function keepPlots(old, made) {
  for (const box of made.querySelectorAll(".chart[data-points]")) {
    const before = box.id && old.querySelector(`#${CSS.escape(box.id)}`);
    const drawn = before && plots.get(before);
    if (!drawn || Object.keys(read(before).lines).join() !== Object.keys(read(box).lines).join()) continue;
    before.dataset.points = box.dataset.points;
    box.replaceWith(before);
    drawn.setData(columns(read(before)));
  }
}

const read = (box) => JSON.parse(box.dataset.points);
const columns = ({ at, lines }) => [at, ...Object.values(lines)];

function plot(box) {
  if (!globalThis.uPlot) return;
  const points = read(box);
  if (points.at.length < 2) return;
  const write = WRITE[box.dataset.unit] ?? number;
  const top = box.dataset.top ? Number(box.dataset.top) : null;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const [ink, muted, line, other] = ["--ink", "--muted", "--line", "--line-strong"].map(colour);
  const axis = { stroke: muted, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  const options = {
    width: Math.max(200, box.clientWidth),
    height: HEIGHT,
    cursor: { y: false },
    legend: { show: false }, // the caption names the lines
    scales: { y: { range: (_, low, high) => [0, top ?? Math.max(high ?? 0, 1)] } },
    axes: [{ ...axis, space: 60, incrs: WHOLE_MINUTES, values: (_, ticks) => ticks.map((at) => CLOCK.format(new Date(at * 1000))) }, { ...axis, size: 58, values: (_, ticks) => ticks.map(write) }],
    series: [{}, ...Object.keys(points.lines).map((label, place) => ({ label, stroke: place ? other : ink, dash: place ? [5, 4] : undefined, width: 1.5, points: { show: false } }))],
  };
  box.replaceChildren();
  const drawn = new globalThis.uPlot(options, columns(points), box);
  plots.set(box, drawn);
  new ResizeObserver(() => drawn.setSize({ width: Math.max(200, box.clientWidth), height: HEIGHT })).observe(box);
}
