"""Check the site as made: every link leads somewhere within it, and nothing is loaded from elsewhere.

python site/check.py site/build/html
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

OUTSIDE = re.compile(r"https?://[\w.-]+\.[a-z]{2,}(/\S*)?", re.IGNORECASE)  # there is no network to try it on
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
MADE_ELSEWHERE = {"_static", "_downloads"}
HARMLESS = ("canonical", "search", "next", "prev", "index", "author", "copyright")  # relations that load nothing


class Page(HTMLParser):
    """The links, the anchors and what is loaded, of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in LOADS and given.get("rel") not in HARMLESS and LOADS[tag] in given:
            self.loads.append(given[LOADS[tag]])


@cache
def page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def wrong(folder: Path, path: Path) -> Iterator[str]:
    """What is wrong with the links of one page, a sentence each."""
    for link in page(path).loads:
        if urlsplit(link).scheme not in ("", "data") or link.startswith("//"):
            yield f"loads {link} from elsewhere"
    for link in page(path).links + page(path).loads:
        scheme = urlsplit(link).scheme
        if scheme in ("http", "https") and not OUTSIDE.fullmatch(link):
            yield f"has a link that is none: {link}"
        elif not scheme and not leads(folder, path, link):
            yield f"links to {link}, which is not there"


def leads(folder: Path, path: Path, link: str) -> bool:
    """Whether a link within the site leads to a file of it, and to a place on that page."""
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
    if not target.is_file() or folder.resolve() not in target.parents:
        return False
    if not parts.fragment or target.suffix != ".html" or MADE_ELSEWHERE & set(target.parts):
        return True
    return unquote(parts.fragment) in page(target).anchors


def check(folder: Path) -> list[str]:
    """What is wrong with the site, a line each."""
    pages = [path for path in sorted(folder.rglob("*.html")) if not MADE_ELSEWHERE & set(path.parts)]
    if not pages:
        return [f"{folder} has no pages"]
    found = [f"{path.relative_to(folder)} {what}" for path in pages for what in wrong(folder, path)]
    links = sum(len(page(path).links) for path in pages)
    print(f"{len(pages)} pages, {links:,} links, {len(found)} wrong")
    return found


if __name__ == "__main__":
    faults = check(Path(sys.argv[1]))
    print("\n".join(faults))
    sys.exit(bool(faults))
