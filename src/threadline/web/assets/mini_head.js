// The bar at the top of a session: keeps turn, time and cost so far current while one scrolls.

import { fetchJson, isAborted, RequestError } from "./fetch.js";
import { turnOf } from "./turn_list.js";
import { ReadingPosition } from "./visibility.js";

const UPDATE_MS = 120;

/** Shows where in the session one is. */
export class MiniHead {
  /**
   * @param {HTMLElement} bar
   * @param {import("./session.js").Session} session
   * @param {import("./windowing.js").Windowing} windowing
   */
  constructor(bar, session, windowing) {
    this.bar = bar;
    this.session = session;
    this.windowing = windowing;
    this.position = new ReadingPosition(session.feed, windowing.sections);
    this.timer = 0;
    /** @type {Promise<Map<number, number>>|null} the cost up to each turn */
    this.costs = null;
  }

  start() {
    addEventListener("scroll", () => this.#scheduleUpdate(), { passive: true });
    this.session.feed.addEventListener("current", () => this.#scheduleUpdate());
    this.windowing.addEventListener("filled", () => this.#scheduleUpdate());
    this.#scheduleUpdate();
  }

  /** The session has changed. */
  refresh() {
    this.costs = null;
    this.#scheduleUpdate();
  }

  #scheduleUpdate() {
    if (this.timer !== 0) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.#update();
    }, UPDATE_MS);
  }

  async #update() {
    const item = this.position.item();
    if (item === null) return;
    const turn = turnOf(item);
    const turns = Number(this.bar.dataset.turns ?? 0);
    if (turn !== null) this.#set("turn", `turn ${Number(turn).toLocaleString("en")} of ${turns.toLocaleString("en")}`);
    this.#set("time", item.querySelector(":scope > .at time")?.textContent ?? "");
    // Costs are requested when one begins to read, not while the page is loading.
    if (turn === null || scrollY === 0) return;
    this.costs ??= this.#loadCosts();
    this.#set("cost", formatCost(await this.costs, Number(turn)));
  }

  #set(name, text) {
    const element = this.bar.querySelector(`.mini-${name}`);
    if (element !== null && element.textContent !== text) element.textContent = text;
  }

  async #loadCosts() {
    const costs = new Map();
    try {
      let sum = 0;
      for (const row of await fetchJson(this.session.url(["along.json"]))) {
        sum += Number(row.amount ?? 0);
        costs.set(row.turn, sum);
      }
    } catch (error) {
      if (!(error instanceof RequestError) && !isAborted(error)) throw error;
    }
    return costs;
  }
}

/** The cost up to a turn, or up to the last turn before it that cost anything. */
function formatCost(costs, turn) {
  let cost = null;
  for (const [number, sum] of costs) if (number <= turn) cost = sum;
  return cost === null ? "" : `$${cost.toFixed(2)} so far`;
}
