# Convert data frames to and from Python. Columns are passed as bytes of doubles, with their labels (see
# sdcmap/files/r_bridge.py).

is_microdata <- function(x) inherits(x, "sdcmap.data.microdata.Microdata")

as_microdata <- function(x, ...) {
  if (is_microdata(x) && ...length() == 0) return(x)
  if (is.data.frame(x)) x <- call_python(bridge()$from_r, columns_out(x))
  call_python(python()$read, x, ...)
}

columns_out <- function(frame) unname(Map(column_out, names(frame), frame))

column_out <- function(name, x) {
  kind <- kind_of(x)
  levels <- character()
  numbers <- if (kind %in% c("list", "other")) numeric(length(x)) else NULL
  if (kind == "factor") {
    levels <- levels(x)
    numbers <- as.double(unclass(x))
    numbers[is.na(levels)[numbers]] <- NA  # addNA() adds NA as a level
    numbers <- match(levels[numbers], levels[!is.na(levels)])
    levels <- levels[!is.na(levels)]
  } else if (kind == "text") {
    texts <- as.vector(unclass(x))
    levels <- unique(texts[!is.na(texts)])
    numbers <- match(texts, levels)
  }
  if (is.null(numbers)) numbers <- as.vector(unclass(x))
  labels <- attr(x, "labels", exact = TRUE)
  list(
    name = name, kind = kind, values = bytes(numbers), levels = as.list(enc2utf8(levels)), ordered = is.ordered(x),
    label = one_text(attr(x, "label", exact = TRUE)), codes = codes_out(labels),
    words = as.list(enc2utf8(as.character(names(labels)))), na_values = codes_out(attr(x, "na_values", exact = TRUE)),
    na_range = codes_out(attr(x, "na_range", exact = TRUE)), format = format_of(x)
  )
}

kind_of <- function(x) {
  if (is.factor(x)) return("factor")
  if (inherits(x, "Date")) return("date")
  if (inherits(x, "POSIXct")) return("time")
  if (inherits(x, c("integer64", "POSIXlt")) || length(dim(x)) > 1) return("other")
  switch(typeof(x), logical = "truth", integer = "whole", double = "number", character = "text", "other")
}

bytes <- function(x) writeBin(as.double(x), raw(), endian = "little")

codes_out <- function(x) {
  if (is.character(x)) as.list(enc2utf8(as.vector(x))) else bytes(as.vector(unclass(x)))
}

one_text <- function(x) if (is.character(x) && length(x) == 1) enc2utf8(as.vector(x)) else ""

FORMATS <- c("format.spss", "format.stata", "format.sas")

format_of <- function(x) {
  stated <- Filter(Negate(is.null), lapply(FORMATS, function(name) attr(x, name, exact = TRUE)))
  if (length(stated)) one_text(stated[[1]]) else ""
}

# ---- from Python to R ---------------------------------------------------------------------------------------------
data_frame <- function(table) {
  columns <- bridge()$to_r(table)
  values <- lapply(columns, column_in)
  names(values) <- vapply(columns, function(column) column$name, character(1))
  rows <- if (length(values)) length(values[[1]]) else 0L
  structure(values, class = "data.frame", row.names = .set_row_names(rows))
}

column_in <- function(column) {
  numbers <- numbers_of(column$values)
  levels <- as.character(unlist(column$levels))
  x <- switch(column$kind,
    text = levels[numbers],
    factor = factor(levels[numbers], levels = levels, ordered = column$ordered),
    date = structure(numbers, class = "Date"),
    time = structure(numbers, class = c("POSIXct", "POSIXt"), tzone = "UTC"),
    truth = as.logical(numbers),
    whole = as.integer(numbers),
    numbers
  )
  set_labels(x, column)
}

numbers_of <- function(x) readBin(as.raw(x), "double", length(x) / 8, endian = "little")

codes_in <- function(x, like) {
  codes <- if (is.raw(x)) numbers_of(x) else as.character(unlist(x))
  if (is.integer(like) && is.numeric(codes) && !anyNA(codes) && all(codes == round(codes))) as.integer(codes) else codes
}

set_labels <- function(x, column) {
  if (nzchar(column$label)) attr(x, "label") <- column$label
  if (is.factor(x)) return(x)
  labels <- codes_in(column$codes, x)
  values <- codes_in(column$na_values, x)
  range <- codes_in(column$na_range, x)
  values <- values[!is.na(values)]  # tagged NA are among the values themselves
  if (length(labels)) attr(x, "labels") <- stats::setNames(labels, as.character(unlist(column$words)))
  if (length(values)) attr(x, "na_values") <- values
  if (length(range)) attr(x, "na_range") <- range
  if (length(labels) || length(values) || length(range)) {
    spss <- if (length(values) || length(range)) "haven_labelled_spss"
    class(x) <- c(spss, "haven_labelled", "vctrs_vctr", typeof(x))
  }
  x
}
