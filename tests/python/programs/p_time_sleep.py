import time

start = time.monotonic()
time.sleep(0.02)
passed = time.monotonic() - start
print(passed >= 0.019, time.time() > 1.7e9, time.gmtime(0)[:6], time.strftime("%Y-%m-%d", time.gmtime(86400)))
print(time.perf_counter() > 0, time.process_time() >= 0)
