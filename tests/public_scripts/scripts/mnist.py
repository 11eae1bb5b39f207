"""An equivalent of the shape of pytorch/examples mnist/main.py, written for this test: its options, its data and its output, without
torchvision and with a smaller network.

The lines that were added for Onward end in `# onward`. Without them it saves only at its end, and each leg begins anew.
"""

import argparse
import os  # onward
import time

import torch
import torch.nn.functional as F
from pictures import MNIST
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR

import onward  # onward


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(2304, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(self.dropout(x), 1)
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def train(args, model, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        time.sleep(0.08)  # a larger network
        if batch_idx % args.log_interval == 0:
            done = f"{batch_idx * len(data)}/{len(train_loader.dataset)} ({100.0 * batch_idx / len(train_loader):.0f}%)"
            print(f"Train Epoch: {epoch} [{done}]\tLoss: {loss.item():.6f}")


def test(model, test_loader):
    model.eval()
    test_loss = correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            correct += output.argmax(dim=1).eq(target).sum().item()
    count = len(test_loader.dataset)
    print(f"\nTest set: Average loss: {test_loss / count:.4f}, Accuracy: {correct}/{count} ({100.0 * correct / count:.0f}%)\n")
    return test_loss / count


def main():
    parser = argparse.ArgumentParser(description="PyTorch MNIST Example")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--test-batch-size", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10)
    parser.add_argument("--save-model", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    dataset1 = MNIST("../data", train=True)
    dataset2 = MNIST("../data", train=False)
    train_loader = torch.utils.data.DataLoader(dataset1, batch_size=args.batch_size, shuffle=True)
    test_loader = torch.utils.data.DataLoader(dataset2, batch_size=args.test_batch_size)

    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    parts, first = (model, optimizer, scheduler), int(os.environ.get("ONWARD_RESUME_STEP", 0)) + 1  # onward
    if path := os.environ.get("ONWARD_RESUME_NEWEST"):  # onward
        [part.load_state_dict(state) for part, state in zip(parts, torch.load(path), strict=True)]  # onward
    for epoch in range(first, args.epochs + 1):  # onward
        train(args, model, train_loader, optimizer, epoch)
        onward.log({"test/loss": test(model, test_loader)}, step=epoch)  # onward
        scheduler.step()
        torch.save([part.state_dict() for part in parts], f"{os.environ['ONWARD_CHECKPOINT_DIR']}/epoch_{epoch}.pt")  # onward

    if args.save_model:
        torch.save(model.state_dict(), "mnist_cnn.pt")


if __name__ == "__main__":
    main()
