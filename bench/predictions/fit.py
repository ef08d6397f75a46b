"""Predictions of `fit` for the fixed tasks: the entry "fit" of the leaderboard.

    python bench/predictions/fit.py

writes bench/predictions/fit.parquet. A method of your own takes the place of `learn`.
"""

from pathlib import Path

import pandas as pd

from pairlearn import PairClassifier
from pairlearn_bench.data import as_features, load

FOLDER = Path(__file__).parent
TASKS = FOLDER.parent / "results" / "tasks.parquet"


def learn(x, pairs, test):
    """Probabilities of the test items, learnt from the answers about the pairs."""
    model = PairClassifier(preprocessor=x, random_state=0)
    model.fit(pairs[["left", "right"]].astype(int), pairs[["similarity", "difference"]])
    return model.predict_proba(x[test["left"]])[:, 1]


if __name__ == "__main__":
    tables = []
    for (dataset, _, _), task in pd.read_parquet(TASKS).groupby(["dataset", "prior", "seed"]):
        data = load(dataset)
        test = task[task["right"].isna()].drop(columns="positive")
        answers = learn(as_features(data.x, data.spec), task.dropna(subset="right"), test)
        tables.append(test[["dataset", "prior", "seed", "left"]].assign(positive=answers))
    pd.concat(tables).to_parquet(FOLDER / "fit.parquet", index=False)
