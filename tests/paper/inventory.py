"""What the paper's tables and figures have: rows, columns, C, gamma, sizes, levels.

Typed from the paper (Hsieh, Si and Dhillon 2014, section 5 and the appendix), not from the
experiments, which are compared with it.
"""

# Tables 3 and 4: C and gamma of each data set
DATA_SETS = {
    "ijcnn1": (2**5, 2**1),
    "cifar": (2**3, 2**-22),
    "census": (2**9, 2**-9),
    "covtype": (2**5, 2**5),
    "webspam": (2**3, 2**5),
    "kddcup99": (2**8, 2**-1),
    "mnist8m": (2**0, 2**-21),
}
# Tables 3 and 4: the rows of each table; sizes are in section 5, "Parameter setting"
METHODS = {
    "early": {},
    "dcsvm": {},
    "libsvm": {},
    "lasvm": {},
    "cascade": {},
    "llsvm": {"features": 3000},
    "fastfood": {"features": 3000},
    "spsvm": {"basis": 200},
    "ltpu": {"features": 3000},
}
LEVELS, BRANCHING, EARLY_LEVEL, EARLY_CLUSTERS = 4, 4, 3, 64
TOLERANCE, PASSES = 1e-3, 1

# Table 1
PREDICTION = {"data": {"webspam", "covtype"}, "clusters": (50, 100)}
# Table 6, and its numbers: seconds of clustering and of training
LEVEL_TIMES = {
    "data": {"covtype"},
    4: (43.2, 159.4),
    3: (42.5, 439.7),
    2: (40.8, 1422.8),
    1: (38.1, 3135.5),
    0: (36.5, 7614.0),
}
# Tables 5 and 7 to 10, Figures 5 to 8
GRID = {"data": {"ijcnn1", "webspam", "covtype", "census"}, "exponents": (-10, -6, 1, 6, 10)}
# Figure 1
BOUND = {
    "data": {"covtype"},
    "rows": 10_000,
    "clusters": (8, 16, 32, 64, 128),
    "partitions": {"kernel k-means", "random"},
}
# Figure 2: 4^5 to 4^0 clusters
SUPPORT = {"data": {"covtype"}, "levels": 5, "methods": {"dcsvm", "cascade", "libsvm"}}
# Figure 3
CONVERGENCE = {
    "data": {"webspam", "covtype", "mnist8m", "kddcup99", "cifar"},
    "methods": set(METHODS),
}
# Figure 4: C and gamma for the polynomial kernel of degree 3 with eta = 0
POLYNOMIAL = {
    "data": {"webspam": (2**3, 2**4), "covtype": (2**1, 2**0)},
    "degree": 3,
    "coef0": 0.0,
    "methods": {"early", "dcsvm", "libsvm", "lasvm"},
}
# section 5, "Parameter setting": cross-validation
CHOICE = {"folds": 5, "exponents": (-10, 10), "images": {"cifar", "mnist8m"}, "shift": -20}

# all printed numbers of Tables 3 and 4 (63 pairs), 7 to 10 (325 cells), 1, 2 and 5
CHECKSUMS = {
    "comparison.csv": "d1a4e351b1ad98b884a71a368966d0b91c17b360645a72abc7f1b48455c83f7e",
    "grid.csv": "bf03d1b96865efa6fd2fc4f2a070cbd780aa3ee2c714267021cc7be0765a5ea0",
    "PREDICTION": "54ae5402caa5e9460b15c1b126fc481cd8ad8cc9973a1db6a5a67da2ecf89a9c",
    "DATA_SETS": "7799444cb3bac6d697c51a7ac756b39fff54c1180fd5a664be285e53e865abc1",
    "GRID_SUMS": "40a7d300fdd4c0b5c39313fd455ccf049867580d6bccfa93536f1efba5ec360d",
}

# What once had a result in the comparison, on all rows but in "covtype-50000": no competitor's may
# be lost again. The sets are those that can be had or made.
MEASURED = {
    "ijcnn1": ("libsvm", "lasvm", "cascade", "llsvm", "fastfood", "spsvm", "ltpu"),
    "census": ("cascade", "spsvm"),
    "covtype": ("cascade", "llsvm", "spsvm", "ltpu"),
    "kdd10": ("libsvm", "lasvm", "cascade"),
    "mnist": ("lasvm", "cascade", "llsvm", "fastfood", "spsvm", "ltpu"),
    "covtype-50000": ("libsvm", "lasvm", "cascade", "llsvm", "fastfood", "spsvm", "ltpu"),
    "cifar-made": ("fastfood", "spsvm"),
    "webspam-made": ("cascade", "fastfood"),
    "mnist8m-made": (),  # early and exact
}
# The same in the figures against time: points by data set and method.
POINTS = {
    "convergence": {
        "covtype": {"early": 3, "dcsvm": 5, "direct": 5, "libsvm": 5, "lasvm": 2, "cascade": 4,
                    "llsvm": 4, "fastfood": 4, "spsvm": 14, "ltpu": 4},
        "mnist": {"early": 3, "dcsvm": 5, "direct": 5, "libsvm": 1, "lasvm": 2, "cascade": 4,
                  "llsvm": 3, "fastfood": 4, "spsvm": 14, "ltpu": 3},
        "kdd10": {"early": 3, "dcsvm": 5, "direct": 5, "libsvm": 5, "lasvm": 2, "cascade": 4,
                  "llsvm": 4, "fastfood": 4, "spsvm": 14, "ltpu": 4},
        "webspam-made": {"early": 3, "dcsvm": 5, "direct": 5, "lasvm": 2, "cascade": 4,
                         "llsvm": 1, "fastfood": 4, "spsvm": 14},
        "cifar-made": {"early": 3, "dcsvm": 4, "direct": 5, "cascade": 3, "fastfood": 4,
                       "spsvm": 14},
    },
    "polynomial": {
        "covtype": {"early": 3, "dcsvm": 5, "direct": 5, "libsvm": 5, "lasvm": 2},
        "webspam-made": {"early": 3, "dcsvm": 5, "direct": 5, "lasvm": 2},
    },
}  # fmt: skip
