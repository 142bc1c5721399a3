// Live updates: an open session grows with its transcript, and a list says when it is out of date.

import { askData, isAborted, note, Refused } from "./fetching.js";
import { Section } from "./section.js";
import { leftBelow } from "./visibility.js";
import { keepSaying } from "./status.js";
import { hear } from "./stream.js";

/** Within this distance of the end, in pixels, the page follows what is added. */
const AT_END = 40;

/** Updates the sections of a session. */
export class Live {
  /**
   * @param {import("./session.js").Session} session
   * @param {import("./navigation.js").Travel} travel
   * @param {import("./windowing.js").Windowing} windowing
   * @param {import("./surroundings.js").About} about
   */
  constructor(session, travel, windowing, about) {
    this.session = session;
    this.travel = travel;
    this.windowing = windowing;
    this.about = about;
    this.isAsking = false;
    this.isAgain = false;
    this.unseen = 0;
    this.button = null;
  }

  start() {
    hear(`/live?session=${encodeURIComponent(this.session.id)}`, () => this.changed());
    this.windowing.addEventListener("stale", () => this.changed());
    addEventListener("scroll", () => this.#look(), { passive: true });
  }

  /** Request what has changed: one request at a time, and another one if there was an event meanwhile. */
  async changed() {
    if (this.isAsking) {
      this.isAgain = true;
      return;
    }
    this.isAsking = true;
    try {
      do {
        this.isAgain = false;
        const shape = await askData(this.session.shape());
        this.#note(shape.gone ?? null);
        if (shape.gone === undefined) await this.#take(shape);
      } while (this.isAgain);
    } catch (error) {
      // If the server is away for a moment, the event stream triggers another request.
      if (!(error instanceof Refused) && !isAborted(error)) throw error;
    } finally {
      this.isAsking = false;
    }
  }

  /** Keep showing a session that was deleted, without further requests until it is restored. */
  #note(gone) {
    const { session } = this;
    if (session.gone === gone) return;
    session.gone = gone;
    note(session.address([""]).split("?")[0], gone === null);
    keepSaying(gone ?? "");
  }

  async #take(shape) {
    const { windowing } = this;
    const { dataset } = this.session.root;
    dataset.parts = String(shape.parts);
    if (shape.version !== dataset.version && !this.session.isPartial) this.about.soon();
    const told = this.session.ofPart(shape.sections);
    const { sections } = windowing;
    const isFollowing = this.#isAtEnd();
    const before = items(sections);
    const changed = [];
    windowing.hold.keep(() => {
      while (sections.length > told.length) sections.pop().element.remove();
      told.forEach((one, at) => {
        if (at >= sections.length) this.#append(one);
        else if (sections[at].mark !== one.mark) {
          sections[at].tell(one);
          if (sections[at].isFilled) changed.push(sections[at]);
        }
      });
    });
    for (const section of changed) await windowing.refresh(section);
    const after = items(sections);
    if (after !== before) this.#count(after);
    windowing.update();
    if (after < before && !this.session.isPartial) keepSaying(cut(before - after));
    // What a preview lacked is not new.
    if (after <= before || this.session.isPartial) return;
    if (isFollowing) await this.#follow();
    else this.#announce(after - before);
  }

  #append(told) {
    const { sections } = this.windowing;
    const height = Math.round(told.height * (this.windowing.ratio ?? 1));
    const section = Section.made({ ...told, height });
    const last = sections.at(-1);
    if (last === undefined) this.session.feed.append(section.element);
    else last.element.after(section.element);
    sections.push(section);
  }

  /** Stay at the end without moving the focus. */
  async #follow() {
    const last = this.windowing.sections.at(-1);
    await this.windowing.around(last.number, () => this.windowing.hold.pinEnd());
  }

  /** Tell screen readers how many items the whole session has. */
  #count(all) {
    for (const section of this.windowing.sections) {
      if (section.isFilled) for (const item of section.articles()) item.setAttribute("aria-setsize", String(all));
    }
  }

  #announce(more) {
    this.unseen += more;
    this.button ??= this.#made();
    this.button.textContent = `${this.unseen.toLocaleString("en")} new ${this.unseen === 1 ? "entry" : "entries"} ↓`;
    this.button.hidden = false;
  }

  #isAtEnd() {
    const last = this.windowing.sections.at(-1);
    if (last === undefined) return true;
    const isFeedEnd = last.element.getBoundingClientRect().bottom <= innerHeight + AT_END;
    return leftBelow() <= AT_END || (isFeedEnd && last.isFilled);
  }

  /** At the end, new items count as seen. */
  #look() {
    if (this.unseen === 0 || !this.#isAtEnd()) return;
    this.unseen = 0;
    this.button.hidden = true;
  }

  #made() {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "new";
    button.addEventListener("click", async () => {
      await this.travel.toEnd();
      this.#look();
    });
    document.body.append(button);
    return button;
  }
}

function items(sections) {
  return sections.reduce((sum, section) => sum + section.items, 0);
}

function cut(many) {
  const what = many === 1 ? "1 entry was" : `${many.toLocaleString("en")} entries were`;
  return `The transcript was truncated: ${what} removed.`;
}

/** On a list: show once that it is out of date. */
export function watchList() {
  let isSaid = false;
  hear("/live", (session) => {
    if (isSaid || session === "") return;
    isSaid = true;
    const line = document.createElement("p");
    line.className = "changed";
    line.setAttribute("role", "status");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Sessions have changed: reload";
    button.addEventListener("click", () => location.reload());
    line.append(button);
    document.body.append(line);
  });
}
