"""The part of DDI-Codebook 2.5 that a release writes, as a content model of our own: it stands for the published schema.

Written by hand from the definitions that the DDI Alliance publishes (codebook.xsd of version 2.5.1, namespace
ddi:codebook:2_5), each of which was read there: of each element the children in their order with how often each may come,
and the attributes with what they may be. An element or attribute that is not listed here is a problem, though the schema
may know it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, fromstring

NAMESPACE = "{ddi:codebook:2_5}"
MANY = 10**9
TEXT: tuple[str, ...] = ()


@dataclass(frozen=True)
class Model:
    """children : (name, least, most) in the schema's order. either : children of which any may come, one at least.
    attributes : what each may be; empty: any text. text : whether it may hold text."""

    children: tuple[tuple[str, int, int], ...] = ()
    either: tuple[str, ...] = ()
    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    text: bool = False


def _some(*names: str) -> tuple[tuple[str, int, int], ...]:
    return tuple((name, 0, MANY) for name in names)


def _words(**attributes: tuple[str, ...]) -> Model:
    return Model(text=True, attributes=attributes)


ENDS = {"UNITS": ("INT", "REAL"), "min": TEXT, "minExclusive": TEXT, "max": TEXT, "maxExclusive": TEXT}
STATISTICS = ("mean", "medn", "mode", "vald", "invd", "min", "max", "stdev", "other")
CITATION = (
    ("titlStmt", 1, 1), ("rspStmt", 0, 1), ("prodStmt", 0, 1), ("distStmt", 0, 1),
    *_some("serStmt", "verStmt", "biblCit", "holdings", "notes"),
)  # fmt: skip
VAR = (
    *_some("location", "labl", "imputation", "security", "embargo", "respUnit", "anlysUnit", "qstn", "valrng", "invalrng",
           "undocCod", "universe", "TotlResp", "sumStat", "txt", "stdCatgry", "catgryGrp", "catgry", "codInstr", "verStmt",
           "concept"),
    ("derivation", 0, 1), ("varFormat", 0, 1), *_some("geoMap", "catLevel", "notes"),
)  # fmt: skip
MODELS = {
    "codeBook": Model(
        (*_some("docDscr"), ("stdyDscr", 1, MANY), *_some("fileDscr", "dataDscr", "otherMat")),
        attributes={"version": ("2.5",)},
    ),
    "docDscr": Model((("citation", 0, 1), *_some("guide", "docStatus", "docSrc", "controlledVocabUsed", "notes"))),
    "stdyDscr": Model(
        (
            ("citation", 1, MANY),
            *_some("studyAuthorization", "stdyInfo", "studyDevelopment", "method", "dataAccs", "othrStdyMat", "notes"),
        )
    ),
    "citation": Model(CITATION),
    "titlStmt": Model((("titl", 1, 1), *_some("subTitl", "altTitl", "parTitl", "IDNo"))),
    "rspStmt": Model(_some("AuthEnty", "othId")),
    "prodStmt": Model(_some("language", "producer", "copyright", "prodDate", "prodPlac", "software", "fundAg", "grantNo")),
    "distStmt": Model(_some("distrbtr", "contact", "depositr", "depDate", "distDate")),
    "stdyInfo": Model(_some("studyBudget", "subject", "abstract", "sumDscr", "qualityStatement", "notes")),
    "sumDscr": Model((*_some("timePrd", "collDate", "nation", "geogCover", "geogUnit"), ("geoBndBox", 0, 1),
                      *_some("boundPoly", "anlyUnit", "universe", "dataKind"))),
    "dataAccs": Model(_some("setAvail", "useStmt", "notes")),
    "useStmt": Model(_some("confDec", "specPerm", "restrctn", "contact", "citReq", "deposReq", "conditions", "disclaimer")),
    "fileDscr": Model((*_some("fileTxt"), ("locMap", 0, 1), *_some("notes"))),
    "fileTxt": Model((*_some("fileName"), ("fileCitation", 0, 1), *_some("dataFingerprint"), ("fileCont", 0, 1),
                      ("fileStrc", 0, 1), ("dimensns", 0, 1), *_some("fileType", "format", "filePlac", "dataChck",
                                                                     "ProcStat", "dataMsng", "software", "verStmt"))),
    "dimensns": Model(_some("caseQnty", "varQnty", "logRecL", "recPrCas", "recNumTot")),
    "dataDscr": Model(_some("varGrp", "nCubeGrp", "var", "nCube", "notes")),
    "var": Model(
        VAR, required=("name",),
        attributes={
            "name": TEXT, "wgt": ("wgt", "not-wgt"), "files": TEXT, "intrvl": ("contin", "discrete"),
            "nature": ("nominal", "ordinal", "interval", "ratio", "percent", "other"),
            "representationType": ("text", "numeric", "code", "datetime", "other"),
        },
    ),
    "valrng": Model(_some("key", "notes"), either=("item", "range")),
    "invalrng": Model(_some("key", "notes"), either=("item", "range")),
    "range": Model(attributes=ENDS),
    "item": Model(attributes={"UNITS": ("INT", "REAL"), "VALUE": TEXT}, required=("VALUE",)),
    "catgry": Model((("catValu", 0, 1), *_some("labl", "txt", "catStat"), ("mrow", 0, 1)),
                    attributes={"missing": ("Y", "N"), "missType": TEXT}),
    "varFormat": _words(type=("character", "numeric"), category=("date", "time", "currency", "other")),
    "sumStat": Model(text=True, attributes={"type": STATISTICS}, required=("type",)),
    "notes": _words(type=TEXT, subject=TEXT),
    "prodDate": _words(date=TEXT), "distDate": _words(date=TEXT),
} | {
    name: _words() for name in ("titl", "subTitl", "AuthEnty", "software", "universe", "restrctn", "conditions", "fileName",
                                "caseQnty", "varQnty", "fileType", "labl", "txt", "catValu")
}  # fmt: skip


def problems_of(text: str) -> list[str]:
    """Everything in which a document differs from the model; IDs must be unique, and references meet one."""
    root = fromstring(text)
    elements = list(root.iter())
    ids = [element.get("ID", "") for element in elements if "ID" in element.attrib]
    found = [problem for element in elements for problem in _problems(element)]
    found += [f"the ID {one} comes twice" for one in set(ids) if ids.count(one) > 1]
    found += [f"no ID {one}" for e in elements for one in e.get("files", "").split() if one not in ids]
    return found if root.tag == f"{NAMESPACE}codeBook" else ["the root is no codeBook", *found]


def _problems(element: Element) -> list[str]:
    tag = element.tag.removeprefix(NAMESPACE)
    model = MODELS.get(tag)
    if model is None or not element.tag.startswith(NAMESPACE):
        return [f"no element {element.tag}"]
    found = [f"{tag} needs {name}" for name in model.required if name not in element.attrib]
    for name, value in element.attrib.items():
        allowed = {"ID": TEXT, **model.attributes}
        if name not in allowed or (allowed[name] and value not in allowed[name]):
            found.append(f"{tag} {name}={value!r}")
    if not model.text and (element.text or "").strip():
        found.append(f"{tag} holds text")
    names = [child.tag.removeprefix(NAMESPACE) for child in element]
    if model.either:
        first = sum(name in model.either for name in names)
        found += [] if first and set(names[:first]) <= set(model.either) else [f"{tag} begins with none of its own"]
        names = names[first:]
    order = [name for name, _, _ in model.children]
    places = [order.index(name) for name in names if name in order]
    found += [f"{name} in {tag}" for name in names if name not in order]
    found += [f"order in {tag}"] if places != sorted(places) else []
    found += [f"{name} in {tag}: {names.count(name)}" for name, least, most in model.children
              if not least <= names.count(name) <= most]  # fmt: skip
    return found
