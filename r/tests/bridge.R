# The whole interface, from a data frame to a release. Without the Python package the tests are skipped with a message.

Sys.setenv(XDG_STATE_HOME = tempfile("state")) # the ledgers of made-up people are not registered
if (!reticulate::py_module_available("sdcmap")) {
  cat("skipped: the Python package sdcmap is not installed where reticulate looks (RETICULATE_PYTHON)\n")
  quit(status = 0)
}

sm <- asNamespace("sdcmap")
library(sdcmap)

# ---- a data frame in and out: factors, dates, NA, texts, haven's labels and missing codes -------------------------
tagged <- function(letter) { # as haven::tagged_na
  bytes <- writeBin(NA_real_, raw(), endian = "little")
  bytes[5] <- charToRaw(letter)
  readBin(bytes, "double", endian = "little")
}
tag_of <- function(x) rawToChar(writeBin(x, raw(), endian = "little")[5])

set.seed(1)
n <- 300
people <- data.frame(
  age = sample(20:59, n, TRUE),
  sex = factor(sample(c("m", "f", NA), n, TRUE), levels = c("m", "f", "x")),
  school = factor(sample(c("low", "high"), n, TRUE), levels = c("low", "high"), ordered = TRUE),
  wage = round(rlnorm(n, 8), 2),
  town = sample(c("Zürich", "Genève", NA), n, TRUE),
  born = as.Date("1980-02-29") + seq_len(n),
  seen = as.POSIXct("2020-02-29 12:00:00", tz = "UTC") + seq_len(n),
  ok = c(NA, rep(c(TRUE, FALSE), length.out = n - 1))
)
people$wage[3] <- NA
people$region <- structure(
  as.double(sample(c(1, 2, -8), n, TRUE)), label = "Where", labels = c(North = 1, South = 2, "Not asked" = -8),
  na_values = -8, class = c("haven_labelled_spss", "haven_labelled", "vctrs_vctr", "double")
)
people$rooms <- structure(
  c(tagged("a"), NA, as.double(sample(1:5, n - 2, TRUE))), labels = c(refused = tagged("a")),
  class = c("haven_labelled", "vctrs_vctr", "double")
)
attr(people$wage, "label") <- "Monthly wage"

data <- sm$read(people, keys = c("age", "sex", "region"), sensitive = "wage")
back <- as.data.frame(data)
stopifnot(identical(names(back), names(people)), nrow(back) == n)
for (name in setdiff(names(people), "rooms")) {
  if (!identical(back[[name]], people[[name]])) stop(name, ": ", deparse(all.equal(back[[name]], people[[name]])))
}
stopifnot(
  identical(tag_of(unclass(back$rooms)[1]), "a"), is.na(back$rooms[2]), identical(tag_of(unclass(back$rooms)[2]), ""),
  identical(names(attr(back$rooms, "labels")), "refused"), identical(tag_of(attr(back$rooms, "labels")[[1]]), "a"),
  identical(as.vector(unclass(back$rooms))[-(1:2)], as.vector(unclass(people$rooms))[-(1:2)])
)

# ---- calls for base R are passed on ------------------------------------------------------------------------------
stopifnot(
  choose(5, 2) == 10, choose(n = 5, k = 2) == 10, "package:base" %in% search(),
  identical(sweep(diag(2), 1, 1:2), base::sweep(diag(2), 1, 1:2)),
  identical(sweep(x = diag(2), MARGIN = 1, STATS = 1:2), base::sweep(diag(2), 1, 1:2))
)
local({
  words <- c("a", "b")
  path <- tempfile()
  write(words, path)
  stopifnot(identical(readLines(path), words))
})

# ---- files with labels ----------------------------------------------------------------------------------------------
folder <- tempfile("sdcmap")
dir.create(folder)
small <- people[c("age", "wage", "region")]
for (ending in c("sav", "dta")) {
  path <- file.path(folder, paste0("x.", ending))
  sm$write(small, path)
  again <- as.data.frame(sm$read(path))
  stopifnot(identical(attr(again$wage, "label"), "Monthly wage"), all(c(1, 2) %in% attr(again$region, "labels")))
  stopifnot(identical(as.vector(unclass(again$wage)), as.vector(people$wage)))
}

# ---- errors are R conditions with a message ------------------------------------------------------------------------
failed <- tryCatch(sm$read(people, keys = "agee"), SchemaError = function(e) conditionMessage(e))
stopifnot(identical(failed, "no column 'agee'. Did you mean 'age'?"))
failed <- tryCatch(sm$method("Swap", on = "sex", rate = 5), PlanError = function(e) conditionMessage(e))
stopifnot(grepl("^Swap.rate must be in", failed))
listed <- people["age"]
listed$things <- I(lapply(seq_len(n), identity))
failed <- tryCatch(sm$read(listed), SchemaError = function(e) conditionMessage(e))
stopifnot(grepl("'things' has an R type that cannot be read", failed))

# ---- the workflow: look, plan, sweep, map, choose, release, report ------------------------------------------------
people <- people[c("age", "sex", "wage")]
path <- file.path(folder, "people.parquet")
sm$write(people, path)
seen <- as.data.frame(sm$look(path))
stopifnot(identical(seen$name, names(people)), identical(seen$missing[3], 1L))
data <- sm$read(people, keys = c("age", "sex"), sensitive = "wage")
masked <- sm$mask(data, sm$method("Swap", on = "sex", rate = 0.1), seed = 1)
stopifnot(identical(sort(table(as.data.frame(masked)$sex)), sort(table(people$sex))))
stopifnot(!identical(as.data.frame(masked)$sex, people$sex))
scores <- sm$score(data, masked, list(sm$measure("SmallCells", n = 3), sm$measure("Hellinger")))
stopifnot(identical(scores$measure, c("SmallCells", "Hellinger")), all(scores$value > 0))

study <- file.path(folder, "study")
few <- sm$plan(
  list(sm$grid("Swap", on = sm$subsets(c("age", "sex"), 1:2), rate = c(0.1, 0.3)), sm$method("PRAM", on = c("age", "sex"))),
  list(sm$measure("SmallCells"), sm$measure("Hellinger")), replicates = 3, limits = list(SmallCells = 0.9)
)
swept <- sm$sweep(data, few, study)
all_numbers <- as.data.frame(swept)
stopifnot(nrow(all_numbers) == 2 * (7 * 3 + 1), all(all_numbers$status == "ok"))
map <- sm$ru_map(swept)
points <- as.data.frame(map)
means <- as.data.frame(map, what = "means")
stopifnot(nrow(points) == 22, nrow(means) == 8, any(means$frontier), is.character(means$name))
best <- sm$choose(map, sm$rule("Threshold", risk = 0.5))
stopifnot(is.character(best$reason))
again <- sm$ru_map(study, risk = "SmallCells", utility = "Hellinger")
stopifnot(identical(as.data.frame(again)$risk, points$risk))
asked <- sm$choose(study, sm$rule("Threshold", risk = 0.5))
stopifnot(identical(asked$candidate, best$candidate), identical(asked$reason, best$reason))
picked <- sm$choose(study, candidate = best$name, reason = "a test")
stopifnot(identical(picked$candidate, best$candidate), grepl("a test", picked$reason))
no_rule <- tryCatch(sm$choose(study), PlanError = function(e) conditionMessage(e))
stopifnot(grepl("the plan has no rule", no_rule))
sm$draw(map, file.path(folder, "map.html"), mark = best)
sm$report(study, file.path(folder, "report.html"))
stopifnot(file.size(file.path(folder, "map.html")) > 1e5, file.size(file.path(folder, "report.html")) > 1e4)
refused <- tryCatch(
  sm$release(data, swept$plan, best, file.path(folder, "public"), ledger = file.path(folder, "ledger")),
  Refused = function(e) conditionMessage(e)
)
stopifnot(grepl("wage", refused), !dir.exists(file.path(folder, "public"))) # wage would be released unchanged
released <- sm$release(
  data, swept$plan, best, file.path(folder, "public"), ledger = file.path(folder, "ledger"), form = "csv",
  override = list(unmasked = "a test", profile = "a test", weight = "a test")
)
public <- as.data.frame(sm$read(file.path(released, "data.csv")))
stopifnot(nrow(public) == n, identical(names(public), names(people)))
unlink(file.path(Sys.getenv("XDG_STATE_HOME"), "sdcmap", "ledgers"), recursive = TRUE) # as on another computer
noted <- sm$release(
  study, choice = best$candidate, folder = file.path(folder, "noted"), ledger = file.path(folder, "other"), form = "csv",
  override = list(unmasked = "a test", profile = "a test", weight = "a test", ledger = "a test"), max_risk = 0.9
)
stopifnot(grepl(best$name, paste(readLines(file.path(study, "manifest.json")), collapse = ""), fixed = TRUE))
stopifnot(nrow(as.data.frame(sm$read(file.path(noted, "data.csv")))) == n)
compared <- as.data.frame(sm$compare(data, replicates = 1, seed = 1))
stopifnot(nrow(compared) > 5, c("name", "risk", "utility") %in% names(compared))
unlink(folder, recursive = TRUE)
cat("all checks of the interface passed\n")
