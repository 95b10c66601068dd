"""The codebook as DDI-Codebook 2.5, as archives take it: made of the entries of codebook.json, and so of released values.

Elements stand in the order of the schema (ddi:codebook:2_5). Of each variable `notes` says what was done to it, `txt` how
to read it. Frequencies and moments are left out: whoever has the file can count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from sdcmap.bundle.codebook import Entry, done_words
from sdcmap.bundle.note import Note
from sdcmap.bundle.prepared_file import Prepared
from sdcmap.bundle.readme import About
from sdcmap.files.formats import format_named

NAMESPACE = "ddi:codebook:2_5"
FILE = "F1"  # the ID of the data file
TEXTS = ("String", "Categorical", "Enum")
TIMES = {"Date": "date", "Datetime": "time", "Time": "time"}
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML 1.0 has not


def codebook_xml(about: About, entries: Sequence[Entry], prepared: Prepared, note: Note) -> str:
    """The text of codebook.xml."""
    book = Element("codeBook", {"xmlns": NAMESPACE, "version": "2.5"})
    _document(book, about, note)
    _study(book, about, prepared, note)
    _file(book, prepared)
    variables = SubElement(book, "dataDscr")
    for number, entry in enumerate(entries, 1):
        _variable(variables, number, entry, len(prepared.data))
    indent(book)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(book, encoding="unicode") + "\n"


def _put(parent: Element, tag: str, text: str = "", attributes: Mapping[str, str] | None = None) -> Element:
    """A new element, with characters that XML has not shown as such."""
    clean = {name: NO_XML.sub("\ufffd", value) for name, value in (attributes or {}).items()}
    element = SubElement(parent, tag, clean)
    element.text = NO_XML.sub("\ufffd", text) or None
    return element


def _document(book: Element, about: About, note: Note) -> None:
    citation = _put(_put(book, "docDscr"), "citation")
    _put(_put(citation, "titlStmt"), "titl", f"Codebook of {about.title}")
    production = _put(citation, "prodStmt")
    _put(production, "prodDate", about.date, {"date": about.date})
    _put(production, "software", note["made_by"])


def _study(book: Element, about: About, prepared: Prepared, note: Note) -> None:
    study = _put(book, "stdyDscr")
    citation = _put(study, "citation")
    title = _put(citation, "titlStmt")
    _put(title, "titl", about.title)
    _put(title, "subTitl", f"{note['profile']} file")
    if about.owner:
        _put(_put(citation, "rspStmt"), "AuthEnty", about.owner)
    _put(_put(citation, "distStmt"), "distDate", about.date, {"date": about.date})
    if prepared.data.schema.universe:
        _put(_put(_put(study, "stdyInfo"), "sumDscr"), "universe", prepared.data.schema.universe)
    use = _put(_put(study, "dataAccs"), "useStmt")
    _put(use, "restrctn", note["for_whom"])
    _put(use, "conditions", " ".join(note["may_not"]))
    _put(study, "notes", f"{note['method_name']}. Exactly kept: {note['kept_exactly'] or 'nothing is promised'}. "
         f"Distorted: {note['distorted'] or 'see the method note'}.", {"type": "masking"})  # fmt: skip


def _file(book: Element, prepared: Prepared) -> None:
    data = prepared.data
    text = _put(_put(book, "fileDscr", attributes={"ID": FILE}), "fileTxt")
    _put(text, "fileName", f"data.{data.schema.format}")
    size = _put(text, "dimensns")
    _put(size, "caseQnty", str(len(data)))
    _put(size, "varQnty", str(len(data.names)))
    _put(text, "fileType", format_named(data.schema.format).words)


def _variable(parent: Element, number: int, entry: Entry, rows: int) -> None:
    var = _put(parent, "var", attributes=_attributes(number, entry))
    if entry["label"]:
        _put(var, "labl", entry["label"])
    ends = {name: f"{end:.15g}" for name, end in zip(("min", "max"), entry.get("range", ()), strict=False)}
    if ends:
        _put(_put(var, "valrng"), "range", attributes={"UNITS": "REAL", **ends})
    _missing_ranges(var, entry)
    if "universe" in entry:
        _put(var, "universe", entry["universe"])
    gone = entry["counts"]["missing"] + entry["counts"]["suppressed"]
    for kind, value in {"vald": str(rows - gone), "invd": str(gone), **ends}.items():
        _put(var, "sumStat", value, {"type": kind})
    _put(var, "txt", entry["reading"])
    _categories(var, entry)
    _put(var, "varFormat", attributes=_format(entry["type"]))
    _put(var, "notes", done_words(entry), {"type": "masking"})


def _attributes(number: int, entry: Entry) -> dict[str, str]:
    numeric = entry["kind"] == "numeric"
    shown = "datetime" if entry["type"] in TIMES else "numeric" if numeric else "code"
    nature = {} if numeric else {"nature": entry["kind"]}
    weight = {"wgt": "wgt"} if entry.get("use") == "survey weight" else {}
    return {
        "ID": f"V{number}", "name": entry["name"], "files": FILE, "intrvl": "contin" if numeric else "discrete",
        "representationType": shown, **nature, **weight,
    }  # fmt: skip


def _missing_ranges(var: Element, entry: Entry) -> None:
    codes = [one["code"] for one in entry.get("missing", []) if one["code"] is not None]
    if not codes:
        return
    invalid = _put(var, "invalrng")
    for code in codes:
        if isinstance(code, list):
            _put(invalid, "range", attributes={"UNITS": "REAL", "min": f"{code[0]:g}", "max": f"{code[1]:g}"})
        else:
            _put(invalid, "item", attributes={"VALUE": str(code)})


def _categories(var: Element, entry: Entry) -> None:
    shown = [(str(one["value"]), one["label"], False) for one in entry.get("categories", [])]
    shown += [
        (str(one["code"]), one["label"], True)
        for one in entry.get("missing", [])
        if one["label"] and one["code"] is not None
    ]
    for value, label, missing in shown:
        category = _put(var, "catgry", attributes={"missing": "Y"} if missing else None)
        _put(category, "catValu", value)
        if label:
            _put(category, "labl", label)


def _format(storage: str) -> dict[str, str]:
    time = {"category": TIMES[storage]} if storage in TIMES else {}
    return {"type": "character" if storage in TEXTS else "numeric", **time}
