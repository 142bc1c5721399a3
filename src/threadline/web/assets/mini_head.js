// The bar at the top of a session: keeps turn, time and cost so far current while one scrolls.

import { fetchJson, isAborted, RequestError } from "./fetch.js";
import { turnOf } from "./turn_list.js";
import { ReadingPosition } from "./visibility.js";

const UPDATE_MS = 120;
/** The bar repeats the title when less than this is left of the head. */
const HIDDEN_PX = 90;

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
    /** @type {Promise<Float64Array>|null} the cost up to each turn, by its number */
    this.costs = null;
  }

  start() {
    addEventListener("scroll", () => this.#scheduleUpdate(), { passive: true });
    this.session.feed.addEventListener("current", () => this.#scheduleUpdate());
    this.windowing.addEventListener("filled", () => this.#scheduleUpdate());
    this.#scheduleUpdate();
  }

  /**
   * Continue with the facts of a newer bar: the session has changed.
   * @param {HTMLElement} bar
   */
  refresh(bar) {
    this.bar.dataset.turns = bar.dataset.turns;
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
    const head = document.querySelector("main > .head");
    this.bar.toggleAttribute("data-top", head !== null && head.getBoundingClientRect().bottom > HIDDEN_PX);
    const item = this.position.item();
    if (item === null) return;
    const turn = turnOf(item);
    const turns = Number(this.bar.dataset.turns ?? 0);
    if (turn !== null) this.#set("turn", describeTurn(Number(turn), turns));
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
    try {
      const rows = await fetchJson(this.session.url(["along.json"]));
      const costs = new Float64Array(rows.length === 0 ? 0 : rows[rows.length - 1].turn + 1);
      for (const row of rows) costs[row.turn] = Number(row.amount ?? 0);
      for (let turn = 1; turn < costs.length; turn += 1) costs[turn] += costs[turn - 1];
      return costs;
    } catch (error) {
      if (!(error instanceof RequestError) && !isAborted(error)) throw error;
      return new Float64Array(0);
    }
  }
}

/** Turn 0 is what comes before the first prompt. */
function describeTurn(turn, turns) {
  const of = `of ${turns.toLocaleString("en")}`;
  return turn === 0 ? `before turn 1 ${of}` : `turn ${turn.toLocaleString("en")} ${of}`;
}

/** The cost up to a turn, or up to the last turn before it that is known. */
function formatCost(costs, turn) {
  const cost = costs[Math.min(turn, costs.length - 1)];
  return cost === undefined ? "" : `$${cost.toFixed(2)} so far`;
}
