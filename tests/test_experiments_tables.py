from dataclasses import replace

import pytest

from pairlearn.paper import (
    Record,
    Run,
    accuracy_table,
    gamma_table,
    limited_table,
    result_rows,
    robustness_table,
    summarize,
    to_csv,
    to_latex,
    to_markdown,
)
from pairlearn.paper.cells import mean_and_std

BASE = Run(dataset="mnist", prior=0.2, seed=0, method="supervised", pairs=15000, epochs=200)


def records(accuracies: dict[tuple[str, str], list[float]], **fields: float) -> list[Record]:
    """Runs by (dataset, method), one for each accuracy, on the paper's test subset."""
    return [
        Record(
            replace(BASE, dataset=dataset, method=method, seed=seed, **fields),
            {"paper": accuracy, "stratified": accuracy - 0.1, "annotator_paper": 0.9 + seed / 100},
        )
        for (dataset, method), values in accuracies.items()
        for seed, accuracy in enumerate(values)
    ]


TINY = records(
    {
        ("letter", "supervised"): [0.98, 0.96],
        ("mnist", "likelihood-abs"): [0.95, 0.97],
        ("mnist", "convex-0.5-abs"): [0.9, 0.92],
        ("letter", "sconfconfdiff-none"): [0.7, 0.8],
        ("mnist", "sconfconfdiff-none"): [0.9604, 0.9604],
        ("mnist", "supervised"): [0.99, 0.99],
    }
) + records({("mnist", "confdiff-abs"): [0.5]}, prior=0.5)


def test_standard_deviation_is_that_of_the_population() -> None:
    mean, std = mean_and_std([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert (mean, std) == (5.0, 2.0)


def test_summary_is_over_seeds_and_nothing_else() -> None:
    cells = summarize(TINY, "paper")
    assert len(cells) == 7
    (cell,) = (c for c in cells if c.config.method == "likelihood-abs")
    assert (round(cell.mean, 12), round(cell.std, 12), cell.seeds) == (0.96, 0.01, (0, 1))
    assert cell.annotator == pytest.approx(0.905)
    assert [c.mean for c in summarize(TINY, "stratified")] == pytest.approx(
        [c.mean - 0.1 for c in cells]
    )
    longer = records({("mnist", "likelihood-abs"): [0.5]}, epochs=300)
    assert len(summarize([*TINY, *longer], "paper")) == 8


def test_summary_knows_the_annotator_only_if_every_run_does() -> None:
    run = records({("mnist", "supervised"): [0.9, 0.8]})
    lost = [run[0], Record(run[1].run, {"paper": 0.8})]
    assert summarize(lost, "paper")[0].annotator is None
    with pytest.raises(ValueError, match="'test'"):
        summarize(run, "test")


def test_accuracy_table_in_markdown() -> None:
    assert to_markdown(accuracy_table(summarize(TINY, "paper"))) == (
        """\
Accuracy (mean ± standard deviation over 1–2 seeds), paper test subset

| Class prior | Method                 | MNIST             | Letter            |
| ----------- | ---------------------- | ----------------- | ----------------- |
| π₊ = 0.2    | SconfConfDiff-Unbiased | **0.960 ± 0.000** | **0.750 ± 0.050** |
| π₊ = 0.2    | Convex(γ=0.5)-ABS      | 0.910 ± 0.010     | –                 |
| π₊ = 0.2    | Likelihood-ABS         | **0.960 ± 0.010** | –                 |
| π₊ = 0.2    | Supervised             | 0.990 ± 0.000     | 0.970 ± 0.010     |
| π₊ = 0.5    | ConfDiff-ABS           | **0.500 ± 0.000** | –                 |"""
    )


def test_accuracy_table_in_latex() -> None:
    assert to_latex(accuracy_table(summarize(TINY, "paper"))) == (
        r"""\begin{table}
\caption{Accuracy (mean $\pm$ standard deviation over 1--2 seeds), paper test subset}
\centering
\begin{tabular}{llcc}
\toprule
Class prior & Method & MNIST & Letter \\
\midrule
$\pi_+$ = 0.2 & SconfConfDiff-Unbiased & \textbf{0.960 $\pm$ 0.000} & \textbf{0.750 $\pm$ 0.050} \\
\cmidrule(lr){2-4}
 & Convex($\gamma$=0.5)-ABS & 0.910 $\pm$ 0.010 & -- \\
\cmidrule(lr){2-4}
 & Likelihood-ABS & \textbf{0.960 $\pm$ 0.010} & -- \\
\cmidrule(lr){2-4}
 & Supervised & 0.990 $\pm$ 0.000 & 0.970 $\pm$ 0.010 \\
\midrule
$\pi_+$ = 0.5 & ConfDiff-ABS & \textbf{0.500 $\pm$ 0.000} & -- \\
\bottomrule
\end{tabular}
\end{table}"""
    )


def test_accuracy_file_has_the_published_columns_and_its_origin() -> None:
    assert to_csv(result_rows("accuracy", summarize(TINY, "paper"))) == (
        """\
dataset,prior,risk,gamma,correction,accuracy_mean,accuracy_std,seeds,epochs,test_subset
mnist,0.2,sconfconfdiff,,none,0.9604,0.0,2,200,paper
mnist,0.2,convex,0.5,abs,0.91,0.01,2,200,paper
mnist,0.2,likelihood,,abs,0.96,0.01,2,200,paper
mnist,0.2,supervised,,none,0.99,0.0,2,200,paper
mnist,0.5,confdiff,,abs,0.5,0.0,1,200,paper
letter,0.2,sconfconfdiff,,none,0.75,0.05,2,200,paper
letter,0.2,supervised,,none,0.97,0.01,2,200,paper
"""
    )


NOISY = [
    *records({("mnist", "sconfconfdiff-abs"): [0.9]}, prior_factor=0.8),
    *records({("mnist", "likelihood-abs"): [0.95]}, prior_factor=0.8),
    *records({("mnist", "sconfconfdiff-abs"): [0.8]}, prior_factor=0.8, label_noise=0.05),
    *records({("letter", "sconfconfdiff-abs"): [0.7]}, prior_factor=1.2, label_noise=0.5),
]


def test_robustness_table_and_file() -> None:
    cells = summarize(NOISY, "paper")
    assert to_markdown(robustness_table(cells)) == (
        """\
Accuracy with the prior multiplied by ε and labels by N(1, σ²) (mean ± standard deviation \
over 1 seed), paper test subset

| Data set | (ε, σ)      | SconfConfDiff-ABS | Likelihood-ABS    |
| -------- | ----------- | ----------------- | ----------------- |
| MNIST    | (0.8, 0)    | 0.900 ± 0.000     | **0.950 ± 0.000** |
| MNIST    | (0.8, 0.05) | **0.800 ± 0.000** | –                 |
| Letter   | (1.2, 0.5)  | **0.700 ± 0.000** | –                 |"""
    )
    assert to_csv(result_rows("robustness", cells)) == (
        "dataset,prior_factor,label_noise_std,correction,accuracy_mean,accuracy_std,"
        "risk,seeds,epochs,test_subset\n"
        "mnist,0.8,0.0,abs,0.9,0.0,sconfconfdiff,1,200,paper\n"
        "mnist,0.8,0.0,abs,0.95,0.0,likelihood,1,200,paper\n"
        "mnist,0.8,0.05,abs,0.8,0.0,sconfconfdiff,1,200,paper\n"
        "letter,1.2,0.5,abs,0.7,0.0,sconfconfdiff,1,200,paper\n"
    )


def test_gamma_table_puts_confdiff_and_sconf_at_the_ends() -> None:
    cells = summarize(
        records(
            {
                ("mnist", "sconf-relu"): [0.9],
                ("mnist", "convex-0.3-relu"): [0.3],
                ("mnist", "confdiff-abs"): [0.8],
                ("mnist", "confdiff-relu"): [0.7],
            }
        ),
        "paper",
    )
    table = gamma_table(cells)
    assert table.columns == ("ReLU", "ABS")
    assert [row.labels for row in table.rows] == [("MNIST", "0"), ("MNIST", "0.3"), ("MNIST", "1")]
    assert [[entry and entry.mean for entry in row.entries] for row in table.rows] == [
        [0.7, 0.8],
        [0.3, None],
        [0.9, None],
    ]
    gammas = {(row["risk"], row["gamma"]) for row in result_rows("gamma", cells)}
    assert gammas == {("confdiff", 0.0), ("convex", 0.3), ("sconf", 1.0)}


def test_limited_table_counts_pairs() -> None:
    cells = summarize(
        records({("mnist", "sconf-abs"): [0.7]}, fraction=0.1)
        + records({("mnist", "sconf-abs"): [0.8]}, fraction=1.0),
        "paper",
    )
    rows = limited_table(cells).rows
    assert [row.labels for row in rows] == [
        ("MNIST, π₊ = 0.2", "1500"),
        ("MNIST, π₊ = 0.2", "15000"),
    ]
    assert [row["fraction"] for row in result_rows("limited", cells)] == [0.1, 1.0]


def test_cells_that_would_hide_each_other_are_an_error() -> None:
    both = TINY + records({("mnist", "likelihood-abs"): [0.5]}, epochs=300)
    with pytest.raises(ValueError, match="epochs 200 and 300: choose one"):
        accuracy_table(summarize(both, "paper"))
    # A file tells epochs apart by a column, but not models.
    assert len(result_rows("accuracy", summarize(both, "paper"))) == 8
    other = [Record(replace(TINY[0].run, model="mlp-bn"), {"paper": 0.5})]
    with pytest.raises(ValueError, match="model mlp and mlp-bn: choose one"):
        result_rows("accuracy", summarize([*TINY, *other], "paper"))
