// Asking the server: text and data, and nothing but what this server says.

/** The server said no, or nothing. */
export class Refused extends Error {
  /**
   * @param {number} status of the answer; 0 where there was none
   * @param {string} address
   */
  constructor(status, address) {
    super(`${status} for ${address}`);
    this.status = status;
  }
}

/** Below which addresses there is nothing any more: to ask there would only fail, and browsers complain of that. */
const gone = new Set();

/**
 * Note whether there is anything below an address.
 * @param {string} address that ends in a slash
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

/** Whether an error only says that the answer was not wanted any more. */
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
 * HTML of the server as nodes. A whole page gives what stands in its `<main>`.
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
