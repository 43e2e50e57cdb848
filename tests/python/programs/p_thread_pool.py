from concurrent.futures import ThreadPoolExecutor, as_completed


def square(n):
    if n == 3:
        raise ValueError("three")
    return n * n


with ThreadPoolExecutor(max_workers=4) as pool:
    print(list(pool.map(square, [1, 2, 4])))
    futures = {pool.submit(square, n): n for n in (2, 3)}
    for future in sorted(as_completed(futures), key=futures.get):
        try:
            print(futures[future], future.result())
        except ValueError as e:
            print(futures[future], "failed:", e)
