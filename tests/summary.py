"""Prints the failed tests and steps, why tests were skipped, and the number of tests, of all test runners.

tests/summary.py [--strict] FOLDER...: the folders have the runners' reports in the format of JUnit, which GoogleTest and
pytest write, and an empty file STEP.failed for each failed step of test.sh. With --strict a reason for skipping that
skip_reasons.toml does not explain counts as a failure.
"""
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

REASONS = Path(__file__).with_name("skip_reasons.toml")


def skip_reason(skipped):
    """The reason of a <skipped> element, without the place in the source."""
    message = skipped.get("message", "")
    if message == "collection skipped":  # of a whole file: ('PATH', LINE, 'Skipped: REASON')
        message = re.sub(r"""^\(.*, \d+, ['"]Skipped: (.*)['"]\)$""", r"\1", skipped.text.strip(), flags=re.DOTALL)
    return message.split("\n", 1)[-1].strip()


def read(folders):
    """Returns the number of passed tests, the failed tests with their messages, and the reasons of skipped ones."""
    passed, failed, skipped = 0, [], Counter()
    for report in sorted(path for folder in folders for path in Path(folder).glob("*.xml")):
        for case in ElementTree.parse(report).iter("testcase"):
            problems = [*case.findall("failure"), *case.findall("error")]
            if problems:
                message = problems[0].get("message", "").strip().split("\n")
                failed.append(f"{report.stem}: {case.get('classname')}.{case.get('name')}: {' '.join(message)[:300]}")
            elif (found := case.find("skipped")) is not None:
                skipped[skip_reason(found)] += 1
            elif case.get("status") != "notrun":
                passed += 1
    return passed, failed, skipped


def explanation(reason):
    """The explanation of the first pattern that matches, or None."""
    known = tomllib.loads(REASONS.read_text(encoding="utf-8"))
    return next((text for pattern, text in known.items() if re.search(pattern, reason)), None)


def main(folders, strict):
    passed, failed, skipped = read(folders)
    for reason, count in skipped.most_common():
        text = explanation(reason)
        if strict and text is None:
            failed.append(f"{REASONS.name}: does not explain \"{reason}\"")
        print(f"{count:6d} skipped: {reason}" + (f" ({text})" if text else ""))
    steps = [path.stem for folder in folders for path in sorted(Path(folder).glob("*.failed"))]
    if steps and not failed:  # a crash, or a build that failed
        failed = [f"the step {step}" for step in steps]
    for line in failed:
        print(f"FAILED {line}")
    print(f"{passed} passed, {len(failed)} failed, {skipped.total()} skipped")
    return bool(failed) or passed == 0


if __name__ == "__main__":
    sys.exit(main([name for name in sys.argv[1:] if name != "--strict"], "--strict" in sys.argv))
