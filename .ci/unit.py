"""Print the processor time of ten million additions in a Python loop: the unit L, to compare costs across machines."""

import time

before = time.process_time()
total = 0
for one in range(10_000_000):
    total += one
print(f"{time.process_time() - before:.3f}")
