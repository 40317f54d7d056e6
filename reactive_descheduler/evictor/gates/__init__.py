"""The gates in the order in which they are asked.

Cheapest and most telling first: what holds everything, then what only time lifts, then what other
requests lift, the shared numbers last, so that a permit is never counted for a Pod that another
gate would hold anyway. To add one: a file here, its name in this order, and a field of `Gates` in
`app/enduring.py`, where it is made.
"""

ORDER = (
    "synced",  # nothing is known yet
    "clock",  # the wall clock jumped, so ages may be wrong
    "stale",  # what is known may be wrong
    "permission",  # no request can succeed
    "reported",  # dry run, mode observe: told already
    "settle",  # the cause may pass by itself
    "background",  # a webhook has taken its eviction over
    "retry",  # the last request for this Pod failed
    "lane",  # its budget has no room, or a request under it is in flight
    "limits",  # too many went in the window
    "replacements",  # holds nobody: keeps what evictions are still waited for
    "booking",  # holds nobody: promises room to replacements
    "bucket",  # the global rate; asked before all else, taken last
)
