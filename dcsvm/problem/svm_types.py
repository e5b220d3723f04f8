"""LIBSVM's problem types by their names in a model file."""

SVM_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")  # LIBSVM's -s 0 to 4
CLASSIFIERS = ("c_svc", "nu_svc")
REGRESSIONS = ("epsilon_svr", "nu_svr")
WITH_LEVELS = ("c_svc", "epsilon_svr")  # the other types are solved directly
