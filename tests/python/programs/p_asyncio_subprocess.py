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
    count = await asyncio.create_subprocess_exec("wc", "-c", stdin=PIPE, stdout=PIPE)
    count.stdin.write(b"x" * 200_000)
    count.stdin.write_eof()
    print((await count.stdout.read()).strip(), await count.wait())
    talk = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
    talk.stdin.write(b"one\ntwo\n")
    print(await talk.stdout.readline(), await talk.communicate(b"three\n"))
    short = await asyncio.create_subprocess_exec("sleep", "0.05")
    while short.returncode is None:
        await asyncio.sleep(0.01)
    print(short.returncode)


async def echoed(word):
    process = await asyncio.create_subprocess_exec("echo", word, stdout=PIPE, stderr=PIPE)
    return (await process.communicate())[0]


asyncio.run(main())
