# The Python package, found on first use: reticulate::use_virtualenv() or RETICULATE_PYTHON say where it is installed.

sdcmap_python <- NULL

.onLoad <- function(libname, pkgname) {
  sdcmap_python <<- reticulate::import("sdcmap", delay_load = TRUE)
}

python <- function() sdcmap_python

bridge <- function() reticulate::import("sdcmap.files.r_bridge")

# A verb of Python; what it refuses is a condition of R of the same name: tryCatch(..., Refused = function(e) ...).
ask <- function(.verb, ...) {
  given <- arguments(...)
  named <- if (is.null(names(given))) logical(length(given)) else nzchar(names(given))
  answer <- bridge()$call_verb(.verb, unname(given[!named]), if (any(named)) given[named] else reticulate::dict())
  if (length(answer) == 1) return(answer[[1]])
  stop(structure(class = c(answer[[1]], "SdcmapError", "error", "condition"), list(message = answer[[2]], call = NULL)))
}

# Arguments as Python takes them: whole numbers as int, named lists as dict, several values as a list, NULL left out.
plain <- function(x) {
  if (is_python(x) || is.raw(x)) return(x)
  if (is.list(x)) return(lapply(x, plain))
  if (is.factor(x)) x <- as.character(x)
  if (is.numeric(x) && all(is.finite(x)) && all(x == round(x)) && all(abs(x) < 2^31)) x <- as.integer(x)
  if (!is.null(names(x))) return(as.list(x))
  if (length(x) == 1) x else as.list(x)
}

arguments <- function(...) {
  given <- list(...)
  lapply(given[!vapply(given, is.null, logical(1))], plain)
}

# A call that was meant for base R: five verbs have the name of a function there, and scripts that use it must go on.
meant_for <- function(f) {
  call <- sys.call(-1)
  call[[1]] <- f
  eval(call, parent.frame(2))
}

is_python <- function(x) inherits(x, "python.builtin.object")
