"""Writes NAME/settings.json next to the models: what generate() returns with settings of generation_config.json.

    python make_settings.py        with torch and transformers 5

    settings.json   a list: settings   members of generation_config.json
                            outputs    of each source of expected.json the best tokens, without those it starts from
"""
import json
import pathlib

import torch
import transformers

HERE = pathlib.Path(__file__).parent
BEAM = {"num_beams": 4, "early_stopping": True}
SETTINGS = [
    BEAM | {"length_penalty": 0.4, "max_length": 9},
    BEAM | {"length_penalty": 2.0, "max_new_tokens": 7},
    BEAM | {"no_repeat_ngram_size": 2, "max_length": 12},
    BEAM | {"repetition_penalty": 1.7, "max_length": 12},
    {"num_beams": 1, "max_length": 6, "no_repeat_ngram_size": 3},
    BEAM | {"suppress_tokens": "best", "max_length": 8},
    *[{"num_beams": beam, "length_penalty": penalty, "max_length": 16} | stopping
      for stopping in ({}, {"early_stopping": True}, {"early_stopping": False}, {"early_stopping": "never"})
      for beam in (2, 3, 5) for penalty in (-0.8, 0.0, 0.6, 1.0, 2.0)],
]


def main():
    for name in ("opus", "t5", "bart", "m2m_100"):
        expected = json.loads((HERE / name / "expected.json").read_text())
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(HERE / name, dtype=torch.float64).eval()
        start, end, found = expected["start"], expected["end"], []
        for settings in SETTINGS:
            if "repetition_penalty" in settings and start[0] == end:
                continue  # the start token is penalized there, too
            if "suppress_tokens" in settings:
                settings = settings | {"suppress_tokens": [expected["greedy"][0][0]]}
            config = transformers.GenerationConfig.from_pretrained(HERE / name)
            config.update(**settings, **({"forced_bos_token_id": start[1]} if len(start) > 1 else {}))
            outputs = []
            for source in expected["sources"]:
                ids = model.generate(torch.tensor([source]), generation_config=config)[0].tolist()[len(start):]
                outputs.append(ids[:ids.index(end) + 1] if end in ids else ids)
            found.append({"settings": settings, "outputs": outputs})
        lines = ",\n".join(json.dumps(case) for case in found)
        (HERE / name / "settings.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
