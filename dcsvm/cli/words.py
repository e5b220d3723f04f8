"""Suggest an option for a name that no option has, such as a parameter of scikit-learn or
LightGBM."""

from __future__ import annotations

import click

# option: its words in lower case, with _ in place of -
WORDS = {
    "-s": "svm_type svm type task objective application",
    "-t": "kernel kernel_type",
    "-c": "c cost penalty",
    "-g": "gamma",
    "-d": "degree",
    "-r": "coef0 coef",
    "-n": "nu",
    "-p": "epsilon eps",
    "-e": "tol tolerance stop_criterion",
    "-w": "class_weight class_weights weight scale_pos_weight is_unbalance",
    "-b": "probability probabilities proba",
    "-v": "cv fold folds n_folds n_splits nfold cross_validation",
    "-m": "cache cache_mb cache_size memory max_memory",
    "-h": "shrinking",
    "-q": "quiet silent verbose verbosity",
    "--max-iter": "max_iterations iterations num_iterations n_iter",
    "--threads": "n_jobs jobs num_threads n_threads nthread nthreads num_thread thread",
    "--seed": "random_state random_seed",
    "--test": "test_data valid valid_data validation",
    "--scale": "scaling scaler normalize standardize",
    "--init-model": "input_model model_in warm_start",
    "--decision-values": "decision_function decision raw_score predict_raw_score",
}
OPTION_OF = {word: option for option, words in WORDS.items() for word in words.split()}
MIN_SIMILARITY = 0.75  # difflib's ratio; --gap is 0.5 of --gamma


def advice_on(name: str, parameters: list[click.Parameter]) -> str:
    """Return a hint in brackets, empty where no option is near."""
    options = [one for parameter in parameters for one in parameter.opts if one.startswith("-")]
    word = name.strip("-").lower().replace("-", "_")
    meant = OPTION_OF.get(word)
    if meant in options:
        return f" ({word} is {meant})"
    from difflib import get_close_matches

    known = {option.lstrip("-").replace("-", "_"): option for option in options if len(option) > 2}
    near = get_close_matches(word, known, n=1, cutoff=MIN_SIMILARITY)
    return f" (did you mean {known[near[0]]}?)" if near else ""
