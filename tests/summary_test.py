"""The last lines of test.sh: failed tests and steps, reasons for skipping, and the counts, from reports of both runners."""

import summary

GOOGLE = """<testsuites><testsuite name="Team">
<testcase name="Helps" classname="Team" status="run" result="completed"/>
<testcase name="Forks" classname="Team" status="run" result="skipped"><skipped message="/a/b.cc:9&#x0A;no threads"/></testcase>
<testcase name="Off" classname="Team" status="notrun" result="suppressed"/>
</testsuite></testsuites>"""
PYTEST = """<testsuites><testsuite name="pytest">
<testcase classname="a.b_test" name="test_one"/>
<testcase classname="a.b_test" name="test_two"><failure message="assert 1 == 2&#10;more">text</failure></testcase>
<testcase classname="" name="c_test"><skipped message="collection skipped">('/a/c_test.py', 3, 'Skipped: no threads')</skipped></testcase>
</testsuite></testsuites>"""


def reports(folder, *texts):
    for number, text in enumerate(texts):
        (folder / f"{number}.xml").write_text(text)
    return [folder]


def test_tests_of_both_runners_are_counted(tmp_path, capsys):
    assert summary.main(reports(tmp_path, GOOGLE, PYTEST), strict=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["     2 skipped: no threads", "FAILED 1: a.b_test.test_two: assert 1 == 2 more",
                     "2 passed, 1 failed, 2 skipped"]


def test_a_reason_without_an_explanation_fails_in_the_gate(tmp_path, capsys):
    assert not summary.main(reports(tmp_path, GOOGLE), strict=False)
    assert summary.main(reports(tmp_path, GOOGLE), strict=True)
    assert capsys.readouterr().out.endswith("1 passed, 1 failed, 1 skipped\n")


def test_an_explained_reason_is_printed_with_its_explanation(tmp_path, capsys):
    assert not summary.main(reports(tmp_path, GOOGLE.replace("no threads", "protects a release: x")), strict=True)
    assert capsys.readouterr().out.startswith("     1 skipped: protects a release: x (FULL=1 .ci/run runs it)\n")


def test_a_step_without_reports_fails(tmp_path, capsys):
    (tmp_path / "fuzz.failed").touch()
    assert summary.main(reports(tmp_path, GOOGLE), strict=False)
    assert "FAILED the step fuzz\n1 passed, 1 failed, 1 skipped\n" in capsys.readouterr().out


def test_no_test_at_all_fails(tmp_path, capsys):
    assert summary.main([tmp_path], strict=False)
    assert capsys.readouterr().out == "0 passed, 0 failed, 0 skipped\n"
