"""LIBSVM's option syntax on top of Click, and hints for unknown options.

svm-train reads only the first letter after a dash: `-cost 5` is `-c 5`. The next argument is the
value, even if it starts with a dash: `-r -1`. Only -w has its label attached: `-w-1 5`. Options
with two dashes keep Click's syntax. svm-grid's words with one dash (`-log2c`) are read whole. Here
`-gap` and `-g0.5` are errors; svm-train would read both as `-g`.
"""

import click

# option: names in other software, such as scikit-learn or LightGBM; lower case, _ for -
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
BALANCED = "--balanced"  # -w balanced
MIN_SIMILARITY = 0.75  # difflib's ratio; it is 0.5 for --gap and --gamma


def for_click(args: list[str], parameters: list[click.Parameter]) -> list[str]:
    """Rewrite arguments for Click: each option as a separate word, followed by its values.

    `-w balanced` becomes the flag BALANCED.
    An option with two values is LIBSVM's `-wi`: the first value is attached to the letter. Raises
    click.UsageError.
    """
    options = {name: option for option in parameters for name in option.opts}
    remaining = list(args)
    rewritten: list[str] = []
    while remaining:
        word = remaining.pop(0)
        if word == "--":
            return [*rewritten, word, *remaining]
        is_balanced = word == "-w" and [one.lower() for one in remaining[:1]] == [BALANCED[2:]]
        if is_balanced and BALANCED in options:
            rewritten.append(BALANCED)
            del remaining[0]
            continue
        is_whole = len(word) > 2 and word in options
        is_letter = len(word) > 1 and word[0] == "-" and word[1] != "-" and not is_whole
        name = word[:2] if is_letter else word
        option = options.get(name)
        if not isinstance(option, click.Option):
            rewritten.append(word)
            continue
        rewritten.append(name)
        n_values = 0 if option.is_flag else option.nargs
        if is_letter and n_values == 2:
            if len(word) == 2:
                raise click.UsageError(f"the label follows {name} without a space, as in {name}1 5")
            rewritten.append(word[2:])
            n_values = 1
        elif is_letter:
            check_rest(word, options)
        if len(remaining) < n_values:
            raise click.UsageError(f"the option {word} requires a value")
        rewritten += remaining[:n_values]
        del remaining[:n_values]
    return rewritten


def check_rest(word: str, options: dict[str, click.Parameter]) -> None:
    """Raise click.UsageError if a dash is missing, or if a value is attached to the letter."""
    if f"-{word}" in options:
        raise click.UsageError(f"no such option: {word} (write -{word})")
    if not (word[2:] + "a").isalpha():
        raise click.UsageError(
            f"no such option: {word} (a value is the next argument, as in "
            f"{word[:2]} {word[2:].lstrip('=')})"
        )


def advice_on(name: str, parameters: list[click.Parameter]) -> str:
    """Return a hint in parentheses, or an empty string if no option is similar."""
    options = [one for parameter in parameters for one in parameter.opts if one.startswith("-")]
    word = name.strip("-").lower().replace("-", "_")
    meant = OPTION_OF.get(word)
    if meant in options:
        return f" ({word} is {meant})"
    from difflib import get_close_matches

    known = {option.lstrip("-").replace("-", "_"): option for option in options if len(option) > 2}
    near = get_close_matches(word, known, n=1, cutoff=MIN_SIMILARITY)
    return f" (did you mean {known[near[0]]}?)" if near else ""
