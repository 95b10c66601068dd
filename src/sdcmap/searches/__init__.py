"""The search for the risk-utility frontier: new methods are proposed and evaluated, generation by generation.

search_space      what may be done to a file, from the roles of its columns: a point describes a method
search_proposals  random starts, spread over the space; then children of the best candidates so far
objective_space   the two numbers that a search compares: log risk, clipped, and loss
evaluation        make and score proposals with the engine of a sweep: on a sample of rows first, then on all
generations       generation after generation, until the budget, the time or the gain is used up
redraws           new draws of the frontier: some to choose by, others to report
search_review     which choices matter, and a replay of random search
search_results    the result and its charts
search            `search`, from a plan to the result
"""
