"""Chains or fan-outs of steps on DBOS: work.py chain|fan_out CONCURRENCY SECONDS DATABASE_URL"""

import os
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from counting import Counter

from dbos import DBOS

LENGTH = 100
shape, concurrency, seconds, url = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
counter = Counter()
DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR",
             "sys_db_pool_size": 20})


@DBOS.step()
def noop(execution):
    counter.step(execution)
    return {}


@DBOS.workflow()
def chain(execution):
    for _ in range(LENGTH):
        noop(execution)


# Parallel steps are workflows of their own on a queue; threads within one are not deterministic.
@DBOS.workflow()
def item(execution):
    noop(execution)
    return {}


@DBOS.workflow()
def fan_out(execution):
    items = DBOS.retrieve_queue("items")
    handles = [items.enqueue(item, execution) for _ in range(LENGTH)]
    return [handle.get_result() for handle in handles]


def lane():
    workflow = chain if shape == "chain" else fan_out
    while True:
        workflow(str(uuid.uuid4()))


DBOS.launch()
DBOS.register_queue("items", worker_concurrency=64, polling_interval_sec=0.05)
threads = ThreadPoolExecutor(concurrency)
for _ in range(concurrency):
    threads.submit(lane)
counter.window(3, seconds)
sys.stdout.flush()
os._exit(0)
