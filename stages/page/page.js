"use strict";
// The page without this script is whole: every table stands in it. The script filters, changes the theme and opens chains.
const $ = (one, within = document) => within.querySelector(one), $$ = (one, within = document) => [...within.querySelectorAll(one)];
const made = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);
const DATA = JSON.parse($("#chains").textContent);

// --- theme: the system's unless chosen
const dark = () => document.documentElement.dataset.theme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
const told = () => { $("#theme").textContent = dark() ? "Light theme" : "Dark theme"; };
try { const kept = localStorage.getItem("tradewind-theme"); if (kept) document.documentElement.dataset.theme = kept; } catch { /* no storage: the system's theme */ }
$("#theme").hidden = false;
$("#theme").onclick = () => {
  const theme = document.documentElement.dataset.theme = dark() ? "light" : "dark";
  try { localStorage.setItem("tradewind-theme", theme); } catch { /* chosen for this visit */ }
  told();
};
told();

// --- filters, kept in the fragment: #document=thesis&profile=mini&at=claims
const FIELDS = ["document", "family", "profile", "verdict", "words"], field = (name) => $(`#f-${name}`);
const asked = () => Object.fromEntries(FIELDS.map((name) => [name, field(name).value.trim()]));
const fragment = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
const GROUPS = $$("#results-table tbody"), CLAIMS = $$("#claims-table tbody tr"), ERRATA = $$("#errata-table tbody tr"), VIEWS = $$("section.view");
const fits = (one, wanted) => (!wanted.document || (one.dataset.d || "").split(" ").includes(wanted.document)) &&
  (!wanted.family || one.dataset.y === wanted.family) && (!wanted.profile || one.dataset.p === wanted.profile);
const said = (one, words) => words.toLowerCase().split(/\s+/).every((word) => one.textContent.toLowerCase().includes(word));
const counted = (rows, name) => `${rows.filter((row) => !row.hidden).length} of ${rows.length} ${name}`;

function filter() {
  const wanted = asked(), rows = [];
  for (const group of GROUPS) {
    const [head, ...mine] = $$("tr", group), fit = fits(group, wanted) && !wanted.verdict;
    for (const row of mine) row.hidden = !(fit && (!wanted.words || said(row, wanted.words) || said(head, wanted.words)));
    group.hidden = mine.every((row) => row.hidden);
    rows.push(...mine);
  }
  for (const row of CLAIMS) row.hidden = !(fits(row, wanted) && (!wanted.verdict || row.dataset.v === wanted.verdict) && (!wanted.words || said(row, wanted.words)));
  for (const row of ERRATA) row.hidden = !((!wanted.document || row.dataset.d === wanted.document) && (!wanted.family || row.dataset.y.split(" ").includes(wanted.family)) && (!wanted.words || said(row, wanted.words)));
  for (const view of VIEWS) view.hidden = !fits(view, wanted);
  $("#shown").textContent = `Shown: ${counted(rows, "results")}, ${counted(CLAIMS, "claims")}, ${counted(ERRATA, "errata")}, ${counted(VIEWS, "experiments")}.`;
  dispatchEvent(new Event("filtered"));
}

function keep(more = {}) {
  const wanted = new URLSearchParams(Object.entries({ ...asked(), ...more }).filter(([, value]) => value));
  history.replaceState(null, "", wanted.size ? `#${wanted}` : location.pathname + location.search);
}

function restore() {
  const wanted = fragment(), target = location.hash && !location.hash.includes("=") && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (location.hash.includes("=")) for (const name of FIELDS) field(name).value = wanted.get(name) || "";
  filter();
  if (target && target.closest("[hidden]")) { clear(); target.scrollIntoView(); }
  if (wanted.get("at")) document.getElementById(wanted.get("at"))?.scrollIntoView();
  if (wanted.get("chain")) show(wanted.get("chain"));
}

function clear() { for (const name of FIELDS) field(name).value = ""; filter(); }

$("#find").hidden = false;
for (const name of FIELDS) field(name).addEventListener("input", () => { filter(); keep(); });
$("#clear").onclick = () => { clear(); keep(); };
document.addEventListener("click", (event) => {  // a link inside the page keeps the filters
  const link = event.target.closest("a[href^='#']"), target = link && document.getElementById(link.hash.slice(1));
  if (!target || !Object.values(asked()).some(Boolean)) return;
  event.preventDefault();
  if (target.closest("[hidden]")) clear();
  keep({ at: target.id });
  target.scrollIntoView();
});

// --- chains: from a number to its bytes
const NAMES = [["contexts", "Neighbours of every training target"], ["prepare", "Prepared: splits, scaler, provenance"], ["validate", "Validated by the gate"],
  ["decode", "Decoded"], ["acquire", "Raw files: SHA-256, licence, source"]];
const size = (bytes) => bytes < 1e4 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
const armed = (part, words) => part.a.find((arm) => arm === words || part.say[arm] === words || words.split(/ \/ | · |, one |, two /)[0] === (part.say[arm] || arm));

function address(row) {
  if (row.dataset.c) return row.dataset.c;
  if (row.closest("#results-table")) return [row.parentElement.dataset.at, row.cells[0].textContent, row.dataset.a || row.cells[1]?.textContent].join("/");
  const home = row.closest("[data-at]")?.dataset.at.split("/");
  if (!home || !row.cells.length || row.cells[0].textContent.startsWith("printed")) return null;
  const run = DATA.runs[home.slice(0, 2).join("/")], words = [...row.cells].map((cell) => cell.textContent.trim());
  if (!run) return null;
  if (!home[2] && run.d[words[0]]) home.push(words.shift());
  const part = run.d[home[2]], arm = part && words.slice(0, 2).map((one) => armed(part, one)).find(Boolean);
  return [...home, ...(arm ? [arm] : [])].join("/");
}

function step(title, node, record, from) {
  const all = made("details"), head = made("summary", title + " "), list = made("table"), body = made("tbody");
  head.append(made("span", `${node.n} file${node.n === 1 ? "" : "s"}, ${size(node.bytes)}; code ${node.code}${node.seed === undefined ? "" : `; seed ${node.seed}`}`));
  const titles = made("tr");
  for (const name of ["file", "bytes", "SHA-256", ...(from ? ["licence", "source"] : [])]) titles.append(made("th", name, { scope: "col", className: "left" }));
  for (const [name, bytes, sha] of node.files) {
    const row = made("tr");
    row.append(made("td", name), made("td", bytes.toLocaleString("en")), made("td", sha, { className: "sha" }));
    if (from) for (const one of name === "manifest.json" ? ["MIT, as the project", "written by the acquisition"] : from[name] || from[""] || ["not stated", "not stated"]) row.append(made("td", one));
    body.append(row);
  }
  const thead = made("thead"), box = made("div", "", { className: "scroll", tabIndex: 0 });
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", `files of ${title}`);
  thead.append(titles);
  list.append(thead, body);
  box.append(list);
  const rest = node.n - node.files.length, where = made("p", `In ${node.at}/${rest > 0 ? `, with ${rest} more` : ""}. Record: `, { className: "quiet" });
  where.append(made("code", record));
  all.append(head, box, where);
  return all;
}

function steps([experiment, profile, dataset, arm]) {
  const run = DATA.runs[`${experiment}/${profile}`], home = `reports/${experiment}/${profile}/records/`, part = run.d[dataset];
  const found = [step("Table", run.t, `${home}tabulate.json`)];
  if (!part) return found;
  found.push(step("Evaluated", part.e, `${home}${dataset}.evaluate.json`));
  for (const cell of Object.keys(part.c)) if (arm && cell.replace(/-s\d+$/, "") === arm) found.push(step(`Checkpoint ${cell}, trained`, part.c[cell], `${home}${dataset}.${cell}.train.json`));
  for (const model of Object.keys(part.s)) if (arm && arm.split("-")[0] === model) found.push(step(`Sweep of ${model}`, part.s[model], `${home}${dataset}.${model}.sweep.json`));
  const spine = DATA.spine[profile]?.[dataset] || {};
  for (const [stage, title] of NAMES) if (spine[stage] && (stage !== "contexts" || arm?.startsWith("gka") || !arm))
    found.push(step(title, spine[stage], `data/${profile}/records/${dataset}.${stage}.json`, spine[stage].from));
  return found;
}

function show(id) {
  const [experiment, profile, dataset, arm] = id.split("/"), run = DATA.runs[`${experiment}/${profile}`], box = $("#chain");
  const elsewhere = DATA.pages[`${experiment}/${profile}`];
  if (!run) { if (elsewhere) location.href = `${elsewhere}#chain=${id}`; return; }
  const part = run.d[dataset], one = part?.m[arm], known = one?.[0] || Object.values(part?.m || {})[0]?.[0].replace(/^(([^/]+\/){3})[^/]+/, `$1${arm}`);
  $("#chain-title").textContent = [part ? dataset : "", arm ? part.say[arm] || arm : "", `${experiment}, ${profile}`].filter(Boolean).join(" · ");
  const body = $("#chain-body"), list = made("ol");
  body.replaceChildren();
  if (one) body.append(made("p", one[1]));
  if (arm && known) body.append(made("p", "Check it, and make it again:"), made("pre", `tradewind audit ${known} --verify eval\ndvc repro reports/${experiment}/dvc.yaml:tabulate@${profile}`));
  else body.append(made("p", "Make it again:"), made("pre", `dvc repro reports/${experiment}/dvc.yaml:tabulate@${profile}`));
  const choices = part ? (arm ? [] : part.a.map((name) => [`${experiment}/${profile}/${dataset}/${name}`, part.say[name] || name])) : Object.keys(run.d).map((name) => [`${experiment}/${profile}/${name}`, name]);
  if (choices.length) {
    const row = made("p", part ? "Of one model: " : "Of one data set: ", { className: "arms" });
    for (const [other, words] of choices) row.append(made("button", words, { type: "button", className: "button", onclick: () => show(other) }));
    body.append(row);
  }
  for (const each of steps([experiment, profile, dataset, arm])) { const item = made("li"); item.append(each); list.append(item); }
  if (part && !DATA.spine[profile]?.[dataset]) { const item = made("li"); item.append(made("p", "No raw file: these points are drawn from a seed where they are searched.")); list.append(item); }
  body.append(list);
  keep({ chain: id });
  if (!box.open) box.showModal();
  box.scrollTop = 0;
}

$("#chain").addEventListener("close", () => keep());
$("#chain-close").onclick = () => $("#chain").close();
$("#chain-all").onclick = () => { const all = $$("#chain details"), open = all.some((one) => !one.open); for (const one of all) one.open = open; };
for (const row of $$("[data-at] tbody tr, tbody[data-at] tr, tr[data-c]")) {
  const id = row.querySelector("th") ? null : address(row), cell = row.cells[row.closest("#results-table") ? 1 : 0];
  if (!id) continue;
  const button = made("button", cell.textContent, { type: "button", className: "chain" });
  button.setAttribute("aria-haspopup", "dialog");
  cell.replaceChildren(button);
  row.classList.add("linked");
  row.dataset.c = id;
}
document.addEventListener("click", (event) => {
  const row = event.target.closest("tr.linked"), link = event.target.closest("[data-open]");
  if (link) { event.preventDefault(); show(link.dataset.open); } else if (row && !event.target.closest("a") && !String(getSelection())) show(row.dataset.c);
});
addEventListener("hashchange", restore);
restore();
