"""Patterns of column names and labels in snake case, in several languages, for proposals of roles."""

from __future__ import annotations

REPLICATE = r"(pwgtp|wgtp|rep_?w\w*|brr\w*?|jk\w*?|bsw\w*?|boot\w*?|wrep\w*?|wt_?rep\w*?)_?\d+"
SURVEY_WEIGHT = (
    r"pwgtp|wgtp|fnlwgt|perwt|hhwt|asecwt|wtfinl|earnwt|genwt|stwt|finalwt|llcpwt|wt(int|mec|ss|sup)\w*|(\w*_|[adfhps])?wgh?t\w*|"
    r"(psp?|[adp]n?)w(gh?t|eight)|w?pond\w*|fexp\w*|fac(tor)?_?exp\w*|coef_?(elev|pond)\w*|hochrechnung\w*|hrf|"
    r"[hp]hrf|(hh|pers|[dhp])?gew|(design|person(en)?|haushalts?|hh|kalibrier(ungs)?)_?gewicht|"
    r"(survey|final|design|sampling|person|household|hh|cal\w*|grossing|expansion)_?(weights?|wt|factor)|"
    r"[adp]?weight_?(factor|final)|pw|a?fnlw(gh)?t|factorel\w*|fac(tor)?_(elev|pob|viv|hog|per)\w*"
)
INCLUSION = (
    r"(inclusion|incl|selection|sel|sampling|samp|draw)_?(prob\w*|p|rate|fraction)|prob\w*_?(incl\w*|sel\w*|samp\w*|tirage)|"
    r"pik|pi|fpc|(ziehungs|auswahl|inklusions)_?(wahrscheinlichkeit|satz)|proba\w*_d?_?(inclusion|tirage|sondage)|taux_sondage"
)
FINITE_POPULATION = r"fpc\d*|finite_population\w*"
MAYBE_WEIGHT = r"weights?|wt\w?|gewicht\w*|peso|poids\w*|pesi?|vikt|weging\w*|w"
MAYBE_WHOLE_NAME = r"factor|fac|faktor|gew|wgh?t"  # a weight if the whole name is one of these; `risk_factor` is none
BODY = (
    r"height|stature|groesse|gr\u00f6\u00dfe|koerpergr\w*|taille|talla|altura|estatura|lengte|statura|bmi|waist|hip|obes\w*|kg|"
    r"pounds?|lbs|kilos?(gram\w*)?|body\w*|koerper\w*|k\u00f6rper\w*|corporel\w*|corporal|corporeo|birth_?(weight|wt)|geburtsgewicht"
)
HOUSEHOLD = (  # matched against the whole name, so that household_income does not match
    r"(\w+_)?(hh|h)id|hh|serial(no)?|household|haushalt|hogar|menage|ménage|huishouden|famil(y|ia|le)|foyer|hushall|"
    r"(\w+_)?(hh|household|haushalts?|hogar|menage|ménage|huishoudens?|fam|family|familie|familien)_?"
    r"(id|ident|nr|no|num|nummer|number|numero|key|code|kennung)|"
    r"(id|nr|no|num|numero)_?(hh|hog|household|haushalt|hogar|menage|ménage|huishouden|hushall|fam|family|familie|familia)|"
    r"folio_?(viv|hog)\w*|hserial|hhserial|nquest|num_(hog|men|fam|viv)|dwelling|vivienda|logement|wohnung|woning|alloggio|"
    r"(dwelling|vivienda|logement|wohnung\w{0,2}|woning|alloggio)_?(id|nr|no|num|number|nummer|numero)|id_?(viv|vivienda|log|logement)"
)
PERSON = (
    r"(pers(on|onen|onal)?_?|case_?|row_?|respondent_?)?(id|nr|no|number)|recid|pid|respondent|lfd_?nr|index|key|uuid|"
    r"xwaveid"
)
ANY_NUMBER = r"(case_?|row_?|lfd_?)?(id|nr|no|number)|key|index"  # of persons, households or records
NUMBERED = (  # a number of a unit of any kind, such as district_no or SchoolID
    r"\w+_(id|ident|nr|no|num|number|nummer|numero|code|kennung|kode|codigo)|[a-z]{1,12}(num|nummer)|[a-z]{4,12}id"
)
NOT_NUMBERED = r"(\w+_)?\w*(paid|valid|acid|covid|humid|liquid|solid|rapid|hybrid|lipid|thyroid|fluid)"
AMOUNT = (
    r"\w*income\w*|inc|expend\w*|spending|wages?|salar(y|ies)|earnings?|savings?|rent|tax(es)?|prices?|costs?|amounts?|values?|"
    r"revenues?|sales|turnover|profits?|assets|debts?|loans?|pensions?|benefits?|miete|\w*(einkommen|lohn|gehalt|umsatz|kosten)|"
    r"\w*ausgaben|revenu\w*|salaires?|depenses?|loyer|ingresos?|gastos?|salario|renta|reddito|spese?|inkomen|loon|uitgaven|inkomst"
)
TIME = (
    r"year|jahr|annee|ano|anno|jaar|ar|quarter|quartal|trimestre|month|monat|mois|mes|maand|period|time|date|"
    r"visit|besuch|visite|visita|bezoek|besok|follow_?up|occasion|timepoint|session|sitzung"
)
SEX = r"sex|gender|geschl\w*|sexe|sexo|genre|geslacht|sesso|kon"
_PERSON = (
    r"pers(on(en|a)?)?|patient(en)?|client|member|employee|customer|respondent|student|pupil|versicherten|kunden|subject|"
    r"worker|individual|individu|participant|panelist|inmate|learner|citizen|teilnehmer|proband(en)?|befragten|mitarbeiter|"
    r"schueler|salarie|paciente|cliente|trabajador|empleado|alumno|encuestado|paziente|lavoratore|deelnemer|werknemer|"
    r"osoba|deltagare"
)
_SHORT_PERSON = r"subj|resp|pat|ind|indiv|emp|mbr|cust"  # only before `id` or `nr`: `emp_no` may count employees
PERSON_NUMBER = (
    rf"\w*({_PERSON})_?(id|nr|no|num|number|nummer|numero|code)|({_SHORT_PERSON})_?(id|nr)|(subj|resp|pat)_?(no|num|number)|"
    rf"id_?({_PERSON}|{_SHORT_PERSON})"
)
PERSON_WORD = rf"{_PERSON}|subj"  # the whole name of a column of numbers
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
