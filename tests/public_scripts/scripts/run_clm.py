"""An equivalent of the shape of Hugging Face's run_clm.py, written for this test: the same three groups of options from the command
line, a text file that is tokenized and cut into blocks, the Trainer, `--resume_from_checkpoint`, and the results at the end. It knows
nothing of Onward.
"""

import logging
import math
import sys
import time
from dataclasses import dataclass, field
from itertools import chain

from datasets import load_dataset
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
    default_data_collator,
    set_seed,
)

logger = logging.getLogger(__name__)


@dataclass
class ModelArguments:
    config_name: str = field(default="")
    tokenizer_name: str = field(default="")


@dataclass
class DataTrainingArguments:
    train_file: str = field(default="")
    validation_file: str = field(default="")
    block_size: int = field(default=64)


def main():
    parser = HfArgumentParser((ModelArguments, DataTrainingArguments, TrainingArguments))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses()
    logging.basicConfig(handlers=[logging.StreamHandler(sys.stdout)], level=logging.INFO)
    set_seed(training_args.seed)

    raw = load_dataset("text", data_files={"train": data_args.train_file, "validation": data_args.validation_file})
    config = AutoConfig.from_pretrained(model_args.config_name)
    tokenizer = AutoTokenizer.from_pretrained(model_args.tokenizer_name)
    model = AutoModelForCausalLM.from_config(config)
    logger.info("Training new model from scratch - Total size=%.2fM params", sum(p.numel() for p in model.parameters()) / 2**20)

    def group_texts(examples):
        joined = {key: list(chain(*examples[key])) for key in examples}
        total = len(joined["input_ids"]) // data_args.block_size * data_args.block_size
        blocks = {key: [t[i : i + data_args.block_size] for i in range(0, total, data_args.block_size)] for key, t in joined.items()}
        return {**blocks, "labels": blocks["input_ids"].copy()}

    def collate(features):
        time.sleep(0.2)  # a larger model
        return default_data_collator(features)

    tokenized = raw.map(lambda examples: tokenizer(examples["text"]), batched=True, remove_columns=["text"])
    blocks = tokenized.map(group_texts, batched=True)
    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=blocks["train"] if training_args.do_train else None,
        eval_dataset=blocks["validation"] if training_args.do_eval else None,
        processing_class=tokenizer,
        data_collator=collate,
    )

    if training_args.do_train:
        result = trainer.train(resume_from_checkpoint=training_args.resume_from_checkpoint)
        trainer.save_model()
        trainer.log_metrics("train", result.metrics)
        trainer.save_metrics("train", result.metrics)
        trainer.save_state()
    if training_args.do_eval:
        metrics = trainer.evaluate()
        metrics["perplexity"] = math.exp(metrics["eval_loss"])
        trainer.log_metrics("eval", metrics)
        trainer.save_metrics("eval", metrics)


if __name__ == "__main__":
    main()
