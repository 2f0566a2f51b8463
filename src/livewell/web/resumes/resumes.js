/**
 * My documents: what somebody has written, what is being exported of it, and where the files are.
 *
 *     #                 the documents and their exports
 *     #new              the editor with an empty document
 *     #edit/<id>        the editor with a document
 * @module resumes
 */

import { ask } from "./ask.js";
import { Documents } from "./my-documents.js";
import { Editor } from "./editor.js";
import { Exports } from "./my-exports.js";
import { ExportOptions } from "./export-options.js";
import { offerCommand } from "./way-in.js";

const at = (id) => document.getElementById(id);
const say = (text) => (at("said").textContent = text);

const options = new ExportOptions(at("options"));
const exports = new Exports(at("exports"), { say, onChange: conclude, onRoom: (text) => (at("exports-room").textContent = text) });
const documents = new Documents(at("documents"), { say, onChange: conclude, onExport, onEdit: (id) => (location.hash = `edit/${id}`) });
let editor = null;

// -- the answer in the heading ---------------------------------------------------------------------------------------

function conclude() {
  const made = documents.count;
  const busy = exports.unfinished;
  at("documents-count").textContent = made ? `${made}${documents.hasMore ? " or more" : ""}` : "";
  const words = made === 0 ? "You have no document yet." : `You have ${made}${documents.hasMore ? " or more" : ""} ${made === 1 ? "document" : "documents"}.`;
  at("answer").textContent = busy ? `${words.slice(0, -1)}; ${busy} ${busy === 1 ? "is" : "are"} being exported.` : words;
}

async function onExport(chosen, place) {
  const settings = options.value();
  if (settings === null) return;
  const asked = chosen.map(({ id, version }) => ({ document: id, version }));
  await exports.request(asked, settings, place);
}

// -- which room --------------------------------------------------------------------------------------------------------

async function arrange() {
  const hash = location.hash.slice(1);
  const [room, id] = hash.split("/");
  if (editor && !(await editor.leave())) return;
  editor = null;
  const isEditing = room === "new" || (room === "edit" && id);
  at("overview-of-documents").hidden = Boolean(isEditing);
  at("editor").hidden = !isEditing;
  if (!isEditing) {
    at("editor").replaceChildren();
    document.title = "My documents · Livewell";
    await Promise.all([documents.load(), exports.load()]);
    return;
  }
  editor = new Editor(at("editor"), { say, options });
  await editor.open(room === "edit" ? id : null);
}

function loginEnded() {
  at("banner-title").textContent = "This browser has no login, or its login has ended.";
  at("banner-words").textContent = "Documents belong to somebody. Print a login link where Livewell runs, and open it in this browser:";
  offerCommand(at("banner-command"));
  at("banner-command").hidden = at("banner").hidden = false;
  at("overview-of-documents").hidden = at("editor").hidden = at("logout").hidden = true;
  exports.stop();
}

function notAllowed() {
  at("banner-title").textContent = "This login may not export.";
  at("banner-words").textContent = "It lacks the scope export. Log in with a link from: livewell keys login";
  at("banner").hidden = false;
}

// -- what people do ------------------------------------------------------------------------------------------------------

at("new").addEventListener("click", () => (location.hash = "new"));
at("import").addEventListener("click", () => at("import-file").click());
at("import-file").addEventListener("change", async () => {
  const [file] = at("import-file").files;
  at("import-file").value = "";
  if (file) await documents.importFile(file);
});
at("logout").addEventListener("click", async () => {
  const response = await fetch("/v1/logout", { method: "POST" }).catch(() => null);
  if (response?.ok || response?.status === 401) return location.reload();
  say("The server did not answer; you are still logged in.");
});
document.addEventListener("login-ended", loginEnded);
addEventListener("hashchange", arrange);
addEventListener("beforeunload", (event) => editor?.isChanged && event.preventDefault());

const { scopes } = await ask("GET", "/v1/scopes").catch(() => ({}));
if (scopes) {
  at("overview").hidden = !["observe", "operate"].some((scope) => scopes.includes(scope));
  at("logout").hidden = false;
  if (scopes.includes("export")) await arrange();
  else notAllowed();
}
