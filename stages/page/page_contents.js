"use strict";
// The list of contents: folded on a narrow window, and the entry that is read is marked. Words typed above leave those sections that have them; Enter jumps to the first.
{
  const list = $(".contents details"), links = $$(".contents a"), narrow = matchMedia("(max-width: 72rem)");
  const targets = links.map((link) => document.getElementById(link.hash.slice(1)));
  const fold = () => { list.open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
  list.addEventListener("click", (event) => { if (narrow.matches && event.target.closest("a")) list.open = false; });
  list.addEventListener("keydown", (event) => { if (event.key === "Escape" && narrow.matches) { list.open = false; $("summary", list).focus(); } });
  const mark = () => {
    const seen = targets.filter((target) => target.checkVisibility()), above = seen.filter((target) => target.getBoundingClientRect().top < 120), here = above.at(-1) ?? seen[0];
    for (const [place, link] of links.entries()) link.ariaCurrent = targets[place] === here ? "true" : null;
    for (const item of $$(".contents ul ul")) item.classList.toggle("folded", !item.parentElement.querySelector("[aria-current]"));
    const link = links[targets.indexOf(here)], box = link?.getBoundingClientRect(), around = list.parentElement.getBoundingClientRect();
    if (box && !narrow.matches && (box.top < around.top || box.bottom > around.bottom)) list.parentElement.scrollTop += box.top - around.top - around.height / 2;
  };
  let asleep = true;
  addEventListener("scroll", () => { if (asleep) { asleep = false; requestAnimationFrame(() => { asleep = true; mark(); }); } }, { passive: true });
  mark();
  const words = $("#f-words"), sections = $$("section.view [data-at]");
  const choose = () => {
    for (const section of sections) {
      section.hidden = Boolean(words.value.trim()) && !said(section, words.value.trim());
      const link = links.find((one) => section.contains(document.getElementById(one.hash.slice(1))));
      if (link) link.parentElement.hidden = section.hidden;
    }
    mark();
  };
  addEventListener("filtered", choose);
  words.addEventListener("keydown", (event) => {
    const first = event.key === "Enter" && sections.find((section) => !section.hidden);
    if (first) { first.scrollIntoView(); $("h3", first).tabIndex = -1; $("h3", first).focus({ preventScroll: true }); }
  });
  choose();
}
