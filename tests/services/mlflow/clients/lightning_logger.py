"""Lightning's MLFlowLogger: parameters, metrics, a checkpoint as artifact."""

import os
import tempfile

import lightning as L
import torch
from lightning.pytorch.loggers import MLFlowLogger
from torch.utils.data import DataLoader, TensorDataset


class Net(L.LightningModule):
    def __init__(self, width: int = 4, lr: float = 0.1) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(width, 1)

    def training_step(self, batch, index):
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", self.layer(batch[0]).pow(2).mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)


data = DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=8)
logger = MLFlowLogger("lightning", run_name="net", tracking_uri=os.environ["MLFLOW_TRACKING_URI"], log_model=True, tags={"kind": "test"})
trainer = L.Trainer(
    max_epochs=3, logger=logger, log_every_n_steps=1, accelerator="cpu", enable_progress_bar=False, default_root_dir=tempfile.mkdtemp()
)
trainer.fit(Net(), data, data)
