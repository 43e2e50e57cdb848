import asyncio
from asyncio.subprocess import PIPE


async def main():
    sort = await asyncio.create_subprocess_exec("sort", stdin=PIPE, stdout=PIPE)
    print(await sort.communicate(b"b\na\n"), sort.returncode)
    count = await asyncio.create_subprocess_shell("for i in 1 2 3; do echo line $i; done; exit 3", stdout=PIPE)
    async for line in count.stdout:
        print(line.decode().strip())
    print(await count.wait(), count.stdout.at_eof())
    slow = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        await asyncio.wait_for(slow.wait(), 0.05)
    except asyncio.TimeoutError:
        slow.kill()
        print("killed", await slow.wait())
    print(await asyncio.gather(*[echoed(word) for word in ("one", "two", "three")]))
    cat = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
    cat.stdin.write(b"x" * 999 + b"\n" + b"y" * 300_000)

    async def fed():
        await cat.stdin.drain()
        cat.stdin.close()

    feeding = asyncio.create_task(fed())
    print(len(await cat.stdout.readline()), await cat.stdout.readexactly(2), len(await cat.stdout.read()))
    await feeding
    print(await cat.wait())


async def echoed(word):
    process = await asyncio.create_subprocess_exec("echo", word, stdout=PIPE, stderr=PIPE)
    return (await process.communicate())[0]


asyncio.run(main())
