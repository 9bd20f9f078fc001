"""Pictures of results, drawn with matplotlib.

Read `plots` first: what `wbsim plot` draws.  `axes` has the look that all pictures share, and `facets`
divides the runs of a sweep into panels and lines.
"""
