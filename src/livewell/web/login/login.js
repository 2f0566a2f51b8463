/**
 * The login page: the token is taken out of the address at once, and sent only when the person says so.
 *
 *     link opened ──button──▶ sent ──taken──▶ the page that asked for it, or the overview
 *          │                    └──used up, too old──▶ how to get another
 *          └──no token──▶ the same ──another link pasted here──▶ link opened
 * @module login
 */

import { offerCommand, wayIn } from "./way-in.js";

const at = (id) => document.getElementById(id);
const asked = { title: at("title").textContent, words: at("words").textContent };
const CLOCK = { hour: "2-digit", minute: "2-digit" };
let token = "";
const asksFor = new URLSearchParams(location.search).get("to"); // the page that sent us here
if (asksFor) sessionStorage.setItem("to", asksFor);

function open() {
  token = location.hash.slice(1);
  history.replaceState(null, "", location.pathname); // not in the history, nor in a screenshot
  if (!token) return another("This is where a login link leads.");
  show(asked.title, asked.words, false);
  sayUntil();
}

async function sayUntil() {
  const seconds = (await wayIn()).login_seconds;
  if (!seconds || at("go").hidden) return;
  const until = new Date(Date.now() + seconds * 1000);
  const sameDay = until.toDateString() === new Date().toDateString();
  const when = until.toLocaleString("en-GB", sameDay ? CLOCK : { weekday: "long", day: "numeric", month: "long", ...CLOCK });
  at("words").textContent = asked.words.replace(/\.$/, ` until ${when}.`);
}

function another(title) {
  show(title, "Print a new link where Livewell runs, and open it in this browser:", true);
  offerCommand(at("command"));
}

function show(title, words, lost) {
  at("title").textContent = title;
  at("words").textContent = words;
  at("go").hidden = lost;
  at("go").disabled = false;
  at("command").hidden = at("onward").hidden = !lost;
}

async function send() {
  at("go").disabled = true;
  const sent = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) };
  const response = await fetch("/v1/login", sent).catch(() => null);
  if (response?.ok) return location.replace(onward());
  at("go").disabled = false;
  if (response && response.status < 429) return another("This link is used up, or too old.");
  at("words").textContent = "The server does not answer. Try again in a moment.";
}

/** The page that asked for a login, if it is one of ours. */
function onward() {
  const to = sessionStorage.getItem("to") ?? "";
  sessionStorage.removeItem("to");
  return /^\/(?![/\\])/.test(to) ? to : "/"; // an address of this server, not //of.another
}

at("go").addEventListener("click", send);
addEventListener("hashchange", () => location.hash && open()); // a link pasted over this page does not load it again
open();
