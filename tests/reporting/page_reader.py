"""A page as its reader meets it: tags, tables, figures, text."""

from html.parser import HTMLParser
from pathlib import Path

VOID = {
    "meta",
    "img",
    "br",
    "hr",
    "link",
    "input",
    "source",
    "wbr",
    "col",
    "base",
    "area",
    "embed",
    "track",
    "param",
}


class Page(HTMLParser):
    """What a reader of the page meets; `problems` lists tags that do not close in order."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open, self.problems, self.tags, self.ids, self.attributes, self.text = (
            [],
            [],
            [],
            [],
            [],
            "",
        )
        self.tables, self.region, self.figures = {}, None, []
        self.feed(text)
        self.close()
        self.problems += [f"<{tag}> never closes" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if len(found) < len(attrs):
            self.problems.append(f"<{tag}> has an attribute twice")
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        self.ids += [found["id"]] if "id" in found else []
        if found.get("role") == "region":
            self.region = found["aria-label"]
            self.tables[self.region] = []
        if tag == "tr":
            self.tables[self.region].append([])
        if tag in ("td", "th"):
            self.tables[self.region][-1].append("")
        if tag == "img":
            self.figures.append(found)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> at {self.getpos()} closes what is not open")

    def handle_data(self, data):
        if "style" not in self.open and "script" not in self.open:
            self.text += data
        if self.open and ("td" in self.open or "th" in self.open):
            self.tables[self.region][-1][-1] += data


def read(name: str = "index.html") -> Page:
    return Page(Path("reports", name).read_text(encoding="utf-8"))


def rows_of(seen: Page, table: str) -> list[dict[str, str]]:
    """The rows of a table, cells by the title of their column."""
    titles, *rows = seen.tables[table]
    assert len(set(titles)) == len(titles)
    return [dict(zip(titles, row, strict=True)) for row in rows]
