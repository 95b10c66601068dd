"""The codebook as DDI-Codebook 2.5 for archives, made from the entries of codebook.json, and so from released values only.

Elements are in the order of the schema (ddi:codebook:2_5). For each variable, `notes` says how it was masked and `txt` how
to read it. Frequencies and moments are left out: users can compute them from the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from sdcmap.bundle.codebook import Entry, describe_treatment
from sdcmap.bundle.note import Note
from sdcmap.bundle.prepared_file import Prepared
from sdcmap.bundle.readme import About
from sdcmap.files.formats import format_named

NAMESPACE = "ddi:codebook:2_5"
FILE_ID = "F1"
TEXT_TYPES = ("String", "Categorical", "Enum")
TIME_TYPES = {"Date": "date", "Datetime": "time", "Time": "time"}
INVALID_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML 1.0 forbids


def codebook_xml(about: About, entries: Sequence[Entry], prepared: Prepared, note: Note) -> str:
    """Return the text of codebook.xml."""
    book = Element("codeBook", {"xmlns": NAMESPACE, "version": "2.5"})
    _document(book, about, note)
    _study(book, about, prepared, note)
    _file(book, prepared)
    variables = SubElement(book, "dataDscr")
    for number, entry in enumerate(entries, 1):
        _variable(variables, number, entry, len(prepared.data))
    indent(book)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(book, encoding="unicode") + "\n"


def _put(parent: Element, tag: str, text: str = "", **attributes: str) -> Element:
    """Return a new element; characters that XML forbids become U+FFFD, the replacement character."""
    element = SubElement(parent, tag, {name: INVALID_XML.sub("\ufffd", value) for name, value in attributes.items()})
    element.text = INVALID_XML.sub("\ufffd", text) or None
    return element


def _document(book: Element, about: About, note: Note) -> None:
    citation = _put(_put(book, "docDscr"), "citation")
    _put(_put(citation, "titlStmt"), "titl", f"Codebook of {about.title}")
    production = _put(citation, "prodStmt")
    _put(production, "prodDate", about.date, date=about.date)
    _put(production, "software", note["made_by"])


def _study(book: Element, about: About, prepared: Prepared, note: Note) -> None:
    study = _put(book, "stdyDscr")
    citation = _put(study, "citation")
    title = _put(citation, "titlStmt")
    _put(title, "titl", about.title)
    _put(title, "subTitl", f"{note['profile']} file")
    if about.owner:
        _put(_put(citation, "rspStmt"), "AuthEnty", about.owner)
    _put(_put(citation, "distStmt"), "distDate", about.date, date=about.date)
    if universe := prepared.data.schema.universe:
        _put(_put(_put(study, "stdyInfo"), "sumDscr"), "universe", universe)
    use = _put(_put(study, "dataAccs"), "useStmt")
    _put(use, "restrctn", note["for_whom"])
    _put(use, "conditions", " ".join(note["may_not"]))
    preserved, distorted = note["kept_exactly"] or "nothing is guaranteed", note["distorted"] or "see the method note"
    masking = f"{note['method_name']}. Preserved: {preserved}. Distorted: {distorted}."
    _put(study, "notes", masking, type="masking")


def _file(book: Element, prepared: Prepared) -> None:
    data = prepared.data
    text = _put(_put(book, "fileDscr", ID=FILE_ID), "fileTxt")
    _put(text, "fileName", f"data.{data.schema.format}")
    size = _put(text, "dimensns")
    _put(size, "caseQnty", str(len(data)))
    _put(size, "varQnty", str(len(data.names)))
    _put(text, "fileType", format_named(data.schema.format).words)


def _variable(parent: Element, number: int, entry: Entry, rows: int) -> None:
    var = _put(parent, "var", **_attributes(number, entry))
    if entry["label"]:
        _put(var, "labl", entry["label"])
    ends = {name: f"{end:.15g}" for name, end in zip(("min", "max"), entry.get("range", ()), strict=False)}
    if ends:
        _put(_put(var, "valrng"), "range", UNITS="REAL", **ends)
    codes = [missing for missing in entry.get("missing", []) if missing["code"] is not None]
    invalid = _put(var, "invalrng") if codes else var
    for missing in codes:
        if isinstance(code := missing["code"], list):
            _put(invalid, "range", UNITS="REAL", min=f"{code[0]:g}", max=f"{code[1]:g}")
        else:
            _put(invalid, "item", VALUE=str(code))
    if "universe" in entry:
        _put(var, "universe", entry["universe"])
    invalid_count = entry["counts"]["missing"] + entry["counts"]["suppressed"]
    for kind, value in {"vald": str(rows - invalid_count), "invd": str(invalid_count), **ends}.items():
        _put(var, "sumStat", value, type=kind)
    _put(var, "txt", entry["reading"])
    for category in entry.get("categories", []):
        _category(_put(var, "catgry"), str(category["value"]), category["label"])
    for missing in codes:
        if missing["label"]:
            _category(_put(var, "catgry", missing="Y"), str(missing["code"]), missing["label"])
    time = {"category": TIME_TYPES[entry["type"]]} if entry["type"] in TIME_TYPES else {}
    _put(var, "varFormat", type="character" if entry["type"] in TEXT_TYPES else "numeric", **time)
    _put(var, "notes", describe_treatment(entry), type="masking")


def _attributes(number: int, entry: Entry) -> dict[str, str]:
    numeric = entry["kind"] == "numeric"
    representation = "datetime" if entry["type"] in TIME_TYPES else "numeric" if numeric else "code"
    nature = {} if numeric else {"nature": entry["kind"]}
    weight = {"wgt": "wgt"} if entry.get("use") == "survey weight" else {}
    return {
        "ID": f"V{number}", "name": entry["name"], "files": FILE_ID, "intrvl": "contin" if numeric else "discrete",
        "representationType": representation, **nature, **weight,
    }  # fmt: skip


def _category(category: Element, value: str, label: str) -> None:
    _put(category, "catValu", value)
    if label:
        _put(category, "labl", label)
