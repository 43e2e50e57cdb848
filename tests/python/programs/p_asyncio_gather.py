import asyncio


async def work(name, delay):
    await asyncio.sleep(delay)
    return name


async def main():
    print(await asyncio.gather(*(work(n, d) for n, d in [("c", 0.03), ("a", 0.01), ("b", 0.02)])))
    done = []
    tasks = [asyncio.create_task(work(n, d)) for n, d in [("x", 0.02), ("y", 0.01)]]
    for task in asyncio.as_completed(tasks):
        done.append(await task)
    print(done)
    try:
        await asyncio.wait_for(asyncio.sleep(5), 0.01)
    except asyncio.TimeoutError:
        print("timed out")


asyncio.run(main())
