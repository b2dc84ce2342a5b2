"use strict";
// Every table with titles is sorted by a click on one: numbers by their size, words by the alphabet, what is missing last. Rows stay in their group.
for (const table of document.querySelectorAll("main table")) {
  const titles = [...(table.tHead?.rows[0].cells ?? [])], groups = [...table.tBodies];
  if (groups.every((group) => group.rows.length < 3)) continue;
  const worth = (row, column) => {
    const text = (row.cells[column]?.textContent ?? "").trim(), number = parseFloat(text.replaceAll(",", "").replace(/^[−–](?=\d)/, "-"));
    return ["", "–", "not published"].includes(text) ? null : Number.isNaN(number) ? text : number;
  };
  const before = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : typeof a === typeof b ? a.localeCompare(b, "en", { numeric: true }) : typeof a === "number" ? -1 : 1;
  for (const [column, title] of titles.entries()) {
    const button = Object.assign(document.createElement("button"), { type: "button" });
    button.append(...title.childNodes);
    title.append(button);
    button.onclick = () => {
      const sign = title.ariaSort === "ascending" ? -1 : 1;
      for (const one of titles) one.removeAttribute("aria-sort");
      title.ariaSort = sign === 1 ? "ascending" : "descending";
      for (const group of groups) {
        const rows = [...group.rows], [heads, mine] = [rows.filter((row) => row.querySelector("th")), rows.filter((row) => !row.querySelector("th"))];
        const known = mine.map((row) => [worth(row, column), row]), missing = ([value]) => value === null;
        const sorted = known.filter((one) => !missing(one)).sort(([a], [b]) => sign * before(a, b));
        group.append(...heads, ...[...sorted, ...known.filter(missing)].map(([, row]) => row));
      }
    };
  }
}
