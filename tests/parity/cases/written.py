"""What models generate."""

import torch

NEW = 30  # ids


def generated(model, batch):
    """Of the source, without an end."""
    ids = torch.full((len(batch["input_ids"]), 1), model.config.decoder_start_token_id)
    source = {key: value for key, value in batch.items() if key != "labels"}
    with torch.no_grad():
        for _ in range(NEW):
            ids = torch.cat([ids, model(**source, decoder_input_ids=ids).logits[:, -1:].argmax(-1)], 1)
    return ids[:, 1:].contiguous()


def continued(model, batch):
    """Behind the first two ids of each record, without an end."""
    ids = batch["input_ids"][:, :2]
    with torch.no_grad():
        for _ in range(NEW):
            ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], 1)
    return ids[:, 2:].contiguous()
