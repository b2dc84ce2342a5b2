"use strict";
// Charts: values under the pointer (or by the arrow keys) stand beside the names; a name switches its line off and on.
for (const chart of $$("figure.chart")) {
  const plot = $(".plot", chart), items = $$(".legend li", chart), told = made("output", "Point at the chart, or use its arrow keys, to read values; a name switches its line.", { className: "quiet" });
  const numbers = (text) => (text ?? "").split(" ").map(Number);
  const lines = $$(".line", plot).map((group) => {
    const level = !group.dataset.x, values = numbers(group.dataset.y), places = level ? [] : numbers(group.dataset.x);
    const at = level ? [] : $("polyline", group).getAttribute("points").split(" ").map((point) => Number(point.split(",")[0]));
    return { group, level, values, places, at };
  });
  const names = new Map($$(".grid text[data-n]", plot).map((text) => [Number(text.dataset.n), text.textContent]));
  const shown = lines.map((line, number) => {
    const button = made("button", "", { type: "button", className: "key" }), value = made("span", "", { className: "value" });
    button.setAttribute("aria-pressed", "true");
    button.append(...items[number].childNodes);
    button.onclick = () => {
      const off = line.group.classList.toggle("off");
      button.setAttribute("aria-pressed", String(!off));
    };
    items[number].append(button, value);
    if (line.level) value.textContent = line.values[0].toLocaleString("en", { maximumSignificantDigits: 4 });
    return value;
  });
  $(".legend", chart).after(told);
  const cross = plot.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
  cross.setAttribute("class", "cross");
  const stops = [...new Map(lines.flatMap((line) => line.at.map((at, k) => [line.places[k], at]))).entries()].sort((a, b) => a[0] - b[0]);
  let now = -1;
  const read = (stop) => {
    now = Math.max(0, Math.min(stops.length - 1, stop));
    const [place, at] = stops[now], words = [];
    cross.setAttribute("d", `M${at} 12V248`);
    for (const [number, line] of lines.entries()) {
      if (line.level) continue;
      const near = line.at.reduce((best, one, k) => Math.abs(one - at) < Math.abs(line.at[best] - at) ? k : best, 0);
      const own = line.places[near] === place ? "" : ` (at ${line.places[near].toLocaleString("en")})`;
      shown[number].textContent = line.values[near].toLocaleString("en", { maximumSignificantDigits: 4 }) + own;
      if (!line.group.classList.contains("off")) words.push(`${$(".name", items[number]).textContent} ${shown[number].textContent}`);
    }
    told.textContent = `${plot.dataset.x}: ${names.get(place) ?? place.toLocaleString("en")}`;
    plot.setAttribute("aria-label", `${told.textContent}: ${words.join("; ")}`);
  };
  plot.tabIndex = 0;
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect(), x = (event.clientX - box.left) * plot.viewBox.baseVal.width / box.width;
    read(stops.reduce((best, [, at], k) => Math.abs(at - x) < Math.abs(stops[best][1] - x) ? k : best, 0));
  });
  plot.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -stops.length, End: stops.length }[event.key];
    if (!by) return;
    event.preventDefault();
    read(now < 0 && by === -1 ? stops.length - 1 : now + by);
  });
}
