"""Check the built site: every link is valid, and nothing is loaded from another host.

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

# links to other hosts are checked by their form only, without a network
OUTSIDE = re.compile(r"https?://[\w.-]+\.[a-z]{2,}(/\S*)?", re.IGNORECASE)
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
MADE_ELSEWHERE = {"_static", "_downloads"}
HARMLESS = ("canonical", "search", "next", "prev", "index", "author", "copyright")  # relations that load nothing


class Page(HTMLParser):
    """The links, the anchors and the loaded resources of a page."""

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


def link_problems(folder: Path, path: Path) -> Iterator[str]:
    """Return the problems with the links of a page."""
    for link in page(path).loads:
        if urlsplit(link).scheme not in ("", "data") or link.startswith("//"):
            yield f"loads {link} from another host"
    for link in page(path).links + page(path).loads:
        scheme = urlsplit(link).scheme
        if scheme in ("http", "https") and not OUTSIDE.fullmatch(link):
            yield f"has an invalid link: {link}"
        elif not scheme and not target_exists(folder, path, link):
            yield f"links to {link}, which does not exist"


def target_exists(folder: Path, path: Path, link: str) -> bool:
    """Return whether a link points to a file of the site, and to an anchor on that page."""
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
    if not target.is_file() or folder.resolve() not in target.parents:
        return False
    if not parts.fragment or target.suffix != ".html" or MADE_ELSEWHERE & set(target.parts):
        return True
    return unquote(parts.fragment) in page(target).anchors


def check(folder: Path) -> list[str]:
    """Return all problems of the site; print the number of pages, links and problems."""
    pages = [path for path in sorted(folder.rglob("*.html")) if not MADE_ELSEWHERE & set(path.parts)]
    if not pages:
        return [f"{folder} has no pages"]
    problems = [f"{path.relative_to(folder)} {problem}" for path in pages for problem in link_problems(folder, path)]
    links = sum(len(page(path).links) for path in pages)
    print(f"{len(pages)} pages, {links:,} links, {len(problems)} problems")
    return problems


if __name__ == "__main__":
    problems = check(Path(sys.argv[1]))
    print("\n".join(problems))
    sys.exit(bool(problems))
