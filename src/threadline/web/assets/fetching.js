// Fetches text, data and HTML from this server.

/** The server refused a request or did not answer. */
export class Refused extends Error {
  /**
   * @param {number} status of the response; 0 if there was none
   * @param {string} address
   */
  constructor(status, address) {
    super(`${status} for ${address}`);
    this.status = status;
  }
}

/** URL prefixes below which nothing exists any more. Requests there would fail, and browsers log an error for each. */
const gone = new Set();

/**
 * Record whether anything exists below a URL.
 * @param {string} address a URL that ends in a slash
 * @param {boolean} isThere
 */
export function note(address, isThere) {
  if (isThere) gone.delete(address);
  else gone.add(address);
}

/**
 * @param {string} address
 * @param {AbortSignal} [signal]
 * @returns {Promise<string>}
 */
export async function askText(address, signal) {
  return (await asked(address, signal)).text();
}

/**
 * @param {string} address
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function askData(address, signal) {
  return (await asked(address, signal)).json();
}

/** Whether an error means that the request was aborted. */
export function isAborted(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

async function asked(address, signal) {
  if (!address.includes("/shape.json") && [...gone].some((one) => address.startsWith(one))) throw new Refused(404, address);
  let answer;
  try {
    answer = await fetch(address, { signal, credentials: "same-origin", headers: { "X-Fragment": "1" } });
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new Refused(0, address);
  }
  if (!answer.ok) throw new Refused(answer.status, address);
  return answer;
}

/**
 * Parse HTML from the server. Of a whole page, return the content of `<main>`.
 * @param {string} html
 * @returns {DocumentFragment}
 */
export function nodes(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const main = template.content.querySelector("main");
  if (main === null) return template.content;
  const inner = document.createDocumentFragment();
  inner.append(...main.childNodes);
  return inner;
}
