"""Released labels of several depths are read correctly."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.data.label_layers import assign_categories, label_matches, read_labels, separate_layers, spell_out_labels


@pytest.mark.parametrize(
    ("values", "label", "behind"),
    [
        ([20.0, 34.5, 40.0], "(20, 40]", [0, 1, 1]),
        ([20.0, 34.5, 40.0], "34.5", [0, 1, 0]),
        ([20.0, 34.5, 40.0], ">= 34.5", [0, 1, 1]),
        (["20", "34", "x"], "(30, 40]", [0, 1, 0]),
        (["81667", "81675", "1"], "8166*", [1, 0, 0]),
        (["W11", "W12", "E10"], "W1", [1, 1, 0]),
        (["W11", "W1", "E10"], "W", [0, 0, 0]),  # values of several lengths have no common prefix length
        (["a", "b", "c"], "a|c", [1, 0, 1]),
        (["a", "b", "c"], "*", [1, 1, 1]),
        (["a", "b", "c"], "other", [0, 0, 0]),
    ],
)
def test_label_matches_values(values: list[object], label: str, behind: list[int]) -> None:
    assert label_matches(pl.Series(values), [label])[:, 0].astype(int).tolist() == behind


def test_layers_agree_with_label_matches() -> None:
    """A record and a person agree in the layer of the record's label exactly if the label matches the value."""
    rng = np.random.default_rng(1)
    people = sm.read(pl.DataFrame({"age": [*rng.integers(20, 60, 200).astype(float), None]}), numeric="all")
    labels = ["21", "34", "(20, 30]", "(30, 40]", "(20, 40]", "(40, 60]", "*", None]
    records = sm.read(pl.DataFrame({"age": rng.choice(np.array(labels, dtype=object), 90).tolist()}), keys=["age"])
    read = read_labels(people, records, "age")
    assert read is not None
    layers = separate_layers(read)
    assert layers is not None and layers.known.shape[1] == 4
    assert ((layers.released >= 0).sum(axis=1) == 1).all()
    result = records.frame()["age"].to_list()
    for t, age in enumerate(people.frame()["age"].to_list()):
        for r, label in enumerate(result):
            place = layers.released[r] >= 0
            agree = bool((layers.known[t] == layers.released[r])[place].all())
            known = age is not None and label is not None
            assert agree == (bool(label_matches(pl.Series([age]), [label])[0, 0]) if known else age is label)


def test_opaque_labels_are_spelled_out() -> None:
    data = sm.read(pl.DataFrame({"job": ["clerk", "miner", "judge", "clerk"]}), keys=["job"])
    masked = sm.mask(data, sm.Recode("job", merge=[["miner", "judge"]], labels=["other"]), seed=1)
    assert spell_out_labels(data, masked, ["job"]).frame()["job"].to_list() == [
        "clerk",
        "judge|miner",
        "judge|miner",
        "clerk",
    ]
    assert spell_out_labels(data, data, ["job"]) is data


def test_values_with_several_categories_are_not_assigned() -> None:
    assert assign_categories(pl.Series([25.0, 35.0]), ["(20, 30]", "(20, 40]"]) is None
    assert assign_categories(pl.Series(["a", "b"]), ["a|b", "a"]) is None
