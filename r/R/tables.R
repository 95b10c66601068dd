# Convert Python objects to data frames: records of microdata, points or methods of a map, all numbers of scores.

as.data.frame.sdcmap.data.microdata.Microdata <- function(x, row.names = NULL, optional = FALSE, ...) data_frame(x)

as.data.frame.polars.dataframe.frame.DataFrame <- function(x, row.names = NULL, optional = FALSE, ...) data_frame(x)

as.data.frame.sdcmap.map.RUMap <- function(x, row.names = NULL, optional = FALSE, what = c("points", "means"), ...) {
  table <- data_frame(x[[match.arg(what)]])
  table$name <- vapply(table$method, function(method) x$scores$name_of(method), character(1), USE.NAMES = FALSE)
  table
}

as.data.frame.sdcmap.study.scores.Scores <- function(x, row.names = NULL, optional = FALSE, ...) {
  merge(
    data_frame(x$candidate)[c("id", "kind", "method", "replicate")],
    data_frame(x$score)[c("candidate", "measure", "value", "se", "status", "reason")],
    by.x = "id", by.y = "candidate", sort = FALSE
  )
}

as.data.frame.sdcmap.explore.method_comparison.Comparison <- function(x, row.names = NULL, optional = FALSE, ...) {
  data_frame(x$table)
}

as.data.frame.sdcmap.explore.first_look.Look <- function(x, row.names = NULL, optional = FALSE, ...) {
  variables <- x$variables
  column <- function(name, kind) vapply(variables, function(one) kind(one[[name]]), kind(0))
  data.frame(
    name = column("name", as.character), kind = column("kind", as.character), role = column("role", as.character),
    distinct = column("distinct", as.integer), missing = column("missing", as.integer)
  )
}
