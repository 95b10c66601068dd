# The verbs, by the names that they have in Python. Further arguments (...) are those of the Python verb, by name.

read <- function(source, ...) as_microdata(source, ...)

write <- function(data, path, ...) {
  if (missing(data) || !(is_microdata(data) || is.data.frame(data))) return(meant_for(base::write))
  made <- ask(python()$write, as_microdata(data), path.expand(path))
  invisible(as.character(made))
}

look <- function(source, ...) {
  if (is.data.frame(source) || ...length()) source <- as_microdata(source, ...)
  ask(python()$look, source)
}

starting_plan <- function(look, path, profile = "public-use") ask(look$plan, path, profile)

method <- function(.name, ...) ask(class_named(.name, "methods"), ...)

measure <- function(.name, ...) ask(class_named(.name, c("risk", "utility")), ...)

rule <- function(.name, ...) ask(class_named(.name, character()), ...)

class_named <- function(name, rooms) {
  homes <- c(lapply(rooms, function(room) python()[[room]]), list(python()))
  for (home in homes) if (reticulate::py_has_attr(home, name)) return(home[[name]])
  stop("sdcmap has no ", name, ": see the reference.", call. = FALSE)
}

subsets <- function(names, sizes = 1) do.call(ask, c(list(python()$subsets, as.list(names)), as.list(sizes)))

grid <- function(.name, ...) {
  if (missing(.name) || !is.character(.name)) return(meant_for(graphics::grid))
  ask(python()$grid, class_named(.name, "methods"), ...)
}

plan <- function(methods, measures, ...) ask(python()$Plan, several(methods), several(measures), ...)

several <- function(x) if (is_python(x)) list(x) else as.list(x)

read_plan <- function(path) ask(python()$Plan$read, path.expand(path))

mask <- function(data, method, seed) ask(python()$mask, as_microdata(data), method, seed = seed)

score <- function(original, masked, measures, ...) {
  found <- ask(python()$score, as_microdata(original), as_microdata(masked), several(measures), ...)
  data_frame(bridge()$estimates_table(found))
}

sweep <- function(data, plan, study = NULL, workers = 1, ...) {
  if (missing(plan) || !is_python(plan)) return(meant_for(base::sweep))
  ask(python()$sweep, as_microdata(data), plan, study, workers = workers, ...)
}

search <- function(data, plan, budget = NULL, study = NULL, workers = 1, ...) {
  if (missing(data)) return(meant_for(base::search))
  ask(python()$search, as_microdata(data), plan, budget = budget, study = study, workers = workers, ...)
}

compare <- function(data, folder = NULL, workers = 1, ...) {
  ask(python()$compare, as_microdata(data), folder = folder, workers = workers, ...)
}

ru_map <- function(scores, risk = NULL, utility = NULL, limits = NULL) {
  axes <- list(risk = if (!is.null(risk)) as.list(risk), utility = utility, limits = limits)
  if (is.character(scores)) return(do.call(ask, c(list(python()$workflow$open_map, path.expand(scores)), axes)))
  do.call(ask, c(list(python()$RUMap$of_plan, scores, scores$plan), axes))
}

choose <- function(map, rule = NULL, ...) {
  if (!missing(map) && is.character(map)) return(ask(python()$workflow$choose, path.expand(map), rule, ...))
  if (missing(map) || !is_python(map)) return(meant_for(base::choose))
  ask(map$choose, rule)
}

choose_pair <- function(study, public, folder, workers = 1, ...) {
  ask(python()$choose_pair, path.expand(study), public, path.expand(folder), workers = workers, ...)
}

records <- function(original, masked, on, ...) {
  ask(python()$records, as_microdata(original), as_microdata(masked), on = on, ...)
}

draw <- function(x, file, ...) {
  ask(ask(x$draw, ...)$save, path.expand(file))
  invisible(file)
}

release <- function(data, plan, choice = NULL, folder, ...) {
  made <- if (missing(plan)) of_study(data, choice, ...) else ask(python()$release, as_microdata(data), plan, choice, ...)
  ask(made$write, path.expand(folder))
  invisible(folder)
}

of_study <- function(study, choice, ...) {
  study <- ask(python()$Study$open, path.expand(study))
  if (is.null(choice)) choice <- ask(python()$workflow$choose, study)
  if (is.character(choice)) choice <- ask(python()$workflow$choose, study, candidate = choice)
  ask(python()$workflow$prepare_release, study, choice, ...)
}

report <- function(study, file = "report.html", ...) {
  ask(ask(python()$report, study, ...)$save, path.expand(file))
  invisible(file)
}

correct <- function(released, ...) ask(python()$correct, as_microdata(released), ...)
