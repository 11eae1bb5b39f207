"""An equivalent of the shape of Lightning's examples/pytorch/basics/autoencoder.py, written for this test: a LightningModule and a
DataModule behind LightningCLI, a callback that writes pictures into the working folder, fit and then test with the best checkpoint; without
torchvision.

The lines that were added for Onward end in `# onward`.
"""

import os  # onward
import time

import torch
import torch.nn.functional as F
from lightning.pytorch import LightningDataModule, LightningModule, Trainer, callbacks
from lightning.pytorch.cli import LightningCLI
from lightning.pytorch.utilities import rank_zero_only
from pictures import MNIST
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, random_split


class ImageSampler(callbacks.Callback):
    def __init__(self, num_samples: int = 3) -> None:
        super().__init__()
        self.num_samples = num_samples

    @rank_zero_only
    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        images, _ = next(iter(DataLoader(trainer.datamodule.mnist_val, batch_size=self.num_samples)))
        with torch.no_grad():
            pl_module.eval()
            made = pl_module(images.view(images.size(0), -1).to(pl_module.device))
            pl_module.train()
        points = (made.reshape(-1, 28).clamp(0, 1) * 255).byte().numpy()
        Image.fromarray(points).save(f"grid_generated_{trainer.current_epoch}.png")
        print(f"Epoch {trainer.current_epoch}: a grid of pictures is written", flush=True)


class LitAutoEncoder(LightningModule):
    def __init__(self, hidden_dim: int = 64, learning_rate: float = 10e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Linear(28 * 28, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, 3))
        self.decoder = nn.Sequential(nn.Linear(3, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, 28 * 28))

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, batch_idx):
        time.sleep(0.03)  # a larger network
        return self._common_step(batch, "train")

    def validation_step(self, batch, batch_idx):
        self._common_step(batch, "val")

    def test_step(self, batch, batch_idx):
        self._common_step(batch, "test")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.learning_rate)

    def _common_step(self, batch, stage: str):
        x = batch[0].view(batch[0].size(0), -1)
        loss = F.mse_loss(x, self(x))
        self.log(f"{stage}_loss", loss, on_step=True)
        return loss


class MyDataModule(LightningDataModule):
    def __init__(self, batch_size: int = 32):
        super().__init__()
        dataset = MNIST("../data", train=True)
        self.mnist_test = MNIST("../data", train=False)
        self.mnist_train, self.mnist_val = random_split(dataset, [0.9, 0.1], generator=torch.Generator().manual_seed(42))
        self.batch_size = batch_size

    def train_dataloader(self):
        return DataLoader(self.mnist_train, batch_size=self.batch_size)

    def val_dataloader(self):
        return DataLoader(self.mnist_val, batch_size=self.batch_size)

    def test_dataloader(self):
        return DataLoader(self.mnist_test, batch_size=self.batch_size)


def cli_main():
    save = callbacks.ModelCheckpoint(os.environ["ONWARD_CHECKPOINT_DIR"], every_n_train_steps=30)  # onward
    cli = LightningCLI(
        LitAutoEncoder,
        MyDataModule,
        seed_everything_default=1234,
        run=False,
        trainer_defaults={"callbacks": [ImageSampler(), save], "max_epochs": 10},  # onward
        save_config_kwargs={"overwrite": True},
    )
    cli.trainer.fit(cli.model, datamodule=cli.datamodule, ckpt_path=os.environ.get("ONWARD_RESUME_NEWEST"))  # onward
    best = "best" if os.path.exists(save.best_model_path) else None  # onward
    cli.trainer.test(cli.model, ckpt_path=best, datamodule=cli.datamodule)  # onward


if __name__ == "__main__":
    cli_main()
