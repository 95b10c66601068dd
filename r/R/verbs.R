# The exported functions, with the same names as in Python. Further arguments (...) are those of the Python function.

read <- function(source, ...) as_microdata(source, ...)

write <- function(data, path, ...) {
  if (missing(data) || !(is_microdata(data) || is.data.frame(data))) return(pass_on_to(base::write))
  written <- call_python(python()$write, as_microdata(data), path.expand(path))
  invisible(as.character(written))
}

look <- function(source, ...) {
  if (is.data.frame(source) || ...length()) source <- as_microdata(source, ...)
  call_python(python()$look, source)
}

starting_plan <- function(look, path, profile = "public-use") call_python(look$plan, path, profile)

method <- function(.name, ...) call_python(find_class(.name, "methods"), ...)

measure <- function(.name, ...) call_python(find_class(.name, c("risk", "utility")), ...)

rule <- function(.name, ...) call_python(find_class(.name, character()), ...)

find_class <- function(name, packages) {
  modules <- c(lapply(packages, function(package) python()[[package]]), list(python()))
  for (module in modules) if (reticulate::py_has_attr(module, name)) return(module[[name]])
  stop("sdcmap has no class '", name, "'. The reference pages list all classes.", call. = FALSE)
}

subsets <- function(names, sizes = 1) do.call(call_python, c(list(python()$subsets, as.list(names)), as.list(sizes)))

grid <- function(.name, ...) {
  if (missing(.name) || !is.character(.name)) return(pass_on_to(graphics::grid))
  call_python(python()$grid, find_class(.name, "methods"), ...)
}

plan <- function(methods, measures, ...) call_python(python()$Plan, several(methods), several(measures), ...)

several <- function(x) if (is_python(x)) list(x) else as.list(x)

read_plan <- function(path) call_python(python()$Plan$read, path.expand(path))

mask <- function(data, method, seed) call_python(python()$mask, as_microdata(data), method, seed = seed)

score <- function(original, masked, measures, ...) {
  estimates <- call_python(python()$score, as_microdata(original), as_microdata(masked), several(measures), ...)
  data_frame(bridge()$estimates_table(estimates))
}

sweep <- function(data, plan, study = NULL, workers = 1, ...) {
  if (missing(plan) || !is_python(plan)) return(pass_on_to(base::sweep))
  call_python(python()$sweep, as_microdata(data), plan, study, workers = workers, ...)
}

search <- function(data, plan, budget = NULL, study = NULL, workers = 1, ...) {
  if (missing(data)) return(pass_on_to(base::search))
  call_python(python()$search, as_microdata(data), plan, budget = budget, study = study, workers = workers, ...)
}

compare <- function(data, folder = NULL, workers = 1, ...) {
  call_python(python()$compare, as_microdata(data), folder = folder, workers = workers, ...)
}

ru_map <- function(scores, risk = NULL, utility = NULL, limits = NULL) {
  axes <- list(risk = if (!is.null(risk)) as.list(risk), utility = utility, limits = limits)
  if (is.character(scores)) return(do.call(call_python, c(list(python()$workflow$open_map, path.expand(scores)), axes)))
  do.call(call_python, c(list(python()$RUMap$of_plan, scores, scores$plan), axes))
}

choose <- function(map, rule = NULL, ...) {
  if (!missing(map) && is.character(map)) return(call_python(python()$workflow$choose, path.expand(map), rule, ...))
  if (missing(map) || !is_python(map)) return(pass_on_to(base::choose))
  call_python(map$choose, rule)
}

choose_pair <- function(study, public, folder, workers = 1, ...) {
  call_python(python()$choose_pair, path.expand(study), public, path.expand(folder), workers = workers, ...)
}

records <- function(original, masked, on, ...) {
  call_python(python()$records, as_microdata(original), as_microdata(masked), on = on, ...)
}

draw <- function(x, file, ...) {
  call_python(call_python(x$draw, ...)$save, path.expand(file))
  invisible(file)
}

release <- function(data, plan, choice = NULL, folder, ...) {
  release <- if (missing(plan)) {
    release_of_study(data, choice, ...)
  } else {
    call_python(python()$release, as_microdata(data), plan, choice, ...)
  }
  call_python(release$write, path.expand(folder))
  invisible(folder)
}

release_of_study <- function(study, choice, ...) {
  study <- call_python(python()$Study$open, path.expand(study))
  if (is.null(choice)) choice <- call_python(python()$workflow$choose, study)
  if (is.character(choice)) choice <- call_python(python()$workflow$choose, study, candidate = choice)
  call_python(python()$workflow$prepare_release, study, choice, ...)
}

report <- function(study, file = "report.html", ...) {
  call_python(call_python(python()$report, study, ...)$save, path.expand(file))
  invisible(file)
}

correct <- function(released, ...) call_python(python()$correct, as_microdata(released), ...)
