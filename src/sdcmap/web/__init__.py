"""The workbench in the browser, and the same operations as a web service. Both call the other packages.

server.py           `sdcmap serve`: address, token, time limits
service.py          builds the application; loads the service (api_*.py) on its first request
workbench.py        what every route works on, as a typed dependency
request_guard.py    access control: token, origin, sizes, headers
sessions.py         tokens for programs, login tokens and sessions for browsers
responses.py        errors as JSON or as a page
api_*.py            the routes of the service, with typed requests and responses
response_models.py  the R-U map as a response
workspace.py        the served folder: files, studies, plans and notes by name, and nothing outside it
sweeps.py           sweeps that run beside the server (sweep_process.py) and resume after a restart
study_store.py      copies, renames, archives and deletes studies; keeps notes and earlier plans
views.py            caches of data and maps that several clients ask for
renderer.py         pictures and reports, rendered in a separate process
pages.py            the pages, with templates/ and static/
"""
