"""Pictures of results, drawn with matplotlib.

Read `plots` first, which has the pictures of `wbsim plot`.  `axes` has the common look of all pictures.
`facets` divides the runs of a sweep into panels and lines.
"""
