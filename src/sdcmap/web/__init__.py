"""The workbench in the browser and the same verbs as a web service: thin callers of the packages.

server.py    `sdcmap serve`: address, token, time limits
service.py   the application put together; the service (api_*.py) is loaded when it is first asked
workbench.py what every route works on, as a typed dependency
safety.py    who may ask what: token, origin, sizes, headers (entrance.py: tokens and sessions)
answers.py   errors as JSON or as a page
api_*.py     the service: what each route takes and answers, as types
models.py    the map as an answer
room.py      the folder that is served: files, studies, plans and notes by name, nothing outside it
sweeps.py    sweeps that run beside the server (child.py) and go on after a restart
shelf.py     studies copied, renamed, archived, deleted and noted
views.py     what many clients ask at once: data and maps, made once and kept
drawing.py   pictures and reports, made in a process of their own
pages.py     the pages; templates/ and static/ are theirs
"""
