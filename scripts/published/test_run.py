"""Tests of the verdict and of the table."""

import json
import pathlib
import tempfile
import unittest

import run


class Verdict(unittest.TestCase):
    def test_a_failure_that_is_not_listed_is_a_mistake(self):
        self.assertEqual(run.mistakes({}, {"a": "why"}, {}, True), ["fails, and known.json doesn't name it: a"])

    def test_a_listed_case_that_passes_is_a_mistake(self):
        self.assertEqual(run.mistakes({}, {"a": None}, {"a": "reason"}, True), ["passes, and known.json names it: a"])

    def test_a_failure_on_our_worker_is_a_mistake(self):
        self.assertEqual(run.mistakes({"a": "why"}, {"a": None}, {}, True), ["fails on our worker: a"])

    def test_a_listed_case_has_to_exist_in_a_whole_run(self):
        self.assertEqual(run.mistakes({}, {}, {"a": "reason"}, True), ["known.json names no case: a"])
        self.assertEqual(run.mistakes({}, {}, {"a": "reason"}, False), [])

    def test_expected_results_are_no_mistakes(self):
        self.assertEqual(run.mistakes({"a": None}, {"a": None, "b": "why"}, {"b": "reason"}, True), [])


class Page(unittest.TestCase):
    def test_the_table_replaces_the_text_between_its_marks(self):
        with tempfile.TemporaryDirectory() as directory:
            page = pathlib.Path(directory) / "page.md"
            page.write_text(f"before\n{run.START}\nold\n{run.END}\nafter\n")
            run.write_page(page, run.table({"a": None}, {"a": None, "b": "why"}, {"b": "reason"}))
            rows = "| a | passes | passes |  |\n| b | – | fails | reason |"
            head = "| case | our worker | published worker | why not |\n|---|---|---|---|"
            self.assertEqual(page.read_text(), f"before\n{run.START}\n\n{head}\n{rows}\n\n{run.END}\nafter\n")

    def test_every_playbook_says_what_it_prints(self):
        cases = run.playbooks()
        self.assertGreater(len(cases), 40)
        self.assertEqual(len({case.name for case in cases}), len(cases))

    def test_every_known_failure_names_a_case(self):
        names = {case.name for case in run.playbooks()} | {name for name, _ in run.OPERATIONS}
        known = json.loads((run.HERE / "known.json").read_text())
        self.assertEqual([name for name in known if name not in names], [])


if __name__ == "__main__":
    unittest.main()
