"""Matching people to records with labels of several depths."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.data.label_matching import check_one_depth, possible_matches, spell_out_true_labels
from sdcmap.errors import Undefined

PEOPLE = sm.read(pl.DataFrame({"age": [34.0, 37, 52, None], "sex": ["f", "m", "f", "f"]}), numeric=["age"])
LABELS = pl.DataFrame({"age": ["34", "(30, 40]", "*", None, "(30, 40]"], "sex": ["f", "f", "f", "f", "m"]})
RECORDS = sm.read(LABELS, keys=["age", "sex"])


def test_possible_matches_are_counted() -> None:
    fit = possible_matches(PEOPLE, RECORDS, ["age", "sex"])
    assert fit is not None
    table = [[1, 1, 1, 0, 0], [0, 0, 0, 0, 1], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]]  # people x records
    person, record = np.indices((4, 5))
    assert fit.can_match(person.ravel(), record.ravel()).reshape(4, 5).astype(int).tolist() == table
    assert fit.records_of_people().tolist() == np.sum(table, axis=1).tolist()
    assert fit.people_of_records().tolist() == np.sum(table, axis=0).tolist()
    alike = fit.also_equal(np.array([1, 1, 1, 1, 1, 2, 1, 1, 1]))
    assert alike.records_of_people().tolist() == [2, 1, 1, 1]


def test_labels_of_one_depth_need_no_matching() -> None:
    assert possible_matches(PEOPLE, PEOPLE, ["age", "sex"]) is None
    assert possible_matches(PEOPLE, sm.mask(PEOPLE, sm.Recode("age", width=10), seed=1), ["age"]) is None
    with pytest.raises(Undefined, match="'age' has labels of several depths"):
        check_one_depth(PEOPLE, RECORDS, ["sex", "age"])


def test_labels_are_spelled_out_only_if_all_others_are_true() -> None:
    """ "other" means miner or judge, unless the label "judge" is wrong for some clerks."""
    data = sm.read(pl.DataFrame({"job": ["clerk", "miner", "judge"]}), keys=["job"])
    result = lambda labels: sm.Microdata(data.schema, sm.read(pl.DataFrame({"job": labels}), keys=["job"]).columns)
    true, false = result(["clerk", "other", "other"]), result(["judge", "other", "other"])
    assert spell_out_true_labels(data, true, ["job"]).frame()["job"].to_list() == [
        "clerk",
        "judge|miner",
        "judge|miner",
    ]
    assert spell_out_true_labels(data, false, ["job"]) is false
