# `threading` where nothing runs at once. A thread that was started runs when somebody waits: for it, for what it puts into a queue, or
# for an event that it sets; at the latest at the end of the program. It runs to its end then, before whoever waits goes on. One that waits
# itself lets others run, and ends where it is when what it was run for has happened.
import time

STUCK = "threads run one after another here, and this one waits for something that none of the others does"

# The clock's own `sleep`, which the one below calls.
_sleep = time.sleep


class _Ended(BaseException):
    """Ends a thread that nobody waits for any more."""


class _Wait:
    """A wait of the program or of a thread, inside of which threads run."""

    def __init__(self, is_done, timeout):
        self.is_done = is_done
        self.until = None if timeout is None else time.monotonic() + max(timeout, 0)

    def is_over(self):
        return self.is_done() or self.until is not None and time.monotonic() >= self.until


def patch(module):
    Thread = module.Thread
    # Threads that were started and have not run; those that run, the last inside of a wait of the one before; and these waits.
    ready, running, waits = [], [], []
    number, main_number = 0, module.get_ident()

    def run(thread):
        ready.remove(thread)
        running.append(thread)
        depth = len(waits)
        try:
            thread.run()
        except _Ended:
            pass
        except BaseException:
            thread._invoke_excepthook(thread)
        finally:
            del waits[depth:]
            running.pop()
            thread._is_stopped = True
            with module._active_limbo_lock:
                module._active.pop(thread._ident, None)
            # The exception's frames hold it.
            thread = None

    def end_if_done():
        # A timer waits for nothing but its time.
        if running and not isinstance(running[-1], module.Timer) and any(wait.is_over() for wait in waits):
            raise _Ended

    def wait_until(is_done, timeout=None):
        """Lets threads run until something has happened; whether it has."""
        wait = _Wait(is_done, timeout)
        while not is_done():
            end_if_done()
            if ready:
                waits.append(wait)
                run(ready[0])
                waits.remove(wait)
            elif timeout is None:
                raise RuntimeError(STUCK)
            else:
                sleep(max(0, wait.until - time.monotonic()))
                return is_done()
            if wait.until is not None and time.monotonic() >= wait.until:
                return is_done()
        return True

    def sleep(seconds):
        end_if_done()
        until = min((wait.until for wait in waits if wait.until is not None), default=None) if running else None
        if until is None or until >= time.monotonic() + seconds:
            _sleep(seconds)
        else:
            _sleep(max(0, until - time.monotonic()))
            end_if_done()

    def start(self):
        nonlocal number
        if not self._initialized:
            raise RuntimeError("thread.__init__() not called")
        if self._started._flag:
            raise RuntimeError("threads can only be started once")
        number += 1
        self._ident = self._native_id = main_number + number
        with module._active_limbo_lock:
            module._active[self._ident] = self
        self._started.set()
        ready.append(self)

    def is_alive(self):
        if not self._initialized:
            raise RuntimeError("Thread.__init__() not called")
        if self is module.main_thread():
            return True
        if self in ready and self is not current_thread():
            run(self)
        return self in running

    def join(self, timeout=None):
        if not self._initialized:
            raise RuntimeError("Thread.__init__() not called")
        if not self._started._flag:
            raise RuntimeError("cannot join thread before it is started")
        if self is current_thread():
            raise RuntimeError("cannot join current thread")
        if self in ready:
            waits.append(_Wait(lambda: False, timeout))
            wait = waits[-1]
            run(self)
            waits.remove(wait)
        elif self in running or self is module.main_thread():
            wait_until(lambda: False, timeout)

    def current_thread():
        return running[-1] if running else own_current_thread()

    def get_ident():
        return running[-1]._ident if running else main_number

    def wait(self, timeout=None):
        if not self._is_owned():
            raise RuntimeError("cannot wait on un-acquired lock")
        waiter = module._allocate_lock()
        waiter.acquire()
        self._waiters.append(waiter)
        saved = self._release_save()
        # Asked again and again, so that what was taken once counts.
        is_notified = lambda: not waiter.locked()
        notified = False
        try:
            notified = wait_until(is_notified, timeout)
            return notified
        finally:
            self._acquire_restore(saved)
            if not notified and waiter in self._waiters:
                self._waiters.remove(waiter)

    def is_set(self):
        if not self._flag and not running:
            # A loop that asks again and again.
            for thread in [thread for thread in ready if not thread.daemon]:
                if thread in ready:
                    run(thread)
        return self._flag

    def shutdown():
        while others := [thread for thread in ready if not thread.daemon]:
            run(others[0])
        own_shutdown()

    own_current_thread, own_shutdown = module.current_thread, module._shutdown
    Thread.start, Thread.join, Thread.is_alive = start, join, is_alive
    module.Condition.wait, module.Event.is_set = wait, is_set
    module.current_thread = module.currentThread = current_thread
    module.get_ident = get_ident
    module._shutdown = shutdown
    time.sleep = sleep


def patch_queue(module):
    # That of C waits where no thread can run.
    module.SimpleQueue = module._PySimpleQueue
