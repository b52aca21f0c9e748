"""Build the site into ``docs/_build/html``, and check every page: ``python docs/build.py``.

The site needs the extra ``docs``. A warning of Sphinx, an exception on a page, a link that leads nowhere, anything that
would be loaded from another host, a path of the machine that built it, and a picture with words that cmtrack no longer
writes are errors.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

DOCS = Path(__file__).resolve().parent
_LOADED = {  # elements that load what they name; "link" does with some values of rel only
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "input": "src",
    "object": "data",
    "script": "src",
    "source": "src",
    "track": "src",
    "video": "src",
}
_LOADING = {
    "stylesheet",
    "preload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
    "icon",
    "modulepreload",
    "manifest",
}
_OUTSIDE = re.compile(r"(?:https?:)?//", re.IGNORECASE)
_URL_IN_CSS = re.compile(
    r"""(?:url\(\s*["']?|@import\s+["'])((?:https?:)?//[^"')\s]+)""", re.IGNORECASE
)
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")


class _Page(HTMLParser):
    """The ids, links and loaded resources of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and _LOADING & set(given.get("rel", "").lower().split()):
            self.loaded.append(given.get("href", ""))
        if given.get(_LOADED.get(tag, "")):
            self.loaded.append(given[_LOADED[tag]])
        self.loaded += [
            part.split()[0] for part in given.get("srcset", "").split(",") if part.strip()
        ]
        self.loaded += _URL_IN_CSS.findall(given.get("style", ""))


def check(site: Path) -> list[str]:
    """List what is wrong with the pages of a site, one sentence each, without going to the network."""
    written = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in written}
    faults = []
    for path, page in pages.items():
        faults += [
            f"{path.relative_to(site)}: {fault}" for fault in _faults_of(path, page, pages, site)
        ]
    for path in sorted(site.rglob("*.css")):
        outside = _URL_IN_CSS.findall(path.read_text(encoding="utf-8"))
        faults += [
            f"{path.relative_to(site)}: loads “{address}” from outside" for address in outside
        ]
    return faults + list(_faults_of_search(site))


def _faults_of(path: Path, page: _Page, pages: dict[Path, _Page], site: Path) -> Iterator[str]:
    for address in page.loaded:
        if _OUTSIDE.match(address):
            yield f"loads “{address}” from outside"
        elif not address.startswith("data:") and not _target(path, address)[0].is_file():
            yield f"loads “{address}”, which is not in the site"
    for link in dict.fromkeys(page.links):
        if urlsplit(link).scheme or link.startswith("//"):
            continue  # of another site; the network is not asked
        target, anchor = _target(path, link)
        if target.is_dir():
            target /= "index.html"
        if not target.is_relative_to(site) or not target.is_file():
            yield f"links to “{link}”, which is not in the site"
        elif anchor and target in pages and anchor not in pages[target].ids:
            yield f"links to “{link}”, which has no such anchor"
    yield from _faults_of_text(path.read_text(encoding="utf-8"))


def _target(page: Path, address: str) -> tuple[Path, str]:
    """The file, and the anchor in it, that an address on a page stands for."""
    parts = urlsplit(address)
    place = unquote(parts.path)
    return (Path(os.path.normpath(page.parent / place)) if place else page), unquote(parts.fragment)


def _faults_of_text(text: str) -> Iterator[str]:
    """Paths of this machine, and addresses in its memory, in the text or the source of a page."""
    shown = html.unescape(re.sub(r"<[^>]*>", "", text))
    places = {str(DOCS.parent), str(Path.home()), tempfile.gettempdir(), sys.prefix} - {"/"}
    longest_first = "|".join(sorted(map(re.escape, places), key=len, reverse=True))
    path = re.compile(rf"(?<![\w.-])(?:{longest_first})(?:/[\w./-]*|(?![\w/-]))")
    for found in sorted({*path.findall(text), *path.findall(shown)}):
        yield f"shows the path “{found}” of the machine that built it"
    address = _ADDRESS.search(shown)
    if address:
        yield f"shows “{address[0]}”, which differs from build to build"


def _faults_of_search(site: Path) -> Iterator[str]:
    """The index must be a script: a page that is opened from a disk may load one, and may fetch nothing."""
    index = site / "searchindex.js"
    found = (
        re.fullmatch(r"Search\.setIndex\((.*)\)\s*;?\s*", index.read_text("utf-8"))
        if index.is_file()
        else None
    )
    known = json.loads(found[1]) if found else {}
    if not known.get("docnames"):
        yield "searchindex.js: the search has no index"
    elif not known.get("indexentries"):
        yield "searchindex.js: the search has lost the entries of the index"
    options = site / "_static" / "documentation_options.js"
    if not options.is_file() or not re.search(
        r"SHOW_SEARCH_SUMMARY:\s*false", options.read_text("utf-8")
    ):
        yield "_static/documentation_options.js: the search fetches pages for its summaries"


def forget(site: Path, root: Path = DOCS.parent) -> None:
    """Remove what earlier builds keep of code that they ran, where the code that a page runs is not as it was then.

    The notebooks' cache, Sphinx's pages and the gallery's sums know a page by its own text only.
    """
    code = hashlib.sha256()
    for folder in ("cmtrack", "integrations", "docs/_ext", "docs/_pages"):
        for path in sorted(
            path for path in (root / folder).rglob("*") if path.is_file() and path.suffix != ".pyc"
        ):
            code.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    stamp = site / ".doctrees" / "code.sha256"
    if stamp.is_file() and stamp.read_text() == code.hexdigest():
        return
    for kept in (site / ".doctrees", site / ".jupyter_cache"):
        shutil.rmtree(kept, ignore_errors=True)
    for path in (root / "docs" / "gallery" / "generated" / "examples").glob("*.md5"):
        path.unlink()
    stamp.parent.mkdir(parents=True)
    stamp.write_text(code.hexdigest())


def start_check_of_pictures() -> subprocess.Popen[str]:
    """Start a process that compares the words in the pictures with what cmtrack writes now."""
    return subprocess.Popen(
        [sys.executable, str(DOCS / "pictures.py"), "--check"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def faults_of_pictures(checking: subprocess.Popen[str]) -> list[str]:
    """Wait for the process, and return what it found, one sentence each."""
    found, log = checking.communicate()
    if checking.returncode and not found:
        return [f"docs/pictures.py --check failed:\n{log}"]
    return found.splitlines()


def main(arguments: list[str] | None = None) -> int:
    """Build and check; 0 where nothing is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", type=Path, default=DOCS / "_build" / "html", help="the folder of the site"
    )
    parser.add_argument(
        "--no-execute",
        action="store_true",
        help="leave the code of the pages unrun, to see words quickly",
    )
    parser.add_argument("--check-only", action="store_true", help="check the site that is there")
    parser.add_argument("--open", action="store_true", help="open the site in a browser")
    given = parser.parse_args(arguments)
    site = given.output.resolve()
    faults = []
    if not given.check_only:
        # This takes half a minute, so it runs while Sphinx builds.
        checking = None if given.no_execute else start_check_of_pictures()
        command = [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "--keep-going",
            "-q",
            "-j",
            "auto",
            "-b",
            "html",
        ]
        command += ["-a"]  # the search loses the entries of pages that Sphinx does not write
        # each site has its own cache
        command += ["-D", f"nb_execution_cache_path={site / '.jupyter_cache'}"]
        command += ["-t", "no-execute"] if given.no_execute else []
        forget(site)
        sphinx = subprocess.run([*command, str(DOCS), str(site)], check=False)
        if checking is not None:
            faults += faults_of_pictures(checking)
        if sphinx.returncode:
            print("\n".join(faults), file=sys.stderr)
            return 1
    faults += check(site)
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{site / 'index.html'}: {len(list(site.rglob('*.html')))} pages, {len(faults)} faults")
    if given.open:
        webbrowser.open((site / "index.html").as_uri())
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
