# `concurrent.futures.thread` and `concurrent.futures.process` where there are neither threads nor processes: each call is made when it is
# submitted, and its future is done.
from concurrent.futures import _base


class BrokenThreadPool(_base.BrokenExecutor):
    pass


class ThreadPoolExecutor(_base.Executor):
    def __init__(self, max_workers=None, thread_name_prefix="", initializer=None, initargs=()):
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._initialize = initializer and (lambda: initializer(*initargs))
        self._is_down = False

    def submit(self, fn, /, *args, **kwargs):
        if self._is_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if self._initialize:
            initialize, self._initialize = self._initialize, None
            initialize()
        future = _base.Future()
        future.set_running_or_notify_cancel()
        try:
            result = fn(*args, **kwargs)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
        return future

    def shutdown(self, wait=True, *, cancel_futures=False):
        self._is_down = True


class BrokenProcessPool(BrokenThreadPool):
    pass


class ProcessPoolExecutor(ThreadPoolExecutor):
    def __init__(self, max_workers=None, mp_context=None, initializer=None, initargs=(), *, max_tasks_per_child=None):
        super().__init__(max_workers, "", initializer, initargs)
