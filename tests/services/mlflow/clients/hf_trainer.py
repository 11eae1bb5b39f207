"""Hugging Face's Trainer with its MLflowCallback, on a model made here."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, max_position_embeddings=16
)
rows = [
    {"input_ids": torch.randint(0, 50, (8,)), "attention_mask": torch.ones(8, dtype=torch.long), "labels": torch.tensor(i % 2)}
    for i in range(16)
]
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(), num_train_epochs=2, per_device_train_batch_size=4, logging_steps=1, report_to=["mlflow"], run_name="bert",
    eval_strategy="epoch", save_strategy="no", use_cpu=True, disable_tqdm=True,
)  # fmt: skip
Trainer(model=BertForSequenceClassification(config), args=arguments, train_dataset=rows, eval_dataset=rows).train()
