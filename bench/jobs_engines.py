"""The jobs of bench/jobs.py: each does the parts in FOLDER/parts with two workers, and returns 0 for success."""

import os
import subprocess
import sys


def program(qkv, folder):
    command = [qkv, "translate", folder / "run", "--in", folder / "parts", "--out", folder / "done-program", "--threads", "1"]
    workers = [subprocess.Popen([*command, "--worker", f"{i}/2"]) for i in (1, 2)]
    return max([abs(worker.wait()) for worker in workers])


def lines_and_translations(folder):
    """Returns the lines of the first parts, and their translations."""
    return [[line for i in range(5) for line in (folder / name / f"{i:05}.txt").read_text().splitlines()]
            for name in ("parts", "expected")]


def failures(results):
    wrong = [state for state in results if state not in ("written", "present")]
    print(*wrong, sep="\n")
    return len(wrong)


def parts_of(folder, engine):
    import qkv

    translate = qkv.batch.Translate(str(folder / "run"), threads=1)
    return qkv.batch.Parts(translate, str(folder / "parts"), str(folder / f"done-{engine}"))


def ray(_, folder):
    import qkv
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    parts = parts_of(folder, "ray")
    arguments = {"fn": parts._fn, "source": parts._source, "target": parts._target}
    found = ray.data.from_items(parts.names()).map_batches(
        qkv.batch.Parts, fn_constructor_kwargs=arguments, batch_size=1, num_cpus=1, concurrency=2)
    wrong = failures(row["done"] for row in found.take_all())

    lines, expected = lines_and_translations(folder)
    table = ray.data.from_items([{"id": i, "text": line} for i, line in enumerate(lines)]).map_batches(
        qkv.batch.Translate, fn_constructor_kwargs={"run": str(folder / "run"), "threads": 1}, batch_size=64, num_cpus=1,
        concurrency=2)
    rows = sorted((row["id"], row["translation"]) for row in table.take_all())
    return int(wrong > 0 or [text for _, text in rows] != expected)


def spark(_, folder):
    import qkv
    from pyspark.sql import SparkSession

    # Two workers; a task may fail three times, as one does whose worker is killed.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false").getOrCreate()
    parts, wrong = parts_of(folder, "spark"), 0
    names = parts.names()
    for first in range(0, len(names), 50):  # a loop over groups of parts
        table = session.createDataFrame([(name,) for name in names[first:first + 50]], "item string").repartition(10)
        wrong += failures(row.done for row in table.mapInPandas(parts.frames, "item string, done string").collect())

    lines, expected = lines_and_translations(folder)
    table = session.createDataFrame(list(enumerate(lines)), "id long, text string").repartition(4)
    translate = qkv.batch.Translate(str(folder / "run"), threads=1)
    rows = table.mapInPandas(translate.frames, "id long, text string, translation string").collect()
    session.stop()
    return int(wrong > 0 or [row.translation for row in sorted(rows, key=lambda row: row.id)] != expected)


ENGINES = {"program": program, "ray": ray, "spark": spark}
