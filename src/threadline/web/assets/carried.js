// Carried: what of the address stays on the way to other pages; the server's links have it by themselves.

const NAMES = ["tz"];

/** @returns {Object<string, string>} those values, by name */
export function carried() {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries(NAMES.filter((name) => query.get(name)).map((name) => [name, query.get(name)]));
}

/** A path of ours with them. */
export function along(path) {
  const query = new URLSearchParams(carried()).toString();
  return query ? `${path}?${query}` : path;
}
