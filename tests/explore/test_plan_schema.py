"""The schema accepts valid plans and rejects invalid ones."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import sdcmap as sm
from commands import sdcmap
from documents import WRITTEN, script
from sdcmap.errors import PlanError
from sdcmap.explore.plan_schema import plan_schema
from sdcmap.methods import METHODS

TOML_BLOCK = re.compile(r"^[ \t]*```toml\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
GOOD = '[[methods]]\ntype = "Swap"\non = "sex"\nrate = 0.1\n[[measures]]\ntype = "SmallCells"\n'
WRONG = {
    "a part that no plan has": 'method = "Swap"\n',
    "a class that is none": '[[methods]]\ntype = "Swop"\non = "sex"\n',
    "a measure among methods": '[[methods]]\ntype = "SmallCells"\n',
    "a parameter that is none": '[[methods]]\ntype = "Swap"\non = "sex"\nrat = 0.1\n',
    "a number out of its range": '[[methods]]\ntype = "Swap"\non = "sex"\nrate = 5\n',
    "a text for a number": '[[methods]]\ntype = "Swap"\non = "sex"\nrate = "0.1"\n',
    "a choice that is none": '[[methods]]\ntype = "Microaggregate"\non = "wage"\nmethod = "mdaw"\n',
    "what must be given is not": '[[methods]]\ntype = "Swap"\nrate = 0.1\n',
    "an axis of a grid that is no parameter": '[[methods]]\ntype = "Swap"\non = "sex"\ngrid.rat = [0.1]\n',
    "subsets without sizes": '[[methods]]\ntype = "Swap"\ngrid.on = {subsets = ["a"]}\n',
    "a step of a chain that is none": '[[methods]]\ntype = "Chain"\nmethods = [{type = "Swap", on = "a", rate = 2}]\n',
    "a rule that is none": 'rule = {type = "Treshold", risk = 0.1}\n',
    "a table where a list is due": 'methods = {type = "Swap", on = "sex"}\n',
    "no replicate": "replicates = 0\n",
    "limits that are texts": 'limits = {SmallCells = "low"}\n',
    "a field of [data] that is none": '[data]\npath = "x.csv"\nkeyz = ["a"]\n',
    "a profile that is none": 'profile = "everybody"\n',
    "a limit of a profile that is none": "[profile]\nfund = 0.1\n",
    "a setting of a search out of its range": "[search]\nsure = 2\n",
}


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    made = plan_schema()
    Draft202012Validator.check_schema(made)
    return Draft202012Validator(made)


PARTS = {field.name for field in fields(sm.Plan)} - {"names", "search_methods", "seed", "seed_stated"} | {"analyses"}


def problems(schema: Draft202012Validator, text: str) -> list[str]:
    return [error.message for error in schema.iter_errors(tomllib.loads(text))]


def stated_plans() -> dict[str, str]:
    """Return every plan in the documentation."""
    found: dict[str, str] = {}
    for page in WRITTEN:
        for number, block in enumerate(TOML_BLOCK.findall(page.read_text(encoding="utf-8")), 1):
            if "methods" in tomllib.loads(block):  # skip fragments
                found[f"{page.name} {number}"] = block
    return found


@pytest.mark.parametrize("where", stated_plans())
def test_plans_in_the_documentation_are_valid(schema: Draft202012Validator, where: str) -> None:
    assert problems(schema, stated_plans()[where]) == []


def test_reference_plan_is_valid(schema: Draft202012Validator) -> None:
    example, short = TOML_BLOCK.findall(script("make_pages").toml_page())
    assert problems(schema, example) == [] and problems(schema, short) == []
    assert sm.Plan.from_toml(short + '[[measures]]\ntype = "Hellinger"\n').count == 3, "the unmasked file and two"


def test_schema_contains_every_part_of_a_plan() -> None:
    made = plan_schema()
    assert set(made["properties"]) == PARTS and all(part["description"] for part in made["properties"].values())
    assert {cls.__name__ for cls in METHODS} <= set(made["$defs"])


def test_plan_written_by_look_is_valid(schema: Draft202012Validator) -> None:
    plan = sm.look(sm.demo.population(100, seed=1)).plan("people.csv", "business")
    assert problems(schema, plan.toml()) == []


def test_grids_names_parts_and_plug_ins_are_valid(schema: Draft202012Validator) -> None:
    assert problems(schema, GOOD) == []
    assert problems(schema, GOOD.replace("rate = 0.1", 'name = "sexes"\ngrid.rate = [0.1, 0.2]')) == []
    assert problems(schema, '[[methods]]\ntype = "their.package:Jitter"\nwidth = 2\n') == []
    text = '[[measures]]\ntype = "HouseholdLink"\nattack = "Linkage(metric=\'l\')"\n'
    assert problems(schema, text + '[[measures]]\ntype = "HouseholdLink"\nattack = {type = "NearestRecord"}\n') == []


@pytest.mark.parametrize("what", WRONG)
def test_invalid_plans_are_rejected(schema: Draft202012Validator, what: str) -> None:
    """The schema and `Plan` reject the same plans."""
    assert problems(schema, WRONG[what])
    with pytest.raises(PlanError):
        sm.Plan.from_toml(WRONG[what])


def test_command_writes_schema(tmp_path: Path) -> None:
    said = sdcmap("schema", "-o", tmp_path / "plan.schema.json")
    written: dict[str, Any] = json.loads((tmp_path / "plan.schema.json").read_text(encoding="utf-8"))
    assert written["$defs"]["Swap"]["properties"]["rate"]["anyOf"][0]["maximum"] == 0.5
    assert set(written["properties"]) == PARTS
    assert "#:schema" in said.stderr
