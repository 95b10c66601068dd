"""The workbench in the browser and the same verbs as a web service: thin callers of the package.

server.py    `sdcmap serve`: address, token, time limits
app.py       the application put together
safety.py    who may ask what: token, origin, sizes, headers
answers.py   errors and numbers as JSON or as a page
models.py    every answer of the service as a type
room.py      the folder that is served: files, studies and plans by name, nothing outside it
sweeps.py    sweeps that run beside the server (child.py) and go on after a restart
shelf.py     studies copied, renamed, archived, deleted and noted
orders.py    which orders of a release were written
views.py     what many clients ask at once: maps, made once and kept
api_*.py     the service
pages.py     the pages; templates/ and static/ are theirs
"""
