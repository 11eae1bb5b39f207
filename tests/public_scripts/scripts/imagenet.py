"""An equivalent of the shape of pytorch/examples imagenet/main.py, written for this test: its options, its data (an ImageFolder),
its `checkpoint.pth.tar` in the working folder, written in place after each epoch, and its `--resume`; without torchvision and with a small
network. It knows nothing of Onward.
"""

import argparse
import os
import shutil
import time
from itertools import pairwise

import torch
from pictures import ImageFolder
from torch import nn
from torch.optim.lr_scheduler import StepLR

parser = argparse.ArgumentParser(description="PyTorch ImageNet Training")
parser.add_argument("data", nargs="?", default="imagenet")
parser.add_argument("-j", "--workers", default=4, type=int)
parser.add_argument("--epochs", default=90, type=int)
parser.add_argument("--start-epoch", default=0, type=int)
parser.add_argument("-b", "--batch-size", default=256, type=int)
parser.add_argument("--lr", default=0.1, type=float)
parser.add_argument("--momentum", default=0.9, type=float)
parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, dest="weight_decay")
parser.add_argument("-p", "--print-freq", default=10, type=int)
parser.add_argument("--resume", default="", type=str)

best_acc1 = 0.0


def network(classes):
    sizes, layers = (3, 32, 64, 128), []
    for before, after in pairwise(sizes):
        layers += [nn.Conv2d(before, after, 3, 1, 1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(sizes[-1], classes))


def main():
    global best_acc1
    args = parser.parse_args()
    print("=> creating model")
    model = network(len(os.listdir(os.path.join(args.data, "train"))))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=args.momentum, weight_decay=args.weight_decay)
    scheduler = StepLR(optimizer, step_size=30, gamma=0.1)

    if args.resume:
        if os.path.isfile(args.resume):
            print(f"=> loading checkpoint '{args.resume}'")
            checkpoint = torch.load(args.resume)
            args.start_epoch = checkpoint["epoch"]
            best_acc1 = checkpoint["best_acc1"]
            model.load_state_dict(checkpoint["state_dict"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            scheduler.load_state_dict(checkpoint["scheduler"])
            print(f"=> loaded checkpoint '{args.resume}' (epoch {checkpoint['epoch']})")
        else:
            print(f"=> no checkpoint found at '{args.resume}'")

    train_dataset = ImageFolder(os.path.join(args.data, "train"), crop=32, random=True)
    val_dataset = ImageFolder(os.path.join(args.data, "val"), crop=32, random=False)
    train_loader = torch.utils.data.DataLoader(train_dataset, batch_size=args.batch_size, shuffle=True, num_workers=args.workers)
    val_loader = torch.utils.data.DataLoader(val_dataset, batch_size=args.batch_size, num_workers=args.workers)

    for epoch in range(args.start_epoch, args.epochs):
        train(train_loader, model, criterion, optimizer, epoch, args)
        acc1 = validate(val_loader, model)
        scheduler.step()
        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        state = {"epoch": epoch + 1, "state_dict": model.state_dict(), "best_acc1": best_acc1}
        save_checkpoint({**state, "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, is_best)


def train(train_loader, model, criterion, optimizer, epoch, args):
    model.train()
    end = time.time()
    for i, (images, target) in enumerate(train_loader):
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.15)  # a larger network
        if i % args.print_freq == 0:
            print(f"Epoch: [{epoch}][{i + 1}/{len(train_loader)}]\tTime {time.time() - end:6.3f}\tLoss {loss.item():.4e}")
        end = time.time()


def validate(val_loader, model):
    model.eval()
    correct = count = 0
    with torch.no_grad():
        for images, target in val_loader:
            correct += model(images).argmax(1).eq(target).sum().item()
            count += len(target)
    print(f" *   Acc@1 {100.0 * correct / count:.3f}")
    return 100.0 * correct / count


def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth.tar")


if __name__ == "__main__":
    main()
