"""Chains or fan-outs of tasks on a Prefect server: work.py chain|fan_out CONCURRENCY SECONDS"""

import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from counting import Counter

from prefect import flow, task
from prefect.task_runners import ThreadPoolTaskRunner

LENGTH = 100
shape, concurrency, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
counter = Counter()


@task(persist_result=True)
def noop(execution):
    counter.step(execution)
    return {}


@flow
def chain(execution):
    for _ in range(LENGTH):
        noop(execution)


@flow(task_runner=ThreadPoolTaskRunner(max_workers=64))
def fan_out(execution):
    return [future.result() for future in [noop.submit(execution) for _ in range(LENGTH)]]


def lane(number):
    run = chain if shape == "chain" else fan_out
    turn = 0
    while True:
        turn += 1
        run(f"{number}-{turn}")


for number in range(concurrency):
    threading.Thread(target=lane, args=(number,), daemon=True).start()
counter.window(8, seconds)
sys.stdout.flush()
os._exit(0)
