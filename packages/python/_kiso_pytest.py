# pytest where no number of a file can be made to mean another file. What it captures by number elsewhere, it captures as what Python writes
# here, and as what commands write that the program starts.
import io
import os

import _kiso_subprocess


def patch_capture(module):
    class _ToCommands:
        """Takes what commands write that have the program's own stream."""

        def __init__(self, capture):
            self._capture = capture

        def write(self, data):
            file = self._capture.tmpfile
            file.flush()
            file.buffer.write(data)

    def of_commands(base):
        class FDCapture(base):
            def __init__(self, targetfd):
                super().__init__(targetfd)
                self.targetfd = targetfd

            def _attach(self):
                if self.targetfd in (1, 2):
                    _kiso_subprocess.instead_of_own[self.targetfd] = _ToCommands(self)

            def _detach(self):
                _kiso_subprocess.instead_of_own.pop(self.targetfd, None)

            def start(self):
                super().start()
                self._attach()

            def done(self):
                self._detach()
                super().done()

            def suspend(self):
                self._detach()
                super().suspend()

            def resume(self):
                super().resume()
                self._attach()

        return FDCapture

    module.FDCapture = of_commands(module.SysCapture)
    module.FDCaptureBinary = of_commands(module.SysCaptureBinary)


def patch_faulthandler(module):
    # It keeps a copy of standard error, by number.
    for hook in ("pytest_configure", "pytest_unconfigure", "pytest_runtest_protocol", "pytest_enter_pdb", "pytest_exception_interact"):
        if hasattr(module, hook):
            delattr(module, hook)


def patch_logging(module):
    # It writes to a device of the system where no file is named.
    class _FileHandler(module._FileHandler):
        def _open(self):
            if self.baseFilename == os.devnull:
                return io.StringIO()
            return super()._open()

        def emit(self, record):
            if self.baseFilename != os.devnull:
                super().emit(record)

    module._FileHandler = _FileHandler


def patch_tmpdir(module):
    # Files have no owner here.
    module.get_user_id = lambda: None
