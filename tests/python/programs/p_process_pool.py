import os
import socket
from concurrent.futures import ProcessPoolExecutor, as_completed


def cube(n):
    if n == 3:
        raise ValueError("three")
    return n**3


if __name__ == "__main__":
    with ProcessPoolExecutor(max_workers=2) as pool:
        print(list(pool.map(cube, [1, 2, 4], chunksize=2)))
        futures = {pool.submit(cube, n): n for n in (2, 3)}
        for future in sorted(as_completed(futures), key=futures.get):
            try:
                print(futures[future], future.result())
            except ValueError as e:
                print(futures[future], "failed:", e)
    os.umask(os.umask(0o22))
    print(os.getuid() == os.geteuid(), type(os.getgid()), socket.gethostname() != "")
