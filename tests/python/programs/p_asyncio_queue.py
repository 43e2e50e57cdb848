import asyncio


async def producer(q):
    for i in range(5):
        await q.put(i)
    await q.put(None)


async def consumer(q, out):
    while (item := await q.get()) is not None:
        out.append(item * item)


async def main():
    q, out = asyncio.Queue(2), []
    await asyncio.gather(producer(q), consumer(q, out))
    print(out)
    lock = asyncio.Lock()
    async with lock:
        print("locked", lock.locked())
    print(await asyncio.to_thread(sum, range(10)))


asyncio.run(main())
