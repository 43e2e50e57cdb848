"""Home Assistant with its REST API."""

import textwrap

from programs import Daemon, Program, ask, blocks, do, free_port, pip, python, section, until

# The last version that runs with Python 3.13.0 and 3.13.1.
VERSION, FRONTEND = "2025.4.4", "20250411.0"

CONFIGURATION = """\
http:
  server_host: 127.0.0.1
  server_port: {port}
api:
input_boolean:
  door:
input_text:
  note:
automation:
  - alias: Tell kiso
    trigger:
      - platform: state
        entity_id: [input_boolean.door, input_text.note]
    action:
      -
{action}
{command}
"""


def install(place):
    do(python("3.13"), "-m", "venv", place)
    pip(place, f"homeassistant=={VERSION}")
    known = next(place.glob("lib/*/site-packages/homeassistant/package_constraints.txt"))
    pip(place, "-c", known, f"home-assistant-frontend=={FRONTEND}")


def use(place, kiso, scratch):
    """An automation notifies kiso through the hook: of a door that opens, and of a text with characters that JSON must escape."""
    page = section("clients.md", "Home Assistant")
    command, action = blocks(page, "yaml")
    hooks = section("hooks.md", "Home Assistant")
    assert blocks(hooks, "yaml") == [command], "both pages have the same lines"
    daemon = Daemon(kiso, scratch, blocks(hooks, "toml")[0])
    port = free_port()
    configuration = CONFIGURATION.format(port=port, action=textwrap.indent(action, " " * 8), command=daemon.here(command))
    secrets = f'kiso_hook: "Bearer {daemon.run("connect", "hook", "secret", "house").strip()}"\n'
    program = Program([place / "bin/hass", "--config", ".", "--skip-pip"], {}, scratch,
                      {"configuration.yaml": configuration, "secrets.yaml": secrets})
    try:
        tell(f"http://127.0.0.1:{port}", program, daemon)
    finally:
        program.end()
    daemon.end()
    return "a state that changed, with and without quotation marks in it, through rest_command and the hook"


def tell(url, program, daemon):
    person = {"client_id": f"{url}/", "name": "Ada", "username": "ada", "password": "a-long-password", "language": "en"}
    code = program.until("Home Assistant", lambda: ask("POST", f"{url}/api/onboarding/users", person))["auth_code"]
    form = {"grant_type": "authorization_code", "code": code, "client_id": f"{url}/"}
    token = ask("POST", f"{url}/auth/token", form, form=True)["access_token"]

    def call(service, **data):
        ask("POST", f"{url}/api/services/{service}", data, token)

    def heard(count):
        return lambda: len(now := daemon.messages("hook.house")) >= 2 * count and now

    program.until("the start", lambda: ask("GET", f"{url}/api/config", token=token)["state"] == "RUNNING")
    call("input_boolean/turn_on", entity_id="input_boolean.door")
    program.until("the answer", heard(1))
    call("input_text/set_value", entity_id="input_text.note", value='the "red" door')
    told = [text for role, text in program.until("the second answer", heard(2)) if role == "user"]
    assert told[0].startswith("input_boolean.door changed from off to on."), told
    assert len(told) == 2 and 'the "red" door' in told[1], told
    # The session that the hook names gets the answers as well.
    program.until("the answers at home", lambda: len(daemon.messages("home")) == 2)
