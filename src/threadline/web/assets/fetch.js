// Fetches text, JSON and HTML from this server, and builds URLs that carry parameters over from this page.

/** The server refused a request or did not answer. */
export class RequestError extends Error {
  /**
   * @param {number} status of the response; 0 if there was none
   * @param {string} url
   */
  constructor(status, url) {
    super(`${status} for ${url}`);
    this.status = status;
  }
}

/** URL prefixes of deleted sessions. Requests there would fail, and browsers log an error for each. */
const deletedPrefixes = new Set();

/**
 * Record whether the session at a URL exists.
 * @param {string} prefix a URL that ends in a slash
 * @param {boolean} exists
 */
export function setExists(prefix, exists) {
  if (exists) deletedPrefixes.delete(prefix);
  else deletedPrefixes.add(prefix);
}

/**
 * @param {string} url
 * @param {AbortSignal} [signal]
 * @returns {Promise<string>}
 */
export async function fetchText(url, signal) {
  return (await send(url, signal)).text();
}

/**
 * @param {string} url
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function fetchJson(url, signal) {
  return (await send(url, signal)).json();
}

/**
 * Send a form to this server.
 * @param {string} url
 * @param {Object<string, string>} values
 * @returns {Promise<any>} the JSON of the response
 */
export async function postForm(url, values) {
  let response;
  try {
    response = await fetch(url, { method: "POST", credentials: "same-origin", body: new URLSearchParams(values) });
  } catch {
    throw new RequestError(0, url);
  }
  if (!response.ok) throw new RequestError(response.status, url);
  return response.json();
}

/** Whether an error means that the request was aborted. */
export function isAborted(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

async function send(url, signal) {
  if (isDeleted(url)) throw new RequestError(404, url);
  let response;
  try {
    response = await fetch(url, { signal, credentials: "same-origin", headers: { "X-Fragment": "1" } });
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new RequestError(0, url);
  }
  if (!response.ok) throw new RequestError(response.status, url);
  return response;
}

/** Whether a URL belongs to a deleted session; `shape.json` is requested anyway, to see whether it was restored. */
function isDeleted(url) {
  return !url.includes("/shape.json") && [...deletedPrefixes].some((prefix) => url.startsWith(prefix));
}

/**
 * Parse HTML from the server. Of a whole page, return the content of `<main>`.
 * @param {string} html
 * @returns {DocumentFragment}
 */
export function parseHtml(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const main = template.content.querySelector("main");
  if (main === null) return template.content;
  const content = document.createDocumentFragment();
  content.append(...main.childNodes);
  return content;
}

/** URL parameters that links to other pages carry over. The server adds them to its own links. */
const CARRIED = ["tz"];

/** @returns {Object<string, string>} the carried parameters by name */
export function carriedParameters() {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries(CARRIED.filter((name) => query.get(name)).map((name) => [name, query.get(name)]));
}

/** Add the carried parameters to a path. */
export function withCarriedParameters(path) {
  const query = new URLSearchParams(carriedParameters()).toString();
  return query ? `${path}?${query}` : path;
}
