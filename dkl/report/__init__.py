"""One page about a fitted model: a single HTML file that needs no network, no server and no JavaScript.

make_report   what `model.report(X, y)` and the command `dkl report` call
Report        what it gives: save it, or look at it in a notebook
"""

from dkl.report.build import Report, make_report

__all__ = ["Report", "make_report"]
