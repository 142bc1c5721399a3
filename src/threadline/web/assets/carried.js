// URL parameters that links to other pages carry over. The server adds them to its own links.

const NAMES = ["tz"];

/** @returns {Object<string, string>} the parameters by name */
export function carried() {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries(NAMES.filter((name) => query.get(name)).map((name) => [name, query.get(name)]));
}

/** Add them to a path. */
export function along(path) {
  const query = new URLSearchParams(carried()).toString();
  return query ? `${path}?${query}` : path;
}
