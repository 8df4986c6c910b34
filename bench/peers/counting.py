"""Counts steps and the times between two steps of one execution, for the peers in Python."""

import json
import threading
import time


class Counter:
    """Counts while its window is open. A step calls `step` with what its execution is known by."""

    def __init__(self):
        self.lock = threading.Lock()
        self.is_open = False
        self.last = {}
        self.gaps = []
        self.steps = 0

    def step(self, execution):
        now = time.perf_counter_ns()
        with self.lock:
            before = self.last.get(execution)
            self.last[execution] = now
            if self.is_open:
                self.steps += 1
                if before is not None:
                    self.gaps.append((now - before) // 1000)

    def window(self, warm_up, seconds):
        """Counts for so long and prints what was counted."""
        time.sleep(warm_up)
        print("begin", flush=True)
        began = time.perf_counter()
        self.is_open = True
        time.sleep(seconds)
        with self.lock:
            self.is_open = False
        took = time.perf_counter() - began
        self.gaps.sort()

        def at(share):
            return self.gaps[min(len(self.gaps) - 1, int(len(self.gaps) * share))] if self.gaps else None

        counted = {
            "steps": self.steps,
            "seconds": took,
            "p50_us": at(0.5),
            "p99_us": at(0.99),
            "p999_us": at(0.999),
        }
        print(json.dumps(counted), flush=True)
