"""The metadata of the distribution: links and URLs by where it is published."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support import ROOT

pytest.importorskip("hatchling")

ADDRESS = "https://example.org/you/cmtrack"
VERSION = re.search(
    r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
)[1]


def built(kind: str, folder: Path, address: str | None, source: Path = ROOT) -> Path:
    """The path of a built sdist or wheel."""
    environment = {
        name: value for name, value in os.environ.items() if name != "CMTRACK_REPOSITORY"
    }
    if address is not None:
        environment["CMTRACK_REPOSITORY"] = address
    command = f"import hatchling.build as b, sys; print(b.build_{kind}(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", command, str(folder)],
        cwd=source,
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return folder / done.stdout.splitlines()[-1]


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(archive.read(name).decode())


def prose(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def targets(text: str) -> list[str]:
    return re.findall(r"\]\(([^)]*)\)", prose(text))


def urls(found: Message) -> dict[str, str]:
    return dict(line.split(", ") for line in found.get_all("Project-URL", []))


def test_the_light_list_has_the_bounds_of_the_default() -> None:
    page = (ROOT / "docs/reference/install.md").read_text(encoding="utf-8")
    light = (
        re.search(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
        .replace("-skinny", "")
        .splitlines()
    )
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "dependencies"
    ]
    assert light == sorted(set(light) & set(declared))
    left_out = {re.match(r"[a-z-]+", one)[0] for one in set(declared) - set(light)}
    assert left_out == {"duckdb", "matplotlib", "pandas", "pillow", "pyarrow", "scikit-learn"}


@pytest.mark.slow
def test_without_an_address_there_is_no_dead_link_and_two_builds_are_equal(tmp_path: Path) -> None:
    wheel = built("wheel", tmp_path, None)
    first = wheel.read_bytes()
    assert built("wheel", tmp_path, None).read_bytes() == first
    found = metadata(wheel)
    text = found.get_payload()
    assert found["Version"] == VERSION
    assert found["Description-Content-Type"] == "text/markdown"
    assert urls(found) == {}
    assert targets(text) == []
    assert "![" not in text
    assert "Start takes you to" in text  # the words of a link stay
    # nothing is left of a line of pictures
    assert text.startswith("# cmtrack\n\nIs your new model")


@pytest.mark.slow
def test_with_an_address_links_and_urls_are_absolute(tmp_path: Path) -> None:
    found = metadata(built("wheel", tmp_path, ADDRESS + "/"))
    files = f"{ADDRESS}/blob/v{VERSION}"
    assert urls(found) == {
        "Homepage": ADDRESS,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{ADDRESS}/issues",
    }
    absolute = targets(found.get_payload())
    relative = targets((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(absolute) == len(relative) > 20
    for one, path in zip(absolute, relative, strict=True):
        kind = "raw" if path.startswith("docs/images/") else "blob"
        assert one == f"{ADDRESS}/{kind}/v{VERSION}/{path}"


@pytest.mark.slow
def test_an_sdist_keeps_what_it_was_built_with(tmp_path: Path) -> None:
    with tarfile.open(built("sdist", tmp_path, ADDRESS)) as archive:
        # the argument came with Python 3.11.4
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path)
    wheel = built("wheel", tmp_path, None, source=tmp_path / f"cmtrack-{VERSION}")
    assert urls(metadata(wheel))["Homepage"] == ADDRESS
    assert f"({ADDRESS}/raw/v{VERSION}/docs/images/review.png)" in metadata(wheel).get_payload()


def test_the_citation_has_the_version_and_the_words_of_the_distribution() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {
        name: cited[name] for name in ("version", "license", "keywords")
    }.items() <= declared.items()
    assert cited["abstract"] == declared["description"]


@pytest.mark.parametrize(
    "address", ["example.org/you/cmtrack", "https://example.org", "git@example.org:you/cmtrack"]
)
def test_what_is_no_address_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(
        RuntimeError, match="CMTRACK_REPOSITORY must be the address of a repository"
    ):
        built("wheel", tmp_path, address)


def declared(name: str) -> list[str]:
    """What a distribution needs; of this one as pyproject.toml has it now."""
    if name != "cmtrack":
        return requires(name) or []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [
        f"{text}; extra == '{extra}'"
        for extra, texts in project["optional-dependencies"].items()
        for text in texts
        if ";" not in text
    ]
    return project["dependencies"] + extras


def requirements(name: str, extras: set[str], found: dict[str, set[str]]) -> dict[str, set[str]]:
    """All distributions that one installs, with their extras."""
    name = canonicalize_name(name)
    if name in found and extras <= found[name]:
        return found
    found[name] = found.get(name, set()) | extras
    for text in declared(name):
        requirement = Requirement(text)
        environments = [{"extra": extra} for extra in (extras or {""})]
        if requirement.marker is None or any(map(requirement.marker.evaluate, environments)):
            requirements(requirement.name, requirement.extras, found)
    return found


def test_the_extra_docs_installs_what_the_pages_import() -> None:
    # The requirements of a package are known only if it is installed.
    pytest.importorskip("latex2mathml", reason="needs the extra docs")
    cells = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if "_build" not in page.parts:
            text = page.read_text(encoding="utf-8")
            cells += re.findall(r"(?ms)^```\{code-cell\}[^\n]*\n(.*?)^```", text)
    modules = set()
    for cell in cells:
        modules |= set(re.findall(r"(?m)^\s*(?:from|import) (\w+)", cell))
    assert {"cmtrack", "sklearn", "polars", "statsmodels"} <= modules
    own = {path.stem for path in (ROOT / "docs" / "_pages").iterdir()} | {"party"}
    own |= {"cmtrack", "cmtrack_integrations"}
    installed = requirements("cmtrack", {"docs"}, {})
    providers = packages_distributions()
    missing = [
        module
        for module in sorted(modules - own - sys.stdlib_module_names)
        if not {canonicalize_name(name) for name in providers[module]} & installed.keys()
    ]
    assert missing == []
