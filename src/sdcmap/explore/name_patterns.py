"""Patterns of column names and labels in snake case, in several languages, for proposals of roles."""

from __future__ import annotations

REPLICATE = r"(pwgtp|wgtp|rep_?w\w*|brr\w*?|jk\w*?|bsw\w*?|boot\w*?|wrep\w*?|wt_?rep\w*?)_?\d+"
SURVEY_WEIGHT = (
    r"pwgtp|wgtp|fnlwgt|perwt|hhwt|asecwt|wtfinl|earnwt|genwt|stwt|finalwt|llcpwt|wt(int|mec|ss|sup)\w*|(\w*_|[adfhps])?wgh?t\w*|"
    r"(psp?|[adp]n?)w(gh?t|eight)|w?pond\w*|fexp\w*|fac(tor)?_?exp\w*|coef_?(elev|pond)\w*|hochrechnung\w*|hrf|"
    r"[hp]hrf|(hh|pers|[dhp])?gew|(design|person(en)?|haushalts?|hh|kalibrier(ungs)?)_?gewicht|"
    r"(survey|final|design|sampling|person|household|hh|cal\w*|grossing|expansion)_?(weights?|wt|factor)|"
    r"[adp]?weight_?(factor|final)|pw|a?fnlw(gh)?t"
)
INCLUSION = (
    r"(inclusion|incl|selection|sel|sampling|samp|draw)_?(prob\w*|p|rate|fraction)|prob\w*_?(incl\w*|sel\w*|samp\w*|tirage)|"
    r"pik|pi|fpc|(ziehungs|auswahl|inklusions)_?(wahrscheinlichkeit|satz)|proba\w*_d?_?(inclusion|tirage|sondage)|taux_sondage"
)
FINITE_POPULATION = r"fpc\d*|finite_population\w*"
MAYBE_WEIGHT = r"weights?|wt\w?|gewicht\w*|peso|poids\w*|pesi?|vikt|weging\w*|w"
BODY = (
    r"height|stature|groesse|gr\u00f6\u00dfe|koerpergr\w*|taille|talla|altura|estatura|lengte|statura|bmi|waist|hip|obes\w*|kg|"
    r"pounds?|lbs"
)
HOUSEHOLD = (  # matched against the whole name, so that household_income does not match
    r"(\w+_)?(hh|h)id|hh|serial(no)?|household|haushalt|hogar|menage|ménage|huishouden|famil(y|ia|le)|foyer|hushall|"
    r"(\w+_)?(hh|household|haushalts?|hogar|menage|ménage|huishoudens?|fam|family|familie|familien)_?"
    r"(id|ident|nr|no|num|nummer|number|numero|key|code|kennung)|"
    r"(id|nr|no|num|numero)_(hh|household|haushalt|hogar|menage|ménage|huishouden|family|familie)"
)
PERSON = (
    r"(pers(on|onen|onal)?_?|case_?|row_?|respondent_?)?(id|nr|no|number)|recid|pid|respondent|lfd_?nr|index|key|uuid|"
    r"xwaveid"
)
NUMBERED = (  # a number of a unit of any kind, such as district_no or SchoolID
    r"\w+_(id|ident|nr|no|num|number|nummer|numero|code|kennung|kode|codigo)|[a-z]{1,12}(num|nummer)|[a-z]{4,12}id"
)
NOT_NUMBERED = r"(\w+_)?\w*(paid|valid|acid|covid|humid|liquid|solid|rapid|hybrid|lipid|thyroid|fluid)"
AMOUNT = (
    r"\w*income\w*|inc|expend\w*|spending|wages?|salar(y|ies)|earnings?|savings?|rent|tax(es)?|prices?|costs?|amounts?|values?|"
    r"revenues?|sales|turnover|profits?|assets|debts?|loans?|pensions?|benefits?|miete|\w*(einkommen|lohn|gehalt|umsatz|kosten)|"
    r"\w*ausgaben|revenu\w*|salaires?|depenses?|loyer|ingresos?|gastos?|salario|renta|reddito|spese?|inkomen|loon|uitgaven|inkomst"
)
TIME = r"year|jahr|annee|ano|anno|jaar|ar|quarter|quartal|trimestre|month|monat|mois|mes|maand|period|time|date"
SEX = r"sex|gender|geschl\w*|sexe|sexo|genre|geslacht|sesso|kon"
PERSON_NUMBER = (
    r"\w*(pers|person|personen|patient|client|member|employee|customer|respondent|student|pupil|versicherten|kunden)_?"
    r"(id|nr|no|num|number|nummer|code)"
)
PSU = r"\w*psu|upm|cluster(_?id)?|primary_sampling_unit|klumpen"
STRATUM = r"strat(a|um)?(_?id)?|sdmvstra|estrato|schicht(nr)?|strate"
WAVE = r"wave|welle|vague|ola|panel_?year|survey_?year|syear|round"
ORDERED = (
    r"(h|hh|sp|m|f)?_?age\w{0,2}|alter|edad|eta|leeftijd|idade|(h|hh|sp|m|f)?_?edu\w*|schl|isced\w*|bildung\w*|school\w*|"
    r"degree|diplom\w*|estudios|"
    r"birth_?(year|month)|yob|geburtsjahr|born|hh_?size|household_?size|haushaltsgr\w*|persons|n_?persons|children|kinder|enfants"
)
UNORDERED = (
    r"sex|gender|geschl\w*|sexe|sexo|genre|geslacht|sesso|region\w*|state|st|province|provincia|canton|kanton|bundesland|land|"
    r"nuts\d?|msa|metro\w*|country|nation\w*|citizen\w*|cit|staatsang\w*|birth_?(place|country)|pobp|urban|rural|occ\w{0,2}|"
    r"occupation\w*|isco\w*|beruf\w*|job(_?title|_?code)?|profession\w*|ocup\w*|nace|naics\w*|indp|industry|branche|soc\w?|"
    r"rac\w{0,4}|race\w*|ethni\w*|hisp\w*|relig\w*|konfession|language|sprache|langue|mar(_?stat\w*|ital\w*)?|familienstand|"
    r"famst\w*|civil(_?status)?|estado_civil|disab\w*|veteran|military|employer|department|position"
)
