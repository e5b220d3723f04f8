"""The experiments of Hsieh, Si and Dhillon (2014): every table and figure, and the competitors.

    problems     data sets with the paper's C and gamma; loading a sample of one
    fetch        the published files, downloaded and checked
    scales       tiny, small, medium, full: rows, time limits
    baselines/   every competitor as fit(X, y, C, kernel, ...) -> Fitted
    committee    prediction by all clusters at once: the naive sum and the BCM
    experiments/ a file per table or figure: its cells, and how one is measured
    cells        the record of each measured cell; what exists and matches is not measured again
    provenance   the commit, the day and the machine, saved with each record
    fewer        fewer rows for a cell that exceeds its limit
    run          measures the missing cells, each in a separate process, those of a data set in turn
    published    the paper's numbers
    page.md      the text of RESULTS.md, with slots
    sections/    a file per section: what fills its slots
    figures      the colour, marker and line of each method
    report       RESULTS.md from all these

Run from the folder examples/: `python -m paper.run --help`, or through its Makefile.
"""

EXPERIMENTS = (
    "data_sets",
    "comparison",
    "bias",
    "prediction",
    "level_times",
    "grid",
    "bound",
    "support_vectors",
    "convergence",
    "polynomial",
    "choice",
    "clustering",
    "level_tolerance",
)
