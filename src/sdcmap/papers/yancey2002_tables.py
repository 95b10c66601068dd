"""Yancey, Winkler, Creecy (2002): rows of their tables as methods, printed cells and errata, ours beside them as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sdcmap.core.method import Method
from sdcmap.methods import MixtureNoise, Noise, RankSwap

LOSSES = ("IL1", "IL1s", "IL2", "IL3", "IL4", "IL5", "s0", "s1", "s2")
SCORES = ("d A", "d D", "d S", "l A", "l D", "l S")
ZONES = ("total", "zone")
ZONE_SCORES = ("A", "D", "S", "zone A", "zone D", "zone S")
Table = dict[str, dict[str, float]]


def method_of(row: str, on: tuple[str, ...]) -> Method:
    """A row of the tables, such as "rnkswp05" or "scalmixadd10", as a method."""
    strength = int(row[-2:]) / 100
    if row.startswith("rnkswp"):
        return RankSwap(on=on, p=strength)
    if row.startswith("add"):
        return Noise(on=on, variance=strength, correlated=True)
    return MixtureNoise(on=on, variance=strength, rescale=row.startswith("scal"))


def _table(columns: Sequence[str], text: str) -> Table:
    rows = (line.split() for line in text.strip().splitlines())
    return {name: dict(zip(columns, map(float, cells), strict=True)) for name, *cells in rows}


TABLE_1 = _table(LOSSES, """
rnkswp05 .129 .091 .000 .130 .000 .016 .036 .055 .027
rnkswp10 .219 .155 .000 .195 .000 .036 .058 .090 .048
rnkswp15 .294 .208 .000 .224 .000 .070 .073 .118 .069
add01 .194 .137 .001 .036 .014 .002 .013 .038 .039
add10 .371 .263 .004 .168 .115 .007 .073 .114 .097
mixadd01 .204 .063 .002 .028 .012 .002 .011 .050 .020
mixadd05 .326 .140 .004 .088 .053 .004 .037 .095 .050
mixadd10 .398 .199 .006 .152 .105 .005 .067 .133 .079
mixadd20 .489 .281 .008 .273 .207 .007 .124 .189 .126
scalmixadd01 .202 .063 .002 .021 .003 .002 .007 .046 .017
scalmixadd05 .316 .137 .004 .048 .007 .004 .016 .076 .038
scalmixadd10 .379 .190 .006 .067 .010 .005 .022 .093 .053
scalmixadd20 .449 .258 .008 .095 .014 .007 .031 .114 .072
""")  # fmt: skip
TABLE_2 = _table(("d", "l"), """
rnkswp05 .8861 .9620
rnkswp10 .2694 .7287
rnkswp15 .0491 .3444
add01 .7972 .7500
add10 .2296 .3167
mixadd01 .7667 .7176
mixadd05 .1482 .3556
mixadd10 .0574 .2194
mixadd20 .0139 .1009
scalmixadd01 .7704 .7370
scalmixadd05 .1602 .3537
scalmixadd10 .0648 .2417
scalmixadd20 .0269 .1241
""")  # fmt: skip
TABLE_3 = _table(SCORES, """
rnkswp05 46.11 47.06 46.66 49.90 50.85 49.45
rnkswp10 16.37 17.97 15.87 39.34 40.94 38.84
rnkswp15 6.11 8.36 5.91 20.87 23.12 30.67
add01 40.51 41.76 41.81 38.15 39.40 39.45
add10 15.13 17.18 16.33 19.49 21.54 20.69
mixadd01 38.88 40.81 39.31 36.42 38.36 36.86
mixadd05 9.27 12.16 9.93 19.64 22.53 20.30
mixadd10 6.22 9.53 6.80 14.32 17.63 14.90
mixadd20 6.88 10.13 6.98 11.23 14.48 11.33
scalmixadd01 38.95 40.90 39.46 37.21 39.16 37.72
scalmixadd05 8.94 11.94 10.06 18.47 21.47 19.59
scalmixadd10 4.43 8.00 5.97 13.19 16.75 14.73
scalmixadd20 2.89 7.06 4.94 7.75 11.92 9.80
""")  # fmt: skip
TABLE_4 = _table(LOSSES, """
mixadd01 1.165 .060 .002 .014 .010 .000 .007 .238 .018
mixadd05 1.308 .135 .005 .056 .051 .001 .028 .284 .048
mixadd10 1.381 .191 .007 .106 .101 .001 .054 .319 .075
mixadd20 1.457 .270 .010 .201 .201 .002 .104 .374 .121
scalmixadd01 1.163 .060 .002 .008 .001 .000 .003 .235 .016
scalmixadd05 1.302 .132 .005 .018 .002 .001 .006 .265 .035
scalmixadd10 1.370 .183 .007 .025 .002 .001 .009 .281 .048
scalmixadd20 1.438 .249 .010 .033 .003 .002 .012 .297 .066
""")  # fmt: skip
TABLE_5 = _table(LOSSES, """
rnkswp05 .174 .123 .000 .525 .000 .197 .180 .179 .080
rnkswp10 .280 .198 .000 .609 .000 .211 .205 .220 .102
rnkswp15 .362 .256 .000 .605 .000 .214 .205 .236 .118
add01 1.271 .897 .006 .018 .009 .019 .013 .331 .235
add01_sw 1.286 .909 .006 .018 .009 .009 .013 .335 .232
mixadd01 1.304 .061 .003 .012 .010 .000 .006 .266 .019
mixadd05 1.443 .137 .006 .052 .051 .001 .027 .311 .049
mixadd10 1.512 .194 .008 .101 .101 .001 .053 .345 .076
mixadd20 1.582 .274 .012 .199 .201 .002 .103 .397 .122
scalmixadd01 1.302 .061 .003 .005 .001 .000 .002 .262 .016
scalmixadd05 1.437 .134 .006 .011 .002 .001 .005 .291 .037
scalmixadd10 1.503 .185 .008 .015 .002 .001 .007 .306 .049
scalmixadd20 1.567 .252 .012 .020 .003 .002 .009 .321 .067
""")  # fmt: skip
TABLE_6 = _table(ZONES, """
rnkswp05 .8032 .8032
rnkswp10 .6072 .6072
rnkswp15 .4855 .4855
add01 .0590 .0420
add01_sw .0010 .0000
mixadd01 .0841 .0960
mixadd05 .0346 .0027
mixadd10 .0240 .0018
mixadd20 .0149 .0011
scalmixadd01 .0844 .0098
scalmixadd05 .0355 .0031
scalmixadd10 .0249 .0022
scalmixadd20 .0174 .0016
""")  # fmt: skip
TABLE_7 = _table(ZONE_SCORES, """
rnkswp05 98.35 98.21 88.32 98.35 98.21 88.32
rnkswp10 81.23 82.72 70.94 81.23 82.72 70.94
rnkswp15 69.03 72.17 60.81 69.03 72.17 60.81
add01 3.60 19.50 14.70 2.75 18.75 13.85
add01_sw .70 16.80 11.65 .65 16.75 11.60
mixadd01 4.52 17.49 5.14 .80 13.77 1.41
mixadd05 3.10 17.26 4.16 1.51 15.66 2.57
mixadd10 3.85 18.44 5.00 2.74 17.33 3.84
mixadd20 5.92 19.45 6.78 5.23 18.76 6.09
scalmixadd01 4.33 17.33 5.03 .60 13.60 1.30
scalmixadd05 2.02 16.35 3.62 .40 15.45 2.00
scalmixadd10 1.58 16.54 3.71 .45 15.41 2.58
scalmixadd20 1.33 16.91 4.22 .49 16.12 3.43
""")  # fmt: skip
TABLE_8 = _table(LOSSES, """
rnkswp05 .114 .081 1.407 39.020 158.950 .123 48.875 39.923 40.141
rnkswp10 .199 .141 .397 1.682 3.980 .179 1.560 1.287 1.174
rnkswp15 .277 .196 .151 .918 .799 .174 .511 .464 .330
add01 1.364 .964 .027 .343 .240 .017 .156 .398 .312
add01_sw 1.364 .964 .027 .343 .240 .017 .156 .398 .312
mixadd01 1.399 .246 .057 .101 .008 .006 .043 .314 .079
mixadd05 1.559 .550 .128 .232 .024 .014 .099 .391 .179
mixadd10 1.631 .777 .181 .342 .040 .021 .146 .443 .255
mixadd20 1.697 1.099 .256 .539 .069 .033 .224 .519 .364
scalmixadd01 1.397 .245 .057 .130 .008 .006 .050 .320 .079
scalmixadd05 1.552 .536 .128 .298 .024 .014 .116 .403 .175
scalmixadd10 1.621 .741 .181 .440 .040 .021 .170 .460 .246
scalmixadd20 1.681 1.004 .256 .693 .069 .033 .263 .547 .341
""")  # fmt: skip
TABLE_9 = _table(LOSSES, """
rnkswp05 .207 .146 .082 .711 .523 .250 .391 .355 .250
rnkswp10 .322 .228 .125 .796 .573 .261 .438 .415 .297
rnkswp15 .410 .290 .126 .765 .473 .266 .408 .408 .299
add01 1.221 .863 .013 .021 .017 .003 .013 .255 .224
add01_sw 1.250 .884 .057 .431 .296 .084 .217 .424 .330
mixadd01 1.410 .220 .012 .065 .009 .005 .023 .288 .062
mixadd05 1.560 .492 .027 .175 .026 .012 .060 .360 .139
mixadd10 1.627 .696 .038 .299 .043 .019 .100 .405 .199
mixadd20 1.688 .984 .054 .531 .075 .030 .172 .476 .286
scalmixadd01 1.408 .219 .012 .084 .009 .005 .028 .304 .061
scalmixadd05 1.553 .480 .027 .225 .026 .012 .073 .369 .136
scalmixadd10 1.617 .664 .038 .385 .043 .019 .121 .420 .191
scalmixadd20 1.674 .899 .054 .682 .075 .030 .210 .503 .265
""")  # fmt: skip

SWAPS_AND_NOISE = ("rnkswp05", "rnkswp10", "rnkswp15", "add01", "add10")
NOT_SCALED = "IL1s is printed as IL1/sqrt 2, and s2 and the S-score follow it"
OTHER_RUN = "follows from another run: its re-identified share is not Table 2's"
S1_ERRORS = {
    "add01": "s1 is made with IL1s in place of IL1: .049",
    "add10": "s1 does not follow from its parts: .133",
    "mixadd20": "s1 does not follow from its parts: .197",
}
ERRATA: dict[str, dict[tuple[str, str], str]] = {
    "table1": {(row, cell): NOT_SCALED for row in SWAPS_AND_NOISE for cell in ("IL1s", "s2")}
    | {(row, "s1"): reason for row, reason in S1_ERRORS.items()},
    "table2": {
        ("add01", "d"): "the row is printed as add05; Table 3 has its rates as add01",
        ("add01", "l"): "the row is printed as add05; Table 3 has its rates as add01",
        ("mixadd05", "d"): "160/1080 is .1481",
    },
    "table3": {(row, f"{metric} S"): NOT_SCALED for row in SWAPS_AND_NOISE for metric in "dl"}
    | {(row, f"{metric} D"): "follows the wrong s1 of Table 1" for row in S1_ERRORS for metric in "dl"}
    | {(f"scalmixadd{d}", f"d {score}"): OTHER_RUN for d in ("01", "05", "10") for score in "ADS"}
    | {("rnkswp05", "d S"): "misprint of 45.66, and " + NOT_SCALED,
       ("rnkswp15", "l S"): "misprint of 20.67, and " + NOT_SCALED},
}  # fmt: skip
OTHER_ERRATA = (
    "Eq. (1): the sign must be +, z = c y + (1 - c) mu; with - the mean becomes (2c - 1) mu.",
    "Appendix, Z = X + dY: the multiplier is sqrt(d).",
    "Weights of the d and l metric: the inner w_adj is w_agr. Assignment: max for min, and both i != k and j != l.",
    "Section 3.1: ranks within one column, |rank(i) - rank(l)| < pn, over records.",
    "Double sums print i twice; psi_k on the left of the appendix constraint is psi_K; S0, S1, S2 are s0, s1, s2.",
    "Section 2.1: the file is no American Housing Survey; its variables are those of the March CPS.",
    "Section 4.1: 'd does a little better when perturbations are small' fails for rnkswp05 (d .886, l .962).",
    'EM over all pairs, as worded, finds similar people and does not give Table 2; weights "freq" do.',
    "Table 5: IL1s of rnkswp, add01 and add01_sw is IL1/sqrt 2; s1 of add01 .331 is .265 and of add01_sw .335 is .266 "
    "(divided by 4); add01_sw IL5 .009 must be .019; mixadd20 s1 .397 is .399; scalmixadd05 s2 .037 is .036.",
    "Table 6: the zone of mixadd01 is .0096; .0960 is above the total.",
    "Table 7: all rnkswp cells are 100 (s + reid), twice too large: 49.16 49.11 44.16, 40.61 41.36 35.46, "
    "34.52 36.08 30.17; add01 zone D 18.65; mixadd10 zone S 3.89; mixadd20 D 20.60 and 19.91, S 6.84 and 6.16; "
    "scalmixadd05 zone D 14.70; scalmixadd20 zone A .53.",
    "Tables 8 and 9: IL1s as in Table 5; Table 8 rnkswp05 s0 is 49.875, and add01 and add01_sw are one row twice; "
    "Table 9 rnkswp15 s2 is .289 and mixadd01 s1 .300.",
)


def beside(title: str, ours: Mapping[str, Mapping[str, Mapping[str, Any]]], digits: int = 4) -> Iterator[str]:
    """Our means, the standard deviation of one run, and the printed cells.

    Cells of ours have mean, sd (None: one run), paper (None: not printed) and, where the print is wrong, erratum. * and **:
    the printed cell is more than 2 and 3 standard deviations from our mean, rounding allowed; e: an erratum.
    """
    columns = list(next(iter(ours.values())))
    width = max(10, *(len(name) + 2 for name in columns))
    yield title
    yield " " * 22 + "".join(f"{name:>{width}}" for name in columns)
    for row, cells in ours.items():
        yield f"{row:<14}{'ours':<8}" + "".join(_shown(cells[name]["mean"], width, digits) for name in columns)
        if any(cell["sd"] is not None for cell in cells.values()):
            yield f"{'':<14}{'sd':<8}" + "".join(_shown(cells[name]["sd"], width, digits) for name in columns)
        if any(cell["paper"] is not None for cell in cells.values()):
            shown = (_shown(cells[name]["paper"], width, digits, mark(cells[name])) for name in columns)
            yield f"{'':<14}{'paper':<8}" + "".join(shown)


def mark(cell: Mapping[str, Any]) -> str:
    """* or ** where the printed cell is far from ours, e where it is an erratum."""
    stars = "e" if "erratum" in cell else ""
    if cell["paper"] is None or cell["mean"] is None or cell["sd"] is None:
        return stars
    rounding = 0.5 * 10.0 ** -(2 if cell["paper"] > 1 else 4 if abs(cell["paper"] * 1000 % 1) > 1e-9 else 3)
    away = max(0.0, abs(cell["paper"] - cell["mean"]) - rounding)
    return stars + ("**" if away > 3 * cell["sd"] else "*" if away > 2 * cell["sd"] else "")


def _shown(value: float | None, width: int, digits: int, marks: str = "") -> str:
    return f"{'-' if value is None else f'{value:.{digits}f}{marks}':>{width}}"
