"""Metadata that depends on where the repository is published: ``CMTRACK_REPOSITORY=https://… python -m build``.

README links to files of the repository. On a package index such links need an address, and the repository does not
know its own. Whoever publishes says it in ``CMTRACK_REPOSITORY``; then links and pictures are absolute, to the files of
the tag ``v<version>``, in the form that GitHub and GitLab read, and the project has URLs. Without it pictures are left
out, links to files are plain text, and there are no URLs.

The package hatch-fancy-pypi-readme replaces patterns, too, but by fixed texts of ``pyproject.toml``, and no URLs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "CMTRACK_REPOSITORY"
SITE = "CMTRACK_DOCUMENTATION"
"""Of the built site, where it is published; reports then link its page of each metric."""
_IMAGE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\((?!https?:|#|mailto:)([^)\s]+)\)")


class PublishedMetadata(MetadataHookInterface):
    """The README and the URLs of the distribution."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set ``readme`` and, where the address is known, ``urls``."""
        address = repository(os.environ.get(VARIABLE, ""))
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        ref = f"v{metadata['version']}"
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": published(text, address, ref),
        }
        site = os.environ.get(SITE, "").strip().rstrip("/")
        if site and not site.startswith("https://"):
            raise ValueError(f"{SITE} must be an https address, got {site!r}")
        metadata["urls"] = urls(address, ref) | ({"Documentation": f"{site}/"} if site else {})


def repository(given: str) -> str:
    """The address without its last slashes; ValueError for anything but an http address of a path."""
    address = given.strip().rstrip("/")
    parts = urlsplit(address)
    if address and (
        parts.scheme not in ("http", "https") or not parts.netloc or not parts.path.strip("/")
    ):
        raise ValueError(
            f"{VARIABLE} must be the address of a repository such as https://host/owner/name, got {given!r}"
        )
    return address


def urls(address: str, ref: str) -> dict[str, str]:
    """The project's URLs by their label; none without an address."""
    if not address:
        return {}
    return {
        "Homepage": address,
        "Documentation": f"{address}/blob/{ref}/docs/index.md",
        "Changelog": f"{address}/blob/{ref}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def published(text: str, address: str, ref: str) -> str:
    """The README for a package index: with absolute links, or without an address with no dead ones."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)  # code stays as it is
    return "".join(part if part.startswith("```") else _prose(part, address, ref) for part in parts)


def _prose(text: str, address: str, ref: str) -> str:
    if address:
        text = _IMAGE.sub(rf"![\1]({address}/raw/{ref}/\2)", text)
        return _LINK.sub(rf"[\1]({address}/blob/{ref}/\2)", text)
    # a line of pictures goes whole
    text = re.sub(rf"^(?:{_IMAGE.pattern}\s*)+\n", "", text, flags=re.MULTILINE)
    return _LINK.sub(r"\1", _IMAGE.sub("", text))
