# The Python package is loaded on first use. reticulate::use_virtualenv() or RETICULATE_PYTHON says where it is.

sdcmap_python <- NULL

.onLoad <- function(libname, pkgname) {
  sdcmap_python <<- reticulate::import("sdcmap", delay_load = TRUE)
}

python <- function() sdcmap_python

bridge <- function() reticulate::import("sdcmap.files.r_bridge")

# Call a Python function. An error of sdcmap becomes an R condition of the same class, so that
# tryCatch(..., Refused = function(e) ...) works.
call_python <- function(.f, ...) {
  given <- arguments(...)
  named <- if (is.null(names(given))) logical(length(given)) else nzchar(names(given))
  answer <- bridge()$call_verb(.f, unname(given[!named]), if (any(named)) given[named] else reticulate::dict())
  if (length(answer) == 1) return(answer[[1]])
  stop(structure(class = c(answer[[1]], "SdcmapError", "error", "condition"), list(message = answer[[2]], call = NULL)))
}

# Convert an argument for Python: whole numbers to int, named vectors and lists to dict, several values to a list.
plain <- function(x) {
  if (is_python(x) || is.raw(x)) return(x)
  if (is.list(x)) return(lapply(x, plain))
  if (is.factor(x)) x <- as.character(x)
  if (is.numeric(x) && all(is.finite(x)) && all(x == round(x)) && all(abs(x) < 2^31)) x <- as.integer(x)
  if (!is.null(names(x))) return(as.list(x))
  if (length(x) == 1) x else as.list(x)
}

# Convert all arguments; those that are NULL are left out.
arguments <- function(...) {
  given <- list(...)
  lapply(given[!vapply(given, is.null, logical(1))], plain)
}

# Pass the current call on to a function of R. Five functions here have the name of a function of base R or graphics,
# and scripts that use those must still work.
pass_on_to <- function(f) {
  call <- sys.call(-1)
  call[[1]] <- f
  eval(call, parent.frame(2))
}

is_python <- function(x) inherits(x, "python.builtin.object")
