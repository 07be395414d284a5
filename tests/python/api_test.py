"""The public names of the module are those that were accepted last (tests/api/python.txt)."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "api"))
import surfaces  # noqa: E402


def test_the_names_and_parameters_are_those_that_were_accepted():
    now = surfaces.SURFACES["python"](None, None, None)
    differences = surfaces.differences("python", surfaces.accepted("python"), now)
    assert not differences, "\n".join(differences)
