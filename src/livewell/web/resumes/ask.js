/**
 * Requests to the API of this server, with the login of this browser.
 * @module ask
 */

const ANSWER_SECONDS_MAX = 20;

/** An answer that is an error: its problem document, or that there was no answer (status 0). */
export class Trouble extends Error {
  constructor(status, problem = {}) {
    super(problem.detail ?? (status ? problem.title ?? `The server answered ${status}.` : "The server does not answer."));
    this.status = status;
    this.problem = problem;
  }

  /** Where in the request something is wrong, as document.work[2].summary. */
  get place() {
    return (this.problem.field ?? "").replace(/^body\./, "");
  }
}

/**
 * await ask("GET", "/v1/resumes"); bodies and answers are JSON.
 * @param {string} method @param {string} path @param {any} [body] @param {AbortSignal} [signal]
 */
export async function ask(method, path, body, signal) {
  const response = await send(method, path, body, signal);
  return response.status === 204 ? null : response.json();
}

/** The same for a picture. @returns {Promise<{blob: Blob, pages: ?number}>} */
export async function askPicture(path, body, signal) {
  const response = await send("POST", path, body, signal);
  return { blob: await response.blob(), pages: Number(response.headers.get("X-Pages")) || null };
}

async function send(method, path, body, signal) {
  const deadline = AbortSignal.timeout(ANSWER_SECONDS_MAX * 1000);
  const content = body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  let response;
  try {
    response = await fetch(path, { method, signal: signal ? AbortSignal.any([signal, deadline]) : deadline, ...content });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Trouble(0);
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401) document.dispatchEvent(new Event("login-ended"));
  throw new Trouble(response.status, problem);
}
