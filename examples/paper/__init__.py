"""The experiments of Hsieh, Si and Dhillon (2014): every table and figure, and the competitors.

    problems     data sets with the paper's C and gamma; loading a sample of one
    fetch        the published files, downloaded and checked
    scales       tiny, small, medium, full: rows, time limits
    baselines/   every competitor as fit(X, y, C, kernel, ...) -> Fitted
    committee    prediction by all clusters at once: the naive sum and the BCM
    experiments/ a file per table or figure: its cells, and how one is measured
    cells        a measured cell is a JSON file; what exists and matches is not measured again
    provenance   the commit of the checkout, saved with each cell
    fewer        fewer rows for a cell that exceeds its limit
    run          measures the missing cells, each in a separate process
    published    the paper's numbers
    sections/    a file per experiment: what its cells show, and the conclusions from them
    report       RESULTS.md from the sections, findings.md and published

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
