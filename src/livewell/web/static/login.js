/**
 * The login page: the token is taken out of the address at once, and sent only when the person says so.
 *
 *     link opened ──button──▶ sent ──taken──▶ the market page
 *          │                    └──used up, too old──▶ how to get another
 *          └──no token──▶ the same
 * @module login
 */

const token = location.hash.slice(1);
const at = (id) => document.getElementById(id);
history.replaceState(null, "", location.pathname); // not in the history, nor in a screenshot

function another(title) {
  at("title").textContent = title;
  at("words").textContent = "Ask for a new link where Livewell runs:";
  at("go").hidden = true;
  at("command").hidden = false;
}

async function send() {
  at("go").disabled = true;
  const sent = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) };
  const response = await fetch("/v1/login", sent).catch(() => null);
  if (response?.ok) return location.replace("/");
  at("go").disabled = false;
  if (response && response.status < 429) return another("This link is used up, or too old.");
  at("words").textContent = "The server does not answer. Try again in a moment.";
}

if (token) at("go").addEventListener("click", send);
else another("This is where a login link leads.");
