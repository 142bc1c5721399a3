// Shows times in the browser's time zone: stores it in a cookie, and loads a page again that was shown in another zone.
"use strict";
(() => {
  // The zone of this page, if it is the default: a zone in the URL was chosen.
  const { zone } = document.currentScript.dataset;
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone === undefined || !own) return;
  const cookie = `threadline-zone=${encodeURIComponent(own)}`;
  const isStored = () => document.cookie.split("; ").includes(cookie);
  const wasStored = isStored();
  document.cookie = `${cookie}; path=/; samesite=strict`;
  // Once only: the server may not know the zone, or its name may be an alias. Cookies may be forbidden.
  if (zone !== own && !wasStored && isStored()) location.reload();
})();
