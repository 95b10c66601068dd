"""Write the tested set of dependencies to supply/: `make lock`.

- requirements.lock: each package that the tests install, with its version and the hash of its file. Install it with
  `pip install --require-hashes --no-deps -r supply/requirements.lock`.
- sbom.cdx.json: the packages that users install, as a software bill of materials (CycloneDX). The wheel contains it.
- licenses.md: their licenses. The wheel contains it too.

The versions are those installed in this environment, so run the tests first. The hashes are those of the files for this
platform, as pip reports them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HOME = Path(__file__).parents[1]
SUPPLY = HOME / "supply"
USER_EXTRAS = {"web", "dask", "r", "learn"}  # what users install besides the base; `gpu` depends on the machine
MAX_LICENSE_CHARACTERS = 80  # a longer text is a whole license, not its name


def find_hashes() -> dict[str, str]:
    """Return the SHA-256 of the file of each installed package that the tests need, as pip reports it."""
    with tempfile.TemporaryDirectory() as folder:
        constraints, report = Path(folder) / "constraints.txt", Path(folder) / "report.json"
        installed = (f"{one.name}=={one.version}\n" for one in distributions() if one.name != "sdcmap")
        constraints.write_text("".join(sorted(installed)))
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        options = ["--no-build-isolation", "--constraint", constraints, "--report", report, f"{HOME}[dev]"]
        subprocess.run([*command, *options], check=True)
        files = json.loads(report.read_text())["install"]
    archives = {one["metadata"]["name"]: one["download_info"].get("archive_info") for one in files}
    return {canonicalize_name(name): archive["hashes"]["sha256"] for name, archive in archives.items() if archive}


def find_user_packages() -> dict[str, Distribution]:
    """Return the packages that users install, by name: those of the base and of `USER_EXTRAS`, and what they need."""
    found: dict[str, Distribution] = {}
    waiting = [("sdcmap", frozenset(USER_EXTRAS))]
    seen = {*waiting}
    for name, extras in waiting:
        found[name] = distribution(name)
        for text in found[name].requires or ():
            needed = Requirement(text)
            if needed.marker and not any(needed.marker.evaluate({"extra": extra}) for extra in extras or {""}):
                continue
            entry = canonicalize_name(needed.name), frozenset(needed.extras)
            if entry not in seen:
                seen.add(entry)
                waiting.append(entry)
    del found["sdcmap"]
    return dict(sorted(found.items()))


def license_of(package: Distribution) -> str:
    """Return the license of a package as its metadata state it."""
    facts = package.metadata
    if stated := facts.get("License-Expression"):
        return stated
    classifiers = [
        line.rpartition(" :: ")[2] for line in facts.get_all("Classifier", []) if line.startswith("License ::")
    ]
    text = (facts.get("License") or "").strip()
    return ", ".join(classifiers) or (text if len(text) <= MAX_LICENSE_CHARACTERS else "") or "see the package"


def bill_of_materials(packages: dict[str, Distribution], hashes: dict[str, str]) -> dict[str, Any]:
    """Return the packages as a CycloneDX document."""
    components = [
        {
            "type": "library", "name": name, "version": one.version, "purl": f"pkg:pypi/{name}@{one.version}",
            "licenses": [{"license": {"name": license_of(one)}}],
            "hashes": [{"alg": "SHA-256", "content": hashes[name]}],
        }
        for name, one in packages.items()
    ]  # fmt: skip
    sdcmap = {"type": "application", "name": "sdcmap", "version": distribution("sdcmap").version}
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
    return {**head, "metadata": {"component": sdcmap}, "components": components}


def main() -> None:
    hashes, packages = find_hashes(), find_user_packages()
    SUPPLY.mkdir(exist_ok=True)
    platform = f"Python {sys.version_info.major}.{sys.version_info.minor} on {sys.platform}"
    lines = [f"{name}=={distribution(name).version} --hash=sha256:{digest}" for name, digest in sorted(hashes.items())]
    head = f"# The tested set of dependencies, with the hashes of the files for {platform}. Written by `make lock`."
    (SUPPLY / "requirements.lock").write_text("\n".join([head, *lines, ""]))
    (SUPPLY / "sbom.cdx.json").write_text(json.dumps(bill_of_materials(packages, hashes), indent=1) + "\n")
    rows = [f"| {name} | {one.version} | {license_of(one)} |" for name, one in packages.items()]
    head = "# Licenses of the packages that sdcmap uses\n\nWritten by `make lock`.\n\n| package | version | license |"
    (SUPPLY / "licenses.md").write_text("\n".join([head, "|---|---|---|", *rows, ""]))


if __name__ == "__main__":
    main()
