"""PyTorch (Lightning) with mlflow.pytorch.autolog()."""

import tempfile

import lightning as L
import mlflow
import torch
from torch.utils.data import DataLoader, TensorDataset


class Net(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("train_loss", loss, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


mlflow.set_experiment("pytorch")
mlflow.pytorch.autolog()
with mlflow.start_run():
    trainer = L.Trainer(max_epochs=3, accelerator="cpu", enable_progress_bar=False, default_root_dir=tempfile.mkdtemp(), logger=False)
    trainer.fit(Net(), DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=8))
