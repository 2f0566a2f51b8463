/**
 * What a page of the dashboard does beyond being read: times in the reader's zone, charts, and panels that stay current.
 * @module dashboard
 */

import { offerCopies } from "./copy.js";
import { Live } from "./live.js";
import { plotAll } from "./plot.js";
import { zone, zoneName } from "./times.js";

zone(document);
plotAll(document);
offerCopies();
document.getElementById("zone").textContent = `Times are in your zone, ${zoneName()}; hover for UTC.`;
const live = document.getElementById("live");
if (live) new Live(live);
