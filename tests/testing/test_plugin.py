"""With the shipped plugin, a test knows the jobs of the program and of its file; jobs that it declares end with it."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PROGRAM = """
import holdall

@holdall.job("nightly", every=60)
def nightly(): ...
"""

FIRST = """
import holdall, program
from holdall.artifacts import on
from holdall.attachments import analyzer
from holdall.attachments.picture.analysis import _declared as analyzers
from holdall.jobs.declaration import declared_jobs

@holdall.job("of-this-file", every=60)
def tick(): ...

def test_a_test_declares():
    @holdall.job("of-a-test")
    def work(): ...

    @on("published", name="handled")
    def handle(event): ...

    @analyzer("text/csv")
    def read_csv(path, blob): ...

    assert [each.__name__ for each in analyzers.values()] == ["read_text", "read_csv"]

    holdall.job("of-a-top-level-function")(test_a_test_declares)

    assert declared_jobs().keys() >= {"nightly", "of-this-file", "of-a-test", "handled"}

@analyzer("text/*")
def read_text(path, blob): ...

def test_a_module_is_imported_first_in_this_test():
    import late

def test_declarations_of_tests_are_gone_and_those_of_modules_remain():
    assert {name for name in declared_jobs() if not name.startswith("holdall.")} == {"nightly", "of-this-file", "late"}
    assert [*analyzers.values()] == [read_text]

def test_a_test_replaces_a_job_of_the_program():
    declared_jobs().pop("nightly")
    holdall.job("nightly")(lambda: None)

def test_afterwards_the_job_is_the_programs_again():
    assert declared_jobs()["nightly"] is program.nightly
"""

SECOND = """
import holdall
from holdall.attachments.picture.analysis import _declared as analyzers
from holdall.jobs.declaration import declared_jobs

@holdall.job("of-the-second-file")
def work(): ...

def test_jobs_of_another_test_file_are_not_known_here():
    found = {name for name in declared_jobs() if not name.startswith("holdall.")}
    assert found == {"nightly", "of-the-second-file", "late"}
    assert not analyzers
"""


def test_each_test_knows_the_jobs_of_the_program_and_of_its_file(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        program=PROGRAM, late=PROGRAM.replace("nightly", "late"), test_first=FIRST, test_second=SECOND
    )
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=6)


def test_jobs_of_a_file_whose_tests_are_not_selected_are_not_known(pytester: pytest.Pytester) -> None:
    second = SECOND.replace(', "late"', "")  # the first file imports it, and is not selected
    pytester.makepyfile(program=PROGRAM, test_first=FIRST, test_second=second)
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-k", "another_test_file")
    result.assert_outcomes(passed=1, deselected=5)


def test_the_plugin_loads_no_other_module_of_holdall_if_the_suite_does_not_use_it(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it():
            loaded = {name for name in sys.modules if name.startswith("holdall.")}
            assert loaded == {"holdall.lazy", "holdall.testing", "holdall.testing.plugin"}
        """
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)
