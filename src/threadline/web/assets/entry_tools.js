// One bar of buttons that moves to the item under the pointer, touched, or navigated to.
//
// A bar in each item would be thousands of elements. `data-deed` names what a button does; it applies to the item that
// contains the bar.

/**
 * Move the bar along.
 * @param {HTMLElement} feed
 */
export function startTools(feed) {
  const bar = document.getElementById("tools")?.content.firstElementChild?.cloneNode(true);
  if (!(bar instanceof HTMLElement)) return;
  const follow = (event) => {
    const item = event.target instanceof Element ? event.target.closest("article") : null;
    // A button that has the keyboard focus stays.
    if (item === null || bar.parentElement === item || bar.querySelector(":focus-visible") !== null) return;
    item.append(bar);
  };
  feed.addEventListener("pointerover", follow, { passive: true });
  feed.addEventListener("marked", follow);
}
