"""The search for the frontier: a plan that grows by generations, and says how sure it is of what it found.

space      what may be done to a file, from the roles of its columns: a point stands for a method
proposals  the starts, spread over the space; then children of what is best so far
plane      the two numbers that a search looks at: log risk, clipped, and loss
making     proposals made and scored by the engine of a sweep: some rows first, then all
growing    generation after generation, until the budget, the time or the gain ends
ends       what stays: drawn afresh to be chosen, and once more to be reported
telling    which choices matter; random search replayed
found      what was found, and its pictures
searching  `search`, from a plan to what was found
"""
