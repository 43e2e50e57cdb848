import logging
import sys

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
log = logging.getLogger("app.db")
log.debug("hidden")
log.info("started %d workers", 3)
try:
    1 / 0
except ZeroDivisionError:
    log.error("failed")
handler = logging.FileHandler("app.log")
handler.setFormatter(logging.Formatter("%(message)s"))
log.addHandler(handler)
log.warning("to a file")
handler.close()
print(open("app.log").read(), end="")
