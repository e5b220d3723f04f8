"""Write a model as one file of C99 that predicts rows: libm only, no allocation.

Its interface is at the top of the file that it makes: INTERFACE. Nothing in it is written after the
start of the program, so that threads may call everything at once; what a call needs is on its
stack.
"""

from __future__ import annotations

from string import Template

from dcsvm.model.c_literals import array, doubles, number, texts
from dcsvm.model.c_rows import RowCode
from dcsvm.model.c_values import KernelCode, Machines, TreeCode, decision_code, no_rows
from dcsvm.model.parts import (
    MAX_SWEEPS,
    MIN_NORMAL,
    MIN_PROBABILITY,
    N_MARKS,
    TOLERANCE,
    EarlyModel,
    ModelParts,
)

SLACK = 1024  # bytes of stack for variables and calls

INTERFACE = Template(
    """\
/* $title

   C99 with libm, for several threads; no allocation, up to $stack bytes of stack. To call the
   functions from other files, define DCSVM_DECLARATIONS there and include this file. */
#include <math.h>
$headers
#define DCSVM_COLUMNS $n_columns /* values of a row */
#define DCSVM_FIRST_INDEX $first_index /* of the first one in LIBSVM text */
#define DCSVM_FEATURES $n_features /* features in use */
#define DCSVM_VALUES $n_values /* decision values */
#define DCSVM_CLASSES $n_classes
$sizes
/* Computes the decision values of a row of DCSVM_COLUMNS values$row. Returns their number.
$meaning */
int dcsvm_values(const double *row, double *values);

/* The same for a row given by its n values at ascending places, from 0; others are 0. */
int dcsvm_values_sparse(int n, const int *index, const double *value, double *values);

/* Returns $label. */
double dcsvm_label(const double *row);
$others
#ifndef DCSVM_DECLARATIONS

"""
)
NAMES_OF_COLUMNS = """
/* The columns of a row. */
extern const char *const dcsvm_column_names[DCSVM_COLUMNS];
"""
CODE_OF_TEXT = """
/* Returns the number that stands for a text in a column of a row: -1 for an unknown one, NAN for a
   missing one and in columns of other numbers. */
double dcsvm_code(int column, const char *text);
"""
LABELS = "\nextern const double dcsvm_labels[DCSVM_CLASSES];\n"
LABEL_NAMES = "\nextern const char *const dcsvm_label_names[DCSVM_CLASSES];\n"
PROBABILITIES = Template(
    """
/* Estimates $words. Returns their number. */
int dcsvm_probabilities(const double *row, double *p);
"""
)
PAIRS = """\
   They are those of the classes 0 and 1, 0 and 2, ...: positive for the first one, NAN for
   neither."""
MEANINGS = {"one_class": "   It is positive unless the row is an outlier."}

LABEL_OF_VALUE = Template(
    """\
double dcsvm_label(const double *row) {
  double values[DCSVM_VALUES];
  dcsvm_values(row, values);
  return $label;
}
"""
)
LABEL_OF_VOTES = Template(
    """\
double dcsvm_label(const double *row) {
  double values[$n_values];
  int votes[DCSVM_CLASSES] = {0}, pair = 0, best = 0, i, j;
  dcsvm_values(row, values);
  for (i = 0; i < DCSVM_CLASSES; ++i) {
    for (j = i + 1; j < DCSVM_CLASSES; ++j, ++pair) {
      votes[i] += values[pair] > 0.0;
      votes[j] += values[pair] <= 0.0;
    }
  }
  for (i = 1; i < DCSVM_CLASSES; ++i) {
    if (votes[i] > votes[best]) best = i;
  }
  return $label;
}
"""
)
ONE_CLASS_PROBABILITIES = Template(
    """
int dcsvm_probabilities(const double *row, double *p) {
  double value[DCSVM_VALUES];
  int k, n_below = 0;
  dcsvm_values(row, value);
  for (k = 0; k < $n_marks; ++k) n_below += dcsvm_marks[k] <= value[0];
  p[0] = fmin(fmax(n_below / $n_marks.0, $least), 1.0 - $least);
  p[1] = 1.0 - p[0];
  return 2;
}
"""
)
PAIR_PROBABILITIES = Template(
    """
/* Estimates the probability of the first class of each pair. */
static void dcsvm_pairs(const double *row, double *first) {
  int pair;
  dcsvm_values(row, first);
  for (pair = 0; pair < DCSVM_VALUES; ++pair) {
    const double f = 1.0 / (1.0 + exp(dcsvm_sigmoid_a[pair] * first[pair] + dcsvm_sigmoid_b[pair]));
    first[pair] = isnan(f) ? 0.5 : fmin(fmax(f, $least), 1.0 - $least);
  }
}
"""
)
OF_ONE = """
int dcsvm_probabilities(const double *row, double *p) {
  (void)row;
  p[0] = 1.0;
  return 1;
}
"""
OF_TWO = """
int dcsvm_probabilities(const double *row, double *p) {
  dcsvm_pairs(row, p);
  p[1] = 1.0 - p[0];
  return 2;
}
"""
OF_CLASSES = Template(
    """
/* Returns the probability of class i in its pair with class j. */
static double dcsvm_preference(const double *first, int i, int j) {
  if (i > j) return 1.0 - dcsvm_preference(first, j, i);
  return first[i * (2 * DCSVM_CLASSES - i - 1) / 2 + j - i - 1];
}

/* Returns the entry (i, j) of the form p'Qp that the probabilities p minimize. */
static double dcsvm_form(const double *first, const double *diagonal, int i, int j) {
  if (i == j) return diagonal[i];
  return -dcsvm_preference(first, i, j) * dcsvm_preference(first, j, i);
}

/* Wu, Lin, Weng: Probability estimates for multi-class classification by pairwise coupling (2004),
   the second method. */
int dcsvm_probabilities(const double *row, double *p) {
  double first[DCSVM_VALUES], diagonal[DCSVM_CLASSES], product[DCSVM_CLASSES];
  int sweep, i, j;
  dcsvm_pairs(row, first);
  for (i = 0; i < DCSVM_CLASSES; ++i) {
    p[i] = 1.0 / DCSVM_CLASSES;
    diagonal[i] = 0.0;
    for (j = 0; j < DCSVM_CLASSES; ++j) {
      const double other = i == j ? 0.0 : dcsvm_preference(first, j, i);
      diagonal[i] += other * other;
    }
  }
  for (sweep = 0; sweep < $max_sweeps; ++sweep) {
    double value = 0.0, error = 0.0;
    for (i = 0; i < DCSVM_CLASSES; ++i) {
      product[i] = 0.0;
      for (j = 0; j < DCSVM_CLASSES; ++j) product[i] += dcsvm_form(first, diagonal, i, j) * p[j];
      value += p[i] * product[i];
    }
    for (i = 0; i < DCSVM_CLASSES; ++i) error = fmax(error, fabs(product[i] - value));
    if (error < $tolerance / DCSVM_CLASSES) break;
    for (i = 0; i < DCSVM_CLASSES; ++i) {
      const double step = (value - product[i]) / diagonal[i], scale = 1.0 / (1.0 + step);
      value = (value + step * (2.0 * product[i] + step * diagonal[i])) * scale * scale;
      p[i] += step;
      for (j = 0; j < DCSVM_CLASSES; ++j) {
        product[j] = (product[j] + step * dcsvm_form(first, diagonal, i, j)) * scale;
        p[j] *= scale;
      }
    }
  }
  return DCSVM_CLASSES;
}
"""
)


def c_text(model: ModelParts, method: str | None = None) -> str:
    """Return the file of a part of a model; `method` is as of `ModelParts.part`.

    Raises ValueError for a precomputed kernel, or if the model does not have the part.
    """
    part = model.with_own_rows().part(method)
    if model.kernel.is_precomputed:
        raise ValueError(
            "a model of a precomputed kernel cannot be exported: its rows are not in it"
        )
    tree = None
    kernels, stored = {"kernel": model.kernel}, [part.rows]
    if isinstance(part, EarlyModel) and part.partition.n_clusters > 1:
        tree = TreeCode(part.partition)
        kernels["center_kernel"] = tree.partition.kernel
        stored.append(tree.partition.sample)
    rows = RowCode(model, stored, {kernel.type.argument for kernel in kernels.values()})
    machines = Machines.of(part, model.kernel, rows)
    if machines.normals is not None:
        del kernels["kernel"]
    sample = no_rows() if tree is None else rows.vectors(tree.partition.sample)
    vectors = KernelCode(rows, machines.vectors, sample)
    code = [
        rows.definitions(is_sparse=vectors.is_sparse),
        vectors.code(kernels),
        machines.code(is_sparse=vectors.is_sparse),
    ]
    if tree is not None:
        code.append(tree.code(machines.n_vectors))
    code += [
        decision_code(tree, max(model.n_pairs, 1)),
        rows.functions(is_sparse=vectors.is_sparse),
        _label(model),
        _probabilities(model),
        _names_of_columns(model),
        "\n#endif\n",
    ]
    return "".join([_interface(model, rows, tree), *code])


def _interface(model: ModelParts, rows: RowCode, tree: TreeCode | None) -> str:
    """Return the comments and declarations at the top of the file."""
    sizes, others = "", ""
    if tree is not None:
        sizes = f"#define DCSVM_NODES {tree.n_nodes} /* of the tree of clusters */\n"
    if _has_names(model):
        others += NAMES_OF_COLUMNS
    if rows.has_codes:
        others += CODE_OF_TEXT
    label = "the value"
    if model.is_classifier:
        is_text = model.labels.dtype.kind == "U"
        label = "the place of the label in dcsvm_label_names" if is_text else "the label"
        others += LABEL_NAMES if is_text else LABELS
    elif model.svm_type == "one_class":
        label = "1, or -1 for an outlier"
    if _has_probabilities(model):
        words = "the probabilities of the classes"
        if not model.is_classifier:
            words = "the probabilities of a normal row and of an outlier"
        others += PROBABILITIES.substitute(words=words)
    meaning = PAIRS if model.is_classifier else MEANINGS.get(model.svm_type, "   It is the label.")
    return INTERFACE.substitute(
        title=f"A model of type {model.svm_type} and kernel {model.kernel.describe()}.",
        stack=_stack(model, rows, tree),
        headers="#include <string.h>\n" if rows.has_codes else "",
        n_columns=rows.n_columns,
        first_index=model.first_index,
        n_features=len(rows.features),
        n_values=model.n_pairs,
        n_classes=len(model.labels) if model.is_classifier else 0,
        sizes=sizes,
        row=", NAN where missing" if model.table is not None else "",
        meaning=meaning,
        label=label,
        others=others,
    )


def _stack(model: ModelParts, rows: RowCode, tree: TreeCode | None) -> int:
    """Return a bound on the bytes of stack of a call."""
    n_numbers = rows.size + 3 * model.n_pairs + 3 * len(model.labels)
    n_numbers += 0 if model.table is None else rows.n_columns
    n_numbers += 0 if tree is None else tree.most_parts
    return 8 * n_numbers + SLACK


def _label(model: ModelParts) -> str:
    """Return `dcsvm_label`, and the labels."""
    if not model.is_classifier:
        is_value = model.is_regression
        return LABEL_OF_VALUE.substitute(
            label="values[0]" if is_value else "values[0] > 0.0 ? 1.0 : -1.0"
        )
    n_values = max(model.n_pairs, 1)
    if model.labels.dtype.kind == "U":
        labels = texts("dcsvm_label_names", model.labels.tolist(), is_public=True)
        return f"{labels}\n{LABEL_OF_VOTES.substitute(n_values=n_values, label='best')}"
    labels = array("double", "dcsvm_labels", doubles(model.labels), is_public=True)
    return f"{labels}\n{LABEL_OF_VOTES.substitute(n_values=n_values, label='dcsvm_labels[best]')}"


def _has_probabilities(model: ModelParts) -> bool:
    return model.probability is not None and not model.is_regression


def _probabilities(model: ModelParts) -> str:
    """Return `dcsvm_probabilities`, if the model has them."""
    sigmoids = model.probability
    if sigmoids is None or model.is_regression:
        return ""
    if sigmoids.B is None:
        marks = array("double", "dcsvm_marks", doubles(sigmoids.A))
        least = number(MIN_NORMAL)
        return f"\n{marks}{ONE_CLASS_PROBABILITIES.substitute(n_marks=N_MARKS, least=least)}"
    n_classes = len(model.labels)
    if n_classes == 1:
        return OF_ONE
    code = array("double", "dcsvm_sigmoid_a", doubles(sigmoids.A))
    code += array("double", "dcsvm_sigmoid_b", doubles(sigmoids.B))
    code += PAIR_PROBABILITIES.substitute(least=number(MIN_PROBABILITY))
    if n_classes == 2:
        return f"\n{code}{OF_TWO}"
    max_sweeps, tolerance = max(MAX_SWEEPS, n_classes), number(TOLERANCE)
    coupling = OF_CLASSES.substitute(max_sweeps=max_sweeps, tolerance=tolerance)
    return f"\n{code}{coupling}"


def _has_names(model: ModelParts) -> bool:
    return model.table is not None and not model.table.is_of_matrix


def _names_of_columns(model: ModelParts) -> str:
    """Return the names of the columns of a table."""
    if model.table is None or not _has_names(model):
        return ""
    names = [column.name for column in model.table.columns]
    return "\n" + texts("dcsvm_column_names", names, is_public=True)
