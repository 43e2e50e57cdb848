import configparser
import tomllib

c = configparser.ConfigParser()
c.read_string("[server]\nport = 80\ndebug = yes\n[paths]\nroot = /srv\nlogs = %(root)s/logs\n")
print(c.sections(), c.getint("server", "port"), c.getboolean("server", "debug"), c["paths"]["logs"])
print(tomllib.loads('title = "t"\n[a]\nx = [1, 2.5]\nd = 2024-01-02\n'))
