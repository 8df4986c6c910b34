"""Tests of the report: `python3 -m unittest discover -s bench/report`."""

import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))

import compare
import render
from runs import Spread, merged


def chain(rate, **fields):
    return {"bench": "chain_100", "store": "sqlite", "concurrency": 100, "steps_per_second": rate, "p50_us": 4000, **fields}


def peer(system, bench="chain", concurrency=100, rate=1000.0, store="own"):
    return {"bench": bench, "system": system, "store": store, "concurrency": concurrency, "steps_per_second": rate,
            "p50_us": 500, "version": "1", "durability": "its own"}


def worker(way, workers, concurrency, rate):
    return {"bench": way, "store": "postgres", "workers": workers, "concurrency": concurrency, "steps_per_second": rate}


CALLS = {"bench": "calls", "store": "sqlite", "calls": 2000, "calls_per_second": 1844.0, "cpu_ms_per_1000_calls": 800.0}
FAN_OUT = {"bench": "fan_out", "store": "sqlite", "items": 10000, "items_per_second": 27000.0, "us_per_item_of_100": 40.0}


def names(lines):
    """Names in each comparison, by the start of its title."""
    return {title: [line["name"] for line in found] for title, _, found, _ in compare.tables(merged(lines))}


class Merging(unittest.TestCase):
    def test_lines_of_one_measurement_become_one_entry(self):
        [entry] = merged([chain(100), chain(300), chain(200)])
        self.assertEqual(entry["runs"], 3)
        rate = entry["steps_per_second"]
        self.assertEqual((rate.median, rate.low, rate.high), (200, 100, 300))

    def test_settings_tell_measurements_apart(self):
        lines = [worker("steps_http", 1, 8, 10), worker("steps_http", 1, 64, 20), worker("steps_http", 4, 64, 30)]
        self.assertEqual([entry["runs"] for entry in merged(lines)], [1, 1, 1])

    def test_a_number_missing_in_one_run_counts_the_others(self):
        [entry] = merged([chain(100, of_raw=None), chain(100, of_raw=0.5)])
        self.assertEqual(entry["of_raw"].values, [0.5])

    def test_runs_of_different_sizes_are_not_merged(self):
        with self.assertRaisesRegex(ValueError, "different numbers of steps"):
            merged([chain(100, steps=200_000), chain(100, steps=50_000)])

    def test_peers_may_count_different_numbers_of_steps(self):
        [entry] = merged([{**peer("restate"), "steps": 10}, {**peer("restate"), "steps": 12}])
        self.assertEqual(entry["runs"], 2)


class Cells(unittest.TestCase):
    def test_a_spread_shows_median_lowest_and_highest(self):
        self.assertEqual(render.text_of(Spread([21842, 19500, 23000])), "21 842 (19 500–23 000)")

    def test_equal_values_show_once(self):
        self.assertEqual(render.text_of(Spread([8.02, 8.02])), "8.02")

    def test_a_missing_value_is_a_dash(self):
        self.assertEqual(render.text_of(None), "–")

    def test_a_single_line_is_called_one_run(self):
        [text] = render.own_tables(merged([chain(100)]))
        self.assertIn("| chain_100 | sqlite | one run | 100 |", text)

    def test_several_lines_are_counted(self):
        [text] = render.own_tables(merged([chain(100), chain(120), chain(110)]))
        self.assertIn("| chain_100 | sqlite | 3 | 110 (100–120) |", text)


class Comparing(unittest.TestCase):
    def test_handlers_in_another_process_stand_beside_worker_processes(self):
        lines = [chain(20000), worker("steps_http", 1, 64, 4755), worker("steps_http", 1, 8, 1939), peer("restate")]
        found = names(lines)
        self.assertEqual(list(found), ["Chains, 100 executions at a time, step code in another process"])
        self.assertEqual(found[list(found)[0]], ["noetl, postgres, 1 worker process over HTTP", "restate"])

    def test_libraries_stand_beside_the_worker_inside_the_process(self):
        lines = [chain(20000), worker("steps_http", 1, 64, 4755), peer("dbos", store="sqlite")]
        found = names(lines)
        self.assertEqual(list(found), ["Chains, 100 executions at a time, step code in the engine's process"])
        self.assertEqual(found[list(found)[0]], ["noetl, sqlite", "dbos, sqlite"])

    def test_child_calls_stand_beside_calls_and_items_beside_loops(self):
        peers = [peer(name, "fan_out", 1) for name in ["restate", "duroxide"]]
        found = names([CALLS, FAN_OUT, *peers])
        self.assertEqual(found["Child executions, waited for together"], ["noetl, sqlite", "restate"])
        self.assertEqual(found["100 items of one execution, waited for together"], ["noetl, sqlite", "duroxide"])

    def test_the_ratio_is_taken_on_the_same_store(self):
        postgres = {**chain(8000), "store": "postgres"}
        lines = [chain(20000), postgres, peer("dbos", rate=400, store="postgres")]
        text = "\n".join(render.peer_tables(merged(lines)))
        self.assertIn("| dbos, postgres | one run | 400 | 500 | – | – | – | 0.05 |", text)

    def test_the_ratio_is_that_of_the_measurement_compared(self):
        text = "\n".join(render.peer_tables(merged([CALLS, FAN_OUT, peer("restate", "fan_out", 1, 922.0)])))
        self.assertIn("| restate | one run | 922 | – | 0.5 |", text)

    def test_every_peer_that_is_measured_has_its_kind_of_work(self):
        measured = (Path(render.__file__).parents[1] / "peers").glob("*/peer.py")
        for file in measured:
            text = file.read_text()
            with self.subTest(peer=file.parent.name):
                self.assertTrue(any(f'harness.measure("{name}"' in text for name in compare.PEERS))


class Page(unittest.TestCase):
    def test_several_files_of_lines_become_tables_and_plots(self):
        with tempfile.TemporaryDirectory() as directory:
            page, files = Path(directory) / "page.md", []
            page.write_text(f"before\n{render.BEGIN}\nold\n{render.END}\nafter\n")
            for run, rate in enumerate([21842, 19500, 23000]):
                file = Path(directory) / f"{run}.jsonl"
                lines = [chain(rate), peer("dbos", rate=rate / 10, store="sqlite")]
                file.write_text("noise\n" + "\n".join(json.dumps(line) for line in lines) + "\n")
                files.append(str(file))
            with mock.patch.object(sys, "argv", ["render.py", str(page), *files]):
                render.main()
            text = page.read_text()
            self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))
            self.assertNotIn("old", text)
            self.assertIn("| noetl, sqlite | 3 | 21 842 (19 500–23 000) |", text)
            self.assertIn('class="spread"', (Path(directory) / "images/performance-throughput.svg").read_text())

    def test_a_page_without_marks_is_an_error(self):
        with self.assertRaises(ValueError):
            render.replaced("text", [])


if __name__ == "__main__":
    unittest.main()
