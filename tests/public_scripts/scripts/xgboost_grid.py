"""A grid of XGBoost models, written for this test in the way in which many such scripts are: each combination of parameters is trained,
its model is written into a folder, and combinations whose model is there are passed over. It knows nothing of Onward.
"""

import os
import time

import numpy as np
import xgboost as xgb
from sklearn.model_selection import ParameterGrid

random = np.random.default_rng(0)
X = random.normal(size=(20_000, 20))
y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + random.normal(size=len(X)) / 10
train, valid = xgb.DMatrix(X[:15_000], y[:15_000]), xgb.DMatrix(X[15_000:], y[15_000:])

grid = ParameterGrid({"max_depth": [2, 4, 6, 8], "eta": [0.3, 0.1, 0.05], "subsample": [1.0, 0.7]})
seconds = float(os.environ.get("SECONDS", 3))
os.makedirs("models", exist_ok=True)
results = {}
for number, params in enumerate(grid, start=1):
    path = f"models/model_{number}.ubj"
    booster = xgb.Booster()
    if os.path.exists(path):
        booster.load_model(path)
        results[number] = float(booster.attr("rmse"))
        print(f"combination {number} of {len(grid)} is done: {results[number]:.4f}", flush=True)
        continue
    print(f"combination {number} of {len(grid)}: {params}", flush=True)
    fields = {}
    booster = xgb.train({**params, "nthread": 1}, train, 50, [(valid, "valid")], evals_result=fields, verbose_eval=False)
    time.sleep(seconds)  # a larger model
    results[number] = fields["valid"]["rmse"][-1]
    booster.set_attr(rmse=str(results[number]))
    booster.save_model(path)
    print(f"combination {number} of {len(grid)} has rmse {results[number]:.4f}", flush=True)
best = min(results, key=results.get)
print(f"best: {list(grid)[best - 1]} with {results[best]:.4f}", flush=True)
