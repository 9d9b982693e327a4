"""Jobs for Celery's workers, handed over in the folder JOBS. Run as a program, it hands over as many as it is told."""

import os
import sys

import celery

folder = os.environ["JOBS"]
app = celery.Celery("jobs", broker="filesystem://")
app.conf.broker_transport_options = {"data_folder_in": folder, "data_folder_out": folder}
app.conf.task_ignore_result = True


@app.task(name="jobs.compute")
def compute(units):
    return sum(number * number for number in range(units))


if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        compute.delay(100_000)
