// Tools: one small bar of buttons, which goes to the item that is pointed at, touched or gone to.
//
// A bar in each item would be thousands of elements. What the buttons do is told by `data-deed`, and done for the item
// that the bar is in.

/**
 * Let the bar follow.
 * @param {HTMLElement} feed
 */
export function startTools(feed) {
  const bar = document.getElementById("tools")?.content.firstElementChild?.cloneNode(true);
  if (!(bar instanceof HTMLElement)) return;
  const follow = (event) => {
    const item = event.target instanceof Element ? event.target.closest("article") : null;
    // Whoever has come to a button by keys keeps it.
    if (item === null || bar.parentElement === item || bar.querySelector(":focus-visible") !== null) return;
    item.append(bar);
  };
  feed.addEventListener("pointerover", follow, { passive: true });
  feed.addEventListener("marked", follow);
}
